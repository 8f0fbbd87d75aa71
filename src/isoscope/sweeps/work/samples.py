"""What a checkpoint keeps so that it can be held against others: how a few hundred positions lie.

Of the first layer, the middle one, the last and the output: the products XXᵀ of the centred vectors of the
`SIZE` positions whose hashes are smallest, scaled to a mean square of 1, each pair once. Linear CKA needs no
more, and they are as many for a wide model as for a narrow one. Of some heads, the same ones at every
checkpoint, the queries and keys themselves, so that pictures of all steps can stand on one pair of axes. The
same data give the same positions at every checkpoint.

The file is `samples/<as its file of rows>.safetensors`, written before the rows: samples without rows do not
count.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from isoscope.errors import IsoscopeError
from isoscope.results.store import RunFolder, write_whole
from isoscope.run.observe.observation import Observation
from isoscope.sites import Site
from isoscope.stats.clouds import Clouds
from isoscope.stats.reservoir import Reservoir

SIZE = 256  # positions of a layer
POINTS = 24  # queries, and keys, of a head
ROOM = 2**20  # bytes of queries and keys of a checkpoint

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sample:
    """Positions of one layer: their places [k], ascending, and the products of every two of their vectors."""

    places: NDArray[np.int64]
    packed: NDArray[np.float32]  # [k(k − 1)/2] row by row

    @property
    def products(self) -> Array:
        """All of them [k, k], 0 for a vector with itself."""
        k = len(self.places)
        found = np.zeros((k, k))
        found[_above(k)] = self.packed
        return found + found.T


@lru_cache(maxsize=4)
def _above(k: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and columns above the diagonal: the same for nearly all samples."""
    return np.triu_indices(k, 1)


@dataclass(frozen=True)
class Head:
    """Queries and keys of one head, [n, e] each."""

    query: NDArray[np.float32]
    key: NDArray[np.float32]


def keep_sample(folder: RunFolder, unit: str, observation: Observation) -> None:
    """Keep the sample of one checkpoint beside its rows, whole; nothing where its measures have none."""
    held = dict(_layers(observation)) | dict(_heads(observation))
    if held:
        (folder.path / "samples").mkdir(exist_ok=True)
        write_whole(sample_file(folder, unit), save(held, {"isoscope": json.dumps({"unit": unit})}))


def read_samples(folder: RunFolder, unit: str) -> dict[Site, Sample]:
    """The samples of one checkpoint by site; empty where it has none."""
    each = _read(folder, unit, "layers", "places", "products")
    return {_site(site): Sample(*parts) for (site,), parts in each}


def read_heads(folder: RunFolder, unit: str) -> dict[tuple[Site, int], Head]:
    """The queries and keys of one checkpoint by site and head; empty where it has none."""
    each = _read(folder, unit, "heads", "query", "key")
    return {(_site(site), int(number)): Head(*parts) for (site, number), parts in each}


def sample_file(folder: RunFolder, unit: str) -> Path:
    """Where the sample of a unit is."""
    return folder.path / "samples" / f"{folder.file_of(unit).stem}.safetensors"


def _layers(observation: Observation) -> Iterator[tuple[str, NDArray[np.generic]]]:
    there = [site for site, kept in observation.records.items() if Reservoir in kept]
    numbered = [site for site in there if site.kind == "layer"]
    ends = [numbered[0], numbered[len(numbered) // 2], numbered[-1]] if numbered else []
    for site in dict.fromkeys([*ends, *(site for site in there if site.kind == "output")]):
        record = cast("Reservoir", observation.records[site][Reservoir])
        places = record.place[:SIZE].cpu().numpy()
        if len(places) < 2:
            continue
        points = record.points[:SIZE].detach().cpu().double().numpy()
        yield f"layers/{site}/places", places
        yield f"layers/{site}/products", _products(points)


def _products(points: Array) -> NDArray[np.float32]:
    points = points - points.mean(0)
    size = float(np.abs(points).max()) or 1.0  # squares of large vectors do not fit into a float
    products = (points / size) @ (points / size).T
    scale = float(np.trace(products)) / len(points)
    packed = products[_above(len(points))]
    return (packed / scale if scale > 0 else packed).astype(np.float32)


def _heads(observation: Observation) -> Iterator[tuple[str, NDArray[np.generic]]]:
    found: dict[tuple[Site, int], Head] = {}
    for site, kept in observation.records.items():
        if Clouds in kept:
            near = cast("Clouds", kept[Clouds]).on("cpu")
            for head in range(near.heads if len(near.query.place) else 0):
                query, key = near.pair(head, POINTS)
                if min(len(query), len(key)) > 1:
                    found[site, head] = Head(query.float().numpy(), key.float().numpy())
    for site, head in _fitting(list(found), found):
        for part in ("query", "key"):
            yield f"heads/{site}/{head}/{part}", getattr(found[site, head], part)


def _fitting(
    heads: Sequence[tuple[Site, int]], found: Mapping[tuple[Site, int], Head]
) -> list[tuple[Site, int]]:
    """All heads, or so many as there is room for, evenly: of the same model always the same ones."""
    if not heads:
        return []
    room = max(1, ROOM // max(1, *(each.query.nbytes + each.key.nbytes for each in found.values())))
    if len(heads) <= room:
        return list(heads)
    return [heads[round(i * (len(heads) - 1) / max(room - 1, 1))] for i in range(room)]


def _site(name: str) -> Site:
    kind, _, layer = name.partition(".")
    return Site(kind, int(layer) if layer else None)


def _read(
    folder: RunFolder, unit: str, under: str, *parts: str
) -> list[tuple[list[str], list[NDArray[Any]]]]:
    """The words between `under` and the part in each name, with the tensors of these parts."""
    file = sample_file(folder, unit)
    if not file.exists():
        return []
    try:
        with safe_open(file, "numpy") as body:
            names = [name for name in body.keys() if name.startswith(f"{under}/")]  # noqa: SIM118
            stems = dict.fromkeys(name.rpartition("/")[0] for name in names)
            each = [[body.get_tensor(f"{stem}/{part}") for part in parts] for stem in stems]
            return [(stem.split("/")[1:], found) for stem, found in zip(stems, each, strict=True)]
    except (OSError, SafetensorError) as reason:
        raise IsoscopeError(
            f"cannot read {file}: {reason}. Remove it, and its file of rows, to measure it again."
        ) from reason
