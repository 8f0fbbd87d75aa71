"""Advice on a space of vectors."""
