"""The sums of a cloud on a GPU: one kernel reads every vector once.

A program takes a chunk of rows and a few dimensions and adds in float32, about the first of its rows; what
the chunks give is added in float64.
"""

# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call,attr-defined"

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl
from torch import Tensor

from isoscope.geometry.dimensions import MASSIVE, TIMES_MEDIAN
from isoscope.kernels.cloud.chunks import CHUNK, Chunks

SUMMED = 256  # dimensions that one program sums: eight a thread


@triton.jit
def _norm_row(points, norm, kept, stride, width, columns: tl.constexpr):
    """‖x‖ of one row, in units of its largest coordinate, so that no square overflows; zero if not finite."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, columns)
    x = tl.load(points + row * stride + column, mask=column < width, other=0.0).to(tl.float32)
    largest = tl.max(tl.abs(x), 0)
    unit = x / tl.where((largest > 0) & (largest < float("inf")), largest, 1.0)
    length = largest.to(tl.float64) * tl.sqrt(tl.sum(unit * unit, 0).to(tl.float64))
    strange = tl.sum((x != x).to(tl.int32), 0) > 0  # the largest of NaN and a number is the number
    sound = (largest < float("inf")) & (strange == 0)
    tl.store(norm + row, tl.where(sound, length, 0.0))
    tl.store(kept + row, sound.to(tl.int8))


def row_norms(points: Tensor) -> tuple[Tensor, Tensor]:
    """‖x‖ of each row of `points` [..., n, d] in float64, zero where one is not finite; and whether it is."""
    norm = torch.empty(points.shape[:-1], dtype=torch.float64, device=points.device)
    kept = torch.empty(points.shape[:-1], dtype=torch.bool, device=points.device)
    if norm.numel():
        flat = _in_rows(points)
        columns = triton.next_power_of_2(flat.shape[1])
        _norm_row[(len(flat),)](
            flat, norm, kept.view(torch.int8), flat.stride(0), flat.shape[1], columns=columns
        )
    return norm, kept


def _in_rows(points: Tensor) -> Tensor:
    """The vectors of all sites as rows, [k·n, d], whose numbers stand side by side."""
    flat = points.flatten(0, -2)
    return flat if flat.stride(1) == 1 else flat.contiguous()


@triton.jit
def _sample_limit(
    points, kept, rows, columns, there, limit, stride, n, sequences, many, times, least, block: tl.constexpr
):  # fmt: skip
    """`times` the median size of a sample of one sequence, at least `least`, rounded up to float32.

    Sizes are ordered as the integers that have their bits, and the median is found bit by bit: the largest
    integer that no more than half of them lie under.
    """
    here = tl.program_id(0).to(tl.int64)
    number = tl.arange(0, block)
    real = number < many
    sample = here % sequences * many + number
    row = here // sequences * n + tl.load(rows + sample, mask=real, other=0)
    column = tl.load(columns + sample, mask=real, other=0)
    real = real & (tl.load(there + sample, mask=real, other=0) != 0)
    real = real & (tl.load(kept + row) != 0)
    size = tl.abs(tl.load(points + row * stride + column, mask=real, other=0.0).to(tl.float32))
    bits = tl.where(real, size.to(tl.int32, bitcast=True), 2147483647)
    total = tl.sum(real.to(tl.int32), 0)
    half = (total - 1) // 2
    found = tl.zeros([1], tl.int32)
    for step in range(31):
        tried = found + (1 << (30 - step))
        under = tl.sum((bits < tried).to(tl.int32), 0)
        found = tl.where(under <= half, tried, found)
    wanted = found.to(tl.float32, bitcast=True).to(tl.float64) * times
    near = wanted.to(tl.float32)
    above = (near.to(tl.int32, bitcast=True) + 1).to(tl.float32, bitcast=True)
    near = tl.where(near.to(tl.float64) < wanted, above, near)
    near = tl.where(total > 0, tl.maximum(near, least), float("inf"))
    tl.store(limit + here + tl.arange(0, 1), near)


def sample_limits(points: Tensor, kept: Tensor, rows: Tensor, columns: Tensor, there: Tensor) -> Tensor:
    """What `massive_limit` gives, in float32."""
    sequences, many = rows.shape
    limit = torch.empty(*points.shape[:-2], sequences, dtype=torch.float32, device=points.device)
    if rows.numel():
        flat = _in_rows(points)
        _sample_limit[(limit.numel(),)](
            flat, kept.view(torch.int8), rows, columns, there.view(torch.int8), limit, flat.stride(0),
            points.shape[-2], sequences, many, TIMES_MEDIAN,
            float(np.nextafter(np.float32(MASSIVE), np.float32("inf"))),
            block=triton.next_power_of_2(many), num_warps=8,
        )  # fmt: skip
    return limit


@triton.jit
def _sum_chunk(
    points, weight, kept, norm, limit, first, size, of_rows, by_chunk, stride, n, chunks, width,
    columns: tl.constexpr, chunk: tl.constexpr, together: tl.constexpr, limited: tl.constexpr,
):  # fmt: skip
    """Six numbers a dimension: Σx, Σû, Σû², Σ(x−x̄)², the largest |x|, and how many reach their limit.

    And four of the rows: how many, how many are not zero, Σ‖x‖, Σ‖x‖². Every thread has dimensions of its own
    and walks down the rows, about the first of them that is kept, so that nothing passes between threads.
    """
    here, block = tl.program_id(0).to(tl.int64), tl.program_id(1)
    start, length = tl.load(first + here % chunks) + here // chunks * n, tl.load(size + here % chunks)
    column = block * columns + tl.arange(0, columns)
    inside = column < width
    centre = tl.zeros([columns], tl.float32)
    apart = tl.zeros([columns], tl.float32)
    squares = tl.zeros([columns], tl.float32)
    unit = tl.zeros([columns], tl.float32)
    unit_squares = tl.zeros([columns], tl.float32)
    largest = tl.zeros([columns], tl.float32)
    beyond = tl.zeros([columns], tl.float32)
    count = 0.0
    for step in range(0, chunk, together):
        for part in tl.static_range(together):
            number = step + part
            row = start + number
            keep = tl.load(kept + row, mask=number < length, other=0).to(tl.int32)
            towards = tl.load(weight + row, mask=number < length, other=0.0)
            x = tl.load(points + row * stride + column, mask=column < keep * width, other=0.0).to(tl.float32)
            mine = keep.to(tl.float32)
            centre = tl.where(count == 0.0, x, centre)  # zero until a row is kept
            off = mine * (x - centre)
            apart += off
            squares += off * off
            direction = x * towards
            unit += direction
            unit_squares += direction * direction
            largest = tl.maximum(largest, tl.abs(x))
            if limited:
                most = tl.load(limit + row, mask=number < length, other=float("inf"))
                beyond += (tl.abs(x) >= most).to(tl.float32)
            count += mine
    many = count.to(tl.float64)
    shifted = apart.to(tl.float64)
    scatter = squares.to(tl.float64) - shifted * shifted / tl.maximum(many, 1.0)
    out = by_chunk + here * 6 * width + column
    tl.store(out, shifted + many * centre.to(tl.float64), mask=inside)
    tl.store(out + width, unit.to(tl.float64), mask=inside)
    tl.store(out + 2 * width, unit_squares.to(tl.float64), mask=inside)
    tl.store(out + 3 * width, tl.maximum(scatter, 0.0), mask=inside)
    tl.store(out + 4 * width, largest.to(tl.float64), mask=inside)
    tl.store(out + 5 * width, beyond.to(tl.float64), mask=inside)
    if block == 0:
        number = tl.arange(0, chunk)
        mine = (tl.load(kept + start + number, mask=number < length, other=0) != 0) & (number < length)
        long = tl.load(norm + start + number, mask=mine, other=0.0)
        tl.store(of_rows + here * 4, many)
        tl.store(of_rows + here * 4 + 1, tl.sum((long > 0).to(tl.float64), 0))
        tl.store(of_rows + here * 4 + 2, tl.sum(long, 0))
        tl.store(of_rows + here * 4 + 3, tl.sum(long * long, 0))


def sum_chunks(
    points: Tensor, norm: Tensor, kept: Tensor, limit: Tensor | None, chunks: Chunks
) -> tuple[Tensor, Tensor]:
    """The sums of every chunk: of its rows [..., c, 4], and of its dimensions [..., c, 6, d].

    What |x| must reach is rounded up to float32, so that nothing else does.
    """
    flat, (*sites, n, width), many = _in_rows(points), points.shape, len(chunks.first)
    of_rows = torch.empty(*sites, many, 4, dtype=torch.float64, device=points.device)
    by_chunk = torch.empty(*sites, many, 6, width, dtype=torch.float64, device=points.device)
    weight = torch.where(norm > 0, 1 / norm, 0).float()
    _sum_chunk[(of_rows.numel() // 4, triton.cdiv(width, SUMMED))](
        flat, weight, kept, norm, weight if limit is None else _rounded_up(limit),
        chunks.first, chunks.size, of_rows, by_chunk, flat.stride(0), n, many, width,
        columns=SUMMED, chunk=CHUNK, together=4, limited=limit is not None, num_warps=1,
    )  # fmt: skip
    return of_rows, by_chunk


def _rounded_up(limit: Tensor) -> Tensor:
    if limit.dtype == torch.float32:
        return limit
    near = limit.float()
    return torch.where(near.double() < limit, torch.nextafter(near, torch.full_like(near, torch.inf)), near)
