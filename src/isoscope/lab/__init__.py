"""Experiments on small models that train in minutes."""
