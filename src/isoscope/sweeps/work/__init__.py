"""Measure one checkpoint per unit, in processes of this machine or on Ray."""
