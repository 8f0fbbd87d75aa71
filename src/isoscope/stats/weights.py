"""Records of weights, which are seen once and whole: nothing merges here.

W of every head is kept as the numbers that its measures read, never as a matrix; a norm as its γ and β.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from isoscope.geometry.propagation import regime
from isoscope.geometry.spectra import Factors, QkSpectrum
from isoscope.kernels.spectra import qk_spectrum


@dataclass(frozen=True, eq=False)
class AllRows:
    """Every row of a matrix that is finite, where a `Reservoir` has a sample: read in its place."""

    points: Tensor  # [n, d]
    gram: Tensor | None = None  # XᵀX [d, d], where it is known already

    @property
    def count(self) -> int:
        """How many there are: all of them are here."""
        return len(self.points)


@dataclass(frozen=True, eq=False)
class HeadWeights:
    """The heads of one attention: the spectrum of W, what biases add, and the sizes a null needs; [h] each.

    A head of another width e has its eigenvalues filled up with NaN. `regimes` is empty where a query and its
    keys are not of one sequence, which the theory of regimes is about.
    """

    spectrum: QkSpectrum
    key_bias_norm: Tensor  # ‖scale·γ⊙W_K q₀‖
    query_size: Tensor  # ‖scale·γ⊙W_Q‖_F
    key_size: Tensor  # ‖γ⊙W_K‖_F
    width: Tensor  # d
    inner: Tensor  # e
    regimes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, parts: Factors, *, query_offset: Tensor | None = None, length: int | None = None
    ) -> HeadWeights:
        """Of factors with scale and γ in them; `query_offset` [h, e] is scale·(W_Qᵀβ + b_Q).

        W's regimes are those of inputs that walk for `length` positions; without it, none.
        """
        spectrum = qk_spectrum(parts.query, parts.key, scale=1.0)
        heads, width, inner = parts.query.shape
        offset = parts.query.new_zeros(heads, inner) if query_offset is None else query_offset.double()
        bias = torch.einsum("gdc,gce->gde", parts.key, offset.reshape(len(parts.key), -1, inner).mT)
        bias = bias.norm(dim=1).flatten()
        moments = (spectrum.trace, spectrum.trace_square, spectrum.frobenius_square)
        return cls(
            spectrum=spectrum,
            key_bias_norm=bias.where(bias.isfinite(), math.nan),
            query_size=parts.query.norm(dim=(1, 2)),
            key_size=parts.key.norm(dim=(1, 2)).repeat_interleave(parts.copies),
            width=torch.full((heads,), width),
            inner=torch.full((heads,), inner),
            regimes=() if length is None else regime(*moments, length),
        )

    def beside(self, other: HeadWeights) -> HeadWeights:
        """The heads of another attention of the same block after those of this one."""
        joined = {
            field.name: _joined(getattr(self.spectrum, field.name), getattr(other.spectrum, field.name))
            for field in fields(QkSpectrum)
        }
        return HeadWeights(
            spectrum=QkSpectrum(**joined),
            key_bias_norm=torch.cat([self.key_bias_norm, other.key_bias_norm]),
            query_size=torch.cat([self.query_size, other.query_size]),
            key_size=torch.cat([self.key_size, other.key_size]),
            width=torch.cat([self.width, other.width]),
            inner=torch.cat([self.inner, other.inner]),
            regimes=self.regimes + other.regimes,
        )


def _joined(one: Tensor, other: Tensor) -> Tensor:
    if one.dim() == 2:
        wide = max(one.shape[1], other.shape[1])
        one, other = (F.pad(each, (0, wide - each.shape[1]), value=math.nan) for each in (one, other))
    return torch.cat([one, other])


@dataclass(frozen=True, eq=False)
class NormWeights:
    """γ [d] and β [d] of a norm, and the mean row [d] of the vocabulary that reads what leaves it.

    What is not there is None; `why_no_vocabulary` says why.
    """

    weight: Tensor
    bias: Tensor | None
    vocabulary_mean: Tensor | None = None
    why_no_vocabulary: str = ""
