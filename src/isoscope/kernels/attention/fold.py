"""Tiles of scores folded into the sums of their rows, for the Triton pass of `attention_tiles`.

Sums are [queries, 4]: four threads hold a row of a product, and each keeps its own until the last tile.
"""

# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call"
# Triton reads the source of these functions: their arguments are pointers, integers and flags.
from __future__ import annotations

import triton
import triton.language as tl

from isoscope.kernels.attention.terms import products


@triton.jit
def by_lane(tile, queries: tl.constexpr, keys: tl.constexpr):
    """[queries, keys] as [queries, 4, keys/4]: what one thread holds of a product's row lies in the last.

    Column c belongs to lane (c mod 8) div 2, so that a sum over the last dimension of a product exchanges
    nothing between threads. Its place there is `spot`: c = 2·lane + spot.
    """
    parts = tl.permute(tl.reshape(tile, [queries, keys // 8, 4, 2]), (0, 2, 1, 3))
    return tl.reshape(parts, [queries, 4, keys // 4])


@triton.jit
def exponents(
    products, reference, unit, cap, per_cap,
    capped: tl.constexpr, queries: tl.constexpr, keys: tl.constexpr,
):  # fmt: skip
    """Scores in base 2 above the row's reference, [queries, 4, keys/4]."""
    scores = by_lane(products, queries, keys)
    if capped:
        scores = cap * (1.0 - 2.0 / (tl.exp2(scores * per_cap) + 1.0))
    return scores * unit - reference[:, None, None]


@triton.jit
def seen(start, words, since, upto, windowed: tl.constexpr, mask_kind: tl.constexpr, keys: tl.constexpr):
    """Which keys of a tile that starts at `start` every query sees, [queries, 4, keys/4]."""
    if mask_kind > 0:
        word = tl.load(words + start // keys * 4)
        shown = (word[:, :, None] & (1 << tl.arange(0, keys // 4))[None, None, :]) != 0
    else:
        lane = 2 * tl.arange(0, 4)
        spot = tl.arange(0, keys // 4) // 2 * 8 + tl.arange(0, keys // 4) % 2  # key = lane + spot
        shown = spot[None, None, :] < (upto[:, None] - start - lane[None, :])[:, :, None]
        if windowed:
            shown = shown & (spot[None, None, :] >= (since[:, None] - start - lane[None, :])[:, :, None])
    return shown


@triton.jit
def fold(
    x, start, gap, top, weight, energy, square, travel, total, scatter, words, since, upto,
    run: tl.constexpr, causal: tl.constexpr, windowed: tl.constexpr, mask_kind: tl.constexpr,
    want_collision: tl.constexpr, want_variance: tl.constexpr,
    want_distance: tl.constexpr, keys: tl.constexpr,
):  # fmt: skip
    """The sums with one more tile of exponents, which starts at key `start`, `gap` keys before the query.

    `top` is the largest weight, as the integer that has its bits: of what is not negative the order is the
    same, and on Hopper one instruction takes the largest of three integers.
    """
    y = x
    if run % 2 == 0 or mask_kind > 0:
        shown = seen(start, words, since, upto, windowed, mask_kind, keys)
        y = tl.where(shown, x, 0.0)
        x = tl.where(shown, x, -3.0e38)  # finite: 0·x is 0
    w = tl.exp2(x)
    top = tl.maximum(top, tl.max(w.to(tl.int32, bitcast=True), 2))
    tile_weight = tl.sum(w, 2)
    weight += tile_weight
    energy += tl.sum(w * x, 2)
    if want_collision:
        square += tl.sum(w * w, 2)
    if want_distance:
        spot = tl.arange(0, keys // 4) // 2 * 8 + tl.arange(0, keys // 4) % 2  # key = lane + spot
        local = spot.to(tl.float32)[None, None, :]
        if run % 2 == 0 and not causal:
            travel += tl.sum(w * tl.abs(gap[:, :, None] - local), 2)
        elif run == 3:
            travel += tl.sum(w * local, 2) - gap * tile_weight
        else:
            travel += gap * tile_weight - tl.sum(w * local, 2)
    if want_variance:
        total += tl.sum(y, 2)
        scatter += tl.sum(y * y, 2)
    return top, weight, energy, square, travel, total, scatter


@triton.jit
def walk(
    block_q, middle_q, low_q, q, q_row, q_width, k, k_key, k_width,
    mask, mask_row, mask_key, bias, bias_row, bias_key, key_bias, key_bias_row, key_bias_key,
    words, row, real, at, since, upto, low, clear, whole, around, after, end,
    s, e, reference, unit, per_scale, cap, per_cap,
    causal: tl.constexpr, windowed: tl.constexpr, mask_kind: tl.constexpr, mask_flat: tl.constexpr,
    biased: tl.constexpr, bias_flat: tl.constexpr, key_biased: tl.constexpr, key_bias_flat: tl.constexpr,
    capped: tl.constexpr, want_collision: tl.constexpr, want_variance: tl.constexpr,
    want_distance: tl.constexpr, queries: tl.constexpr, keys: tl.constexpr, width: tl.constexpr,
    slices: tl.constexpr, even: tl.constexpr, neat: tl.constexpr, split: tl.constexpr,
    precision: tl.constexpr, interpreted: tl.constexpr,
):  # fmt: skip
    """The sums over all tiles, run by run, for one reference."""
    nothing = tl.zeros([queries, 4], tl.float32)
    top = tl.zeros([queries, 4], tl.int32)
    weight, energy, square, travel = nothing, nothing, nothing, nothing
    total, scatter = nothing, nothing
    for run in tl.static_range(5):
        if run == 0:
            run_low, run_high = low, clear
        elif run == 1:
            run_low, run_high = clear, whole
        elif run == 2:
            run_low, run_high = whole, around
        elif run == 3:
            run_low, run_high = around, after
        else:
            run_low, run_high = after, end
        if run == 1 or run == 2 or (run == 0 and windowed) or (run > 2 and not causal):
            gap = (at[:, None] - run_low - 2 * tl.arange(0, 4)[None, :]).to(tl.float32)
            k_tile = k + tl.cast(run_low, tl.int64) * k_key
            for start in tl.range(run_low, run_high, keys):
                tile = products(
                    block_q, middle_q, low_q, q, q_row, q_width, k_tile, k_key, k_width,
                    mask, mask_row, mask_key, bias, bias_row, bias_key,
                    key_bias, key_bias_row, key_bias_key, row, real, start, s, e, per_scale,
                    mask_kind, mask_flat, biased, bias_flat, key_biased, key_bias_flat,
                    neat or (run % 2 == 1 and even),
                    queries, keys, width, slices, split, precision, interpreted,
                )  # fmt: skip
                x = exponents(tile, reference, unit, cap, per_cap, capped, queries, keys)
                top, weight, energy, square, travel, total, scatter = fold(
                    x, start, gap, top, weight, energy, square, travel, total, scatter,
                    words, since, upto, run, causal, windowed, mask_kind,
                    want_collision, want_variance, want_distance, keys,
                )  # fmt: skip
                gap -= keys
                k_tile += keys * k_key
    return top, weight, energy, square, travel, total, scatter


@triton.jit
def highest(
    block_q, middle_q, low_q, q, q_row, q_width, k, k_key, k_width,
    mask, mask_row, mask_key, bias, bias_row, bias_key, key_bias, key_bias_row, key_bias_key,
    words, row, real, since, upto, low, end, s, e, reference, unit, per_scale, cap, per_cap,
    windowed: tl.constexpr, mask_kind: tl.constexpr, mask_flat: tl.constexpr,
    biased: tl.constexpr, bias_flat: tl.constexpr, key_biased: tl.constexpr, key_bias_flat: tl.constexpr,
    capped: tl.constexpr, queries: tl.constexpr, keys: tl.constexpr, width: tl.constexpr,
    slices: tl.constexpr, neat: tl.constexpr, split: tl.constexpr,
    precision: tl.constexpr, interpreted: tl.constexpr,
):  # fmt: skip
    """The largest exponent of every row, for rows whose weights left the range of float32."""
    found = tl.zeros([queries, 4], tl.float32) - 3.0e38
    k += tl.cast(low, tl.int64) * k_key
    for start in tl.range(low, end, keys):
        tile = products(
            block_q, middle_q, low_q, q, q_row, q_width, k, k_key, k_width,
            mask, mask_row, mask_key, bias, bias_row, bias_key,
            key_bias, key_bias_row, key_bias_key, row, real, start, s, e, per_scale,
            mask_kind, mask_flat, biased, bias_flat, key_biased, key_bias_flat,
            neat, queries, keys, width, slices, split, precision, interpreted,
        )  # fmt: skip
        x = exponents(tile, reference, unit, cap, per_cap, capped, queries, keys)
        shown = seen(start, words, since, upto, windowed, mask_kind, keys)
        found = tl.maximum(found, tl.max(tl.where(shown, x, -3.0e38), 2))
        k += keys * k_key
    return tl.max(found, 1)
