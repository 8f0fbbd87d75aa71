"""Serve the page of a run that is still being written."""
