"""Sums of attention rows per head and sequence, in torch or Triton."""
