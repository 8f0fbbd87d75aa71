"""Which checkpoints there are, on disk or on the hub."""
