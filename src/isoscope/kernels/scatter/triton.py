"""What the scatter of a cloud is made of on a GPU: coordinates as digits, their products, and the whole."""

# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call,attr-defined"

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

TALL, BROAD = 512, (16, 256)  # rows of which one program finds the largest, and its tile
LONG = (256, 32)  # a tile of rows that is written as digits
SIDE, DEEP = 128, 128  # a tile of products, and how many rows are multiplied at once
WARPS, STAGES = 8, 3
PER = 8192  # rows whose products one program adds up
SMALL = 32  # a tile of the whole
FLAT = (8, 256)  # a tile of matrices that are merged


@triton.jit
def _centred(points, weight, mean, stride, row, column, n, width):
    """w·(x − m), [rows, columns] in float32; zero where w is, whatever x may be."""
    mine = tl.load(weight + row, mask=row < n, other=0.0).to(tl.float32)
    there = (mine > 0)[:, None] & (column < width)[None, :]
    x = tl.load(points + row[:, None] * stride + column[None, :], mask=there, other=0.0).to(tl.float32)
    centre = tl.load(mean + column, mask=column < width, other=0.0).to(tl.float32)
    return tl.where(there, mine[:, None] * (x - centre[None, :]), 0.0)


@triton.jit
def _largest_of_rows(
    points, weight, mean, out, stride, n, width, tall: tl.constexpr, rows: tl.constexpr, columns: tl.constexpr
):  # fmt: skip
    """The largest |w·(x − m)| of each dimension over `tall` rows."""
    first = tl.program_id(0).to(tl.int64) * tall
    column = tl.program_id(1) * columns + tl.arange(0, columns)
    largest = tl.zeros([rows, columns], tl.float32)
    for start in range(0, tall, rows):
        row = first + start + tl.arange(0, rows)
        apart = _centred(points, weight, mean, stride, row, column, n, width)
        largest = tl.maximum(largest, tl.abs(apart))
    tl.store(out + tl.program_id(0) * width + column, tl.max(largest, 0), mask=column < width)


@triton.jit
def _write_digits(
    points, weight, mean, per_unit, out, stride, n, width, long, wide, most,
    count: tl.constexpr, rows: tl.constexpr, columns: tl.constexpr,
):  # fmt: skip
    """w·(x − m) in units, as digits of base 256 from the highest, each [dimension, row]."""
    row = tl.program_id(0).to(tl.int64) * rows + tl.arange(0, rows)
    column = tl.program_id(1) * columns + tl.arange(0, columns)
    apart = _centred(points, weight, mean, stride, row, column, n, width)
    scale = tl.load(per_unit + column, mask=column < width, other=0.0)
    size = tl.minimum(tl.abs(apart) * scale[None, :] + 0.5, most).to(tl.int32)
    number = tl.trans(tl.where(apart < 0, -size, size))
    place = column[:, None].to(tl.int64) * long + row[None, :]
    there = (column < wide)[:, None] & (row < long)[None, :]
    for digit in tl.static_range(count):
        low = ((number + 128) & 255) - 128
        tl.store(out + (count - 1 - digit) * wide.to(tl.int64) * long + place, low.to(tl.int8), mask=there)
        number = (number - low) >> 8


def digits(points: Tensor, weight: Tensor, mean: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """w·(x − m) of `points` [n, d] as `count` digits, [count, D, N] in int8, and the unit of each dimension.

    `weight` is [n], `mean` and the units are [d]; zeros fill up d and n to whole tiles, D and N.
    """
    points = points if points.stride(1) == 1 else points.contiguous()
    (n, width), device = points.shape, points.device
    long, wide = triton.cdiv(n, DEEP) * DEEP, triton.cdiv(width, SIDE) * SIDE
    shared = (points, weight.contiguous(), mean.contiguous())
    largest = torch.empty(triton.cdiv(n, TALL), width, device=device)
    _largest_of_rows[(len(largest), triton.cdiv(width, BROAD[1]))](
        *shared, largest, points.stride(0), n, width, tall=TALL, rows=BROAD[0], columns=BROAD[1]
    )  # fmt: skip
    most = sum(127 * 256**place for place in range(count))
    per_unit = most / largest.amax(0).clamp_min(1e-30)
    out = torch.empty(count, wide, long, dtype=torch.int8, device=device)
    _write_digits[(triton.cdiv(long, LONG[0]), triton.cdiv(wide, LONG[1]))](
        *shared, per_unit, out, points.stride(0), n, width, long, wide, float(most),
        count=count, rows=LONG[0], columns=LONG[1],
    )  # fmt: skip
    return out, per_unit.double().reciprocal()


@triton.jit
def _multiply(
    one, two, squares, crossed, others, size, long,
    side: tl.constexpr, deep: tl.constexpr, per: tl.constexpr, first: tl.constexpr, second: tl.constexpr,
):  # fmt: skip
    """Add aaᵀ, abᵀ + baᵀ and bbᵀ over `per` rows to three sums; of tiles on the diagonal and above.

    Whole numbers may be added in any order: the sums are the same to the last digit every time.
    """
    down, along = tl.program_id(0), tl.program_id(1)
    if down <= along:
        row, column = down * side + tl.arange(0, side), along * side + tl.arange(0, side)
        at = tl.program_id(2) * per + tl.arange(0, deep)
        left = row[:, None].to(tl.int64) * long + at[None, :]
        right = column[None, :].to(tl.int64) * long + at[:, None]
        of_first = tl.zeros([side, side], tl.int32)
        of_both = tl.zeros([side, side], tl.int32)
        of_second = tl.zeros([side, side], tl.int32)
        for _ in range(0, tl.minimum(per, long - tl.program_id(2) * per), deep):
            a, b = tl.load(one + left), tl.load(two + left)
            c, d = tl.load(one + right), tl.load(two + right)
            of_both = tl.dot(a, d, of_both, out_dtype=tl.int32)
            of_both = tl.dot(b, c, of_both, out_dtype=tl.int32)
            if first:
                of_first = tl.dot(a, c, of_first, out_dtype=tl.int32)
            if second:
                of_second = tl.dot(b, d, of_second, out_dtype=tl.int32)
            left += deep
            right += deep
        place = row[:, None].to(tl.int64) * size + column[None, :]
        tl.atomic_add(crossed + place, of_both, sem="relaxed")
        if first:
            tl.atomic_add(squares + place, of_first, sem="relaxed")
        if second:
            tl.atomic_add(others + place, of_second, sem="relaxed")


def multiplied(written: Tensor) -> Tensor:
    """The sums of products of digits [c, D, N] by order, Σ over i + j = o, [2c − 1, D, D] in int32.

    What stands below the tiles of the diagonal is left zero.
    """
    count, size, long = written.shape
    sums = torch.zeros(2 * count - 1, size, size, dtype=torch.int32, device=written.device)
    grid = (size // SIDE, size // SIDE, triton.cdiv(long, PER))
    for i in range(count):
        for j in range(i + 1, count):
            _multiply[grid](
                written[i], written[j], sums[2 * i], sums[i + j], sums[2 * j], size, long,
                side=SIDE, deep=DEEP, per=PER, first=i == 0 and j == 1, second=i == 0,
                num_warps=WARPS, num_stages=STAGES,
            )  # fmt: skip
    return sums


@triton.jit
def _put_together(
    total, sums, unit, out, width, size,
    orders: tl.constexpr, side: tl.constexpr, small: tl.constexpr, begun: tl.constexpr,
):  # fmt: skip
    """What total + u uᵀ·Σ 256^(orders − 1 − o)·sum is, on both sides of the diagonal."""
    if tl.program_id(0) * small // side <= tl.program_id(1) * small // side:
        row = tl.program_id(0) * small + tl.arange(0, small)
        column = tl.program_id(1) * small + tl.arange(0, small)
        place = row[:, None].to(tl.int64) * size + column[None, :]
        found = tl.zeros([small, small], tl.float64)
        for order in tl.static_range(orders):
            found = found * 256 + tl.load(sums + order * size.to(tl.int64) * size + place).to(tl.float64)
        down = tl.load(unit + row, mask=row < width, other=0.0)
        along = tl.load(unit + column, mask=column < width, other=0.0)
        found = found * (down[:, None] * along[None, :])
        there = (row < width)[:, None] & (column < width)[None, :]
        place = row[:, None].to(tl.int64) * width + column[None, :]
        if begun:
            found += tl.load(total + place, mask=there, other=0.0)
        tl.store(out + place, found, mask=there)
        mirrored = column[:, None].to(tl.int64) * width + row[None, :]
        tl.store(out + mirrored, tl.trans(found), mask=tl.trans(there))


def put_together(sums: Tensor, unit: Tensor, total: Tensor | None, out: Tensor | None = None) -> Tensor:
    """`total` [d, d] and what `sums` [2c − 1, D, D] stand for in units [d], in float64, into `out`."""
    orders, size = sums.shape[:2]
    width = len(unit)
    if out is None:
        out = torch.empty(width, width, dtype=torch.float64, device=sums.device)
    _put_together[(size // SMALL, size // SMALL)](
        out if total is None else total, sums, unit, out, width, size,
        orders=orders, side=SIDE, small=SMALL, begun=total is not None,
    )  # fmt: skip
    return out


@triton.jit
def _merge(one, other, left, right, out, width, rows: tl.constexpr, columns: tl.constexpr):
    """One + other + l rᵀ, entry by entry."""
    part = tl.program_id(2).to(tl.int64)
    row = tl.program_id(0) * rows + tl.arange(0, rows)
    column = tl.program_id(1) * columns + tl.arange(0, columns)
    there = (row < width)[:, None] & (column < width)[None, :]
    place = part * width * width + row[:, None].to(tl.int64) * width + column[None, :]
    down = tl.load(left + part * width + row, mask=row < width, other=0.0)
    along = tl.load(right + part * width + column, mask=column < width, other=0.0)
    found = tl.load(one + place, mask=there, other=0.0) + tl.load(other + place, mask=there, other=0.0)
    tl.store(out + place, found + down[:, None] * along[None, :], mask=there)


def merged(one: Tensor, other: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """What `scatter.merged` gives."""
    out = torch.empty_like(one, memory_format=torch.contiguous_format)
    width = one.shape[-1]
    grid = (triton.cdiv(width, FLAT[0]), triton.cdiv(width, FLAT[1]), len(one))
    _merge[grid](
        one.contiguous(), other.contiguous(), left.contiguous(), right.contiguous(), out, width,
        rows=FLAT[0], columns=FLAT[1],
    )  # fmt: skip
    return out
