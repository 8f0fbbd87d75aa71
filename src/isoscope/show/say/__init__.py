"""Sentences made from readings."""
