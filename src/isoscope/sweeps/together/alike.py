"""How alike checkpoints see the same positions: linear CKA of every two, and of each with its neighbours.

Without bias, as `geometry.alignment` defines it, from the products that checkpoints keep. Decided here:
every two of at most `MOST` checkpoints are held against each other, evenly spaced, since pairs grow with the
square; each of all checkpoints is held against the one before it and the last. Two checkpoints that do not
have all positions in common (a vector was NaN) are centred anew on those that they have. A checkpoint without
a sample has NaN, and the reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from isoscope.results.reading import Reading
from isoscope.results.row import Row
from isoscope.results.trajectory import Trajectory, thinned
from isoscope.sites import Site
from isoscope.sweeps.work.samples import Sample, read_samples

MOST = 64  # checkpoints of which every two are held against each other
LEAST = 4  # positions
PAIRS, PREVIOUS, LAST = "cka_between", "cka_previous_checkpoint", "cka_last_checkpoint"
_NONE = "no sample of {} was kept"
_FEW = f"needs {LEAST} positions that both checkpoints have"
_SAME = "all vectors of a checkpoint are the same"

Array = NDArray[np.float64]


def alike(one: Sample | None, other: Sample | None) -> tuple[float, int]:
    """CKA of two checkpoints at one site, and from how many positions; NaN where it has no value."""
    if one is None or other is None:
        return math.nan, 0
    if np.array_equal(one.places, other.places):
        n = len(one.places)
        a, b = (_centred(each) if n >= LEAST else np.zeros(0) for each in (one, other))
    else:
        _, i, j = np.intersect1d(one.places, other.places, return_indices=True)
        n = len(i)
        mine, its = one.products[np.ix_(i, i)], other.products[np.ix_(j, j)]
        a, b = (u_centred(each) if n >= LEAST else np.zeros(0) for each in (mine, its))
    size = math.sqrt(float((a @ a) * (b @ b)))
    return (float(a @ b) / size if size > 0 else math.nan), n


@lru_cache(maxsize=16)
def _centred(sample: Sample) -> Array:
    """A checkpoint is held against its neighbours and the last: its products are centred once."""
    return u_centred(sample.products)


def u_centred(products: NDArray[np.floating]) -> Array:
    """Products XXᵀ, made so that every row sums to zero off a diagonal of zeros, as one line [n·n]."""
    n = len(products)
    found = products.astype(np.float64)
    np.fill_diagonal(found, 0)
    rows = found.sum(1) / (n - 2)
    found = found - rows[:, None] - rows + found.sum() / ((n - 1) * (n - 2))
    np.fill_diagonal(found, 0)
    return found.ravel()


def cka_rows(of: Trajectory) -> Iterator[Row]:
    """The rows of all pairs, then those of each checkpoint with the one before it and the last.

    Of a pair, `step` is the later checkpoint's and `revision` names the earlier.
    """
    chosen = thinned(range(len(of.units)), MOST)
    held = {at: read_samples(of.folder, of.units[at]) for at in chosen}
    sites = sorted({site for kept in held.values() for site in kept}, key=_order)
    for site in sites:
        values, counts = _matrix([held[at].get(site) for at in chosen])
        for j, later in enumerate(chosen):
            for i, earlier in enumerate(chosen[:j]):
                absent = next((at for at in (earlier, later) if site not in held[at]), None)
                why = _why(values[i, j], int(counts[i, j]), None if absent is None else of.units[absent])
                place = (of.steps[later], of.units[earlier], site, PAIRS)
                yield _row(of, place, values[i, j], int(counts[i, j]), why)
    if not sites:
        return
    last, before = read_samples(of.folder, of.units[-1]), None
    for at, unit in enumerate(of.units):
        own = held[at] if at in held else read_samples(of.folder, unit)
        for name, other, its in ((PREVIOUS, before, at - 1), (LAST, last, len(of.units) - 1)):
            if other is None or its == at:
                continue
            for site in sites:
                value, n = alike(own.get(site), other.get(site))
                absent_unit = unit if site not in own else of.units[its] if site not in other else None
                yield _row(of, (of.steps[at], "", site, name), value, n, _why(value, n, absent_unit))
        before = own


def _matrix(samples: list[Sample | None]) -> tuple[Array, NDArray[np.int64]]:
    """CKA of every two [m, m], and from how many positions; those of the same places all at once."""
    m = len(samples)
    values, counts = np.full((m, m), math.nan), np.zeros((m, m), np.int64)
    groups: dict[bytes, list[int]] = {}
    for at, sample in enumerate(samples):
        if sample is not None and len(sample.places) >= LEAST:
            groups.setdefault(sample.places.tobytes(), []).append(at)
    for group in groups.values():
        lines = np.array([u_centred(samples[at].products) for at in group])  # type: ignore[union-attr]
        lengths = np.linalg.norm(lines, axis=1)
        with np.errstate(invalid="ignore"):
            found = lines @ lines.T / np.multiply.outer(lengths, lengths)
        values[np.ix_(group, group)] = found
        counts[np.ix_(group, group)] = len(samples[group[0]].places)  # type: ignore[union-attr]
    apart = {at: key for key, group in groups.items() for at in group}
    for i in range(m):
        for j in range(i + 1, m):
            if apart.get(i) != apart.get(j) or i not in apart:
                values[i, j], counts[i, j] = alike(samples[i], samples[j])
    return values, counts


def _why(value: float, n: int, absent: str | None) -> str:
    if not math.isnan(value):
        return ""
    return _NONE.format(absent) if absent is not None else _FEW if n < LEAST else _SAME


def _row(of: Trajectory, place: tuple[int, str, Site, str], value: float, n: int, why: str) -> Row:
    step, other, site, name = place
    run, title = of.folder.run.id, of.folder.run.title
    null = math.nan if math.isnan(value) else 0.0
    reading = Reading(float(value), n, null, note=why)
    return Row.at(run, title, other, step, site.kind, site.layer, None, name, reading)


def _order(site: Site) -> tuple[bool, int]:
    return site.layer is None, site.layer or 0
