"""What the page of a sweep reads of its folder: all steps of sites, and of heads only what it draws.

Decided here: rows of heads are read at the steps that are drawn, and of the measures that maps show, so that
a sweep of 1,000 checkpoints of 1,536 heads is not turned into a table of millions. What was found wrong with
a checkpoint is told once, in a table and as marks: it is taken off the notes of its rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from isoscope.results.store import RunFolder
from isoscope.results.trajectory import BETWEEN, Trajectory, trajectory
from isoscope.show.figures.heads_over_steps import ALONG
from isoscope.show.figures.step_axis import Changed, StepAxis, step_axis
from isoscope.show.page.swept import Finding
from isoscope.show.panels import MAPS
from isoscope.show.readings import read

CHANGES = ("jump", "turn")
STRAY = "stray"


@dataclass(frozen=True)
class SweepRows:
    """The rows of sites at all steps and of heads at those drawn, and what was read of all together."""

    of: Trajectory
    rows: pd.DataFrame
    between: pd.DataFrame
    points: pd.DataFrame
    facts: dict[str, dict[str, object]]
    axis: StepAxis
    findings: tuple[Finding, ...]
    examined: bool
    total: int


def read_sweep(folder: RunFolder) -> SweepRows:
    """Read a folder; steps at which something was found are drawn whatever happens."""
    of = trajectory(folder)
    findings, examined = _findings(of.facts)
    sites = _plain(of.rows(heads=False), of.facts)
    doubted = [finding.step for finding in findings if finding.step is not None]
    axis = step_axis(of.steps or (0,), doubted)
    wanted = {m for group in (*MAPS.values(), *ALONG.values()) for m in group}
    heads = _plain(of.rows(wanted, heads=True, only=set(axis.steps)), of.facts)
    together = folder.has(BETWEEN)
    facts = {unit: known for unit, known in of.facts.items() if unit not in of.failed}
    if together:
        facts[BETWEEN] = folder.known(BETWEEN)
    return SweepRows(
        of=of,
        rows=pd.concat([sites, heads], ignore_index=True),
        between=folder.frame(BETWEEN) if together else sites.iloc[:0],
        points=folder.points(BETWEEN),
        facts=facts,
        axis=axis,
        findings=findings,
        examined=examined,
        total=of.total,
    )


def changes_of(between: pd.DataFrame, kinds: Sequence[str] = CHANGES) -> list[Changed]:
    """The changes that the rows tell of, in their order."""
    own = between[between["measure"].astype(str).str.contains("_in_")]
    found = []
    for r in read(own):
        what, _, measure = r.measure.partition("_in_")
        if what in kinds and r.known:
            low, high = (int(end) if math.isfinite(end) else int(r.value) for end in (r.low, r.high))
            found.append(Changed(what, measure, r.kind, r.layer, int(r.value), low, high, r.note))
    return found


def _findings(facts: Mapping[str, Mapping[str, object]]) -> tuple[tuple[Finding, ...], bool]:
    """What was found, by step, and whether anything was looked for."""
    found, examined = [], False
    for unit, known in facts.items():
        listed = known.get("findings")
        examined = examined or isinstance(listed, list)
        for one in listed if isinstance(listed, list) else ():
            if isinstance(one, Mapping):
                step = one.get("step")
                where = int(step) if isinstance(step, int) else None
                found.append(
                    Finding(
                        str(one.get("checkpoint", unit)),
                        where,
                        str(one.get("kind", "")),
                        str(one.get("words", "")),
                    )
                )
    return tuple(
        sorted(found, key=lambda one: (-1 if one.step is None else one.step, one.checkpoint))
    ), examined


def _plain(rows: pd.DataFrame, facts: Mapping[str, Mapping[str, object]]) -> pd.DataFrame:
    """Without the marks at the end of notes, from the last on."""
    for finding in reversed(_findings(facts)[0]):
        mine = (rows["unit"] == finding.checkpoint) & rows["note"].str.endswith(finding.words)
        if finding.words and mine.any():
            notes = rows.loc[mine, "note"].str.removesuffix(finding.words).str.removesuffix("; ")
            rows.loc[mine, "note"] = notes
    return rows
