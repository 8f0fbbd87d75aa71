"""Interactive figures for the page."""
