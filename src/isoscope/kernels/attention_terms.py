"""What is added to one tile of scores, for the Triton pass of `attention_tiles`: biases and floating masks.

They enter as what the product starts from. Used after it, a tile that was loaded would pull every sum into
its own layout of registers: 8,500 instructions a tile in place of 1,500.
"""

# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call"
# Triton reads the source of these functions: their arguments are pointers, integers and flags.
from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def term(at, row_stride, key_stride, row, real, start, key, s, flat: tl.constexpr):
    """A tile of a mask or a bias whose first row is `at`; one row of it if all its rows are the same."""
    tile = at + start * tl.cast(key_stride, tl.int64) + key[None, :] * key_stride
    inside = (start + key < s)[None, :]
    if not flat:
        tile = tile + row[:, None] * row_stride
        inside = inside & real[:, None]
    return tl.load(tile, mask=inside, other=0)


@triton.jit
def added(
    mask, mask_row, mask_key, bias, bias_row, bias_key, key_bias, key_bias_row, key_bias_key,
    row, real, start, key, s, per_scale,
    mask_kind: tl.constexpr, mask_flat: tl.constexpr, biased: tl.constexpr, bias_flat: tl.constexpr,
    key_biased: tl.constexpr, key_bias_flat: tl.constexpr, keys: tl.constexpr,
):  # fmt: skip
    """What a tile of products starts from: the sum of the terms over the scale."""
    total = tl.zeros([1, keys], tl.float32)
    if biased:
        values = term(bias, bias_row, bias_key, row, real, start, key, s, bias_flat)
        total = total + values.to(tl.float32) * per_scale
    if key_biased:
        extra = term(key_bias, key_bias_row, key_bias_key, row, real, start, key, s, key_bias_flat)
        total = total + extra.to(tl.float32) * per_scale
    if mask_kind == 2:
        floats = term(mask, mask_row, mask_key, row, real, start, key, s, mask_flat)
        total = total + floats.to(tl.float32) * per_scale
    return total
