"""Sums of queries and keys per head and sequence, in torch or Triton."""
