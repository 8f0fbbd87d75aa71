"""The papers: each claim says what it expects, makes its rows, and is judged from them by intervals."""
