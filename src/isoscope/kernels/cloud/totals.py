"""All that a cloud of vectors adds up to, in one pass over it: by label, and by dimension.

Norms come first, as directions need them; then one walk over the rows gives every sum that grows with d. On
a GPU it is one Triton kernel (triton.py) and nothing waits for the result; elsewhere rows are taken in
slices that stay in cache and turned to float64. Twin: the same sums written out one by one, in
tests/kernels/test_cloud.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

from isoscope.geometry.dimensions import MASSIVE, TIMES_MEDIAN
from isoscope.kernels.cloud.chunks import Chunks
from isoscope.kernels.sums import add_by_label, norms, slices


@dataclass(frozen=True, eq=False)
class CloudSums:
    """Sums over the rows that are kept, in float64: by label, and of every dimension over all of them.

    Those of the clouds of several sites have an axis [k, …] in front.
    """

    count: Tensor  # [l] rows
    pointing: Tensor  # [l] rows whose norm is not zero
    norms: Tensor  # [l] Σ ‖x‖
    squares: Tensor  # [l] Σ ‖x‖²
    inner: Tensor  # [l] Σ ‖x − x̄‖², x̄ the mean of the label
    total: Tensor  # [l, d] Σ x
    unit: Tensor  # [l, d] Σ û
    unit_squares: Tensor  # [d] Σ û², and so on of single dimensions
    mean: Tensor  # [d]
    scatter: Tensor  # [d] Σ (x − mean)²
    largest: Tensor  # [d] the largest |x|
    beyond: Tensor  # [d] how many |x| reach the limit of their row


@dataclass(frozen=True, eq=False)
class OfChunks:
    """Sums of chunks as the kernel leaves them: of rows [..., c, 4], and of dimensions [..., c, 6, d]."""

    rows: Tensor
    dimensions: Tensor
    chunks: Chunks

    def joined(self) -> CloudSums:
        """The sums by label and over all rows."""
        member, rows, by_chunk = self.chunks.member, self.rows, self.dimensions
        count, total = rows[..., :1], by_chunk[..., 0, :]
        mean = total.sum(-2) / count.sum(-2).clamp_min(1)
        between = (count * (total / count.clamp_min(1) - mean[..., None, :]) ** 2).sum(-2)
        _, _, unit_squares, scatter, _, beyond = by_chunk.sum(-3).unbind(-2)
        kept, pointing, norms_of, squares = (member @ rows).unbind(-1)
        totals = member @ total
        centre = (totals / kept.clamp_min(1)[..., None]).index_select(-2, self.chunks.label)  # of its label
        # in float32 norms would lose what is left of them beside a mean a thousand times as large
        apart = by_chunk[..., 3, :].sum(-1) + (count * (total / count.clamp_min(1) - centre) ** 2).sum(-1)
        return CloudSums(
            count=kept,
            pointing=pointing,
            norms=norms_of,
            squares=squares,
            inner=apart @ member.T,
            total=totals,
            unit=member @ by_chunk[..., 1, :],
            unit_squares=unit_squares,
            mean=mean,
            scatter=scatter + between,
            largest=by_chunk[..., 4, :].amax(-2),
            beyond=beyond,
        )


def cloud_norms(points: Tensor) -> tuple[Tensor, Tensor]:
    """‖x‖ of every row of `points` [..., n, d] in float64, zero where not finite; and whether it is finite.

    Twin: ``points.double().norm(dim=1)``.
    """
    if not fused(points):
        norm = norms(points)
        kept = norm.isfinite()
        return torch.where(kept, norm, 0), kept
    from isoscope.kernels.cloud.triton import row_norms

    return row_norms(points)


def massive_limit(points: Tensor, kept: Tensor, rows: Tensor, columns: Tensor, there: Tensor) -> Tensor:
    """What a coordinate of each sequence must reach to be massive, [..., s], from a sample of coordinates.

    The coordinates of sequence i at (rows, columns) [s, m] where they are `there`, of rows that are kept; NaN
    or Inf where there is none. In float32 on a GPU, rounded up: a number of float32 reaches the one where it
    reaches the other.
    """
    if fused(points):
        from isoscope.kernels.cloud.triton import sample_limits

        return sample_limits(points, kept, rows, columns, there)
    size = torch.where(there & kept[..., rows], points[..., rows, columns].abs().double(), torch.nan)
    return above_massive(size.nanmedian(-1).values)


def above_massive(median: Tensor) -> Tensor:
    """What is so many times the median, and above what no massive coordinate is."""
    return (TIMES_MEDIAN * median).clamp_min(math.nextafter(MASSIVE, math.inf))


def cloud_sums(
    points: Tensor,
    norm: Tensor,
    kept: Tensor,
    label: Tensor,
    labels: int,
    *,
    limit: Tensor | None = None,
    by_dimension: bool = True,
    chunks: Chunks | None = None,
) -> CloudSums | OfChunks:
    """Sum the `kept` [n] of `points` [n, d]; `norm` [n] is theirs, zero where they are not kept.

    `label` [n] is in 0 … labels−1; `limit` [n] is what |x| must reach to be counted in `beyond`. Without
    `by_dimension` what is known of single dimensions alone (`unit_squares` to `beyond`) may be NaN. On a
    GPU, with `chunks`, all of these but `label` may have an axis of sites in front, and what comes back is
    not `joined` yet.
    """
    if chunks is not None and fused(points):
        from isoscope.kernels.cloud.triton import sum_chunks

        return OfChunks(*sum_chunks(points, norm, kept, limit, chunks), chunks)
    width, device = points.shape[1], points.device
    by_row = torch.stack([kept.double(), (norm > 0).double(), norm, norm**2])
    of_rows = torch.zeros(4, labels, dtype=torch.float64, device=device).index_add_(1, label, by_row)
    sums = torch.zeros(2, labels, width, dtype=torch.float64, device=device)
    by_width = torch.zeros(5, width, dtype=torch.float64, device=device)
    unit_squares, mean, scatter, largest, beyond = by_width if by_dimension else by_width + torch.nan
    seen = torch.zeros((), dtype=torch.float64, device=device)
    weight = torch.where(norm > 0, 1 / norm, 0.0)
    weights, unit_square = torch.stack([kept.double(), weight]), weight**2
    clean = device.type == "cpu" and bool(kept.all())  # of a GPU this would have to be waited for
    for rows, part in slices(points):
        keep = weights[0, rows]
        if not clean:
            part = torch.where(kept[rows, None], part, 0)
        add_by_label(sums, weights[:, rows], part, label[rows])
        if not by_dimension:
            continue
        unit_squares += unit_square[rows] @ torch.square(part)
        size = part.abs()
        torch.maximum(largest, size.amax(0), out=largest)
        if limit is not None:
            beyond += (size >= limit[rows, None]).sum(0)
        new = keep.sum()
        own = keep @ part / new.clamp_min(1)
        share = new / (seen + new).clamp_min(1)
        scatter += keep @ (part - own).square_() + seen * share * (own - mean) ** 2
        mean = mean + share * (own - mean)
        seen = seen + new
    count, pointing, lengths, squares = of_rows
    total, unit = sums
    inner = (squares - (total**2).sum(1) / count.clamp_min(1)).clamp_min(0)
    by_label = (count, pointing, lengths, squares, inner, total, unit)
    return CloudSums(*by_label, unit_squares, mean, scatter, largest, beyond)


def fused(points: Tensor) -> bool:
    """Whether the Triton kernels take this cloud."""
    return points.is_cuda and points.dtype != torch.float64 and triton_there()


@cache
def triton_there() -> bool:
    """Whether Triton is installed."""
    return find_spec("triton") is not None
