"""Whether drift and the sharpness of attention move together along training, by head and by layer.

Spearman correlation over the checkpoints of the normalised entropy with the relative drift of queries, with
that of keys, and (of a layer) with the relative drift of what enters the block. Both are slow: a checkpoint
resembles the one before it, and two random walks that have nothing to do with each other reach p < .05 in 54
of 100 cases at 32 checkpoints. So beside it stands the correlation of their changes from checkpoint to
checkpoint, which no straight trend can make; and p is told for as many checkpoints as they would be if
independent,

    n* = n / (1 + 2 Σ_k (1 − k/n) r_x(k) r_y(k)),  k up to n/4,

r the autocorrelations of the ranks (Bayley & Hammersley 1946; the lags as Pyper & Peterman 1998 advise): then
it is 5 of 100. Curves can make both: of two unrelated relaxations, exp(−2x) to exp(−8x), 31 of 100 reach
p < .05 where noise is 5 % of their size and nearly all where it is .5 %; their changes 7 to 24, and 38 to 53
(16 to 64 checkpoints). No interval is given: n* is itself an estimate.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from isoscope.results.reading import Reading
from isoscope.results.row import Row
from isoscope.results.trajectory import Trajectory

ENTROPY = "normalised_entropy"
DRIFTS = {
    "query": "query_relative_drift",
    "key": "key_relative_drift",
    "layer": "relative_drift",
}
_COLUMNS = ("step", "kind", "layer", "head", "measure", "value")
LEAST = 5  # checkpoints
FEW = f"needs {LEAST} checkpoints at which both differ"

Array = NDArray[np.float64]
Place = tuple[str, int, int | None]


def name(drift: str, *, changes: bool) -> str:
    """What the correlation is called.

    >>> name("query", changes=True)
    'entropy_with_query_drift_changes'
    """
    return f"entropy_with_{drift}_drift{'_changes' if changes else ''}"


def correlation_rows(of: Trajectory, without: Collection[int] = ()) -> Iterator[Row]:
    """The rows of every head and layer that has both; none where one of the two was not measured.

    Steps that are not to be trusted are left out, and the notes say how many: `without`.
    """
    steps = tuple(step for step in of.steps if step not in without)
    lacking = len(of.steps) - len(steps)
    rows = of.rows({ENTROPY, *DRIFTS.values()}, only=steps, columns=_COLUMNS)
    entropy = _series(rows[(rows["measure"] == ENTROPY)], steps)
    for drift, measure in DRIFTS.items():
        other = _series(rows[rows["measure"] == measure], steps, entering=drift == "layer")
        shared = [place for place in entropy if place in other]
        if not shared:
            continue
        x, y = (np.array([held[place] for place in shared]) for held in (other, entropy))
        for changes in (False, True):
            found = correlate(*(np.diff(each, axis=1) if changes else each for each in (x, y)))
            for place, value, n, alone in zip(shared, *found, strict=True):
                made = _row(of, place, name(drift, changes=changes), value, int(n), alone, changes)
                yield replace(made, note=made.note + _without(lacking)) if lacking else made


def correlate(x: Array, y: Array) -> tuple[Array, NDArray[np.int64], Array]:
    """Spearman's correlation of series [s, n] with each other, n of each, and n*; NaN pairs are left out."""
    both = np.isfinite(x) & np.isfinite(y)
    count = both.sum(1)
    value, alone = np.full(len(x), math.nan), np.full(len(x), math.nan)
    for pattern in np.unique(both, axis=0):
        own = np.flatnonzero((both == pattern).all(1))
        if pattern.sum() < LEAST:
            continue
        a, b = (stats.rankdata(each[own][:, pattern], axis=1) for each in (x, y))
        a, b = (each - each.mean(1, keepdims=True) for each in (a, b))
        sizes = np.sqrt((a * a).sum(1) * (b * b).sum(1))
        with np.errstate(invalid="ignore", divide="ignore"):
            value[own] = np.where(sizes > 0, (a * b).sum(1) / sizes, math.nan)
        alone[own] = _independent(a, b)
    return value, count, alone


def _independent(a: Array, b: Array) -> Array:
    """n* of centred series [s, n], between 2 and n."""
    n, lags = a.shape[1], a.shape[1] // 4
    with np.errstate(invalid="ignore", divide="ignore"):
        r, q = (_autocorrelations(each)[:, 1 : lags + 1] for each in (a, b))
    weight = 1 - np.arange(1, lags + 1) / n  # which both have already, as they are estimated
    return np.clip(n / np.maximum(1 + 2 * (r * q / weight).sum(1), 1.0), 2.0, n)


def _autocorrelations(series: Array) -> Array:
    """Of centred series [s, n] at every lag [s, n], by transforms: with n lags of n each it would be slow."""
    power = np.abs(np.fft.rfft(series, 2 * series.shape[1])) ** 2
    return np.fft.irfft(power, 2 * series.shape[1])[:, : series.shape[1]] / (series**2).sum(1)[:, None]


def chance(value: float, n: float) -> float:
    """The p-value of a correlation over n independent pairs, n not necessarily whole."""
    freedom = max(n - 2, 0.5)
    return float(2 * stats.t.sf(abs(value) * math.sqrt(freedom / max(1 - value * value, 1e-12)), freedom))


def _series(rows: pd.DataFrame, steps: tuple[int, ...], *, entering: bool = False) -> dict[Place, Array]:
    """Values along the steps by kind, layer and head; of a layer, under the attention that it enters."""
    kinds = ("layer",) if entering else ("attention", "cross_attention")
    own = rows[rows["kind"].isin(kinds)]
    at = np.searchsorted(np.array(steps), own["step"].to_numpy(np.int64))
    kind, names = pd.factorize(own["kind"])
    layer, head = own["layer"].to_numpy(np.int64), own["head"].fillna(-1).to_numpy(np.int64)
    keys = (kind.astype(np.int64) << 48) + (layer << 24) + (head + 1)  # numbers sort faster than names
    found, line = np.unique(keys, return_inverse=True)
    table = np.full((len(found), len(steps)), math.nan)
    table[line, at] = own["value"].to_numpy(np.float64)
    places = [(str(names[key >> 48]), int(key >> 24) % 2**24, int(key) % 2**24 - 1) for key in found]
    return {
        ("attention", layer + 1, None) if entering else (name, layer, None if head < 0 else head): values
        for (name, layer, head), values in zip(places, table, strict=True)
    }


def _without(count: int) -> str:
    return f"; {count:,} doubtful checkpoint{'s' if count > 1 else ''} left out"


def _row(
    of: Trajectory, place: Place, measure: str, value: float, n: int, alone: float, changes: bool
) -> Row:
    at = (of.folder.run.id, of.folder.run.title, "", None, *place, measure)
    if math.isnan(value):
        return Row.at(*at, Reading(math.nan, n, note=FEW))
    what = "changes" if changes else "checkpoints"
    p = chance(value, alone)
    note = f"p = {p:.2g}; as good as {alone:.0f} independent {what}"
    return Row.at(*at, Reading(round(value, 12), n, 0.0, note=note, p=p))
