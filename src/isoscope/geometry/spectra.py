"""The query-key matrix of a head and its spectrum, from the explicit d×d matrix (Bao et al. 2024).

W = scale·diag(γ) W_Q W_Kᵀ diag(γ), so that x̂ᵀWx̂' is the score that query x̂ gives key x̂', both normalised
inputs. What is decided here:

- `wq` [h, d, e] and `wk` [g, d, e] are the transposes of a Linear's weight. Key heads may be fewer: h/g query
  heads in a row share one. A single head may come as [d, e]; it is a batch of one.
- γ is the gain of the norm before the head. Biases are no part of W: `key_bias_norm` gives their size.
- `root` [d, m] is any R with Σ = RRᵀ, Σ the covariance of the inputs' increments; W is then Σ^½WΣ^½.
- Rotary position turns W by the distance of query and key, and is left out: this is W at distance zero.
- A head with NaN or Inf in its weights is NaN in every field; the others are not touched by it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class QkSpectrum:
    """What W is like, every field [h] unless it says otherwise, in float64."""

    eigenvalues: Tensor  # [h, min(d, e)] complex: those inside the rank, largest modulus first
    singular_values: Tensor  # [h, min(d, e)], largest first
    trace: Tensor  # tr W, the sum of the eigenvalues
    trace_square: Tensor  # tr W², the sum of their squares; negative where W turns more than it stretches
    frobenius_square: Tensor  # ‖W‖_F²
    mean: Tensor  # λ̄ = tr W/d, over all d eigenvalues
    variance: Tensor  # (1/d) Σ|λ − λ̄|², over all d eigenvalues, zeros included
    variance_inside: Tensor  # the same over the min(d, e) inside the rank, about their own mean
    symmetric_share: Tensor  # ‖(W + Wᵀ)/2‖_F²/‖W‖_F², in [0, 1]; NaN where W is zero
    skew_share: Tensor  # ‖(W − Wᵀ)/2‖_F²/‖W‖_F², the rest
    spectral_norm: Tensor  # ‖W‖₂, the largest singular value
    effective_rank: Tensor  # ‖W‖_F⁴/tr((WWᵀ)²), in [1, min(d, e)]; NaN where W is zero


@dataclass(frozen=True, eq=False)
class Factors:
    """W as a product: query [h, m, e], scale in it, times key [g, m, e] transposed; γ and root in both."""

    query: Tensor
    key: Tensor
    width: int  # d; m is d too, unless a root narrower than that was given

    @property
    def copies(self) -> int:
        """How many query heads share one key head."""
        return len(self.query) // len(self.key)

    @property
    def keys(self) -> Tensor:
        """The key factor of every query head, [h, m, e]."""
        return self.key if self.copies == 1 else self.key.repeat_interleave(self.copies, 0)


def factors(
    wq: Tensor,
    wk: Tensor,
    *,
    scale: float | None = None,
    gamma: Tensor | None = None,
    root: Tensor | None = None,
) -> Factors:
    """The two factors of W in float64, checked; `scale` is 1/√e unless given."""
    query, key = (part[None] if part.ndim == 2 else part for part in (wq, wk))
    if query.ndim != 3 or key.ndim != 3 or query.shape[1:] != key.shape[1:] or 0 in query.shape:
        raise ValueError(
            "wq and wk must be [heads, d, e], or [d, e] for one head, of one d and one e; "
            f"they are {list(wq.shape)} and {list(wk.shape)}: a Linear's weight is the transpose"
        )
    heads, width, inner = query.shape
    if len(key) == 0 or heads % len(key):
        raise ValueError(
            f"the query heads must be a multiple of the key heads; there are {heads} and {len(key)}"
        )
    if gamma is not None and gamma.shape != (width,):
        raise ValueError(f"gamma must be [{width}], one gain a dimension; it is {list(gamma.shape)}")
    gain = query.new_ones(width, 1, dtype=torch.float64) if gamma is None else gamma.double()[:, None]
    query, key = query * (gain * (inner**-0.5 if scale is None else scale)), key * gain
    if root is not None:
        _check_root(root, width)
        query, key = root.double().mT @ query, root.double().mT @ key
    return Factors(query, key, width)


def _check_root(root: Tensor, width: int) -> None:
    if root.ndim != 2 or len(root) != width:
        raise ValueError(f"root must be [{width}, m] with Σ = root·rootᵀ; it is {list(root.shape)}")


def covariance_root(covariance: Tensor) -> Tensor:
    """Σ^½ [d, d], symmetric, of a covariance [d, d]; eigenvalues under zero are rounding, and zero here."""
    covariance = covariance.double()
    if not covariance.isfinite().all():
        return torch.full_like(covariance, math.nan)
    values, vectors = torch.linalg.eigh((covariance + covariance.mT) / 2)
    return vectors * values.clamp_min(0).sqrt() @ vectors.mT


def qk_matrix(
    wq: Tensor,
    wk: Tensor,
    *,
    scale: float | None = None,
    gamma: Tensor | None = None,
    root: Tensor | None = None,
) -> Tensor:
    """W of every head, [h, d, d]."""
    parts = factors(wq, wk, scale=scale, gamma=gamma)
    matrix = parts.query @ parts.keys.mT
    if root is None:
        return matrix
    _check_root(root, parts.width)
    half = covariance_root(root.double() @ root.double().mT)
    return half @ matrix @ half


def qk_spectrum(
    wq: Tensor,
    wk: Tensor,
    *,
    scale: float | None = None,
    gamma: Tensor | None = None,
    root: Tensor | None = None,
) -> QkSpectrum:
    """The spectrum of W of every head, by the definitions of its fields."""
    rank = min(wq.shape[-2:])
    heads = [_spectrum(matrix, rank) for matrix in qk_matrix(wq, wk, scale=scale, gamma=gamma, root=root)]
    return QkSpectrum(**{name: torch.stack([head[name] for head in heads]) for name in heads[0]})


def _spectrum(matrix: Tensor, rank: int) -> dict[str, Tensor]:
    whole = bool(matrix.isfinite().all())
    matrix = matrix if whole else torch.zeros_like(matrix)
    values = torch.linalg.eigvals(matrix)
    inside = values[values.abs().argsort(descending=True)][:rank]
    singular = torch.linalg.svdvals(matrix)
    square = (matrix**2).sum()
    found = {
        "eigenvalues": inside,
        "singular_values": singular[:rank],
        "trace": matrix.trace(),
        "trace_square": (matrix @ matrix).trace(),
        "frobenius_square": square,
        "mean": values.mean().real,
        "variance": ((values - values.mean()).abs() ** 2).mean(),
        "variance_inside": ((inside - inside.mean()).abs() ** 2).mean(),
        "symmetric_share": (((matrix + matrix.mT) / 2) ** 2).sum() / square,
        "skew_share": (((matrix - matrix.mT) / 2) ** 2).sum() / square,
        "spectral_norm": singular[0],
        "effective_rank": square**2 / ((matrix @ matrix.mT) ** 2).sum(),
    }
    return found if whole else {name: torch.full_like(value, math.nan) for name, value in found.items()}


def key_bias_norm(
    wq: Tensor,
    wk: Tensor,
    *,
    scale: float | None = None,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    query_bias: Tensor | None = None,
) -> Tensor:
    """‖scale·γ⊙W_K q₀‖ of every head, q₀ = W_Qᵀβ + b_Q, β [d] what the norm before adds, b_Q [h, e] or flat.

    It is the deviation, over inputs x̂ ~ N(0, I), of the part of a score that is the same for every query: it
    can sharpen whatever the query. That of x̂ᵀWx̂' is ‖W‖_F. Other terms of biases cancel in the softmax.
    """
    bare, folded = factors(wq, wk, scale=1.0), factors(wq, wk, scale=1.0, gamma=gamma)
    heads, width, inner = bare.query.shape
    offset = bare.query.new_zeros(heads, inner)
    if beta is not None:
        if beta.shape != (width,):
            raise ValueError(f"beta must be [{width}], one shift a dimension; it is {list(beta.shape)}")
        offset = offset + torch.einsum("hde,d->he", bare.query, beta.double())
    if query_bias is not None:
        if query_bias.numel() != offset.numel():
            raise ValueError(f"query_bias must be [{heads}, {inner}] or flat; it is {list(query_bias.shape)}")
        offset = offset + query_bias.double().reshape(heads, inner)
    found = torch.einsum("hde,he->hd", folded.keys, offset).norm(dim=1)
    found = found * abs(inner**-0.5 if scale is None else scale)
    return found.where(found.isfinite(), math.nan)
