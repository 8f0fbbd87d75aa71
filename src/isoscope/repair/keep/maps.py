"""What a fitted repair does to a vector: four maps, each a frozen record of tensors in float64.

Each subtracts before it multiplies: W·x − W·m would lose three of float32's digits to a mean of a thousand.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TypeVar

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Scaled:
    """y = s ⊙ (x − m): each dimension on its own."""

    mean: Tensor  # [d]
    scale: Tensor  # [d]

    def move(self, points: Tensor) -> Tensor:
        """The image of `points` [n, d], [n, d]."""
        return (points - self.mean) * self.scale

    @property
    def matrix(self) -> Tensor:
        """A of y = A(x − m), [d, d]."""
        return torch.diag(self.scale)


@dataclass(frozen=True, eq=False)
class Projected:
    """y = (I − UᵀU)(x − m), the rows of U orthonormal: some directions taken away."""

    mean: Tensor  # [d]
    directions: Tensor  # [D, d]

    def move(self, points: Tensor) -> Tensor:
        """The image of `points` [n, d], [n, d]."""
        centred = points - self.mean
        return centred - (centred @ self.directions.T) @ self.directions

    @property
    def matrix(self) -> Tensor:
        """A of y = A(x − m), [d, d]."""
        return torch.eye(len(self.mean)).to(self.directions) - self.directions.T @ self.directions


@dataclass(frozen=True, eq=False)
class Turned:
    """y = A(x − m), the rows of A independent: onto k directions, each stretched."""

    mean: Tensor  # [d]
    matrix: Tensor  # [k, d]

    def move(self, points: Tensor) -> Tensor:
        """The image of `points` [n, d], [n, k]."""
        return (points - self.mean) @ self.matrix.T


@dataclass(frozen=True, eq=False)
class Clustered:
    """y = (I − U_cᵀU_c)(x − m_c), c the cluster whose centre is nearest to x: not one affine map but several.

    A direction that a cluster lacks is a row of zeros. Distances are taken from `origin`, so that a mean that
    all clusters share does not drown them.
    """

    origin: Tensor  # [d]
    centres: Tensor  # [c, d], from the origin
    means: Tensor  # [c, d]
    directions: Tensor  # [c, D, d]

    def move(self, points: Tensor) -> Tensor:
        """The image of `points` [n, d], [n, d]."""
        moved, label = torch.empty_like(points), self.nearest(points)
        for name, (mean, directions) in enumerate(zip(self.means, self.directions, strict=True)):
            mine = label == name
            moved[mine] = Projected(mean, directions).move(points[mine])
        return moved

    def nearest(self, points: Tensor) -> Tensor:
        """The number of the cluster of each of `points` [n, d], [n]: least ‖c‖² − 2x·c."""
        return ((self.centres**2).sum(1) - 2 * (points - self.origin) @ self.centres.T).argmin(1)


Affine = Scaled | Projected | Turned
Map = Affine | Clustered
MAPS: dict[str, type[Map]] = {
    "scaled": Scaled, "projected": Projected, "turned": Turned, "clustered": Clustered,
}  # fmt: skip
M = TypeVar("M", bound=Map)


def shape_of(step: Map) -> tuple[int, int]:
    """How many dimensions a map takes, and how many it gives."""
    if isinstance(step, Turned):
        return step.matrix.shape[1], step.matrix.shape[0]
    width = len(step.origin if isinstance(step, Clustered) else step.mean)
    return width, width


def is_invertible(step: Map) -> bool:
    """Whether x can be had back; after `Clustered` never, as y does not tell the cluster."""
    if isinstance(step, Scaled):
        return bool((step.scale != 0).all())
    if isinstance(step, Projected):
        return len(step.directions) == 0
    return isinstance(step, Turned) and step.matrix.shape[0] == step.matrix.shape[1]


def name_of(step: Map) -> str:
    """What a map is called in a file."""
    return next(name for name, kind in MAPS.items() if isinstance(step, kind))


def tensors_of(step: Map) -> dict[str, Tensor]:
    """The tensors of a map by name."""
    return {field.name: getattr(step, field.name) for field in fields(step)}


def cast(step: M, like: Tensor) -> M:
    """The same map, as precise as `like` and where that is."""
    moved = {name: tensor.to(like.device, like.dtype) for name, tensor in tensors_of(step).items()}
    return type(step)(**moved)
