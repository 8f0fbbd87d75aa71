"""Readings of all checkpoints together: change points, similarity, correlations."""
