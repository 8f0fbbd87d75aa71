"""Measure a model: over data, while it trains, or from its weights alone."""
