"""A fitted repair: apply it, save it, load it, put it into a model."""
