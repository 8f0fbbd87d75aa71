"""A reproduced paper: its claims with verdicts."""
