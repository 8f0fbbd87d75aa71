"""What all checkpoints of a sweep say together: one unit, `between`, made anew from what the folder holds.

Linear CKA of checkpoints, whether drift and entropy move together, change points, how far the weights have
gone; and the points of queries and keys of all steps on shared axes. It is cheap against measuring, so it is
not resumed but written again whenever a sweep ends.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from isoscope.results.schema import Row
from isoscope.results.store import RunFolder
from isoscope.results.trajectory import BETWEEN, Trajectory, trajectory
from isoscope.run.sweep import alike, changes, together
from isoscope.run.sweep.explained import DISTANCE, EXPLANATIONS, LENGTH
from isoscope.run.sweep.fingerprint import Fingerprint
from isoscope.run.sweep.moving import moving_points
from isoscope.run.sweep.samples import keep_sample, read_samples

__all__ = ["BETWEEN", "EXPLANATIONS", "keep_sample", "read_samples", "summarise"]

DOUBTED = ("twin", "out of order")  # findings after which a checkpoint's numbers are of another step


def summarise(folder: RunFolder) -> None:
    """Write the unit `between`: its rows, the points of all steps, and what is to be known of them."""
    of = trajectory(folder)
    if len(of.units) < 2:
        return
    doubted = doubted_steps(of)
    sites = of.rows(heads=False)
    moved, looked = changes.change_rows(of, sites, doubted)
    rows = [*moved, *_distances(of), *together.correlation_rows(of), *alike.cka_rows(of)]
    facts = {
        "explained": EXPLANATIONS,
        "checkpoints": len(of.units),
        "series looked at for changes": looked,
        "left out of changes": doubted,
        "notes": _notes(of, doubted),
    }
    folder.write(BETWEEN, rows, facts, moving_points(of))


def doubted_steps(of: Trajectory) -> list[int]:
    """The steps whose checkpoint is not the one it claims to be, by what its unit found."""
    return [
        step for unit, step in of.step_of.items() if any(kind in DOUBTED for kind in _kinds(of.facts[unit]))
    ]


def _kinds(known: Mapping[str, object]) -> list[str]:
    found = known.get("findings")
    listed = found if isinstance(found, list | tuple) else []
    return [str(one.get("kind", "")) if isinstance(one, Mapping) else str(one) for one in listed]


def _notes(of: Trajectory, doubted: Sequence[int]) -> list[str]:
    told = []
    if doubted:
        steps = ", ".join(f"{step:,}" for step in doubted)
        told.append(f"change points were looked for without checkpoints that may be of another step: {steps}")
    if of.doubled:
        told.append(
            f"left out, since another checkpoint has the same step or it has none: {', '.join(of.doubled)}"
        )
    if of.numbered:
        told.append("no checkpoint has a step: they are numbered in the order of their names")
    return told


def _distances(of: Trajectory) -> Iterator[Row]:
    """How far weights are from the last and from those before, by the sketches of fingerprints."""
    sketches = {unit: sketch for unit in of.units if len(sketch := _sketch(of.facts[unit]))}
    if len(sketches) < 2 or len({len(sketch) for sketch in sketches.values()}) > 1:
        return
    units = list(sketches)
    run, title = of.folder.run.id, of.folder.run.title
    for at, unit in enumerate(units):
        for name, other in ((DISTANCE, units[-1]), (LENGTH, units[at - 1] if at else None)):
            if other is None:
                continue
            size = float(np.linalg.norm(sketches[other]))
            gone = float(np.linalg.norm(sketches[unit] - sketches[other]))
            value, note = (gone / size, "") if size > 0 else (math.nan, "all weights of the sample are zero")
            place = (of.step_of[unit], "weights", None, None, name)
            yield Row(run, title, "", *place, value, len(sketches[unit]), note=note)


def _sketch(known: Mapping[str, object]) -> NDArray[np.float64]:
    """The sample of weights that a fingerprint holds; empty where there is none."""
    told = known.get("fingerprint")
    text = told if isinstance(told, str) else json.dumps(told) if isinstance(told, Mapping) else ""
    return np.array(Fingerprint.from_json(text).sketch if text else (), np.float64)
