"""The attention tap: queries, keys, scale and mask of every attention inside a running model."""
