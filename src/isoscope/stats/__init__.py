"""What a stream of tensors becomes: frozen records of sums, built with `of` and joined with `merge`.

Merging is associative and commutative, so batches, processes and machines can be joined in any order.
"""
