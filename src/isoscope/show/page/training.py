"""A training run as its page shows it: its steps, what went wrong when, and the panels along the steps.

Batches that trained (rows of the revision "live") stand apart: dropout was on, and each step has another
batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import pandas as pd

from isoscope.results.run import Run
from isoscope.show.charts import Alarm
from isoscope.show.figures.panels import Panel, figures, heading_of
from isoscope.show.figures.step_axis import StepAxis, spaced, step_axis
from isoscope.show.figures.trajectories import LARGE, Depths, depths, trajectory
from isoscope.show.measures import ALARMED, FAMILIES, Family, Told, family_of, how_shown, in_order, title_of
from isoscope.show.readings import ATTENTION, PLACES, SiteReading, read
from isoscope.show.say import course
from isoscope.show.say.words import CLAIM, LIVE

KIND = "training"  # of the runs of a Monitor
_FOLLOWED = (CLAIM, *FAMILIES["health"].measures)
"""What the headline and the notes follow through all steps, beside the loop's own numbers."""
_MOST_PROFILES = 6
_Kind = TypeVar("_Kind")


@dataclass(frozen=True)
class Raised:
    """An alarm: since which step, where, its words, and at how many looks it was on."""

    name: str
    step: int
    site: str
    words: str
    times: int = 1


@dataclass(frozen=True)
class Watch:
    """The alarms of a run, in order of their steps, and those that were and were not on watch, in words."""

    told: tuple[Raised, ...]
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
    def marks(self) -> tuple[Alarm, ...]:
        """One for each step at which something began; a line under it where that had not gone off before."""
        begun: dict[int, list[Raised]] = {}
        for alarm in self.told:
            begun.setdefault(alarm.step, []).append(alarm)
        first = {alarm.name: alarm.step for alarm in reversed(self.told)}
        return tuple(
            Alarm(step, tuple(alarm.words for alarm in alarms), any(first[a.name] == step for a in alarms))
            for step, alarms in begun.items()
        )


@dataclass(frozen=True)
class Training:
    """What all sections of the page share: rows of the steps drawn, their readings, axis, colours, alarms.

    `every` has the rows of sites at all steps; `spoken` are those of them that sentences can turn on.
    """

    rows: pd.DataFrame
    every: pd.DataFrame
    spoken: pd.DataFrame
    live: pd.DataFrame
    readings: list[SiteReading]
    axis: StepAxis
    places: Depths
    watch: Watch | None
    told: Told

    def site_rows(self) -> pd.DataFrame:
        """The rows of sites, without those of heads."""
        return self.rows[self.rows["head"].isna()]

    def last_rows(self, *, heads: bool = True) -> pd.DataFrame:
        """The rows of the last step."""
        own = self.rows if heads else self.site_rows()
        return own[own["step"] == self.axis.steps[-1]]

    @property
    def marks(self) -> tuple[Alarm, ...]:
        """The steps at which alarms began."""
        return () if self.watch is None else self.watch.marks


@dataclass(frozen=True)
class Finding:
    """What is wrong with a checkpoint, in one sentence."""

    checkpoint: str
    step: int | None
    kind: str
    words: str


@dataclass(frozen=True)
class Swept:
    """What the page shows of a sweep; without `training` its checkpoints have no steps to stand on."""

    training: Training | None
    findings: tuple[Finding, ...]
    failed: tuple[tuple[str, str], ...]
    examined: bool
    count: int
    total: int
    about: str
    ordered: bool = False  # whether their order can be told
    signs: tuple[tuple[str, str], ...] = ()


def probed(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the probe, without those of batches that trained."""
    return rows[~rows["revision"].isin([LIVE])]


def is_training(run: Run, rows: pd.DataFrame, looks: int = 2) -> bool:
    """Whether the run is of one model that was measured at this many steps or more while it trained."""
    own = probed(rows)
    return run.kind == KIND and own["model"].nunique() == 1 and own["step"].nunique() >= looks


def training_of(run: Run, rows: pd.DataFrame, facts: course.Facts) -> Training | None:
    """The training that a run is of; None where it is of none."""
    return training(rows, facts, run.measures) if is_training(run, rows) else None


def training(rows: pd.DataFrame, facts: course.Facts, told: Told, axis: StepAxis | None = None) -> Training:
    """Settle the steps that are drawn, which are those of `axis` where one is given, and read their sites."""
    own = probed(rows)
    live, on_watch = rows[rows["revision"].isin([LIVE])], watch(own, facts)
    begun = (int(m.x) for m in on_watch.marks) if on_watch else ()
    axis = axis or step_axis(own["step"].dropna().astype(int), begun)
    every, own = own[own["head"].isna()], own[own["step"].isin(axis.steps)]
    readings = read(own[own["head"].isna()])
    # the steps drawn, the last whole one, and all steps of what is followed from step to step: other
    # sentences speak of the last step, and without this a run of 1,000 looks takes 37 s in place of 7
    steps = {*axis.steps, course.rows_while_whole(every)["step"].max()}
    followed = every["measure"].isin(_FOLLOWED) | (every["kind"] == "training")
    spoken, places = every[followed | every["step"].isin(steps)], depths(readings)
    loop = {str(m): says for found in recorded(facts, "explained", dict) for m, says in found.items()}
    return Training(own, every, spoken, live, readings, axis, places, on_watch, {**loop, **told})


def along_steps(of: Training, family: str) -> tuple[list[str], list[Panel], list[Panel]]:
    """The measures that are drawn, of several forms of a thing one; and their large and small panels."""
    kinds = ("training",) if family == "training" else (*PLACES, *ATTENTION)
    by_measure: dict[str, list[SiteReading]] = {}
    for r in of.readings:
        if r.kind in kinds and family_of(r.measure, of.told) == family:
            by_measure.setdefault(r.measure, []).append(r)
    how = FAMILIES.get(family, Family("", ""))
    found = [m for m, own in by_measure.items() if any(r.known for r in own)]
    found = [m for m in found if not how_shown(m).says_zero or any(r.value for r in by_measure[m] if r.known)]
    drawn = [m for m in in_order(found, family) if how_shown(m).instead not in found or how_shown(m).alarm]
    named = sorted(drawn, key=lambda m: m != how.first)
    wide = [m for m in named if how_shown(m).beside not in named][: how.wide]
    panels: dict[bool, list[Panel]] = {True: [], False: []}
    for measure in named:
        own, mapped = by_measure[measure], measure in wide
        crossed = [kind for kind in ATTENTION if any(r.kind == kind for r in own)]
        for kind in crossed if len(crossed) > 1 else [""]:
            shown = [r for r in own if kind in ("", r.kind)]
            if any(r.known for r in shown):
                panel = step_panel(shown, of.axis, of.places, of.told, mapped=mapped, kind=kind)
                panels[mapped].append(marked(panel, of.axis, of.marks))
    return named, panels[True], panels[False]


def step_panel(
    own: Sequence[SiteReading], axis: StepAxis, places: Depths, told: Told, *, mapped: bool, kind: str = ""
) -> Panel:
    """The panel of one measure along the steps, with what to know of its null and its scale."""
    measure = own[0].measure
    chart = trajectory(own, axis, places, mapped=mapped)
    null = f"dashed: {how_shown(measure).null}" if how_shown(measure).null else ""
    title = heading_of(title_of(measure, told), "", kind)
    return Panel((measure,), title, ", ".join(filter(None, [null, chart.remark])), chart, kind=kind)


def profile(of: Training, measure: str) -> Panel | None:
    """The measure along the layers, a curve for each of a few steps."""
    whole = course.while_whole([r for r in of.readings if r.measure == measure])
    steps = spaced(sorted({r.step for r in whole if r.step is not None and r.known}), _MOST_PROFILES)
    rows = of.site_rows()
    rows = rows[(rows["measure"] == measure) & rows["step"].isin(steps)]
    made = figures(rows, family_of(measure, of.told), of.told)
    if not made.panels:
        return None
    panel = made.panels[0]
    few = "at every step" if len(steps) == of.axis.measured else f"at {len(steps)} steps"
    return Panel(panel.measures, "By layer", few, replace(panel.chart, height=LARGE), made.key)


def live_panels(of: Training) -> list[Panel]:
    """Panels of batches that trained: shares of gradients, and what the probe shows as well."""
    if of.live.empty:
        return []
    readings = read(of.live[of.live["head"].isna()])
    axis = step_axis(r.step for r in readings if r.step is not None)
    own = [r for r in readings if r.step in axis.steps]
    panels = []
    for measure in (*FAMILIES[LIVE].measures, *FAMILIES[LIVE].others):
        shown = [r for r in own if r.measure == measure and r.kind in (*PLACES, *ATTENTION)]
        if any(r.known for r in shown):
            panels.append(step_panel(shown, axis, of.places, of.told, mapped=False))
    return panels


def watch(rows: pd.DataFrame, facts: course.Facts) -> Watch | None:
    """What the alarms of a run said; None where it had none and nothing went wrong."""
    bad = rows[rows["measure"].isin(course.NOT_FINITE) & (rows["value"] > 0) & rows["head"].isna()]
    told: dict[tuple[str, str], Raised] = {}
    raised = [
        Raised(str(one["name"]), int(one["step"]), str(one["site"]), str(one["words"]))
        for listed in recorded(facts, "alarms", list, tuple)
        for one in listed
        if isinstance(one, Mapping) and {"name", "step", "site", "words"} <= one.keys()
    ]
    for alarm in sorted(raised, key=lambda alarm: alarm.step):
        before = told.setdefault((alarm.name, alarm.site), replace(alarm, times=0))
        times = before.times + 1
        if alarm.name == "not_finite":  # it is recorded only while its beginning is among the recent steps
            times = max(bad.loc[bad["step"] >= before.step, "step"].nunique(), 1)
        told[alarm.name, alarm.site] = replace(before, times=times)
    first = course.first_not_finite(read(bad))
    if first is not None and not any(alarm.name == "not_finite" for alarm in told.values()):
        words = f"{course.not_finite(first)}; no alarm was on watch for it."
        told["not_finite", first.site] = Raised("not_finite", first.step or 0, first.site, words)
    watched = {
        str(name): str(words) or str(name).replace("_", " ")
        for listed in recorded(facts, "watched", dict)
        for name, words in listed.items()
    }
    if not told and not watched:
        return None
    measured = set(rows["measure"].drop_duplicates())
    off = {name for name in watched if name in ALARMED and measured.isdisjoint(ALARMED[name])}
    return Watch(
        tuple(sorted(told.values(), key=lambda alarm: alarm.step)),
        tuple(words for name, words in watched.items() if name not in off),
        tuple(f"{watched[name]} ({ALARMED[name][0]} was not measured)" for name in watched if name in off),
        rows["step"].nunique(),
    )


def marked(panel: Panel, axis: StepAxis, marks: Iterable[Alarm]) -> Panel:
    """The panel with these marks, each above its step."""
    alarms = [replace(one, x=axis.at(int(one.x))) for one in marks]
    return replace(panel, chart=replace(panel.chart, alarms=[*panel.chart.alarms, *alarms]))


def recorded(facts: course.Facts, name: str, *kinds: type[_Kind]) -> list[_Kind]:
    """What the units recorded under a name, where it is of one of these types."""
    return [listed for known in facts.values() if isinstance(listed := known.get(name), kinds)]
