"""What went wrong in a training run, and when: the alarms that its units recorded, and the first NaN.

Decided here: an alarm that stays on is told once for a site, at the first step. What was on watch is told as
well, since "no alarm" says nothing without it; an alarm whose measure was not taken was not on watch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import pandas as pd

from isoscope.show.charts import Alarm
from isoscope.show.figures.panels import Panel
from isoscope.show.figures.step_axis import StepAxis
from isoscope.show.readings import read
from isoscope.show.say.broken import NOT_FINITE, first_not_finite, not_finite

NEEDS = {
    "not_a_number": NOT_FINITE,
    "entropy_collapse": ("normalised_entropy",),
    "rank_collapse": ("rank_residual",),
    "score_growth": ("largest_score",),
    "drift_takes_over": ("drift_share",),
}
"""The measures that an alarm reads, by the name of its function; any of them will do."""


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
        """What is said where no alarm went off: that is good news only if one could have."""
        if not self.on:
            return "No alarm could go off: nothing that they read was measured."
        return (
            "No alarm went off at the one look."
            if self.looks == 1
            else f"No alarm went off at any of the {self.looks:,} looks."
        )

    @property
    def marks(self) -> tuple[Mark, ...]:
        """One for each step at which something began."""
        found: dict[int, list[Told]] = {}
        for alarm in self.told:
            found.setdefault(alarm.step, []).append(alarm)
        first = {alarm.name: alarm.step for alarm in reversed(self.told)}
        return tuple(
            Mark(step, tuple(alarm.words for alarm in begun), any(first[a.name] == step for a in begun))
            for step, begun in found.items()
        )


def watch(rows: pd.DataFrame, facts: Mapping[str, Mapping[str, object]]) -> Watch | None:
    """What the alarms of a run said; None where it had none and nothing went wrong."""
    told: dict[tuple[str, str], Told] = {}
    for alarm in sorted(_recorded(facts), key=lambda alarm: alarm.step):
        key = alarm.name, alarm.site
        told[key] = replace(told[key], times=told[key].times + 1) if key in told else alarm
    bad = rows[rows["measure"].isin(NOT_FINITE) & (rows["value"] > 0) & rows["head"].isna()]
    first = first_not_finite(read(bad))
    for key, alarm in told.items():
        if alarm.name == "not_finite":  # it is recorded only while its beginning is among the recent steps
            on = bad.loc[bad["step"] >= alarm.step, "step"].nunique()
            told[key] = replace(alarm, times=max(on, 1))
    if first is not None and not any(alarm.name == "not_finite" for alarm in told.values()):
        words = f"{not_finite(first)}; no alarm was on watch for it."
        told["not_finite", first.site] = Told("not_finite", first.step or 0, first.site, words)
    watched = _watched(facts)
    if not told and not watched:
        return None
    measured = set(rows["measure"].drop_duplicates())
    off = {name for name in watched if name in NEEDS and measured.isdisjoint(NEEDS[name])}
    said = {name: words or name.replace("_", " ") for name, words in watched.items()}
    return Watch(
        tuple(sorted(told.values(), key=lambda alarm: alarm.step)),
        tuple(words for name, words in said.items() if name not in off),
        tuple(f"{words} ({NEEDS[name][0]} was not measured)" for name, words in said.items() if name in off),
        rows["step"].nunique(),
    )


def marked(panel: Panel, axis: StepAxis, marks: Iterable[Mark]) -> Panel:
    """The panel with a mark above each step at which an alarm began; a line under those that are new."""
    alarms = [Alarm(axis.at(one.step), one.words, one.new) for one in marks]
    return replace(panel, chart=replace(panel.chart, alarms=[*panel.chart.alarms, *alarms]))


def _recorded(facts: Mapping[str, Mapping[str, object]]) -> list[Told]:
    found = []
    for known in facts.values():
        listed = known.get("alarms")
        for one in listed if isinstance(listed, list | tuple) else ():
            if isinstance(one, Mapping) and {"name", "step", "site", "words"} <= one.keys():
                found.append(Told(*(str(one["name"]), int(one["step"]), str(one["site"]), str(one["words"]))))
    return found


def _watched(facts: Mapping[str, Mapping[str, object]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for known in facts.values():
        listed = known.get("watched")
        if isinstance(listed, Mapping):
            found |= {str(name): str(words) for name, words in listed.items()}
    return found
