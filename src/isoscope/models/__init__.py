"""Where tensors come from: an address becomes a model, and hooks show what flows through its blocks."""
