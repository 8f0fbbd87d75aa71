"""Attention variants, one per file; `table.py` lists them."""
