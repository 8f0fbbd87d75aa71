"""Weigh a model: readings of its weights, alone and on data."""
