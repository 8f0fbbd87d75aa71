"""Train several arms to matched entropy, or unmatched, and compare them."""
