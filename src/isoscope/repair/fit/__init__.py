"""Fit a repair from a stream of vectors."""
