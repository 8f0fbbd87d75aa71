"""The effect of repairs on tasks, with paired intervals."""
