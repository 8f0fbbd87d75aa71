"""From rows to a page and to words. Reads results only."""
