"""Many checkpoints of one training: found, verified, measured one unit each, and read together."""
