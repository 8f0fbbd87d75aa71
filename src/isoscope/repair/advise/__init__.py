"""Advice on a space of vectors: as it is, and after each repair."""
