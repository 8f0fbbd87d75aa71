"""Ways to attend, each in a file of its own; table.py lists them."""
