"""The page of a training run: its alarms, and each family along the steps.

Decided here: this is the page of a run of one model that was looked at more than once. The first measures of
a family, as `families` orders them, are large, lines and map; the others are lines. Heads along the steps
stand below. What was seen of batches that trained (`watch`, rows of the revision "live") has a section of its
own, since dropout was on and the batch is another at every step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pandas as pd

from isoscope.results.run import Run
from isoscope.show.figures.heads_over_steps import HeadsOverSteps, heads_over_steps
from isoscope.show.figures.panels import KINDS, Panel, figures, heading_of
from isoscope.show.figures.step_axis import StepAxis, spaced, step_axis
from isoscope.show.figures.trajectories import LARGE, Depths, depths, trajectory
from isoscope.show.measures import FAMILIES, Told, family_of, how_shown, in_order, title_of
from isoscope.show.page.alarms import Mark, Watch, marked, watch
from isoscope.show.readings import ATTENTION, PLACES, SiteReading, read, unique
from isoscope.show.say.broken import rows_while_whole, while_whole
from isoscope.show.say.words import CLAIM, LIVE

KINDS_OF_RUN = ("training", "demo")
_DRAWN_ANYWAY = ("largest_score",)  # an alarm reads it
_FIRST = {"drift in attention": "drift_share"}  # what an alarm reads stands before its consequences
_FOLLOWED = (CLAIM, *FAMILIES["health"].measures)
"""What the headline and the notes follow through all steps, beside the loop's own numbers."""
_MOST_PROFILES = 6
_MAPPED = {"training": 0, "directions": 1}
"""So many measures of a family are drawn large, with a map; two unless told here."""
_GRADIENTS = ("query_gradient_share", "key_gradient_share")


@dataclass(frozen=True)
class Training:
    """What all sections of the page share: rows of the steps drawn, their readings, axis, colours, alarms.

    `every` has the rows of sites at all steps: figures leave steps out, and sentences must not. `spoken` are
    those of them that sentences can turn on.
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

    def words_rows(self) -> pd.DataFrame:
        """What sentences speak of: sites at all steps, drawn or not, while the run was whole."""
        return rows_while_whole(self.spoken)

    def last_rows(self, *, heads: bool = True) -> pd.DataFrame:
        """The rows of the last step."""
        own = self.rows if heads else self.site_rows()
        return own[own["step"] == self.axis.steps[-1]]

    @property
    def marks(self) -> tuple[Mark, ...]:
        """The steps at which alarms began."""
        return () if self.watch is None else self.watch.marks


@dataclass(frozen=True)
class Trained:
    """A family along the steps: large panels, small ones, profiles by layer, and its heads."""

    large: tuple[Panel, ...]
    small: tuple[Panel, ...]
    profile: Panel | None
    heads: HeadsOverSteps | None
    places: Depths

    @property
    def panels(self) -> list[Panel]:
        """All its panels."""
        profile = [self.profile] if self.profile else []
        return [*self.large, *self.small, *profile, *(self.heads.panels if self.heads else ())]


def is_training(run: Run, rows: pd.DataFrame) -> bool:
    """Whether the run is of one model that was looked at more than once while it trained."""
    own = rows[rows["revision"].fillna("") != LIVE]
    return run.kind in KINDS_OF_RUN and own["model"].nunique() == 1 and own["step"].nunique() > 1


def first_look(run: Run, rows: pd.DataFrame, facts: Mapping[str, Mapping[str, object]]) -> Watch | None:
    """What the alarms said of a run that was looked at once, such as one that an alarm ended at step 0."""
    own = rows[rows["revision"].fillna("") != LIVE]
    if run.kind not in KINDS_OF_RUN or own["model"].nunique() != 1:
        return None
    return watch(own, facts)


def training(
    rows: pd.DataFrame,
    facts: Mapping[str, Mapping[str, object]],
    told: Told,
    axis: StepAxis | None = None,
) -> Training:
    """Set the live rows apart, settle the steps that are drawn, and read every whole site once.

    The steps that are drawn are those of `axis` where one is given.
    """
    alive = rows["revision"].fillna("") == LIVE
    own, live = rows[~alive], rows[alive]
    on_watch = watch(own, facts)
    begun = (m.step for m in on_watch.marks) if on_watch else ()
    axis = axis or step_axis(own["step"].dropna().astype(int), begun)
    every, own = own[own["head"].isna()], own[own["step"].isin(axis.steps)]
    readings = read(own[own["head"].isna()])
    spoken, places = _spoken(every, axis), depths(readings)
    return Training(own, every, spoken, live, readings, axis, places, on_watch, explained(told, facts))


def _spoken(every: pd.DataFrame, axis: StepAxis) -> pd.DataFrame:
    """The steps drawn, the last whole one, and all steps of what is followed from step to step.

    Other sentences speak of the last step. Without this a run of 1,000 looks takes 37 s in place of 7.
    """
    steps = {*axis.steps, rows_while_whole(every)["step"].max()}
    followed = every["measure"].isin(_FOLLOWED) | (every["kind"] == "training")
    return every[followed | every["step"].isin(steps)]


def explained(told: Told, facts: Mapping[str, Mapping[str, object]]) -> Told:
    """What the run tells of its measures, with what units tell of the loop's own numbers."""
    own: dict[str, Mapping[str, object]] = {}
    for known in facts.values():
        found = known.get("explained")
        own |= {str(m): says for m, says in found.items()} if isinstance(found, Mapping) else {}
    return {**own, **told}


def trained(of: Training, family: str) -> Trained | None:
    """The figures of a family; None where none of its measures has a value."""
    kinds = ("training",) if family == "training" else (*PLACES, *ATTENTION)
    own = [r for r in of.readings if r.kind in kinds and family_of(r.measure, of.told) == family]
    by_measure: dict[str, list[SiteReading]] = {}
    for r in own:
        by_measure.setdefault(r.measure, []).append(r)
    named = sorted(_drawn(by_measure, family), key=lambda m: m != _FIRST.get(family))
    large: list[Panel] = []
    small: list[Panel] = []
    wide = [m for m in named if how_shown(m).beside not in named][: _MAPPED.get(family, 2)]
    for measure in named:
        mapped = measure in wide
        (large if mapped else small).extend(_panels(of, measure, by_measure[measure], mapped=mapped))
    heads = heads_over_steps(of.rows, family, of.axis, of.told)
    if heads is not None:
        heads = heads.each(lambda panel: marked(panel, of.axis, of.marks))
    if not (large or small or heads):
        return None
    profile = _profile(of, named[0]) if family == "directions" and named else None
    return Trained(tuple(large), tuple(small), profile, heads, of.places)


def _drawn(there: Mapping[str, list[SiteReading]], family: str) -> list[str]:
    """The measures that are drawn, in order: without values none, and one of several forms of a thing."""
    found = [m for m, own in there.items() if any(r.known for r in own)]
    found = [m for m in found if not how_shown(m).says_zero or any(r.value for r in there[m] if r.known)]
    return [m for m in in_order(found, family) if how_shown(m).instead not in found or m in _DRAWN_ANYWAY]


def _panels(of: Training, measure: str, own: list[SiteReading], *, mapped: bool) -> list[Panel]:
    """A panel, or one for each kind of attention where there are two."""
    crossed = [kind for kind in ATTENTION if any(r.kind == kind for r in own)]
    found = []
    for kind in crossed if len(crossed) > 1 else ("",):
        shown = [r for r in own if kind in ("", r.kind)]
        if not any(r.known for r in shown):
            continue
        chart = trajectory(shown, of.axis, of.places, mapped=mapped)
        null = f"dashed: {how_shown(measure).null}" if how_shown(measure).null else ""
        title = heading_of(title_of(measure, of.told), "", kind if kind in KINDS else "")
        panel = Panel((measure,), title, ", ".join(filter(None, [null, chart.remark])), chart)
        found.append(marked(panel, of.axis, of.marks))
    return found


def _profile(of: Training, measure: str) -> Panel | None:
    """The measure along the layers, a curve for each of a few steps."""
    whole = while_whole([r for r in of.readings if r.measure == measure])
    steps = spaced(sorted({r.step for r in whole if r.step is not None and r.known}), _MOST_PROFILES)
    rows = of.rows[(of.rows["measure"] == measure) & of.rows["step"].isin(steps) & of.rows["head"].isna()]
    made = figures(rows, family_of(measure, of.told), of.told)
    if not made.panels:
        return None
    panel = made.panels[0]
    few = "at every step" if len(steps) == of.axis.measured else f"at {len(steps)} steps"
    return Panel(panel.measures, "By layer", few, replace(panel.chart, height=LARGE), made.key)


def live_figures(of: Training) -> Trained | None:
    """What was seen of batches that trained: shares of gradients, and what the probe shows as well."""
    if of.live.empty:
        return None
    readings = read(of.live[of.live["head"].isna()])
    axis = step_axis(r.step for r in readings if r.step is not None)
    own = [r for r in readings if r.step in axis.steps]
    first = unique([r.measure for r in own if r.measure in _GRADIENTS])
    named = [*first, *(m for m in ("normalised_entropy", "mean_cosine_between") if m not in first)]
    panels = []
    for measure in named:
        shown = [r for r in own if r.measure == measure and r.kind in (*PLACES, *ATTENTION)]
        if any(r.known for r in shown):
            chart = trajectory(shown, axis, of.places, mapped=False)
            panels.append(Panel((measure,), title_of(measure, of.told), chart.remark, chart))
    return Trained((), tuple(panels), None, None, of.places) if panels else None
