"""Attention rows in one fused Triton pass: a tile of scores lives in registers and leaves seven sums a row.

Every program takes a block of queries of one head and walks over tiles of keys, as flash attention does, but
without values: what is left is one product, one exp2 and eight other instructions a score. Tiles come in up
to five runs: keys cut by the window, keys before every query, keys around the diagonal, keys after every
query, keys cut by the length. Only runs 0, 2 and 4 look at positions; in 1 and 3 the sign of i' − j is known,
so that Σ w·|i' − j| costs one multiply-add. The scale goes into the exponent's.

Weights are 2^(score − reference), the reference being the row's mean score with 16 keys spread over the
block's reach. It is fixed while the tiles pass: no tile waits for another's largest score, nothing is
rescaled, every thread keeps sums of its own (`attention_fold`), and sums of scores about it give the
variance. Rows whose largest score lies 50 bits from it, or whose mean lies ten spreads from it, make their
block walk again from a better one: the mean, then the largest. That is 11 instructions a score, against 13.5
with an online maximum. On an H200 at 8k tokens 32 scores take 21 cycles of a scheduler, its issue slots 58 %
busy, tensor cores and exponentials 38 % each. Taking sums of scores from sums of keys (one instruction less)
or having the next tile's product under way meanwhile did not shorten it.

float32 products are three of TF32, taken in slices of the width. Twin: `geometry.attention`.
"""

# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call"
# Triton reads the source of these functions: their arguments are pointers, integers and flags.
from __future__ import annotations

import triton
import triton.language as tl

from isoscope.kernels.attention_fold import exponents, fold
from isoscope.kernels.attention_terms import added


# lengths are not looked at when compiling: they change from call to call, and one kernel does for all
@triton.jit(
    do_not_specialize=["marks_batch", "marks_head", "heads", "repeats", "t", "s", "offset", "window", "first"]
)
def rows_kernel(
    q, q_batch, q_head, q_row, q_width,
    k, k_batch, k_head, k_key, k_width,
    mask, mask_batch, mask_head, mask_row, mask_key,
    bias, bias_batch, bias_head, bias_row, bias_key,
    key_bias, key_bias_batch, key_bias_head, key_bias_row, key_bias_key,
    words, counts, reach, firsts, marks_batch, marks_head,
    lengths, out, visible,
    heads, repeats, t, s, e, offset, window, first, unit, per_scale, cap, per_cap,
    causal: tl.constexpr,
    windowed: tl.constexpr,
    cut: tl.constexpr,
    mask_kind: tl.constexpr,
    mask_flat: tl.constexpr,
    marks_flat: tl.constexpr,
    biased: tl.constexpr,
    bias_flat: tl.constexpr,
    key_biased: tl.constexpr,
    key_bias_flat: tl.constexpr,
    capped: tl.constexpr,
    want_collision: tl.constexpr,
    want_variance: tl.constexpr,
    want_first: tl.constexpr,
    want_distance: tl.constexpr,
    queries: tl.constexpr,
    keys: tl.constexpr,
    width: tl.constexpr,
    slices: tl.constexpr,
    even: tl.constexpr,
    precision: tl.constexpr,
    interpreted: tl.constexpr,
):  # fmt: skip
    """Every statistic of one block of queries of one head."""
    blocks = tl.cdiv(t, queries)
    head = tl.program_id(0) // blocks
    block = blocks - 1 - tl.program_id(0) % blocks  # under causal order the longest come first
    begin = block * queries
    batch = tl.cast(head // heads, tl.int64)
    number = tl.cast(head % heads, tl.int64)
    long = tl.cast(begin, tl.int64)
    q += batch * q_batch + number * q_head + long * q_row
    k += batch * k_batch + (number // repeats) * k_head
    mask += batch * mask_batch + number * mask_head + long * mask_row
    bias += batch * bias_batch + number * bias_head + long * bias_row
    key_bias += batch * key_bias_batch + number * key_bias_head + long * key_bias_row
    long_key = tl.cast(k_key, tl.int64)

    row = tl.arange(0, queries)
    key = tl.arange(0, keys)
    column = tl.arange(0, width)
    real = begin + row < t
    at = begin + row + offset
    length = s
    if cut:
        length = tl.minimum(tl.load(lengths + batch).to(tl.int32), s)

    # the runs of tiles
    near = begin + offset
    far = tl.minimum(begin + queries, t) - 1 + offset
    low = 0
    high = length
    if causal:
        high = tl.minimum(high, far + 1)
    if windowed:
        low = tl.maximum(0, near - window + 1)
        if not causal:
            high = tl.minimum(high, far + window)
    if mask_kind > 0:
        marks = batch * marks_batch + number * marks_head  # the words of this head
        if marks_flat:
            line = marks + row * 0
            reach += 2 * marks
        else:
            line = marks * t + tl.minimum(begin + row, t - 1)
            reach += 2 * (marks * blocks + block)
        count = tl.load(counts + line).to(tl.float32)
        words += line[:, None] * (4 * tl.cdiv(s, keys)) + tl.arange(0, 4)[None, :]
        low = tl.maximum(low, s - tl.load(reach))
        high = tl.minimum(high, tl.load(reach + 1))
        first = tl.minimum(s - tl.load(firsts + marks), s - 1)

    # the scores of the first key and of a mean of keys, while the queries are at hand
    one = tl.zeros([queries], tl.float32)
    probed = tl.zeros([queries], tl.float32)
    probe = low + tl.arange(0, 16) * tl.maximum((tl.minimum(high, s) - low) // 16, 1)
    for part in tl.static_range(slices):
        place = part * width + column
        block_q = tl.load(
            q + row[:, None] * q_row + place[None, :] * q_width,
            mask=real[:, None] & (place < e)[None, :],
            other=0.0,
        )
        some_k = tl.load(
            k + probe[:, None] * long_key + place[None, :] * k_width,
            mask=(probe < high)[:, None] & (place < e)[None, :],
            other=0.0,
        )
        mean_k = tl.sum(some_k.to(tl.float32), 0)
        probed += tl.sum(block_q.to(tl.float32) * mean_k[None, :], 1)
        if want_first:
            one_k = tl.load(k + first * long_key + place * k_width, mask=place < e, other=0.0)
            one += tl.sum(block_q.to(tl.float32) * one_k[None, :].to(tl.float32), 1)
    if interpreted:  # the interpreter multiplies the bits of bfloat16 as if they were integers
        block_q = block_q.to(tl.float32)
    probed = probed / tl.maximum(tl.sum((probe < high).to(tl.float32), 0), 1.0)
    if capped:
        probed = cap * (1.0 - 2.0 / (tl.exp2(probed * per_cap) + 1.0))
    reference = probed * unit
    reference = tl.where(tl.abs(reference) < 1.0e6, reference, 0.0)  # what is hidden may be anything

    low = low // keys * keys
    end = tl.maximum(low, tl.cdiv(tl.maximum(high, 0), keys) * keys)
    clear = low
    whole = tl.minimum(near + 1, length)  # a tile that ends here or before hides nothing
    after = length
    if windowed:
        clear = tl.minimum(end, tl.maximum(low, tl.cdiv(tl.maximum(far - window + 1, 0), keys) * keys))
        whole = tl.minimum(whole, near + window)
        after = tl.minimum(after, near + window)
    whole = tl.minimum(end, tl.maximum(clear, tl.maximum(whole, 0) // keys * keys))
    around = end
    if not causal:
        around = tl.minimum(end, tl.maximum(whole, tl.cdiv(tl.maximum(far, 0), keys) * keys))
        after = tl.minimum(end, tl.maximum(around, after // keys * keys))

    # query i sees the keys from `since` up to `upto` as far as position and length say
    since = tl.zeros([queries], tl.int32)
    upto = tl.zeros([queries], tl.int32) + length
    if causal:
        upto = tl.minimum(upto, at + 1)
    if windowed:
        since = tl.maximum(since, at - window + 1)
        upto = tl.minimum(upto, at + window)

    if mask_kind == 0:
        count = tl.maximum(upto - since, 0).to(tl.float32)
    mean = tl.zeros([queries], tl.float32)
    variance = tl.zeros([queries], tl.float32)
    settled = tl.zeros([queries], tl.int32)  # whether the variance is known
    nothing = tl.zeros([queries, 4], tl.float32)
    top = nothing - 3.0e38
    weight, energy, square, travel = nothing, nothing, nothing, nothing
    total, scatter = nothing, nothing
    peak = tl.zeros([queries], tl.float32)
    tiled: tl.constexpr = mask_kind == 2 or biased or key_biased
    again = 1
    tries = 0
    while again > 0:
        top = nothing - 3.0e38
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
                for start in tl.range(run_low, run_high, keys):
                    # the product
                    tile_at = k + start * long_key + key[None, :] * k_key + column[:, None] * k_width
                    products = tl.zeros([queries, keys], tl.float32)
                    if tiled:
                        products += added(
                            mask, mask_row, mask_key, bias, bias_row, bias_key,
                            key_bias, key_bias_row, key_bias_key,
                            row, real, start, key, s, per_scale,
                            mask_kind, mask_flat, biased, bias_flat, key_biased, key_bias_flat, keys,
                        )  # fmt: skip
                    if slices == 1:
                        if run % 2 == 1 and even:
                            tile_k = tl.load(tile_at)
                        else:
                            tile_k = tl.load(
                                tile_at, mask=(start + key < s)[None, :] & (column < e)[:, None], other=0.0
                            )
                        if interpreted:
                            tile_k = tile_k.to(tl.float32)
                        products = tl.dot(block_q, tile_k, products, input_precision=precision)
                    else:
                        for piece in tl.range(slices):
                            here = piece * width + column
                            slice_q = tl.load(
                                q + row[:, None] * q_row + here[None, :] * q_width,
                                mask=real[:, None] & (here < e)[None, :],
                                other=0.0,
                            )
                            slice_k = tl.load(
                                tile_at + piece * width * k_width,
                                mask=(start + key < s)[None, :] & (here < e)[:, None],
                                other=0.0,
                            )
                            if interpreted:
                                slice_q = slice_q.to(tl.float32)
                                slice_k = slice_k.to(tl.float32)
                            products = tl.dot(slice_q, slice_k, products, input_precision=precision)
                    x = exponents(products, reference, unit, cap, per_cap, capped, queries, keys)
                    top, weight, energy, square, travel, total, scatter = fold(
                        x, start, top, weight, energy, square, travel, total, scatter,
                        words, at, since, upto, run, causal, windowed, mask_kind,
                        want_collision, want_variance, want_distance, queries, keys,
                    )  # fmt: skip

        # whether the reference was near enough
        peak = tl.max(top, 1)
        far_off = (count > 0) & (tl.abs(peak) > 50.0)  # the squares of 2^17 weights of 2^50 fit
        step = peak
        if want_variance:
            mean = tl.sum(total, 1) / tl.maximum(count, 1.0)
            spread = tl.maximum(tl.sum(scatter, 1) / tl.maximum(count, 1.0) - mean * mean, 0.0)
            ill = (settled == 0) & (mean * mean > tl.maximum(100.0 * spread, 0.01))
            variance = tl.where(settled == 0, spread, variance)
            settled = tl.where(ill, 0, 1)
            step = tl.where(ill, mean, peak)
            far_off = far_off | ill
        tries += 1
        again = tl.where(tries < 3, tl.max(far_off.to(tl.int32), 0), 0)
        if again > 0:
            reference += tl.where(far_off, step, 0.0)

    # the statistics; energy is finite only where every visible score is
    weight = tl.sum(weight, 1)
    energy = tl.sum(energy, 1)
    usable = (count > 0) & (tl.abs(energy) < float("inf")) & (weight < float("inf"))
    nan = float("nan")
    ln2 = 0.6931471805599453
    bits = tl.log2(weight)
    plane = tl.cast(tl.num_programs(0) // blocks, tl.int64) * t
    out += tl.cast(head, tl.int64) * t + begin + row
    tl.store(visible + tl.cast(head, tl.int64) * t + begin + row, count.to(tl.int32), mask=real)
    tl.store(out, tl.where(usable, (reference + bits) * ln2, nan), mask=real)
    entropy = tl.where(count > 1, tl.maximum((bits - energy / weight) * ln2, 0.0), 0.0)
    tl.store(out + plane, tl.where(usable, entropy, nan), mask=real)
    tl.store(out + 2 * plane, tl.where(usable, tl.exp2(peak) / weight, nan), mask=real)
    tl.store(out + 4 * plane, tl.where(usable, (reference + peak) * ln2, nan), mask=real)
    if want_collision:
        tl.store(out + 3 * plane, tl.where(usable, tl.sum(square, 1) / weight / weight, nan), mask=real)
    if want_variance:
        tl.store(out + 5 * plane, tl.where(usable, variance * (ln2 * ln2), nan), mask=real)
    if want_first:
        score = one[:, None]
        if mask_kind == 2 or biased or key_biased:
            score += added(
                mask, mask_row, mask_key, bias, bias_row, bias_key, key_bias, key_bias_row, key_bias_key,
                row, real, first, tl.arange(0, 1), s, per_scale,
                mask_kind, mask_flat, biased, bias_flat, key_biased, key_bias_flat, 1,
            )  # fmt: skip
        if mask_kind > 0:
            inner = first % keys
            of_lane = tl.load(words + first // keys * 4)
            bit = 1 << (inner // 8 * 2 + inner % 2)
            of_lane = of_lane & tl.where(tl.arange(0, 4) == inner % 8 // 2, bit, 0)
            is_shown = tl.sum(of_lane, 1)[:, None] != 0
        else:
            is_shown = ((first >= since) & (first < upto))[:, None]
        if capped:
            score = cap * (1.0 - 2.0 / (tl.exp2(score * per_cap) + 1.0))
        score = score * unit
        of_first = tl.sum(tl.where(is_shown, tl.exp2(score - reference[:, None]), nan), 1) / weight
        tl.store(out + 6 * plane, tl.where(usable, of_first, nan), mask=real)
    if want_distance:
        tl.store(out + 7 * plane, tl.where(usable, tl.sum(travel, 1) / weight, nan), mask=real)
