"""Where tensors come from: an address becomes a model, hooks show what flows through its blocks."""
