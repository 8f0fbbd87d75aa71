"""What went wrong in a training run, and when: the alarms that its units recorded, and the first NaN."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import pandas as pd

from isoscope.show.charts import Alarm
from isoscope.show.figures.panels import Panel
from isoscope.show.figures.step_axis import StepAxis
from isoscope.show.readings import read
from isoscope.show.say.course import NOT_FINITE, Facts, first_not_finite, not_finite

NEEDS = {
    "not_a_number": NOT_FINITE, "entropy_collapse": ("normalised_entropy",),
    "rank_collapse": ("rank_residual",), "score_growth": ("largest_score",),
    "drift_takes_over": ("drift_share",),
}  # fmt: skip
"""The measures that an alarm reads, by the name of its function; any of them will do."""
_Kind = TypeVar("_Kind")


@dataclass(frozen=True)
class Told:
    """An alarm: since which step, where, its words, and at how many looks it was on."""

    name: str
    step: int
    site: str
    words: str
    times: int = 1


@dataclass(frozen=True)
class Mark:
    """A step with the words of what began there; `new` where an alarm went off that had not before."""

    step: int
    words: tuple[str, ...]
    new: bool


@dataclass(frozen=True)
class Watch:
    """The alarms of a run, in order of their steps, and those that were and were not on watch, in words."""

    told: tuple[Told, ...]
    on: tuple[str, ...]
    off: tuple[str, ...]
    looks: int

    @property
    def silence(self) -> str:
        """The sentence where no alarm went off: that is good news only if one could have."""
        if not self.on:
            return "No alarm could go off: nothing that they read was measured."
        looks = "the one look" if self.looks == 1 else f"any of the {self.looks:,} looks"
        return f"No alarm went off at {looks}."

    @property
    def marks(self) -> tuple[Mark, ...]:
        """One for each step at which something began."""
        begun: dict[int, list[Told]] = {}
        for alarm in self.told:
            begun.setdefault(alarm.step, []).append(alarm)
        first = {alarm.name: alarm.step for alarm in reversed(self.told)}
        return tuple(
            Mark(step, tuple(alarm.words for alarm in alarms), any(first[a.name] == step for a in alarms))
            for step, alarms in begun.items()
        )


def watch(rows: pd.DataFrame, facts: Facts) -> Watch | None:
    """What the alarms of a run said; None where it had none and nothing went wrong."""
    bad = rows[rows["measure"].isin(NOT_FINITE) & (rows["value"] > 0) & rows["head"].isna()]
    told: dict[tuple[str, str], Told] = {}
    for alarm in sorted(_alarms(facts), key=lambda alarm: alarm.step):
        before = told.setdefault((alarm.name, alarm.site), replace(alarm, times=0))
        times = before.times + 1
        if alarm.name == "not_finite":  # it is recorded only while its beginning is among the recent steps
            times = max(bad.loc[bad["step"] >= before.step, "step"].nunique(), 1)
        told[alarm.name, alarm.site] = replace(before, times=times)
    first = first_not_finite(read(bad))
    if first is not None and not any(alarm.name == "not_finite" for alarm in told.values()):
        words = f"{not_finite(first)}; no alarm was on watch for it."
        told["not_finite", first.site] = Told("not_finite", first.step or 0, first.site, words)
    watched = {
        str(name): str(words) or str(name).replace("_", " ")
        for listed in recorded(facts, "watched", dict)
        for name, words in listed.items()
    }
    if not told and not watched:
        return None
    measured = set(rows["measure"].drop_duplicates())
    off = {name for name in watched if name in NEEDS and measured.isdisjoint(NEEDS[name])}
    return Watch(
        tuple(sorted(told.values(), key=lambda alarm: alarm.step)),
        tuple(words for name, words in watched.items() if name not in off),
        tuple(f"{watched[name]} ({NEEDS[name][0]} was not measured)" for name in watched if name in off),
        rows["step"].nunique(),
    )


def marked(panel: Panel, axis: StepAxis, marks: Iterable[Mark]) -> Panel:
    """The panel with a mark above each step at which an alarm began; a line under those that are new."""
    alarms = [Alarm(axis.at(one.step), one.words, one.new) for one in marks]
    return replace(panel, chart=replace(panel.chart, alarms=[*panel.chart.alarms, *alarms]))


def recorded(facts: Facts, name: str, *kinds: type[_Kind]) -> list[_Kind]:
    """What the units recorded under a name, where it is of one of these types."""
    return [listed for known in facts.values() if isinstance(listed := known.get(name), kinds)]


def _alarms(facts: Facts) -> list[Told]:
    return [
        Told(str(one["name"]), int(one["step"]), str(one["site"]), str(one["words"]))
        for listed in recorded(facts, "alarms", list, tuple)
        for one in listed
        if isinstance(one, Mapping) and {"name", "step", "site", "words"} <= one.keys()
    ]
