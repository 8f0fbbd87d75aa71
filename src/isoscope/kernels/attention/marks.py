"""Which keys a mask shows, one bit a key, for the Triton pass of `attention_tiles`.

A tile of a mask that is loaded beside a product lies in other registers than the product, and moving it there
costs more than the rest of the pass. So one pass over the mask packs it, together with order, window and
lengths: the thread that holds a quarter of a row of a product reads one word that says what is shown of it.
Heads that share a mask share its words. The same pass finds how many keys every query sees, the first key
that anyone sees, and for every block of queries the first and the last, outside which there is nothing to do.
"""

# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call"
# Triton reads the source of these functions: their arguments are pointers, integers and flags.
from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["heads", "t", "s", "offset", "window"])
def marks_kernel(
    mask, mask_batch, mask_head, mask_row, mask_key,
    lengths, words, counts, reach, firsts,
    heads, t, s, offset, window, hidden_at_most,
    causal: tl.constexpr,
    windowed: tl.constexpr,
    cut: tl.constexpr,
    floating: tl.constexpr,
    queries: tl.constexpr,
    keys: tl.constexpr,
):  # fmt: skip
    """The words of one tile: bit p of word l says whether the p-th key of lane l is seen (`by_lane`).

    `reach` holds s − the first and 1 + the last key that a block of queries sees, `firsts` s − the first key
    of the head: both start at zero, and the largest stays.
    """
    tiles = tl.cdiv(s, keys)
    blocks = tl.cdiv(t, queries)
    tile = tl.program_id(0) % tiles
    block = tl.program_id(0) // tiles % blocks
    head = tl.cast(tl.program_id(0) // tiles // blocks, tl.int64)
    row = block * queries + tl.arange(0, queries)
    key = tile * keys + tl.arange(0, keys)
    mask += head // heads * mask_batch + head % heads * mask_head
    at = mask + row[:, None] * tl.cast(mask_row, tl.int64) + key[None, :] * tl.cast(mask_key, tl.int64)
    inside = (row < t)[:, None] & (key < s)[None, :]
    values = tl.load(at, mask=inside, other=0)
    if floating:
        shown = inside & ((values > hidden_at_most) | (values != values))  # NaN hides nothing
    if not floating:
        shown = inside & (values != 0)
    gap = (row + offset)[:, None] - key[None, :]
    if causal:
        shown = shown & (gap >= 0)
    if windowed:
        shown = shown & (tl.abs(gap) < window)
    if cut:
        shown = shown & (key < tl.load(lengths + head // heads))[None, :]
    # lane by lane: summed through `by_lane` the words were wrong on a GPU (Triton 3.6, rows of odd length)
    column = tl.arange(0, keys)
    bits = shown.to(tl.int32) << (column // 8 * 2 + column % 2)[None, :]
    words += (head * t + row) * (4 * tiles) + 4 * tile
    for lane in tl.static_range(4):
        word = tl.sum(tl.where((column % 8 // 2 == lane)[None, :], bits, 0), 1)
        tl.store(words + lane, word, mask=row < t)
    count = tl.sum(shown.to(tl.int32), 1)
    tl.atomic_add(counts + head * t + row, count, mask=(row < t) & (count > 0), sem="relaxed")
    anyone = tl.max(shown.to(tl.int32), 0) > 0
    before = tl.max(tl.where(anyone, s - key, 0), 0)
    if before > 0:
        tl.atomic_max(firsts + head, before, sem="relaxed")
        tl.atomic_max(reach + 2 * (head * blocks + block), before, sem="relaxed")
        past = tl.max(tl.where(anyone, key + 1, 0), 0)
        tl.atomic_max(reach + 2 * (head * blocks + block) + 1, past, sem="relaxed")
