"""Attention rows in one fused Triton pass: a tile of scores lives in registers and leaves seven sums a row.

Every program takes a block of queries of one head and walks over tiles of keys, as flash attention does, but
without values: what is left is one product, one exp2 and 7.5 other instructions a score. Tiles come in up to
five runs: keys cut by the window, keys before every query, keys around the diagonal, keys after every query,
keys cut by the length. Only runs 0, 2 and 4 look at positions; in 1 and 3 the sign of i' − j is known, so
that Σ w·|i' − j| costs one multiply-add. The scale goes into the exponent's.

Weights are 2^(score − reference), the reference being the row's mean score with 15 keys spread over the
block's reach. It is fixed while the tiles pass: no tile waits for another's largest score, nothing is
rescaled, every thread keeps sums of its own (`attention_fold`), and sums of scores about it give the
variance. Rows whose largest weight is 2^50 times too large or small, or whose mean lies ten spreads from the
reference, make their block walk again from a better one: the mean, then the largest. The second walk is a
copy of the code: kept in one loop, what it needs took registers from the first (8 % of the time).

With what a tile costs besides, that is 10.8 instructions a score. On an H200 at 2k, 8k and 32k tokens the
record takes .79, .78 and .79 of SDPA's time. The schedulers issue in 63 % of all cycles; warps wait most for
the two barriers a tile. At 32k the product alone takes .50 of SDPA's time and the rest alone .58: they
overlap by .29. Having the next tile's product under way within a warp was slower: its result is copied.

float32 products are three of TF32, taken in slices of the width. Queries in float32 of keys in bfloat16 are
split into three blocks of bfloat16 that add up to them: three products of bfloat16 with one load of the keys,
which take a quarter of the time. Twin: `geometry.attention`.
"""

# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call"
# Triton reads the source of these functions: their arguments are pointers, integers and flags.
from __future__ import annotations

import triton
import triton.language as tl

from isoscope.kernels.attention.fold import highest, walk
from isoscope.kernels.attention.terms import added, high_half


@triton.jit
def about(top, total, scatter, count):
    """Of every row: the largest weight, its exponent, and mean and variance of the exponents."""
    heaviest = tl.max(top, 1).to(tl.float32, bitcast=True)
    peak = tl.log2(tl.where(heaviest == 0.0, 1.0e-38, heaviest))
    share = 1.0 / tl.maximum(count, 1.0)
    mean = tl.sum(total, 1) * share
    spread = tl.maximum(tl.sum(scatter, 1) * share - mean * mean, 0.0)
    return heaviest, peak, mean, spread


# lengths are not looked at when compiling: they change from call to call, and one kernel does for all
@triton.jit(do_not_specialize=["marks_batch", "marks_head", "t", "s", "offset", "window", "first"])
def rows_kernel(
    q, k, mask, bias, key_bias, words, counts, reach, firsts, lengths, out,
    q_batch, q_head, k_batch, k_head,
    mask_batch, mask_head, mask_row, mask_key, bias_batch, bias_head, bias_row, bias_key,
    key_bias_batch, key_bias_head, key_bias_row, key_bias_key, marks_batch, marks_head,
    repeats, t, s, e, offset, window, first, unit, per_scale, cap, per_cap,
    q_row: tl.constexpr,
    q_width: tl.constexpr,
    k_key: tl.constexpr,
    k_width: tl.constexpr,
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
    neat: tl.constexpr,
    split: tl.constexpr,
    precision: tl.constexpr,
    interpreted: tl.constexpr,
):  # fmt: skip
    """Every statistic of one block of queries of one head."""
    blocks = tl.num_programs(0)
    block = blocks - 1 - tl.program_id(0)  # under causal order the longest come first
    begin = block * queries
    number = tl.cast(tl.program_id(1), tl.int64)
    batch = tl.cast(tl.program_id(2), tl.int64)
    long = tl.cast(begin, tl.int64)
    q += batch * q_batch + number * q_head + long * q_row
    k += batch * k_batch + (number // repeats) * k_head
    mask += batch * mask_batch + number * mask_head + long * mask_row
    bias += batch * bias_batch + number * bias_head + long * bias_row
    key_bias += batch * key_bias_batch + number * key_bias_head + long * key_bias_row
    long_key = tl.cast(k_key, tl.int64)

    row = tl.arange(0, queries)
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

    # scores of the first key and of 15 keys spread over the reach, while the queries are at hand
    some = tl.arange(0, 16)
    probe = low + (some - 1) * tl.maximum((tl.minimum(high, s) - low) // 15, 1)
    counts_in = (some > 0) & (probe < high)
    probe = tl.where(some == 0, first, probe)
    probed = tl.zeros([queries, 16], tl.float32)
    for part in tl.static_range(slices):
        place = part * width + column
        at_q = q + row[:, None] * q_row + place[None, :] * q_width
        if neat:
            block_q = tl.load(at_q)
        else:
            block_q = tl.load(at_q, mask=real[:, None] & (place < e)[None, :], other=0.0)
        some_k = tl.load(
            k + probe[None, :] * long_key + place[:, None] * k_width,
            mask=((some == 0) | counts_in)[None, :] & (place < e)[:, None],
            other=0.0,
        )
        if interpreted:  # the interpreter multiplies the bits of bfloat16 as if they were integers
            block_q = block_q.to(tl.float32)
            some_k = some_k.to(tl.float32)
        middle_q, low_q = block_q, block_q
        if split:  # no bit of float32 is lost: each block has the next eight
            rest = block_q
            block_q = high_half(rest, interpreted)
            rest -= block_q.to(tl.float32)
            middle_q = high_half(rest, interpreted)
            low_q = high_half(rest - middle_q.to(tl.float32), interpreted)
            probed = tl.dot(low_q, some_k, probed, input_precision=precision)
            probed = tl.dot(middle_q, some_k, probed, input_precision=precision)
        probed = tl.dot(block_q, some_k, probed, input_precision=precision)
    one = tl.sum(tl.where((some == 0)[None, :], probed, 0.0), 1)
    mean = tl.sum(tl.where(counts_in[None, :], probed, 0.0), 1)
    mean = mean * (1.0 / tl.minimum(tl.maximum(high - low, 1), 15).to(tl.float32))
    if capped:
        mean = cap * (1.0 - 2.0 / (tl.exp2(mean * per_cap) + 1.0))
    reference = mean * unit
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
    top, weight, energy, square, travel, total, scatter = walk(
        block_q, middle_q, low_q, q, q_row, q_width, k, k_key, k_width,
        mask, mask_row, mask_key, bias, bias_row, bias_key, key_bias, key_bias_row, key_bias_key,
        words, row, real, at, since, upto, low, clear, whole, around, after, end,
        s, e, reference, unit, per_scale, cap, per_cap,
        causal, windowed, mask_kind, mask_flat, biased, bias_flat, key_biased, key_bias_flat, capped,
        want_collision, want_variance, want_distance,
        queries, keys, width, slices, even, neat, split, precision, interpreted,
    )  # fmt: skip
    heaviest, peak, mean, spread = about(top, total, scatter, count)
    far = (count > 0) & (tl.abs(peak) > 50.0)  # the squares of 2^17 weights of 2^50 fit
    ill = want_variance & (count > 1) & (mean * mean > tl.maximum(100.0 * spread, 0.01))
    variance = spread
    tries = 1
    again = tl.max((far | ill).to(tl.int32), 0)
    while again > 0:  # from a better reference: the mean, then the largest
        step = tl.where(ill, mean, peak)
        lost = far & (ill == 0) & ((heaviest < 2.0e-38) | (heaviest > 3.0e38))
        if tl.max(lost.to(tl.int32), 0) > 0:
            top_x = highest(
                block_q, middle_q, low_q, q, q_row, q_width, k, k_key, k_width,
                mask, mask_row, mask_key, bias, bias_row, bias_key, key_bias, key_bias_row, key_bias_key,
                words, row, real, since, upto, low, end, s, e, reference, unit, per_scale, cap, per_cap,
                windowed, mask_kind, mask_flat, biased, bias_flat, key_biased, key_bias_flat, capped,
                queries, keys, width, slices, neat, split, precision, interpreted,
            )  # fmt: skip
            step = tl.where(lost, top_x, step)
        reference += tl.where(far | ill, step, 0.0)
        top, weight, energy, square, travel, total, scatter = walk(
            block_q, middle_q, low_q, q, q_row, q_width, k, k_key, k_width,
            mask, mask_row, mask_key, bias, bias_row, bias_key, key_bias, key_bias_row, key_bias_key,
            words, row, real, at, since, upto, low, clear, whole, around, after, end,
            s, e, reference, unit, per_scale, cap, per_cap,
            causal, windowed, mask_kind, mask_flat, biased, bias_flat, key_biased, key_bias_flat, capped,
            want_collision, want_variance, want_distance,
            queries, keys, width, slices, even, neat, split, precision, interpreted,
        )  # fmt: skip
        heaviest, peak, mean, spread = about(top, total, scatter, count)
        variance = tl.where(ill, spread, variance)
        far = (count > 0) & (tl.abs(peak) > 50.0)
        ill = ill & (mean * mean > tl.maximum(100.0 * spread, 0.01))
        tries += 1
        again = tl.where(tries < 3, tl.max((far | ill).to(tl.int32), 0), 0)

    # the statistics; energy is finite only where every visible score is
    weight = tl.sum(weight, 1)
    energy = tl.sum(energy, 1)
    usable = (count > 0) & (tl.abs(energy) < float("inf")) & (weight < float("inf"))
    nan = float("nan")
    ln2 = 0.6931471805599453
    bits = tl.log2(tl.where(usable, weight, nan))
    share = 1.0 / tl.where(usable, weight, nan)
    plane = tl.cast(tl.num_programs(1) * tl.num_programs(2), tl.int64) * t
    out += (batch * tl.num_programs(1) + number) * t + begin + row
    tl.store(out + 7 * plane, count.to(tl.int32).to(tl.float32, bitcast=True), mask=real)  # an integer's bits
    tl.store(out, (reference + bits) * ln2, mask=real)
    entropy = (bits - energy * share) * ln2
    tl.store(out + plane, tl.where((entropy < 0.0) | (usable & (count == 1)), 0.0, entropy), mask=real)
    tl.store(out + 2 * plane, heaviest * share, mask=real)
    tl.store(out + 4 * plane, tl.where(usable, (reference + peak) * ln2, nan), mask=real)
    if want_collision:
        tl.store(out + 3 * plane, tl.sum(square, 1) * share * share, mask=real)
    if want_variance:
        variance = tl.where(count > 1, variance, 0.0) * (ln2 * ln2)
        tl.store(out + 5 * plane, tl.where(usable, variance, nan), mask=real)
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
        of_first = tl.sum(tl.where(is_shown, tl.exp2(score - reference[:, None]), nan), 1) * share
        of_first = tl.where(of_first > 1.0, 1.0, of_first)  # its score was multiplied out anew
        tl.store(out + 6 * plane, of_first, mask=real)
    if want_distance:
        tl.store(out + 8 * plane, tl.sum(travel, 1) * share, mask=real)
