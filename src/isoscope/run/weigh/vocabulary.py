"""A vocabulary matrix weighed as a cloud of rows that each stand alone: raw, centred, all-but-the-top.

Rows are folded into records a block at a time; partition isotropy is read off all rows, not off a sample,
since published numbers are. Every form has a null of its own: random rows that were centred, or lost their
top directions, as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isoscope.data.keys import content_keys
from isoscope.measures.base import Measure
from isoscope.measures.partition import FormRows, largest
from isoscope.measures.table import choose, of_weights
from isoscope.measures.vocabulary import in_form
from isoscope.results.points import Points
from isoscope.results.reading import Reading
from isoscope.sites import CENTRED, WITHOUT_TOP, of_form
from isoscope.stats.moments import Moments
from isoscope.stats.reservoir import Reservoir
from isoscope.stats.seen import Vectors
from isoscope.stats.weights import AllRows

BLOCK = 2**21  # numbers at a time: 16 MiB in float64
SHOWN = 2000  # rows in a picture


@dataclass(frozen=True, eq=False)
class VocabularyWeighed:
    """One form of a vocabulary matrix: its kind, its readings by measure, its mean row, its picture."""

    kind: str
    readings: dict[str, Reading]
    mean: Tensor  # [d]
    picture: tuple[Points, ...]


def vocabulary_measures() -> tuple[Measure, ...]:
    """Those of any cloud whose vectors stand alone, and those of vocabularies only."""
    return (*choose("all", set()), *of_weights("vocabulary"))


def weigh_vocabulary(
    kind: str, take: Callable[[], Tensor], *, seed: int, tick: Callable[[], None]
) -> Iterator[VocabularyWeighed]:
    """The matrix [|V|, d] that `take` gives in each of its forms; `tick` is called when one is done.

    All-but-the-top takes D = max(1, round(d/100)) directions. The matrix is not changed, and let go early.
    """
    matrix = take()
    raw, whole = _read(kind, kind, "raw", matrix, seed)
    yield raw
    tick()
    mean, scatter = whole.mean[0], whole.scatter[0]
    centred = torch.empty_like(matrix)
    for block in _blocks(matrix):
        centred[block] = (matrix[block].double() - mean).to(centred.dtype)
    del matrix
    yield _read(of_form(kind, CENTRED), kind, "centred", centred, seed, 0)[0]
    tick()
    top = largest(scatter, max(1, round(len(mean) / 100)))
    for block in _blocks(centred):
        rows = centred[block]
        rows -= ((rows.double() @ top) @ top.T).to(rows.dtype)
    yield _read(of_form(kind, WITHOUT_TOP), kind, "", centred, seed, top.shape[1])[0]
    tick()


def _blocks(matrix: Tensor) -> Iterator[slice]:
    """The rows, as many at a time as `BLOCK` numbers are."""
    rows = max(1, BLOCK // max(1, matrix.shape[1]))
    return (slice(start, start + rows) for start in range(0, len(matrix), rows))


def _folded(matrix: Tensor, seed: int) -> dict[type[Any], Any]:
    stats = dict.fromkeys(stat for measure in vocabulary_measures() for stat in measure.stats)
    records: dict[type[Any], Any] = {}
    for block in _blocks(matrix):
        rows = matrix[block]
        own = content_keys(rows.float(), seed)  # the same for one matrix from any file
        seen = Vectors.see(rows, None, own, position=own)
        for stat in stats:
            new = stat.of(seen)
            records[stat] = records[stat].merge(new) if stat in records else new
    return records


def _read(
    kind: str, side: str, series: str, matrix: Tensor, seed: int, removed: int | None = None
) -> tuple[VocabularyWeighed, Moments]:
    """The readings of one form; `removed` top directions are gone where it was centred, None where not."""
    records = _folded(matrix, seed)
    sound = torch.cat([matrix[block].isfinite().all(1) for block in _blocks(matrix)])
    whole = records[Moments].whole
    gram = whole.scatter[0] + whole.n * torch.outer(whole.mean[0], whole.mean[0])
    rows = matrix if sound.all() else matrix[sound]
    every = AllRows(rows, gram) if removed is None else FormRows(rows, gram, removed)
    exact, readings = {**records, Reservoir: every}, {}
    for measure in vocabulary_measures():
        of = exact if measure.family == "partition" else records
        found, name = measure.reading(of, of), measure.name
        readings[name] = found if removed is None else in_form(name, found, records[Moments], removed)
    picture = _picture(side, series, matrix, gram) if series else ()
    return VocabularyWeighed(kind, readings, whole.mean[0], picture), whole


def _picture(side: str, series: str, matrix: Tensor, gram: Tensor) -> tuple[Points, ...]:
    """Up to `SHOWN` rows on the first two singular vectors, the mean (else the longer tail) positive."""
    if matrix.shape[1] < 2:
        return ()
    axes = largest(gram, 2)
    chosen = content_keys(torch.arange(len(matrix))[:, None], 0).argsort()[:SHOWN].sort().values
    rows = matrix[chosen].double()
    places = rows[rows.isfinite().all(1)] @ axes
    lean = places.mean(0)
    if series == "centred":  # what the mean of a sample leans to is chance
        lean = (places**3).sum(0)
    places = places * torch.where(lean < 0, -1.0, 1.0)
    return (Points("svd", side, None, None, series, places[:, 0].tolist(), places[:, 1].tolist()),)
