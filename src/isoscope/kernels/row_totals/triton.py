"""The totals of attention rows on a GPU: a program reads the rows of one head of one sequence."""

# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call"

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from isoscope.geometry.attention import AttentionRows
from isoscope.geometry.sharpness import BESIDE
from isoscope.kernels.row_totals.names import LOWEST, SPLIT, TOTALS

_BLOCK = 256  # rows: fifteen sums of float64 of twice as many would not fit the registers


@triton.jit
def _added(total, value, where):
    """`total` and `value` where it is asked for and finite."""
    return total + tl.where(where & (value - value == 0), value, 0.0)


@triton.jit
def _total_rows(
    entropies, largests, collisions, scores, variances, firsts, visibles, distances, counts, sums, top,
    heads, sequences, length, lowest: tl.constexpr, totals: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    here = tl.program_id(0).to(tl.int64)
    count = tl.zeros([block], tl.float64)
    entropy, log_visible, several, normalised = count, count, count, count
    largest, effective, variance, distance = count, count, count, count
    sunk, sink, chance, unseeing, not_finite = count, count, count, count, count
    nothing = tl.full([block], lowest, tl.float64)  # as an argument it would be −inf of float32
    highest = nothing
    for start in range(0, length, block):
        number = start + tl.arange(0, block)
        there = number < length
        place = here * length + number
        counted = tl.load(counts + here // heads % sequences * length + number, mask=there, other=0) != 0
        counted = counted & there
        value = tl.load(entropies + place, mask=there, other=0.0).to(tl.float64)
        visible = tl.load(visibles + place, mask=there, other=0).to(tl.float64)
        usable = value - value == 0
        mine = counted & usable
        one = tl.full([block], 1.0, tl.float64)
        seen = tl.maximum(visible, 1.0)
        logged = tl.log(seen.to(tl.float32)).to(tl.float64)
        count += tl.where(mine, 1.0, 0.0)
        entropy = _added(entropy, value, mine)
        log_visible = _added(log_visible, logged, mine & (visible > 0))
        more = mine & (visible > 1)
        several = _added(several, one, more)
        normalised = _added(normalised, value / tl.where(more, logged, 1.0), more)
        largest = _added(largest, tl.load(largests + place, mask=there, other=0.0).to(tl.float64), mine)
        collision = tl.load(collisions + place, mask=there, other=1.0).to(tl.float64)
        effective = _added(effective, 1 / collision, mine)
        variance = _added(variance, tl.load(variances + place, mask=there, other=0.0).to(tl.float64), mine)
        distance = _added(distance, tl.load(distances + place, mask=there, other=0.0).to(tl.float64), mine)
        weight = tl.load(firsts + place, mask=there, other=0.0).to(tl.float64)
        first = mine & (weight - weight == 0)
        sunk = _added(sunk, one, first)
        sink = _added(sink, weight, first)
        chance = _added(chance, 1 / seen, first & (visible > 0))
        unseeing += tl.where(counted & (visible == 0), 1.0, 0.0)
        not_finite += tl.where(counted & (visible > 0) & (usable == 0), 1.0, 0.0)
        score = tl.load(scores + place, mask=there, other=0.0).to(tl.float64)
        highest = tl.maximum(highest, tl.where(mine, score, nothing))
    out = sums + here * totals
    tl.store(out, tl.sum(count, 0))
    tl.store(out + 1, tl.sum(entropy, 0))
    tl.store(out + 2, tl.sum(log_visible, 0))
    tl.store(out + 3, tl.sum(several, 0))
    tl.store(out + 4, tl.sum(normalised, 0))
    tl.store(out + 5, tl.sum(largest, 0))
    tl.store(out + 6, tl.sum(effective, 0))
    tl.store(out + 7, tl.sum(variance, 0))
    tl.store(out + 8, tl.sum(distance, 0))
    tl.store(out + 9, tl.sum(sunk, 0))
    tl.store(out + 10, tl.sum(sink, 0))
    tl.store(out + 11, tl.sum(chance, 0))
    tl.store(out + 12, tl.sum(unseeing, 0))
    tl.store(out + 13, tl.sum(not_finite, 0))
    tl.store(top + here, tl.max(highest, 0))


def fused_totals(rows: AttentionRows, counts: Tensor) -> tuple[Tensor, Tensor]:
    """What `row_totals` gives."""
    (*_, sequences, heads, length), device = rows.entropy.shape, rows.entropy.device
    top = torch.empty(rows.entropy.shape[:-1], dtype=torch.float64, device=device)
    sums = torch.empty(*top.shape, len(TOTALS), dtype=torch.float64, device=device)
    fields = (
        rows.entropy, rows.largest, rows.collision, rows.max_score, rows.score_variance, rows.first_key,
        rows.visible, rows.distance,
    )  # fmt: skip
    _total_rows[(top.numel(),)](
        *(field.contiguous() for field in fields), counts.contiguous(), sums, top,
        heads, sequences, length, lowest=LOWEST, totals=len(TOTALS),
        block=min(_BLOCK, triton.next_power_of_2(length)),
    )  # fmt: skip
    return sums.movedim(-1, 0), top


@triton.jit
def _beside(entropies, firsts, place, there, visible, least: tl.constexpr):
    """Normalised entropy over the keys but the first, and whether it is known."""
    entropy = tl.load(entropies + place, mask=there, other=0.0).to(tl.float64)
    first = tl.load(firsts + place, mask=there, other=0.0).to(tl.float64)
    weight = tl.minimum(tl.maximum(first, 0.0), 1.0)
    others = 1 - weight
    known = there & (visible >= 3) & (others >= least) & (entropy - entropy == 0) & (first - first == 0)
    others = tl.where(known, others, 1.0)
    own = weight * tl.log(tl.where(weight > 0, weight, 1.0))
    left = (tl.where(known, entropy, 0.0) + own) / others + tl.log(others)
    return left / tl.log(tl.maximum(visible - 1, 2.0)), known


@triton.jit
def _split_rows(
    variances, entropies, firsts, variances_without, entropies_without, firsts_without, visibles,
    drifts, behind, counts, sums, heads, sequences, length,
    behind_site, behind_sequence, behind_head, behind_row,
    least: tl.constexpr, totals: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    here = tl.program_id(0).to(tl.int64)
    drift = tl.zeros([block], tl.float64)
    rest, split, chance, beside, beside_without, beside_count = drift, drift, drift, drift, drift, drift
    queries = behind + here // heads // sequences * behind_site + here % heads * behind_head
    queries += here // heads % sequences * behind_sequence
    for start in range(0, length, block):
        number = start + tl.arange(0, block)
        there = number < length
        place = here * length + number
        counted = tl.load(counts + here // heads % sequences * length + number, mask=there, other=0) != 0
        counted = counted & there
        whole = tl.load(variances + place, mask=there, other=0.0).to(tl.float64)
        left = tl.load(variances_without + place, mask=there, other=0.0).to(tl.float64)
        taken = tl.load(drifts + place, mask=there, other=0.0).to(tl.float64)
        both = counted & (whole - whole == 0) & (left - left == 0) & (taken - taken == 0)
        drift += tl.where(both, taken, 0.0)
        rest += tl.where(both, left, 0.0)
        split += tl.where(both, 1.0, 0.0)
        many = tl.load(queries + number * behind_row, mask=there, other=0.0).to(tl.float64)
        chance += tl.where(both, 1 / (many + 1), 0.0)
        visible = tl.load(visibles + place, mask=there, other=0).to(tl.float64)
        mine, known = _beside(entropies, firsts, place, counted, visible, least)
        other, also = _beside(entropies_without, firsts_without, place, counted, visible, least)
        beside += tl.where(known & also, mine, 0.0)
        beside_without += tl.where(known & also, other, 0.0)
        beside_count += tl.where(known & also, 1.0, 0.0)
    out = sums + here * totals
    tl.store(out, tl.sum(drift, 0))
    tl.store(out + 1, tl.sum(rest, 0))
    tl.store(out + 2, tl.sum(split, 0))
    tl.store(out + 3, tl.sum(chance, 0))
    tl.store(out + 4, tl.sum(beside, 0))
    tl.store(out + 5, tl.sum(beside_without, 0))
    tl.store(out + 6, tl.sum(beside_count, 0))


def fused_split(
    rows: AttentionRows, without: AttentionRows, drift: Tensor, behind: Tensor, counts: Tensor
) -> Tensor:
    """What `split_totals` gives."""
    *_, sequences, heads, length = drift.shape
    sums = torch.empty(*drift.shape[:-1], len(SPLIT), dtype=torch.float64, device=drift.device)
    fields = (
        rows.score_variance, rows.entropy, rows.first_key, without.score_variance, without.entropy,
        without.first_key, rows.visible, drift,
    )  # fmt: skip
    behind = behind.expand(drift.shape)
    behind = behind if behind.dim() == 4 else behind[None]
    _split_rows[(drift.shape[:-1].numel(),)](
        *(field.contiguous() for field in fields), behind, counts.contiguous(), sums,
        heads, sequences, length, *behind.stride(), least=BESIDE, totals=len(SPLIT),
        block=min(_BLOCK, triton.next_power_of_2(length)),
    )  # fmt: skip
    return sums.movedim(-1, 0)
