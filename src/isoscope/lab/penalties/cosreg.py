"""CosReg: word vectors that point in all directions (Gao et al. 2019)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ClassVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from isoscope.errors import IsoscopeError
from isoscope.lab.penalties.living import Read, exactly, reader
from isoscope.models.weights import open_weights


@dataclass(frozen=True)
class CosReg:
    """γ · (‖Σŵ‖² − |V|)/|V|², the sum of cosines between all pairs of word vectors, γ `strength`.

    Of the table tokens enter by, or leave by (`output`), without zeros. Under 0 it draws vectors together.
    """

    strength: float
    output: bool = False
    watches: ClassVar[bool] = False
    _found: WeakKeyDictionary[nn.Module, tuple[Read, str]] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False, compare=False
    )

    @contextmanager
    def watch(self, model: nn.Module) -> Iterator[None]:
        """Nothing to see: it is of weights alone."""
        yield

    def __call__(self, model: nn.Module) -> Tensor:
        """The penalty of the model as it is now, a scalar."""
        if model not in self._found:
            weights, side = open_weights(model, living=True), "output" if self.output else "input"
            table = weights.vocabulary(side)
            if table is None:
                why = f"the {side} vocabulary of {weights.model}: {weights.absent(side)}"
                raise IsoscopeError(f"cosreg needs {why}.")
            self._found[model] = reader(model), table.name
        read, name = self._found[model]
        with exactly(model):
            return self.strength * mean_of_cosines(read(name))


def mean_of_cosines(vectors: Tensor) -> Tensor:
    """(‖Σŵ‖² − n)/n² of the n rows of `vectors` [n, d] that are not zero."""
    square = vectors.square().sum(1, keepdim=True)
    there = square > 0
    unit = torch.where(there, vectors * torch.where(there, square, 1).rsqrt(), 0)
    count = there.sum()
    return (unit.sum(0).square().sum() - count) / count**2
