"""The effect of repairs on tasks."""
