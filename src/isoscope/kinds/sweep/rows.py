"""What the page of a sweep reads of its folder: all steps of sites, and of heads only what it draws.

Rows of heads are read at the steps that are drawn, of the measures that maps show: all would be millions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from isoscope.results.points import of_moving
from isoscope.results.store import RunFolder
from isoscope.results.trajectory import BETWEEN, Trajectory, trajectory
from isoscope.results.units import unit_name
from isoscope.show.figures.clouds import AXES
from isoscope.show.figures.step_axis import StepAxis, step_axis
from isoscope.show.measures import MAPS, MAPS_OVER_STEPS
from isoscope.show.page.training import Finding
from isoscope.show.readings import SiteReading, read

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


def read_sweep(folder: RunFolder) -> SweepRows:
    """Read a folder; steps at which something was found are drawn whatever happens."""
    of = trajectory(folder)
    findings, examined = _findings(of.facts)
    doubted = [finding.step for finding in findings if finding.step is not None]
    axis = step_axis(of.steps or (0,), doubted)
    compared = {*axis.steps, *of.steps[:2], *of.steps[-2:]}  # the first and the last that are not doubted
    sites = of.rows(heads=False, influence=compared)
    wanted = {m for group in (*MAPS.values(), *MAPS_OVER_STEPS.values()) for m in group}
    heads = of.rows(wanted, heads=True, only=set(axis.steps))
    together = folder.has(BETWEEN)
    facts = {unit: known for unit, known in of.facts.items() if unit not in of.failed}
    if together:
        facts[BETWEEN] = folder.known(BETWEEN)
    rows = pd.concat([sites, heads], ignore_index=True)
    between = folder.frame(BETWEEN) if together else sites.iloc[:0]
    return SweepRows(of, rows, between, folder.points(BETWEEN), facts, axis, findings, examined)


def changes_of(between: pd.DataFrame, kinds: Sequence[str] = CHANGES) -> list[SiteReading]:
    """The changes that the rows tell of: what (`tag`), of which measure (`about`), and the first step after.

    One whose place has no interval is given that of its step alone.
    """
    found = [r for r in read(between[between["tag"].isin(list(kinds))]) if r.known]
    return [r if r.bounded else replace(r, low=r.value, high=r.value) for r in found]


def by_step(points: pd.DataFrame) -> pd.DataFrame:
    """The points of all steps as if each step had been drawn alone: its unit is the step."""
    own = of_moving(points)
    own = own[own["picture"].isin(list(AXES))]
    share, parts = own[own["step"].isna()], own[own["step"].notna()].sort_values("step", kind="stable")
    parts = parts.assign(unit=parts["step"].map(unit_name))
    shares = [share.assign(unit=unit) for unit in parts["unit"].unique()]
    return pd.concat([parts, *shares], ignore_index=True).drop(columns="step")


def _findings(facts: Mapping[str, Mapping[str, object]]) -> tuple[tuple[Finding, ...], bool]:
    """What was found, by step, and whether anything was looked for."""
    listed = {unit: known["findings"] for unit, known in facts.items() if "findings" in known}
    found = []
    for unit, several in listed.items():
        for one in several if isinstance(several, list) else ():
            step = one.get("step")
            name, kind, words = (str(one.get(key, "")) for key in ("checkpoint", "kind", "words"))
            found.append(Finding(name or unit, step if isinstance(step, int) else None, kind, words))
    found.sort(key=lambda one: (-1 if one.step is None else one.step, one.checkpoint))
    return tuple(found), bool(listed)
