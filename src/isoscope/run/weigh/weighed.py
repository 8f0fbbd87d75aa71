"""What weighing a model gives: rows, points, facts and remarks; and how weights are told apart."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import pandas as pd
import torch
from torch import Tensor

from isoscope.errors import IsoscopeError
from isoscope.models.weights import SIDES, Weights
from isoscope.results.row import Row, frame

UNREADABLE = (IsoscopeError, ValueError, RuntimeError, OSError)  # what a part that cannot be read raises


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
        from isoscope.show.notebook import html_of

        return html_of(self.frame(), self.notes())


def fingerprint(weights: Weights, progress: Callable[[int, int | None], None] | None = None) -> str:
    """Sixteen hex digits of the config as it is written and of every number that is weighed.

    Files of a hub's commit do not change: there it is of the commit, and nothing is downloaded. Elsewhere
    all tensors that are weighed are read for it once, none besides; what cannot be read is not in it.
    `progress` is called with (parts done, parts in all).
    """
    opened = weights.opened
    digest = hashlib.blake2b(repr((opened.commit, opened.settings)).encode(), digest_size=8)
    if not opened.commit:
        digest.update(repr(sorted(_hashes(weights, progress).items())).encode())
    return digest.hexdigest()


def _hashes(weights: Weights, progress: Callable[[int, int | None], None] | None) -> dict[str, str]:
    """The hash of every tensor that weighing reads, by name: all of it is read as it will be, and let go."""
    tensors, found = weights.opened.tensors, dict[str, str]()

    def stored(name: str) -> Tensor:
        tensor = tensors.stored(name)
        if name not in found:
            found[name] = _hash(tensor)
        return tensor

    watched = replace(weights, opened=replace(weights.opened, tensors=replace(tensors, stored=stored)))
    parts: list[Callable[[], object]] = [
        *(partial(next, replace(watched, steps=(step,)).projections(), None) for step in weights.steps),
        *(partial(watched.vocabulary, side) for side in SIDES),
        watched.final_norm,
    ]
    for done, part in enumerate(parts, start=1):
        with suppress(*UNREADABLE):
            part()
        if progress is not None:
            progress(done, len(parts))
    return found


def _hash(tensor: Tensor) -> str:
    raw = tensor.detach().cpu().contiguous().reshape(-1)
    digest = hashlib.blake2b(f"{tuple(tensor.shape)}{tensor.dtype}".encode(), digest_size=16)
    digest.update(raw.view(torch.uint8).numpy().data if raw.numel() else b"")
    return digest.hexdigest()
