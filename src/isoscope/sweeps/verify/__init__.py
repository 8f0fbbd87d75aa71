"""Whether checkpoints are what their names say."""
