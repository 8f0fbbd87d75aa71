"""What weighing a model gives: rows, points, facts and remarks; and how weights are told apart."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor

from isoscope.errors import IsoscopeError
from isoscope.measures.base import Measure
from isoscope.measures.on_data import EXPLANATIONS
from isoscope.measures.table import of_weights
from isoscope.models.weights import SIDES, Weights
from isoscope.results.points import Points, points_frame
from isoscope.results.reading import Reading
from isoscope.results.row import Row, frame
from isoscope.run.page import PAGE, write_page
from isoscope.run.telling import Progress
from isoscope.run.weigh.vocabulary import vocabulary_measures
from isoscope.sites import Site

UNREADABLE = (IsoscopeError, ValueError, RuntimeError, OSError)  # what a part that cannot be read raises


@dataclass(eq=False)
class Findings:
    """What is found of a model so far: rows, series of pictures, facts, and what a reader must know."""

    model: str
    revision: str
    step: int | None = None
    rows: list[Row] = field(default_factory=list)
    series: list[Points] = field(default_factory=list)
    facts: dict[str, object] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    localisation: list[str] = field(default_factory=list)  # those remarks that say why it is not compared

    def add(self, site: Site, measure: str, whole: Reading, *heads: Reading) -> None:
        """Add the row of a site, and those of its heads in order."""
        at = (self.model, self.revision, self.step, site.kind, site.layer)
        self.rows.append(Row.at("", *at, None, measure, whole))
        self.rows += [Row.at("", *at, head, measure, reading) for head, reading in enumerate(heads)]

    @property
    def points(self) -> pd.DataFrame:
        """The points of the pictures."""
        return points_frame(self.series)


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

    def report(self, path: str | PathLike[str] = PAGE) -> Path:
        """Write the page of these weights, one HTML file, and return its path."""
        named = set(self.frame()["measure"])
        measures = [measure for measure in weight_measures() if measure.name in named]
        told = {name: words for name, words in EXPLANATIONS.items() if name in named}
        rows, known = frame(self.found, influence=True), self.known()
        return write_page(path, "weights", self.model, measures, rows, known, self.points(), told)

    def _repr_html_(self) -> str:
        from isoscope.show.notebook import html_of

        return html_of(frame(self.found, influence=True), self.notes())


def weight_measures() -> tuple[Measure, ...]:
    """Every measure that weights alone are read by, in the order of the rows."""
    return (*of_weights("query_key"), *vocabulary_measures(), *of_weights("norm"))


def fingerprint(weights: Weights, progress: Progress | None = None) -> str:
    """Sixteen hex digits of the config as it is written and of every number that is weighed.

    Of a hub's commit, whose files do not change, nothing is read; elsewhere all that is weighed, once, but
    for what cannot be. `progress` is called with (parts done, parts in all).
    """
    opened = weights.opened
    digest = hashlib.blake2b(repr((opened.commit, opened.settings)).encode(), digest_size=8)
    if not opened.commit:
        digest.update(repr(sorted(_hashes(weights, progress).items())).encode())
    return digest.hexdigest()


def _hashes(weights: Weights, progress: Progress | None) -> dict[str, str]:
    """The hash of every tensor that weighing reads, by name: all of it is read as it will be, and let go."""
    tensors, found = weights.opened.tensors, dict[str, str]()

    def stored(name: str) -> Tensor:
        tensor = tensors.stored(name)
        if name not in found:
            raw = tensor.detach().cpu().contiguous().reshape(-1)
            digest = hashlib.blake2b(f"{tuple(tensor.shape)}{tensor.dtype}".encode(), digest_size=16)
            digest.update(raw.view(torch.uint8).numpy().data if raw.numel() else b"")
            found[name] = digest.hexdigest()
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
