"""Streams of documents cut into chunks: what chunks of one document share, and what intervals make of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import torch
from torch import Tensor

from isoscope.data.keys import dealt_units, unit_keys
from isoscope.measures.table import choose
from isoscope.results.reading import Reading
from isoscope.stats.anatomy import Anatomy
from isoscope.stats.centre import Centre
from isoscope.stats.counterfactual import Counterfactual
from isoscope.stats.directions import Directions
from isoscope.stats.queries import Queries
from isoscope.stats.rows import Rows
from isoscope.stats.seen import Vectors
from tests.laws.law_heads import Scene

VECTORS = ("mean_cosine_between", "drift", "relative_drift", "mean_norm")
ATTENTION = ("entropy", "sink_mass", "query_relative_drift", "drift_share", "key_share", "content_share")
MEASURES = {measure.name: measure for measure in choose((*VECTORS, *ATTENTION))}
WIDTH, LENGTH, ROWS = 8, 10, 6


@dataclass(frozen=True)
class Corpus:
    """Documents of 1 to `most` chunks: `shared` of a vector's variance is its document's, .1 its chunk's.

    The vectors of a document are longer or shorter by a factor of its own, log-normal with `norms`.
    """

    shared: float
    most: int
    norms: float
    drift: float = 1.0

    def draw(self, documents: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Vectors [n, d], the chunk of each [n], and the document of each chunk [s]."""
        chunks = random.integers(1, self.most + 1, size=documents)
        document = np.repeat(np.arange(documents), chunks)
        chunk = np.repeat(np.arange(len(document)), LENGTH)
        own = math.sqrt(0.9 - self.shared) * random.normal(size=(len(chunk), WIDTH))
        own += math.sqrt(0.1) * random.normal(size=(len(document), WIDTH))[chunk]
        own += math.sqrt(self.shared) * random.normal(size=(documents, WIDTH))[document[chunk]]
        own[:, 0] += self.drift
        scale = np.exp(self.norms * random.normal(size=documents))[document]
        return own * scale[chunk, None], chunk, document

    def truth(self) -> dict[str, float]:
        """What the measures estimate, from many documents."""
        x, _, _ = self.draw(40_000, np.random.default_rng(99))
        norm = np.linalg.norm(x, axis=1)
        mean, unit = np.linalg.norm(x.mean(0)), (x / norm[:, None]).mean(0)
        return dict(zip(VECTORS, (unit @ unit, mean, mean / norm.mean(), norm.mean()), strict=True))

    def read(self, documents: int, seed: int, *, by_document: bool) -> dict[str, Reading]:
        """The readings of one stream, folded in two batches over which documents are spread."""
        random = np.random.default_rng(seed)
        x, chunk, document = self.draw(documents, random)
        keys = torch.from_numpy(random.integers(2**40, size=len(document)))
        units = dealt(document, keys) if by_document else None
        batch = random.integers(2, size=len(document))
        kept: list[tuple[Centre, Directions]] = []
        for part in (0, 1):
            mine, rows = np.flatnonzero(batch == part), batch[chunk] == part
            place = np.cumsum(batch == part) - 1
            seen = Vectors.see(
                torch.from_numpy(x[rows]), torch.from_numpy(place[chunk[rows]]), keys[mine],
                units=None if units is None else units[mine]
            )  # fmt: skip
            kept.append((Centre.of(seen), Directions.of(seen)))
        centre, directions = (one.merge(other) for one, other in zip(*kept, strict=True))
        records = {Centre: centre, Directions: directions}
        return {name: MEASURES[name].readings(records, records)[0] for name in VECTORS}  # type: ignore[arg-type]


def dealt(document: np.ndarray, keys: Tensor) -> Tensor:
    """The unit of every chunk, as data that is known as a whole has it."""
    return unit_keys(document, keys, dealt_units(document))


@dataclass(frozen=True)
class Reader:
    """Causal attention over documents of 1 to `most` chunks, whose queries and keys share a part."""

    shared: float
    most: int
    norms: float

    def scene(self, documents: int, seed: int, *, by_document: bool) -> Scene:
        random = np.random.default_rng(seed)
        document = np.repeat(np.arange(documents), random.integers(1, self.most + 1, size=documents))
        size = len(document)

        def cloud() -> Tensor:
            own = math.sqrt(1 - self.shared) * random.normal(size=(size, 2, ROWS, 4))
            common = math.sqrt(self.shared) * random.normal(size=(documents, 2, 1, 4))[document]
            scale = np.exp(self.norms * random.normal(size=documents))[document]
            return torch.from_numpy((own + common) * scale[:, None, None, None])

        query, keys = 2 * cloud(), cloud()
        query[..., 0] += 1
        keys[:, :, 0, 0] += 1
        key = torch.from_numpy(random.integers(2**40, size=size))
        made = Scene(query, keys, torch.ones(size, ROWS, dtype=torch.bool), key, causal=True)
        made = replace(made, units=dealt(document, key)) if by_document else made
        known = Queries.of(made.heads)
        random_query = torch.from_numpy(random.normal(size=(2, 4)))
        means = {"mean": known.mean_query, "key_mean": known.mean_key, "behind": known.behind_mean}
        return replace(made, **means, random=random_query)

    def read(self, documents: int, seed: int, *, by_document: bool) -> dict[str, Reading]:
        """The readings of the first head: of a layer there is none of the queries' drift."""
        made = self.scene(documents, seed, by_document=by_document)
        records = {
            Rows: Rows.of(made.heads), Queries: Queries.of(made.heads), Anatomy: Anatomy.of(made.dissected),
            Counterfactual: Counterfactual.of(made.counterfact),
        }  # fmt: skip
        return {name: MEASURES[name].readings(records, records)[1] for name in ATTENTION}  # type: ignore[arg-type]

    def truth(self) -> dict[str, float]:
        """What the measures estimate, from many documents."""
        return {name: each.value for name, each in self.read(6_000, 99, by_document=False).items()}


@cache
def truth_of(stream: Corpus | Reader) -> dict[str, float]:
    """What the measures estimate."""
    return stream.truth()


def rates(stream: Corpus | Reader, documents: int, streams: int, *, by_document: bool) -> dict[str, float]:
    """How often the 95 % interval of each measure holds the truth."""
    truth = truth_of(stream)
    hits = dict.fromkeys(truth, 0)
    for seed in range(streams):
        for name, each in stream.read(documents, seed, by_document=by_document).items():
            hits[name] += bool(each.low <= truth[name] <= each.high)
    return {name: hit / streams for name, hit in hits.items()}
