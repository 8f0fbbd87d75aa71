"""A fitted repair: its maps one after the other, and how vectors go through them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import numpy as np
import torch
from torch import Tensor

from isoscope.errors import IsoscopeError
from isoscope.repair.fit.gather import from_array
from isoscope.repair.keep import maps
from isoscope.repair.keep.maps import Clustered, Map

AT_ONCE, ON_A_GPU = 1024, 65536  # vectors that are moved at a time; on a CPU they stay in cache

Given = TypeVar("Given", Tensor, "np.ndarray[Any, Any]")


@dataclass(frozen=True, eq=False)
class Repair:
    """A recipe as it was fitted: its maps, on how many vectors, and what a reader must know."""

    name: str
    steps: tuple[Map, ...]
    n: int
    left_out: int = 0
    notes: tuple[str, ...] = ()
    facts: Mapping[str, object] = field(default_factory=dict)

    @property
    def width(self) -> int:
        """The dimensions of the vectors it takes."""
        return maps.shape_of(self.steps[0])[0]

    @property
    def gives(self) -> int:
        """The dimensions of the vectors it gives."""
        return maps.shape_of(self.steps[-1])[1]

    @property
    def is_affine(self) -> bool:
        """Whether it is one map y = Ax + c for all vectors."""
        return not any(isinstance(step, Clustered) for step in self.steps)

    @property
    def is_invertible(self) -> bool:
        """Whether vectors can be had back from what it gives."""
        return all(map(maps.is_invertible, self.steps))

    def affine(self) -> tuple[Tensor, Tensor]:
        """A [k, d] and c [k] of y = Ax + c, in float64."""
        matrix = torch.eye(self.width, dtype=torch.float64)
        offset = torch.zeros(self.width, dtype=torch.float64)
        for step in self.steps:
            if isinstance(step, Clustered):
                raise IsoscopeError(f"'{self.name}' is no affine map: what it does depends on the cluster.")
            matrix, offset = step.matrix @ matrix, step.matrix @ (offset - step.mean)
        return matrix, offset

    def apply(self, vectors: Given) -> Given:
        """Vectors [..., d] repaired, [..., k], as precise as they are given; rows with NaN stay NaN."""
        if isinstance(vectors, Tensor):
            return self._moved(vectors)
        return cast(Given, self._moved(from_array(np.asarray(vectors))).numpy())

    def _moved(self, vectors: Tensor) -> Tensor:
        if vectors.dim() < 1 or vectors.shape[-1] != self.width:
            raise IsoscopeError(
                f"'{self.name}' was fitted on vectors of {self.width} dimensions; "
                f"got the shape {tuple(vectors.shape)}."
            )
        if vectors.is_complex():
            raise IsoscopeError("vectors hold real numbers; got complex ones.")
        vectors = vectors if vectors.is_floating_point() else vectors.double()
        flat = vectors.reshape(-1, self.width)
        exact = vectors.dtype if vectors.dtype in (torch.float32, torch.float64) else torch.float32
        steps = [maps.cast(step, flat[:0].to(exact)) for step in self.steps]
        moved = torch.empty(len(flat), self.gives, dtype=vectors.dtype, device=vectors.device)
        many = AT_ONCE if flat.device.type == "cpu" else ON_A_GPU
        for start in range(0, len(flat), many):
            part = flat[start : start + many].to(exact)
            for step in steps:
                part = step.move(part)
            moved[start : start + many] = part
        return moved.reshape(*vectors.shape[:-1], self.gives)
