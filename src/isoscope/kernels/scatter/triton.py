"""What the scatter of a cloud is made of on a GPU: coordinates as digits, their products, and the whole."""

# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call,attr-defined"

from __future__ import annotations

from functools import cache

import torch
import triton
import triton.language as tl
from torch import Tensor

TALL, BROAD = 512, (16, 256)  # rows of which one program finds the largest, and its tile
LONG = (256, 32)  # a tile of rows that is written as digits
SIDE, DEEP = 128, 128  # a tile of products, and how many rows are multiplied at once
WARPS, STAGES = 8, 3
PER = 16384  # the most rows whose products one program adds up
LEAST = 1024  # rows that are worth a program
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
    points, weight, mean, out, of_site, stride, n, width,
    tall: tl.constexpr, rows: tl.constexpr, columns: tl.constexpr,
):  # fmt: skip
    """The largest |w·(x − m)| of each dimension of a site over `tall` rows."""
    site = tl.program_id(2).to(tl.int64)
    points, weight, mean = points + site * of_site, weight + site * n, mean + site * width
    out += site * tl.num_programs(0) * width
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
    points, weight, mean, per_unit, out, of_site, stride, n, width, long, wide, most,
    count: tl.constexpr, rows: tl.constexpr, columns: tl.constexpr,
):  # fmt: skip
    """w·(x − m) of a site in units, as digits of base 256 from the highest, each [dimension, row]."""
    site, step = tl.program_id(2).to(tl.int64), wide.to(tl.int64) * long
    points, weight, mean = points + site * of_site, weight + site * n, mean + site * width
    per_unit += site * width
    out += site * step
    step *= tl.num_programs(2)
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
        tl.store(out + (count - 1 - digit) * step + place, low.to(tl.int8), mask=there)
        number = (number - low) >> 8


def digits(points: Tensor, weight: Tensor, mean: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """w·(x − m) of `points` [k, n, d] as `count` digits, [count, k, D, N] in int8, and the units, [k, d].

    `weight` is [k, n] and `mean` [k, d]; zeros fill up d and n to whole tiles, D and N.
    """
    points = points if points.stride(2) == 1 else points.contiguous()
    (sites, n, width), device = points.shape, points.device
    long, wide = triton.cdiv(n, DEEP) * DEEP, triton.cdiv(width, SIDE) * SIDE
    shared = (points, weight.contiguous(), mean.contiguous())
    largest = torch.empty(sites, triton.cdiv(n, TALL), width, device=device)
    _largest_of_rows[(largest.shape[1], triton.cdiv(width, BROAD[1]), sites)](
        *shared, largest, *points.stride()[:2], n, width, tall=TALL, rows=BROAD[0], columns=BROAD[1]
    )  # fmt: skip
    most = sum(127 * 256**place for place in range(count))
    per_unit = most / largest.amax(1).clamp_min(1e-30)
    out = torch.empty(count, sites, wide, long, dtype=torch.int8, device=device)
    _write_digits[(triton.cdiv(long, LONG[0]), triton.cdiv(wide, LONG[1]), sites)](
        *shared, per_unit, out, *points.stride()[:2], n, width, long, wide, float(most),
        count=count, rows=LONG[0], columns=LONG[1],
    )  # fmt: skip
    return out, per_unit.double().reciprocal()


@triton.jit
def _multiply(
    one, two, squares, crossed, others, size, long, pieces, per,
    side: tl.constexpr, deep: tl.constexpr, first: tl.constexpr, second: tl.constexpr,
):  # fmt: skip
    """Add aaᵀ, abᵀ + baᵀ and bbᵀ of a site over `per` rows to three sums; of tiles not below the diagonal.

    Whole numbers may be added in any order: the sums are the same to the last digit every time.
    """
    down, along = tl.program_id(0), tl.program_id(1)
    if down <= along:
        site, begin = (tl.program_id(2) // pieces).to(tl.int64), tl.program_id(2) % pieces * per
        one += site * size * long
        two += site * size * long
        row, column = down * side + tl.arange(0, side), along * side + tl.arange(0, side)
        at = begin + tl.arange(0, deep)
        left = row[:, None].to(tl.int64) * long + at[None, :]
        right = column[None, :].to(tl.int64) * long + at[:, None]
        of_first = tl.zeros([side, side], tl.int32)
        of_both = tl.zeros([side, side], tl.int32)
        of_second = tl.zeros([side, side], tl.int32)
        for _ in range(0, tl.minimum(per, long - begin), deep):
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
        place = (site * size + row[:, None]) * size + column[None, :]
        tl.atomic_add(crossed + place, of_both, sem="relaxed")
        if first:
            tl.atomic_add(squares + place, of_first, sem="relaxed")
        if second:
            tl.atomic_add(others + place, of_second, sem="relaxed")


def multiplied(written: Tensor) -> Tensor:
    """The sums of products of digits [c, k, D, N] by order, Σ over i + j = o, [2c − 1, k, D, D] in int32.

    What stands below the tiles of the diagonal is left zero.
    """
    count, sites, size, long = written.shape
    sums = torch.zeros(2 * count - 1, sites, size, size, dtype=torch.int32, device=written.device)
    tiles, device = size // SIDE, written.device
    at_once = torch.cuda.get_device_properties(device).multi_processor_count if written.is_cuda else 1
    per = _rows_per_program(long, sites * tiles * (tiles + 1) // 2, at_once)
    pieces = triton.cdiv(long, per)
    grid = (tiles, tiles, sites * pieces)
    for i in range(count):
        for j in range(i + 1, count):
            _multiply[grid](
                written[i], written[j], sums[2 * i], sums[i + j], sums[2 * j], size, long, pieces, per,
                side=SIDE, deep=DEEP, first=i == 0 and j == 1, second=i == 0,
                num_warps=WARPS, num_stages=STAGES,
            )  # fmt: skip
    return sums


@cache
def _rows_per_program(long: int, tiles: int, at_once: int) -> int:
    """How many rows a program of `_multiply` takes, so that few multiprocessors idle at the end.

    Programs run in rounds of `at_once`, one on each multiprocessor. A piece more costs adding up its sums,
    as much as some 64 rows.
    """
    pieces = range(triton.cdiv(long, PER), max(triton.cdiv(long, PER), long // LEAST) + 1)

    def price(many: int) -> int:
        return triton.cdiv(tiles * many, at_once) * (triton.cdiv(long, many) + 64)

    return triton.cdiv(triton.cdiv(long, min(pieces, key=price)), DEEP) * DEEP


@triton.jit
def _put_together(
    sums, unit, out, of_site, width, size,
    orders: tl.constexpr, small: tl.constexpr, begun: tl.constexpr,
):  # fmt: skip
    """Write u uᵀ·Σ 256^(orders − 1 − o)·sum of a site, on both sides of the diagonal; or add it to `out`."""
    site = tl.program_id(2).to(tl.int64)
    step = tl.num_programs(2) * size.to(tl.int64) * size
    sums += site * size * size
    unit += site * width
    out += site * of_site
    if tl.program_id(0) <= tl.program_id(1):  # no place is read after it was written
        row = tl.program_id(0) * small + tl.arange(0, small)
        column = tl.program_id(1) * small + tl.arange(0, small)
        place = row[:, None].to(tl.int64) * size + column[None, :]
        found = tl.zeros([small, small], tl.float64)
        for order in tl.static_range(orders):
            found = found * 256 + tl.load(sums + order * step + place).to(tl.float64)
        down = tl.load(unit + row, mask=row < width, other=0.0)
        along = tl.load(unit + column, mask=column < width, other=0.0)
        found = found * (down[:, None] * along[None, :])
        there = (row < width)[:, None] & (column < width)[None, :]
        place = row[:, None].to(tl.int64) * width + column[None, :]
        if begun:
            found += tl.load(out + place, mask=there, other=0.0)
        tl.store(out + place, found, mask=there)
        if tl.program_id(0) < tl.program_id(1):
            mirrored = column[:, None].to(tl.int64) * width + row[None, :]
            tl.store(out + mirrored, tl.trans(found), mask=tl.trans(there))


def put_together(sums: Tensor, unit: Tensor, out: Tensor, *, begun: bool) -> None:
    """Write what `sums` [2c − 1, k, D, D] stand for in units [k, d] into `out` [k, d, d] of float64.

    Where `out` is `begun`, it is added there.
    """
    orders, sites, size, _ = sums.shape
    _put_together[(size // SMALL, size // SMALL, sites)](
        sums, unit, out, out.stride(0), unit.shape[1], size,
        orders=orders, small=SMALL, begun=begun,
    )  # fmt: skip


@triton.jit
def _merge(one, other, left, right, out, width, rows: tl.constexpr, columns: tl.constexpr):
    """Write one + other + l rᵀ, entry by entry."""
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
    grid = (triton.cdiv(width, FLAT[0]), triton.cdiv(width, FLAT[1]), one.numel() // width**2)
    _merge[grid](
        one.contiguous(), other.contiguous(), left.contiguous(), right.contiguous(), out, width,
        rows=FLAT[0], columns=FLAT[1],
    )  # fmt: skip
    return out
