"""All sums of a cloud of vectors in one pass, in torch or Triton."""
