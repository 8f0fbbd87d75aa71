"""Observe a model over data, or describe a cloud: one streamed pass into records, then rows."""
