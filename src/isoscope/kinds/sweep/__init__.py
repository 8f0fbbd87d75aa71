"""A sweep over checkpoints."""
