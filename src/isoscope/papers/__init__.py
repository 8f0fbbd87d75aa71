"""Three papers as experiments: each claim states what it expects, makes rows, and is judged by intervals."""
