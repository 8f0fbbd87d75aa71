"""Change the geometry of vectors: fit a repair, apply it, save it, and measure whether it helps."""
