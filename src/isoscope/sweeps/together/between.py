"""What all checkpoints of a sweep say together: one unit, `between`, made anew from what the folder holds.

Linear CKA of checkpoints, whether drift and entropy move together, change points, how far the weights have
gone; and the points of queries and keys of all steps on shared axes. It is cheap against measuring, so it is
not resumed but written again whenever a sweep ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from isoscope.results.reading import Reading
from isoscope.results.row import Row
from isoscope.results.store import RunFolder
from isoscope.results.trajectory import BETWEEN, Trajectory, trajectory
from isoscope.sweeps.together import alike, changes, together
from isoscope.sweeps.together.explained import DISTANCE, EXPLANATIONS, LENGTH
from isoscope.sweeps.together.moving import moving_points
from isoscope.sweeps.verify.fingerprint import Fingerprint
from isoscope.sweeps.work.samples import keep_sample, read_samples

__all__ = ["BETWEEN", "EXPLANATIONS", "keep_sample", "read_samples", "summarise"]

DOUBTED = ("twin", "out of order", "not finite", "config")
"""Findings after which a checkpoint's numbers may be of another step, or of no step of this training."""


def summarise(folder: RunFolder) -> None:
    """Write the unit `between`: its rows, the points of all steps, and what is to be known of them."""
    of = trajectory(folder)
    if len(of.units) < 2:
        return
    doubted = doubted_steps(of)
    sites = of.rows(heads=False)
    moved, looked = changes.change_rows(of, sites, doubted)
    together_ = together.correlation_rows(of, doubted)
    rows = [*moved, *_distances(of), *together_, *alike.cka_rows(of)]
    facts = {
        "explained": EXPLANATIONS,
        "checkpoints": len(of.units),
        "series looked at for changes": looked,
        "left out of changes": doubted,
        "notes": _notes(of, doubted),
    }
    folder.write(BETWEEN, rows, facts, moving_points(of))


def doubted_steps(of: Trajectory) -> list[int]:
    """The steps whose checkpoint may not be what it claims to be, by what its unit found."""
    return [
        step for unit, step in of.step_of.items() if any(kind in DOUBTED for kind in _kinds(of.facts[unit]))
    ]


def _kinds(known: Mapping[str, object]) -> list[str]:
    found = known.get("findings")
    return [str(one["kind"]) for one in found] if isinstance(found, list) else []


def _notes(of: Trajectory, doubted: Sequence[int]) -> list[str]:
    told = []
    if doubted:
        steps = ", ".join(f"{step:,}" for step in doubted)
        count = f"{len(doubted):,} checkpoint{'s' if len(doubted) > 1 else ''}"
        what = "change points and correlations are without"
        told.append(f"{what} {count} that may not be what is claimed, by step: {steps}")
    if of.doubled:
        told.append(
            f"left out, since another checkpoint has the same step or it has none: {', '.join(of.doubled)}"
        )
    if of.numbered:
        told.append("no checkpoint has a step: they are numbered in the order of their names")
    return told


def _distances(of: Trajectory) -> Iterator[Row]:
    """How far weights are from the last and from those before, by the sketches of fingerprints."""
    prints = {unit: known for unit in of.units if (known := _print(of.facts[unit])).sketch}
    if len(prints) < 2:
        return
    units = list(prints)
    run, title = of.folder.run.id, of.folder.run.title
    for at, unit in enumerate(units):
        for name, other in ((DISTANCE, units[-1]), (LENGTH, units[at - 1] if at else None)):
            if other is None:
                continue
            value, note = _distance(prints, unit, other)
            place = (of.step_of[unit], "weights", None, None, name)
            yield Row.at(run, title, "", *place, Reading(value, len(prints[unit].sketch), note=note))


def _distance(prints: Mapping[str, Fingerprint], unit: str, other: str) -> tuple[float, str]:
    """‖w − v‖/‖v‖, v of the other; NaN and the reason where two sketches are not of the same coordinates."""
    one, two = (np.array(prints[each].sketch, np.float64) for each in (unit, other))
    if prints[unit].layout != prints[other].layout or len(one) != len(two):
        return math.nan, f"the weights of {unit} and {other} have other names or shapes"
    wild = next((each for each, held in ((unit, one), (other, two)) if not np.isfinite(held).all()), None)
    if wild is not None:
        return math.nan, f"the weights of {wild} are not finite"
    size = float(np.linalg.norm(two))
    if size == 0:
        return math.nan, f"all weights of the sample of {other} are zero"
    return float(np.linalg.norm(one - two)) / size, ""


def _print(known: Mapping[str, object]) -> Fingerprint:
    """The fingerprint of a unit; an empty one where it has none."""
    told = known.get("fingerprint")
    return Fingerprint.from_json(told) if isinstance(told, str) else Fingerprint("", "")
