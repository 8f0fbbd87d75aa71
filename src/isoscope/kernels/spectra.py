"""The spectrum of W = scale·W_Q W_Kᵀ through e×e matrices, all heads in one batch; never a d×d one.

W = ABᵀ has the non-zero eigenvalues of BᵀA, and the singular values of R_A R_Bᵀ, R the triangles of the QR
decompositions of A and B: that keeps small singular values to rounding, which the Gram matrices AᵀA and BᵀB
would lose under 1e-8 of the largest.
"""

from __future__ import annotations

import math
from dataclasses import fields, replace

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from isoscope.geometry.spectra import QkSpectrum, factors


def qk_spectrum(
    wq: Tensor,
    wk: Tensor,
    *,
    scale: float | None = None,
    gamma: Tensor | None = None,
    root: Tensor | None = None,
) -> QkSpectrum:
    """The spectrum of W of every head. Twin: `geometry.spectra.qk_spectrum`, which says what enters.

    >>> found = qk_spectrum(torch.eye(3)[:, :2], 2 * torch.eye(3)[:, :2], scale=1.0)
    >>> float(found.trace), float(found.frobenius_square), round(float(found.mean), 6)
    (4.0, 8.0, 1.333333)
    """
    parts = factors(wq, wk, scale=scale, gamma=gamma, root=root)
    whole_keys = parts.key.sum((1, 2)).isfinite()  # NaN and Inf stay in a sum
    whole = parts.query.sum((1, 2)).isfinite() & whole_keys.repeat_interleave(parts.copies)
    if not whole.all():  # LAPACK refuses the whole batch for one NaN
        query, key = (
            part.where(kept[:, None, None], 0.0)
            for part, kept in ((parts.query, whole), (parts.key, whole_keys))
        )
        parts = replace(parts, query=query, key=key)
    wide = parts.query.shape[2] > parts.query.shape[1]
    small = parts.query @ parts.keys.mT if wide else parts.keys.mT @ parts.query
    values = torch.linalg.eigvals(small)
    values = values.gather(1, values.abs().argsort(1, descending=True))
    upper, lower = (torch.linalg.qr(part, mode="r").R for part in (parts.query, parts.key))
    singular = torch.linalg.svdvals(upper @ lower.mT.repeat_interleave(parts.copies, 0))
    missing = min(parts.width, parts.query.shape[2]) - values.shape[1]  # zeros, of a narrow root
    found = _readings(small, F.pad(values, (0, missing)), F.pad(singular, (0, missing)), parts.width)
    for field in fields(found):
        getattr(found, field.name)[~whole] = math.nan
    return found


def _readings(small: Tensor, values: Tensor, singular: Tensor, width: int) -> QkSpectrum:
    """All fields, from a matrix with the eigenvalues of W that are not zero."""
    trace = small.diagonal(dim1=1, dim2=2).sum(1)
    trace_square = (small * small.mT).sum((1, 2))
    squares = singular**2
    square = squares.sum(1)
    rank = values.shape[1]
    mean = trace / width
    apart = ((values - mean[:, None]).abs() ** 2).sum(1) + (width - rank) * mean**2
    own = trace / rank
    share = (trace_square / square).clamp(-1, 1)
    relative = squares / squares[:, :1]  # σ⁴ would overflow where σ does not
    return QkSpectrum(
        eigenvalues=values,
        singular_values=singular,
        trace=trace,
        trace_square=trace_square,
        frobenius_square=square,
        mean=mean,
        variance=apart / width,
        variance_inside=((values - own[:, None]).abs() ** 2).mean(1),
        symmetric_share=(1 + share) / 2,
        skew_share=(1 - share) / 2,
        spectral_norm=singular[:, 0].clone(),
        effective_rank=relative.sum(1) ** 2 / (relative**2).sum(1),
    )
