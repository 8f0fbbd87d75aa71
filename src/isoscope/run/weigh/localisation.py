"""From walks and profiles to rows and pictures: what every attention predicts, and whether it holds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from isoscope.models.weights.read import Projections
from isoscope.results.points import Points
from isoscope.run.weigh.agreement import Readings, agreement_readings, spectrum_readings, walk_readings
from isoscope.run.weigh.looking import Localiser
from isoscope.run.weigh.predict import Predicted, predict
from isoscope.sites import Site
from isoscope.stats.profiles import BINS, Profiles

KIND = "query_key"
MOST = 20_000  # points of pictures in all
CENTRES = [(number + 0.5) / BINS for number in range(BINS)]


@dataclass(frozen=True, eq=False)
class Localised:
    """One attention: its readings, what was predicted and, where attention was seen, measured."""

    site: Site
    readings: Readings
    predicted: Predicted | None
    profiles: Profiles | None
    remark: str = ""


def localised(localiser: Localiser, found: Projections, *, length: int, seed: int) -> Localised | None:
    """What one attention predicts of the data; None where nothing of it was gathered."""
    site, walked = found.site, localiser.walks.get(found.site)
    if walked is None:
        return None
    profiles = localiser.profiles.get(site)
    few = "fewer than two increments count" if walked.increments.number < 2 else ""
    if few or site in localiser.left_out:
        return Localised(site, walk_readings(walked), None, None, few)
    heads = len(found.query)
    remark = ""
    if profiles is not None and len(profiles.rows) != heads:
        remark = f"{len(profiles.rows)} heads attend where the weights have {heads}: nothing is compared"
        profiles = None
    rows = 0 if profiles is None else int(profiles.rows.sum())
    if profiles is not None and not rows:
        remark, profiles = "no last query with two keys counts: nothing is compared", None
    keys = length if profiles is None else round(float(profiles.keys.sum()) / rows)
    own = 1_000_003 * (site.layer or 0) + seed  # every layer has random W of its own
    predicted = predict(found, walked.increments.covariance, min(length, keys), seed=own)
    readings = {**walk_readings(walked), **spectrum_readings(predicted, walked.increments.number)}
    if profiles is not None:
        readings |= agreement_readings(predicted, profiles)
    return Localised(site, readings, predicted, profiles, remark)


def pictures(found: list[Localised], most: int = MOST) -> tuple[list[Points], str]:
    """Curves of heads: ρ as predicted and of random W, densities of attention; and what is left out."""
    shown = [(one, one.predicted) for one in found if one.predicted is not None]
    heads = max((len(predicted.signal) for _, predicted in shown), default=0)
    room = max(1, most // (4 * BINS) // max(len(shown), 1))
    drawn = [series for one, predicted in shown for series in _series(one, predicted, room)]
    left = (
        f"pictures of ρ(t) show {room} heads of each layer: those whose prediction varies most with position"
    )
    return drawn, left if heads > room else ""


def _series(one: Localised, predicted: Predicted, room: int) -> Iterator[Points]:
    varies = (predicted.signal.amax(1) - predicted.signal.amin(1)).nan_to_num(-1.0)
    measured = None if one.profiles is None else one.profiles.mean.cpu()
    for head in sorted(varies.argsort(descending=True, stable=True)[:room].tolist()):
        parts = {"predicted": predicted.signal[head], "random": predicted.random_signal[head]}
        if measured is not None:
            parts |= {"measured": measured[head], "softmax": predicted.softmax[head]}
        for series, values in parts.items():
            if bool(values.isfinite().all()):
                yield Points("propagation", KIND, one.site.layer, head, series, CENTRES, values.tolist())


def walk_remark(found: list[Localised]) -> list[str]:
    """The walk diagnostic in words."""
    known = sorted(filter(math.isfinite, (one.readings["walk_slope"][0].value for one in found)))
    if not known:
        return []
    return [
        f"the theory takes inputs for a random walk; over layers the walk slope is {known[0]:.2f} to "
        f"{known[-1]:.2f}, median {known[len(known) // 2]:.2f} (1: a walk, 0: stationary)"
    ]
