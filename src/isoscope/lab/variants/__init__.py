"""Attention variants; `table.py` lists them."""
