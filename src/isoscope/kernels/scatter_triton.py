"""What the scatter of a cloud needs on a GPU beside matrix products: passes over rows, and over matrices."""

# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call,attr-defined"

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

ROWS, WIDTH = 8, 256  # of a tile that is split


@triton.jit
def _split_rows(
    points, weight, mean, high, low, stride, n, width, rows: tl.constexpr, columns: tl.constexpr
):  # fmt: skip
    """w·(x − m) as the sum of two bfloat16 numbers; zero where w is, whatever x may be."""
    row = tl.program_id(0).to(tl.int64) * rows + tl.arange(0, rows)
    column = tl.program_id(1) * columns + tl.arange(0, columns)
    there = (row < n)[:, None] & (column < width)[None, :]
    mine = tl.load(weight + row, mask=row < n, other=0.0).to(tl.float32)
    x = tl.load(points + row[:, None] * stride + column[None, :], mask=there, other=0.0).to(tl.float32)
    centre = tl.load(mean + column, mask=column < width, other=0.0).to(tl.float32)
    apart = tl.where(mine[:, None] > 0, mine[:, None] * (x - centre[None, :]), 0.0)
    large = apart.to(tl.bfloat16)
    place = row[:, None] * width + column[None, :]
    tl.store(high + place, large, mask=there)
    tl.store(low + place, (apart - large.to(tl.float32)).to(tl.bfloat16), mask=there)


def split(points: Tensor, weight: Tensor, mean: Tensor) -> tuple[Tensor, Tensor]:
    """`points` [n, d] less `mean` [d], times `weight` [n], as high + low, each [n, d] in bfloat16."""
    points = points if points.stride(1) == 1 else points.contiguous()
    n, width = points.shape
    high, low = torch.empty(2, n, width, dtype=torch.bfloat16, device=points.device)
    grid = (triton.cdiv(n, ROWS), triton.cdiv(width, WIDTH))
    _split_rows[grid](
        points, weight, mean, high, low, points.stride(0), n, width, rows=ROWS, columns=WIDTH
    )  # fmt: skip
    return high, low


@triton.jit
def _centre_rows(
    points, weight, mean, unit, out, stride, n, width, rows: tl.constexpr, columns: tl.constexpr
):  # fmt: skip
    """w·(x − m)/u in float16; zero where w is, whatever x may be."""
    row = tl.program_id(0).to(tl.int64) * rows + tl.arange(0, rows)
    column = tl.program_id(1) * columns + tl.arange(0, columns)
    there = (row < n)[:, None] & (column < width)[None, :]
    mine = tl.load(weight + row, mask=row < n, other=0.0).to(tl.float32)
    x = tl.load(points + row[:, None] * stride + column[None, :], mask=there, other=0.0).to(tl.float32)
    centre = tl.load(mean + column, mask=column < width, other=0.0).to(tl.float32)
    per_unit = 1.0 / tl.load(unit + column, mask=column < width, other=1.0).to(tl.float32)
    apart = tl.where(mine[:, None] > 0, mine[:, None] * (x - centre[None, :]) * per_unit[None, :], 0.0)
    tl.store(out + row[:, None] * width + column[None, :], apart.to(tl.float16), mask=there)


def centred(points: Tensor, weight: Tensor, mean: Tensor, unit: Tensor) -> Tensor:
    """`points` [n, d] less `mean` [d], times `weight` [n], in units of `unit` [d], in float16."""
    points = points if points.stride(1) == 1 else points.contiguous()
    n, width = points.shape
    out = torch.empty(n, width, dtype=torch.float16, device=points.device)
    grid = (triton.cdiv(n, ROWS), triton.cdiv(width, WIDTH))
    _centre_rows[grid](
        points, weight, mean, unit, out, points.stride(0), n, width, rows=ROWS, columns=WIDTH
    )  # fmt: skip
    return out


@triton.jit
def _add_products(
    total, products, unit, left, right, out, width, rows: tl.constexpr, columns: tl.constexpr,
    scaled: tl.constexpr, begun: tl.constexpr,
):  # fmt: skip
    """What total + products·(u uᵀ) + l rᵀ is, entry by entry, in float64."""
    part = tl.program_id(2).to(tl.int64)
    row = tl.program_id(0) * rows + tl.arange(0, rows)
    column = tl.program_id(1) * columns + tl.arange(0, columns)
    there = (row < width)[:, None] & (column < width)[None, :]
    place = part * width * width + row[:, None].to(tl.int64) * width + column[None, :]
    found = tl.load(products + place, mask=there, other=0.0).to(tl.float64)
    if scaled:
        down = tl.load(unit + row, mask=row < width, other=0.0)
        along = tl.load(unit + column, mask=column < width, other=0.0)
        found = found * (down[:, None] * along[None, :])
    down = tl.load(left + part * width + row, mask=row < width, other=0.0)
    along = tl.load(right + part * width + column, mask=column < width, other=0.0)
    found += down[:, None] * along[None, :]
    if begun:
        found += tl.load(total + place, mask=there, other=0.0)
    tl.store(out + place, found, mask=there)


def in_units(products: Tensor, unit: Tensor, left: Tensor, right: Tensor, total: Tensor | None) -> Tensor:
    """`products` [d, d] of coordinates in units [d], in float64, and l rᵀ [d], added to `total`."""
    out = torch.empty(products.shape, dtype=torch.float64, device=products.device)
    _launch(total, products[None], unit, left[None], right[None], out)
    return out


def merged(one: Tensor, other: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """What `scatter.merged` gives."""
    out = torch.empty_like(one, memory_format=torch.contiguous_format)
    _launch(one, other, None, left, right, out)
    return out


def _launch(
    total: Tensor | None, products: Tensor, unit: Tensor | None, left: Tensor, right: Tensor, out: Tensor
) -> None:
    width = products.shape[-1]
    grid = (triton.cdiv(width, ROWS), triton.cdiv(width, WIDTH), len(products))
    _add_products[grid](
        out if total is None else total.contiguous(), products.contiguous(), out if unit is None else unit,
        left.contiguous(), right.contiguous(), out, width,
        rows=ROWS, columns=WIDTH, scaled=unit is not None, begun=total is not None,
    )  # fmt: skip
