"""Many checkpoints of one training: find, verify, fetch and measure each, then read them together."""
