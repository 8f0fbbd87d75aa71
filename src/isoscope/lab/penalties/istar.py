"""I-STAR: hidden states that use all of their dimensions, or fewer (Rudman & Eickhoff 2024)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ClassVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from isoscope.errors import IsoscopeError
from isoscope.lab.penalties.watching import Forwards, last, watched
from isoscope.lab.variants.base import at_least_single
from isoscope.models.blocks import find_blocks
from isoscope.models.tap import tap
from isoscope.sites import Site


@dataclass(frozen=True)
class IStar:
    """λ · mean over layers of (1 − IsoScore*), λ `strength`: above 0 towards isotropy, under 0 away from it.

    IsoScore* is IsoScore of the covariance of what leaves a block, shrunk by `shrinkage` towards the round
    one of the same trace. The paper takes all layers as one cloud, and shrinks towards a larger sample's.
    """

    strength: float
    shrinkage: float = 0.2
    watches: ClassVar[bool] = True
    _forwards: Forwards = field(default_factory=WeakKeyDictionary, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 <= self.shrinkage <= 1:
            raise IsoscopeError(f"istar's shrinkage is from 0 to 1; got {self.shrinkage:g}.")

    @contextmanager
    def watch(self, model: nn.Module) -> Iterator[None]:
        """Around the forward: see the hidden states of every layer."""
        with watched("istar", model, self._forwards) as forward:

            def layer(site: Site, seen: Tensor) -> None:
                if forward.runs and site.kind == "layer" and site.layer:
                    points = seen.movedim(1, -1) if seen.dim() > 3 else seen  # a feature map [b, c, h, w]
                    counts = forward.counted(len(points), points.shape[1]) if points.dim() == 3 else None
                    with torch.autocast(seen.device.type, enabled=False):
                        forward.found.append(isoscore_star(at_least_single(points), counts, self.shrinkage))

            with tap(model, find_blocks(model), layer):
                yield

    def __call__(self, model: nn.Module) -> Tensor:
        """The penalty of the last forward, a scalar."""
        scores = last("istar", model, self._forwards, "block")
        return self.strength * (1 - torch.stack(scores)).mean()


def isoscore_star(points: Tensor, counts: Tensor | None = None, shrinkage: float = 0.2) -> Tensor:
    """(PR − 1)/(d − 1), PR = (Σλ)²/Σλ² of the shrunk covariance of `points` [..., d] where they count [...].

    Σλ = tr S stays as it is, Σλ² = ‖(1−ζ)S + ζ·tr S/d·1‖² = (1−ζ)²‖S‖² + ζ(2−ζ)(tr S)²/d: no eigenvalues,
    which have no gradient where two are alike. Twin: `geometry.spectrum.isoscore_star`.
    """
    cloud, width = points.flatten(0, -2), points.shape[-1]
    weight = torch.ones_like(cloud[:, :1]) if counts is None else counts.flatten()[:, None].to(cloud)
    apart = weight * (cloud - (weight * cloud).sum(0) / weight.sum())
    gram = apart.mT @ apart if width <= len(cloud) else apart @ apart.mT
    trace, square = gram.diagonal().sum(), gram.square().sum()
    shrunk = (1 - shrinkage) ** 2 * square + shrinkage * (2 - shrinkage) * trace**2 / width
    return (trace**2 / shrunk - 1) / (width - 1)
