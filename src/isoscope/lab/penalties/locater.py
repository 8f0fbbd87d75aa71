"""LocAteR, reconstructed: a narrow spectrum of W = scale·W_Q W_Kᵀ around a kept mean (Bao et al. 2024)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ClassVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from isoscope.errors import IsoscopeError
from isoscope.lab.penalties.living import Form, exactly, forms


@dataclass(frozen=True)
class LocAteR:
    """λ_s · mean ‖W‖_F²/d + λ_m · mean (tr W − τ)² over all heads, λ_s `strength`, τ `target`, λ_m `keep`.

    τ has the units of a score: .5, 1 or 2 are sensible; 0 would drive attention to be even. W has the γ of
    the norm in front, and no position, QK-norm or learnt temperature, which come after the projections.
    """

    strength: float
    target: float
    keep: float = 1.0
    watches: ClassVar[bool] = False
    _found: WeakKeyDictionary[nn.Module, tuple[Form, ...]] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if self.strength < 0 or self.keep < 0:
            raise IsoscopeError(
                f"locater shrinks a spectrum: strength and keep are at least 0; got {self.strength:g} and "
                f"{self.keep:g}."
            )

    @contextmanager
    def watch(self, model: nn.Module) -> Iterator[None]:
        """Nothing to see: it is of weights alone."""
        yield

    def __call__(self, model: nn.Module) -> Tensor:
        """The penalty of the model as it is now, a scalar."""
        if model not in self._found:
            self._found[model] = forms(model)
        sizes, traces = [], []  # ‖W‖_F²/d and tr W of every head: through e×e matrices, never a d×d one
        with exactly(model):
            for form in self._found[model]:
                query, key = form.factors()
                square = ((query.mT @ query) * (key.mT @ key)).sum((1, 2))
                sizes.append(form.scale**2 * square / query.shape[1])
                traces.append(form.scale * (query * key).sum((1, 2)))
        apart = (torch.cat(traces) - self.target).square().mean()
        return self.strength * torch.cat(sizes).mean() + self.keep * apart
