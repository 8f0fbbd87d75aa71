"""Kinds of runs: their table, and what each shows."""
