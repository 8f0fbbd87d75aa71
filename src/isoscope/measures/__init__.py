"""Named readings of records: the folder to open when you want to add a measure."""
