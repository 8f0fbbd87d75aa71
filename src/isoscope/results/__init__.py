"""What a result is: rows with their uncertainty, their run, and the folder that holds both. No torch."""
