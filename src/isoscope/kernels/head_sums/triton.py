"""The sums of queries or keys on a GPU: a program reads the vectors of one head of one sequence."""

# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call"

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

NUMBERS = 4096  # coordinates that a program holds at a time
TILES = 8  # that are added up in float32


@triton.jit
def _sum_head(
    vectors, counts, numbers, total, unit,
    by_sequence, by_head, by_row, by_column, counts_by_sequence, heads, sequences, length, width,
    rows: tl.constexpr, columns: tl.constexpr, tiles: tl.constexpr,
):  # fmt: skip
    """Store four numbers (count, count of non-zero vectors, Σ‖x‖, Σ‖x‖²) and two vectors (Σx, Σx/‖x‖).

    Norms are taken in units of the largest coordinate, so that no square overflows. Sums of `tiles`
    tiles are made in float32, sums of those in float64.
    """
    head, sequence = tl.program_id(0), tl.program_id(1)
    start = vectors + sequence.to(tl.int64) * by_sequence + head.to(tl.int64) * by_head
    column = tl.arange(0, columns)
    all_x = tl.zeros([columns], tl.float64)
    all_unit = tl.zeros([columns], tl.float64)
    count = tl.zeros([rows], tl.float64)
    pointing = tl.zeros([rows], tl.float64)
    norms = tl.zeros([rows], tl.float64)
    squares = tl.zeros([rows], tl.float64)
    for begin in range(0, length, rows * tiles):
        some_x = tl.zeros([rows, columns], tl.float32)
        some_unit = tl.zeros([rows, columns], tl.float32)
        for first in range(begin, tl.minimum(begin + rows * tiles, length), rows):
            row = first + tl.arange(0, rows)
            there = row < length
            counted = tl.load(counts + sequence % sequences * counts_by_sequence + row, mask=there, other=0)
            place = row[:, None].to(tl.int64) * by_row + column[None, :] * by_column
            x = tl.load(start + place, mask=there[:, None] & (column < width)[None, :], other=0.0)
            x = x.to(tl.float32)
            largest = tl.max(tl.abs(x), 1)
            strange = tl.sum((x != x).to(tl.int32), 1) > 0  # the largest of NaN and a number is the number
            kept = (counted != 0) & there & (largest < float("inf")) & (strange == 0)
            size = tl.where((largest > 0) & kept, largest, 1.0)
            x = tl.where(kept[:, None], x, 0.0)
            scaled = x / size[:, None]
            length_scaled = tl.sqrt(tl.sum(scaled * scaled, 1))
            norm = tl.where(kept, size.to(tl.float64) * length_scaled.to(tl.float64), 0.0)
            some_x += x
            some_unit += scaled * (1.0 / tl.where(length_scaled > 0, length_scaled, 1.0))[:, None]
            count += tl.where(kept, 1.0, 0.0)
            pointing += tl.where(norm > 0, 1.0, 0.0)
            norms += norm
            squares += norm * norm
        all_x += tl.sum(some_x, 0).to(tl.float64)
        all_unit += tl.sum(some_unit, 0).to(tl.float64)
    here = sequence.to(tl.int64) * heads + head
    step = tl.num_programs(1).to(tl.int64) * heads
    tl.store(numbers + here, tl.sum(count, 0))
    tl.store(numbers + step + here, tl.sum(pointing, 0))
    tl.store(numbers + 2 * step + here, tl.sum(norms, 0))
    tl.store(numbers + 3 * step + here, tl.sum(squares, 0))
    tl.store(total + here * width + column, all_x, mask=column < width)
    tl.store(unit + here * width + column, all_unit, mask=column < width)


def fused_totals(vectors: Tensor, counts: Tensor) -> tuple[Tensor, ...]:
    """The fields of `VectorTotals`."""
    *sites, b, h, t, e = vectors.shape
    numbers = torch.empty(4, *sites, b, h, dtype=torch.float64, device=vectors.device)
    sums = torch.empty(2, *sites, b, h, e, dtype=torch.float64, device=vectors.device)
    flat = vectors.flatten(0, -4)
    counts = counts if counts.stride(1) == 1 else counts.contiguous()
    columns = max(16, triton.next_power_of_2(e))
    rows = min(max(16, NUMBERS // columns), max(16, triton.next_power_of_2(t)))
    _sum_head[(h, len(flat))](
        flat, counts.view(torch.uint8), numbers, sums[0], sums[1],
        *flat.stride(), counts.stride(0), h, b, t, e, rows=rows, columns=columns, tiles=TILES,
    )  # fmt: skip
    return (*numbers.unbind(0), *sums.unbind(0))
