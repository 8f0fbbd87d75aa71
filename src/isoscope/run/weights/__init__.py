"""Weigh a model: what its weights say, alone and on data."""
