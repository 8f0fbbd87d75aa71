"""Which figures a run has, by name."""
