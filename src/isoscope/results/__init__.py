"""What a result is: rows with their uncertainty, the run they belong to, and the folder both live in."""
