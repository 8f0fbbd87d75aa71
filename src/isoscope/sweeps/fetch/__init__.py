"""Download checkpoints ahead of use within a disk budget."""
