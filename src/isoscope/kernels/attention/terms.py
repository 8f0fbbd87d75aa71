"""One tile of products, and what is added to it, for the Triton pass of `attention_tiles`.

Biases and floating masks enter as what the product starts from. Used after it, a tile that was loaded would
pull every sum into its own layout of registers: 8,500 instructions a tile in place of 1,500.
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


@triton.jit
def high_half(x, interpreted: tl.constexpr):
    """Float32 cut to the 16 bits that bfloat16 keeps, without rounding."""
    cut = (x.to(tl.int32, bitcast=True) & -65536).to(tl.float32, bitcast=True)
    if not interpreted:
        cut = cut.to(tl.bfloat16)
    return cut


@triton.jit
def products(
    block_q, middle_q, low_q, q, q_row, q_width, k, k_key, k_width,
    mask, mask_row, mask_key, bias, bias_row, bias_key, key_bias, key_bias_row, key_bias_key,
    row, real, start, s, e, per_scale,
    mask_kind: tl.constexpr, mask_flat: tl.constexpr, biased: tl.constexpr, bias_flat: tl.constexpr,
    key_biased: tl.constexpr, key_bias_flat: tl.constexpr, whole: tl.constexpr,
    queries: tl.constexpr, keys: tl.constexpr, width: tl.constexpr, slices: tl.constexpr,
    split: tl.constexpr, precision: tl.constexpr, interpreted: tl.constexpr,
):  # fmt: skip
    """Products with the keys from `start`, which lie at `k`, [queries, keys], in units of the scale.

    `whole`: all these keys exist. Queries that are `split` are the sum of three blocks of bfloat16.
    """
    key = tl.arange(0, keys)
    column = tl.arange(0, width)
    tile = k + key[None, :] * k_key + column[:, None] * k_width
    found = tl.zeros([queries, keys], tl.float32)
    if mask_kind == 2 or biased or key_biased:
        found += added(
            mask, mask_row, mask_key, bias, bias_row, bias_key, key_bias, key_bias_row, key_bias_key,
            row, real, start, key, s, per_scale,
            mask_kind, mask_flat, biased, bias_flat, key_biased, key_bias_flat, keys,
        )  # fmt: skip
    if slices == 1:
        if whole:
            tile_k = tl.load(tile)
        else:
            tile_k = tl.load(tile, mask=(start + key < s)[None, :] & (column < e)[:, None], other=0.0)
        if interpreted:
            tile_k = tile_k.to(tl.float32)
        if split:
            found = tl.dot(low_q, tile_k, found, input_precision=precision)
            found = tl.dot(middle_q, tile_k, found, input_precision=precision)
        found = tl.dot(block_q, tile_k, found, input_precision=precision)
    else:
        for piece in tl.range(slices):
            here = piece * width + column
            slice_q = tl.load(
                q + row[:, None] * q_row + here[None, :] * q_width,
                mask=real[:, None] & (here < e)[None, :],
                other=0.0,
            )
            slice_k = tl.load(
                tile + piece * width * k_width,
                mask=(start + key < s)[None, :] & (here < e)[:, None],
                other=0.0,
            )
            if interpreted:
                slice_q = slice_q.to(tl.float32)
                slice_k = slice_k.to(tl.float32)
            found = tl.dot(slice_q, slice_k, found, input_precision=precision)
    return found
