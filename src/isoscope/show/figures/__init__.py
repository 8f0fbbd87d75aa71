"""Figures made from rows and points."""
