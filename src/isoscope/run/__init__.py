"""The verbs: observe a model over data, describe a cloud of points."""
