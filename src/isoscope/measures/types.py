"""Readings of token types: one token over its contexts, and rare tokens against frequent ones.

A type is one unit here, as a sequence is elsewhere: the jackknife leaves out groups of types.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from isoscope.geometry import types
from isoscope.measures.base import Measure, undefined
from isoscope.measures.cosine import mean_cosines_between
from isoscope.measures.drift import relative_drifts
from isoscope.results.reading import Influence, Reading
from isoscope.stats.directions import Directions
from isoscope.stats.intervals import FEW, Groups, array, enough
from isoscope.stats.seen import GROUPS, by_group
from isoscope.stats.sums import Sums
from isoscope.stats.types import Types

NO_TOKENS = "positions here are not tokens"
_FEW = "no interval: fewer than 8 different tokens"
_INTERVAL = "jackknife over groups of types, from 8 types on"
_SHARE = {
    "rare": "less than one in 10,000 vectors",
    "middle": "between one in 10,000 and one in 1,000 vectors",
    "frequent": "at least one in 1,000 vectors",
}


def _self_similarity(record: Types) -> Reading:
    if record.n == 0:
        return undefined(0, NO_TOKENS)
    pairs = record.pointing**2 - record.pointing_squared
    met = pairs > 0
    if not bool(met.any()):
        return undefined(0, "no token occurs in 2 sequences")
    found = ((record.unit**2).sum(1) - record.unit_squared)[met] / pairs[met]
    return Reading(float(found.mean()), int(met.sum()), null=0.0)


def _self_similarity_adjusted(record: Types, directions: Directions) -> Reading:
    raw, base = _self_similarity(record), float(directions.sums.left_out.between[0])
    return replace(raw, value=raw.value - base) if not math.isnan(raw.value) else raw


def _band(record: Types, band: str) -> Tensor:
    """The rows of the types of this band."""
    low, high = types.BANDS[band]
    share = record.count / record.n.clamp_min(1)
    return torch.nonzero((record.count > 0) & (share >= low) & (share < high)).flatten()


def _band_cosine(record: Types, *, band: str) -> Reading:
    rows = _band(record, band)
    rows = rows[record.pointing[rows] > 0]
    if (why := _too_few(record, rows, band, 2)) is not None:
        return why
    sums = Sums.of_units(record.unit[rows] / record.pointing[rows, None], record.key[rows])
    return _of_types(mean_cosines_between(sums)[0])


def _band_drift(record: Types, *, band: str) -> Reading:
    rows = _band(record, band)
    if (why := _too_few(record, rows, band, 1)) is not None:
        return why
    count, group = record.count[rows], record.key[rows] % GROUPS
    sums = Sums.of_units(record.total[rows] / count[:, None], record.key[rows])
    return _of_types(relative_drifts(sums, by_group(record.norm[rows] / count, group))[0])


def _too_few(record: Types, rows: Tensor, band: str, least: int) -> Reading | None:
    if record.n == 0:
        return undefined(0, NO_TOKENS)
    few = f"too few tokens that make up {_SHARE[band]}"
    return undefined(len(rows), few) if len(rows) < least else None


def _of_types(reading: Reading) -> Reading:
    return replace(reading, note=_FEW) if reading.note == FEW else reading


def _frequency_correlation(record: Types) -> Reading:
    record = record.present
    k = len(record.token)
    if record.n == 0:
        return undefined(0, NO_TOKENS)
    if k < types.LEAST:
        return undefined(k, f"needs {types.LEAST} different tokens")
    means = record.total / record.count[:, None]
    along, often = means @ means.sum(0) - (means**2).sum(1), (record.count / record.count[0]).log()
    value = float(_correlations(along[:, None], often, torch.ones(k, 1).to(along))[0])
    if math.isnan(value):
        return undefined(k, "all tokens are as frequent, or as far along the mean")
    group = record.key % GROUPS
    size = by_group(torch.ones_like(often), group)
    if not enough(size):
        return Reading(value, k, 0.0, note=_FEW)
    inside = (group[:, None] == torch.arange(GROUPS, device=group.device)).to(means)
    without = _correlations(along[:, None] - means @ (means.T @ inside), often, 1 - inside)
    groups, every = Groups.of(array(size)), np.array([value, *without.tolist()])
    (low, high), moved = groups.interval(every), Influence.of(*groups.moves(every))
    return Reading(value, k, 0.0, max(float(low), -1.0), min(float(high), 1.0), influence=moved)


def _correlations(along: Tensor, often: Tensor, kept: Tensor) -> Tensor:
    """Pearson's r of each column of `along` [k, c] with `often` [k] over its rows that are `kept`, [c]."""
    count = kept.sum(0)
    along, often = (
        (each - (each * kept).sum(0) / count) * kept for each in (along, often[:, None].expand_as(along))
    )
    return (along * often).sum(0) / (along.norm(dim=0) * often.norm(dim=0))


_measure = partial(
    Measure,
    family="tokens",
    stats=(Types,),
    source="Ethayarajh 2019",
    bounds=(-1.0, 1.0),
    unchanged_by=frozenset({"rotation", "scale"}),
    needs=frozenset({"tokens"}),
    null="0",
)


def _of_band(
    kind: str,
    band: str,
    read: Callable[..., Reading],
    definition: Callable[..., float],
    says: str,
    formula: str,
) -> Measure:
    cosine = kind == "mean_cosine"
    return _measure(
        name=f"{kind}_{band}",
        read=partial(read, band=band),
        definition=partial(definition, band=band),
        title=f"{kind.replace('_', ' ')}, {'tokens in between' if band == 'middle' else band + ' tokens'}",
        formula=formula,
        says=f"{says} among tokens that make up {_SHARE[band]}.",
        misleads="It is read off a sample of 1,024 tokens of the vocabulary, each counting once.",
        null="0" if cosine else "the noise of the mean over so many types",
        interval=_INTERVAL,
        source="Gao et al. 2019; Machina & Mercer 2024",
        bounds=(-1.0 if cosine else 0.0, 1.0),
    )


MEASURES = (
    _measure(
        name="self_similarity",
        read=_self_similarity,
        definition=types.self_similarity,
        title="self-similarity of tokens",
        formula="mean over types of the mean cosine between its vectors of different sequences",
        says="How much a token's vector stays the same from context to context; 1 where it ignores them.",
        misleads="In an anisotropic space any two vectors are alike: read the adjusted form beside it.",
        interval="none: types and sequences cross, and neither is a sample of the other",
    ),
    _measure(
        name="self_similarity_adjusted",
        stats=(Types, Directions),
        read=_self_similarity_adjusted,
        definition=types.self_similarity_adjusted,
        title="self-similarity of tokens, adjusted",
        formula="self-similarity − mean cosine between sequences",
        says="How much more alike the vectors of one token are than any two of the space.",
        misleads="Every type counts the same, so rare ones, which occur in few contexts, make most of it.",
        interval="none: as the raw form",
        bounds=(-2.0, 2.0),
    ),
    *(
        _of_band(
            "mean_cosine",
            band,
            _band_cosine,
            types.band_cosine,
            "How alike vectors of different tokens point",
            "mean over pairs of types of the mean cosine between their vectors",
        )
        for band in types.BANDS
    ),
    *(
        _of_band(
            "relative_drift",
            band,
            _band_drift,
            types.band_drift,
            "How far the mean lies from the origin, in mean norms,",
            "‖mean of the types' means‖ / mean of their mean norms",
        )
        for band in types.BANDS
    ),
    _measure(
        name="frequency_correlation",
        read=_frequency_correlation,
        definition=types.frequency_correlation,
        title="projection on the mean against log frequency",
        formula="Pearson r over types of log count with x̄_w · mean of the other types",
        says="Whether rare tokens lie further along the common direction (below 0) or frequent ones (above), "
        "as accounts of anisotropy by token frequency have it.",
        misleads="A correlation says nothing of the size: see the drift by frequency beside it. Types that "
        "occur once cannot be told from each other by frequency.",
        interval=_INTERVAL,
        source="Gao et al. 2019; Biś et al. 2021; Machina & Mercer 2024",
    ),
)
