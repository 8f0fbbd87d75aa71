"""Named readings of records, one family per file; `table.py` lists them."""
