"""One tile of scores folded into the sums of its rows, for the Triton pass of `attention_tiles`.

Sums are [queries, 4]: four threads hold a row of a product, and each keeps its own until the last tile.
"""

# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call"
# Triton reads the source of these functions: their arguments are pointers, integers and flags.
from __future__ import annotations

import triton
import triton.language as tl


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
def fold(
    x, start, top, weight, energy, square, travel, total, scatter, words, at, since, upto,
    run: tl.constexpr, causal: tl.constexpr, windowed: tl.constexpr, mask_kind: tl.constexpr,
    want_collision: tl.constexpr, want_variance: tl.constexpr,
    want_distance: tl.constexpr, queries: tl.constexpr, keys: tl.constexpr,
):  # fmt: skip
    """The sums with one more tile of exponents, which starts at key `start`."""
    lane = 2 * tl.arange(0, 4)
    spot = tl.arange(0, keys // 4) // 2 * 8 + tl.arange(0, keys // 4) % 2  # key = lane + spot
    hides: tl.constexpr = run % 2 == 0 or mask_kind > 0
    if mask_kind > 0:
        word = tl.load(words + start // keys * 4)
        shown = (word[:, :, None] & (1 << tl.arange(0, keys // 4))[None, None, :]) != 0
    elif run % 2 == 0:
        shown = spot[None, None, :] < (upto[:, None] - start - lane[None, :])[:, :, None]
        if windowed:
            shown = shown & (spot[None, None, :] >= (since[:, None] - start - lane[None, :])[:, :, None])
    if hides:
        y = tl.where(shown, x, 0.0)
        x = tl.where(shown, x, -3.0e38)  # finite: 0·x is 0
    else:
        y = x
    w = tl.exp2(x)
    top = tl.maximum(top, tl.max(x, 2))
    tile_weight = tl.sum(w, 2)
    weight += tile_weight
    energy += tl.sum(w * x, 2)
    if want_collision:
        square += tl.sum(w * w, 2)
    if want_distance:
        gap = (at[:, None] - start - lane[None, :]).to(tl.float32)
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
