"""What weighing a model gives: rows, points, facts and remarks; and how weights are told apart."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pandas as pd
import torch

from isoscope.errors import IsoscopeError
from isoscope.models.weights import Weights
from isoscope.results.schema import Row, frame

UNREADABLE = (IsoscopeError, ValueError, RuntimeError, OSError)  # what a part that cannot be read raises
_SAMPLE = 64  # numbers of each tensor that a fingerprint is of


@dataclass(frozen=True, eq=False)
class Weighed:
    """The rows, the points of pictures, facts and remarks of a model's weights."""

    model: str
    revision: str
    found: tuple[Row, ...]
    drawn: pd.DataFrame
    facts: Mapping[str, object]
    remarks: tuple[str, ...]

    def rows(self, run: str = "") -> list[Row]:
        """The rows, marked with the run they belong to."""
        return [replace(row, run=run) for row in self.found]

    def frame(self) -> pd.DataFrame:
        """One row a site, head and measure, tidy: value, n, null, note."""
        return frame(self.found)

    def points(self) -> pd.DataFrame:
        """The points of the pictures: spectra, the plane of heads, ρ(t), rows of vocabularies."""
        return self.drawn

    def notes(self) -> list[str]:
        """What a reader must know."""
        return list(self.remarks)

    def known(self) -> dict[str, object]:
        """The facts with the notes: what a run keeps beside the rows."""
        return {**self.facts, "notes": self.notes()}

    def _repr_html_(self) -> str:
        return self.frame().to_html(index=False)


def fingerprint(weights: Weights) -> str:
    """Sixteen hex digits of the names, the shapes and a sample of the numbers of all weights.

    A sample, because most weights are not read otherwise: 64 numbers spread over each. What cannot be read is
    not in it.
    """
    digest = hashlib.blake2b(digest_size=8)
    tensors = weights.opened.tensors
    for name in sorted(tensors.names):
        try:
            found = tensors.stored(name).detach().flatten()
        except UNREADABLE:
            continue
        step = max(1, len(found) // _SAMPLE)
        some = found[::step].cpu().contiguous()
        digest.update(f"{name}{tensors.shape(name)}{found.dtype}".encode())
        digest.update(some.view(torch.uint8).numpy().data if some.numel() else b"")
    return digest.hexdigest()
