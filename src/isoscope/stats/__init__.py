"""What a stream becomes: frozen records that hold sums, made with `of` and joined with `merge`.

Merging is associative and commutative, so batches, processes and machines can be joined in any order.
"""
