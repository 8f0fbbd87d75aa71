"""What the scatter of a cloud needs on a GPU beside matrix products: passes over rows, and over matrices."""

# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call,attr-defined"

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

TALL, ROWS, WIDTH = 512, 64, 64  # rows of which one program finds the largest; a tile of rows
FLAT = 8, 256  # a tile of a matrix
_FACTOR = 32  # sizes of int8 products are multiples of 8, and more than 16


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
    largest = tl.zeros([columns], tl.float32)
    for start in range(0, tall, rows):
        row = first + start + tl.arange(0, rows)
        apart = _centred(points, weight, mean, stride, row, column, n, width)
        largest = tl.maximum(largest, tl.max(tl.abs(apart), 0))
    tl.store(out + tl.program_id(0) * width + column, largest, mask=column < width)


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
    """w·(x − m) of `points` [n, d] as `count` digits, [count, d, n] in int8, and the unit of each dimension.

    `weight` is [n], `mean` and the units are [d]; digits of zero fill d and n up to multiples of 32.
    """
    points = points if points.stride(1) == 1 else points.contiguous()
    (n, width), device = points.shape, points.device
    long, wide = (-(-size // _FACTOR) * _FACTOR for size in (n, width))
    largest = torch.empty(triton.cdiv(n, TALL), width, device=device)
    shared = (points, weight.contiguous(), mean.contiguous())
    columns = triton.cdiv(wide, WIDTH)
    _largest_of_rows[(len(largest), columns)](
        *shared, largest, points.stride(0), n, width, tall=TALL, rows=ROWS, columns=WIDTH
    )  # fmt: skip
    most = sum(127 * 256**place for place in range(count))
    per_unit = most / largest.amax(0).clamp_min(1e-30)
    out = torch.empty(count, wide, long, dtype=torch.int8, device=device)
    _write_digits[(triton.cdiv(long, ROWS), columns)](
        *shared, per_unit, out, points.stride(0), n, width, long, wide, float(most),
        count=count, rows=ROWS, columns=WIDTH,
    )  # fmt: skip
    return out, per_unit.double().reciprocal()


@triton.jit
def _add_products(
    total, products, unit, out, width, size,
    count: tl.constexpr, rows: tl.constexpr, columns: tl.constexpr, begun: tl.constexpr,
):  # fmt: skip
    """Total + u uᵀ·Σ 256^(of their places)·product/2 over pairs of digits i ≤ j, those of i < j twice."""
    row = tl.program_id(0) * rows + tl.arange(0, rows)
    column = tl.program_id(1) * columns + tl.arange(0, columns)
    there = (row < size)[:, None] & (column < size)[None, :]
    place = row[:, None].to(tl.int64) * size + column[None, :]
    found = tl.zeros([rows, columns], tl.float64)
    for order in tl.static_range(2 * count - 1):
        found = found * 256
        for i in tl.static_range(count):
            if i <= order - i and order - i < count:
                pair = i * count - i * (i - 1) // 2 + order - 2 * i
                product = tl.load(products + pair * size.to(tl.int64) * size + place, mask=there, other=0)
                found += product.to(tl.float64) * (0.5 if order == 2 * i else 1.0)
    down = tl.load(unit + row, mask=row < width, other=0.0)
    along = tl.load(unit + column, mask=column < width, other=0.0)
    found = found * (down[:, None] * along[None, :])
    if begun:
        found += tl.load(total + place, mask=there, other=0.0)
    tl.store(out + place, found, mask=there)


def added(products: Tensor, unit: Tensor, total: Tensor | None) -> Tensor:
    """`total` and half of what `products` stand for, in float64; the other half is its transpose.

    `products` [p, D, D] in int32 are of digits (0, 0), (0, 1), …, (1, 1), …, and `unit` is [d], d ≤ D.
    """
    size = products.shape[-1]
    out = torch.empty(size, size, dtype=torch.float64, device=products.device)
    grid = (triton.cdiv(size, FLAT[0]), triton.cdiv(size, FLAT[1]))
    _add_products[grid](
        out if total is None else total, products, unit, out, len(unit), size,
        count=2 if len(products) == 3 else 3, rows=FLAT[0], columns=FLAT[1], begun=total is not None,
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
