"""Change the geometry of vectors: fit a repair from a stream, apply it, keep it, put it into a model."""
