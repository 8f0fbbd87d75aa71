"""The sections of a page: one per family, along layers or the steps of a training, and those on weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pandas as pd

from isoscope.show.charts import Chart
from isoscope.show.colours import Pair
from isoscope.show.figures import anatomy
from isoscope.show.figures.albums import Album, Line
from isoscope.show.figures.clouds import album
from isoscope.show.figures.comparison import scatter
from isoscope.show.figures.maps import HeadsOverSteps, heads_over_steps, maps
from isoscope.show.figures.panels import Panel, figures
from isoscope.show.figures.trajectories import Depths
from isoscope.show.figures.weights import norms, planes, vocabulary
from isoscope.show.figures.weights.heads import heads as pictures_of
from isoscope.show.measures import FAMILIES, Family, Told, family_of, in_order, name_of, shown_in, title_of
from isoscope.show.page.training import Training, along_steps, live_panels, marked, profile
from isoscope.show.readings import ATTENTION, PLACES, QUERY_KEY, read, unique
from isoscope.show.say.course import changed, rows_while_whole
from isoscope.show.say.words import CLAIM, LIVE, sentences
from isoscope.sites import parts

WEIGHED: dict[str, Callable[[str], bool]] = {
    "query_key": lambda kind: kind in QUERY_KEY,
    "vocabulary": lambda kind: kind in vocabulary.VOCABULARY,
    "norm": lambda kind: parts(kind)[0] == "norm",
}
"""The sections on weights, and whether a kind of site is in each: they are made of sites, not of measures."""
_ALONG = (*PLACES, *ATTENTION, "training")
"""Where a family is followed; weights, which have the same measures, have sections of their own."""
_EXPLAINED = ("formula", "says", "misleads", "null", "range", "interval", "source")
Explanation = tuple[str, str, tuple[tuple[str, str], ...]]
"""A measure's name, its title, and the parts of its explanation."""


@dataclass(frozen=True)
class Section:
    """A family on the page: its question, its panels, what it says, and the key that its panels share.

    `large` panels stand in front, `maps` last; `clouds` are the pictures of queries and keys. A section along
    the steps has the `places` of its lines, what they say (`changes`), a `profile` by layer and its `heads`.
    One on weights is `weighed`, and has `pictures` of heads, `tables`, and `lines` of a table of numbers.
    """

    family: str
    shown: Family
    small: Sequence[Panel] = ()
    words: str = ""
    key: Mapping[str, Pair] = field(default_factory=dict)
    maps: Sequence[Panel] = ()
    explained: tuple[Explanation, ...] = ()
    large: Sequence[Panel] = ()
    across: int = 1
    clouds: Album[list[Line]] | None = None
    places: Depths | None = None
    changes: str = ""
    profile: Panel | None = None
    heads: HeadsOverSteps | None = None
    weighed: bool = False
    pictures: Album[dict[str, Line]] | None = None
    tables: Sequence[vocabulary.Grid] = ()
    lines: Sequence[tuple[str, str, str, str, str]] = ()

    @property
    def id(self) -> str:
        """The fragment that links to it."""
        return self.family.replace(" ", "-")

    @property
    def panels(self) -> list[Panel]:
        """All its panels."""
        profile = [self.profile] if self.profile else []
        heads = self.heads.panels if self.heads else ()
        clouds, pictures = (list(one.panels.values()) if one else [] for one in (self.clouds, self.pictures))
        return [*self.large, *pictures, *self.small, *self.maps, *profile, *heads, *clouds]

    @property
    def wide(self) -> bool:
        """Whether panels stand two in a row: two models, or a number that three would leave gaps in."""
        filling = (1, 2, 4) if self.places else (2, 4)
        return self.across == 2 or (self.across == 1 and len(self.small) in filling)

    @property
    def wide_maps(self) -> bool:
        """Whether maps stand two in a row; a single one need not be as wide as the page."""
        return self.across == 2 or len(self.maps) in (1, 2, 4)


def section(
    name: str, heading: str, asks: str, panels: Iterable[Panel], told: Told, *, words: str = "",
    key: Mapping[str, Pair] | None = None, maps: Sequence[Panel] = (), explained: Iterable[str] | None = None,
    folded: bool = False, wordy: bool = False,
) -> list[Section]:  # fmt: skip
    """A section of the panels that draw something; none without any, unless it is `wordy` and has words.

    The measures of its panels are explained, or those that are named.
    """
    shown = [panel for panel in panels if panel.chart.filled]
    if not (shown or maps or (wordy and words)):
        return []
    of_panels = unique(measure for panel in shown for measure in panel.measures)
    explains = explanations(of_panels if explained is None else explained, told)
    return [Section(name, Family(heading, asks, folded=folded), shown, words, key or {}, maps, explains)]


def panel_of(measure: str, told: Told, chart: Chart, remark: str = "") -> Panel:
    """The panel of one measure, under its title."""
    return Panel((measure,), title_of(measure, told), remark, chart)


def section_of(rows: pd.DataFrame, told: Told, points: pd.DataFrame | None, family: str) -> Section | None:
    """The section of a family along the layers; None where none of its measures can be drawn."""
    made = scatter(rows) if family == "comparison" else figures(rows, family, told)
    if family == "anatomy of attention":
        curved = (panel for panel in made.panels if panel.measures[0] not in anatomy.DRAWN)
        made = replace(made, panels=(*anatomy.panels(rows, told), *curved))
    mapped = maps(rows, family, told)
    shown, covered = _measures(rows, family, told)
    if not (made.panels or mapped) or not covered:
        return None
    large, small = ([p for p in made.panels if (p.measures[0] == CLAIM) is first] for first in (True, False))
    return Section(
        family, _shown(family), small, sentences(rows[rows["measure"].isin(shown)], family), dict(made.key),
        mapped, explanations(covered, told), large, made.across,
        clouds=album(points, rows) if family == "queries" else None,
    )  # fmt: skip


def trained_section(of: Training, points: pd.DataFrame | None, family: str) -> Section | None:
    """The section of a family along the steps of a training run; None where it has nothing to draw."""
    named, large, small = ([], [], live_panels(of)) if family == LIVE else along_steps(of, family)
    heads = heads_over_steps(of.rows, family, of.axis, of.told)
    if not (large or small or heads):
        return None
    rows = rows_while_whole(of.spoken)
    shown, covered = _measures(rows, family, of.told)
    if family == LIVE:
        measured = set(rows["measure"].drop_duplicates())
        covered = unique(m for panel in small for m in panel.measures if m not in measured)
    elif not covered:
        return None
    clouds = album(points, of.last_rows()) if family == "queries" else None
    changes: list[str] = []
    for m in unique(m for panel in large for m in panel.measures):
        found = read(of.every[(of.every["measure"] == m) & of.every["kind"].isin(_ALONG)])
        changes += filter(None, [changed(found, name_of(m, of.told), spanned=not changes)])
    return Section(
        family, _shown(family), small, sentences(rows[rows["measure"].isin(shown)], family),
        dict(of.places.key), maps(of.last_rows(), family, of.told) if clouds else (),
        explanations(covered, of.told), large, clouds=clouds, places=of.places, changes="\n".join(changes),
        profile=profile(of, named[0]) if family == "directions" and named else None,
        heads=heads.each(lambda panel: marked(panel, of.axis, of.marks)) if heads else None,
    )  # fmt: skip


def is_weighed(kind: str) -> bool:
    """Whether a kind of site is of weights, and not among what was seen on data."""
    return any(has(kind) for has in WEIGHED.values())


def weight_sections(
    rows: pd.DataFrame, points: pd.DataFrame | None, told: Told, length: object
) -> list[Section]:
    """The sections on weights whose sites were measured; `length`, where there is one, is the regimes' T."""
    found = []
    for family, has in WEIGHED.items():
        kinds = [kind for kind in map(str, rows["kind"].drop_duplicates()) if has(kind)]
        own = rows[rows["kind"].isin(kinds)]
        if not own["value"].notna().any():
            continue
        shown = (*FAMILIES[family].measures, *FAMILIES[family].others)
        measures = in_order((m for m in map(str, own["measure"].drop_duplicates()) if m in shown), family)
        if family == "vocabulary":
            own = rows[rows["kind"].isin([*kinds, *vocabulary.HIDDEN])]
        section = Section(
            family, FAMILIES[family], words=sentences(own, family), explained=explanations(measures, told),
            weighed=True,
        )  # fmt: skip
        if family == "query_key":
            section = _localisation(section, own, points, told, length)
        elif family == "vocabulary":
            tables = vocabulary.tables(own, told)
            section = replace(section, large=vocabulary.scatters(points), tables=tables)
        else:
            section = replace(section, small=norms.stages(own, told), lines=norms.weights(own, told))
        found.append(section)
    return found


def _localisation(
    section: Section, rows: pd.DataFrame, points: pd.DataFrame | None, told: Told, length: object
) -> Section:
    mapped = maps(rows, "query_key", told)
    here = {m: {**told.get(m, {}), "family": "query_key"} for m in FAMILIES["query_key"].measures}
    drawn = figures(rows, "query_key", here)  # whatever family the run tells: the section is of the site
    small = []
    for panel in drawn.panels:
        remark = panel.remark.replace(" ", "\N{NO-BREAK SPACE}")  # in one line: side by side they look alike
        covered = panel.measures[0] in {shown.measures[0] for shown in mapped}
        small += [] if covered else [replace(panel, remark=remark)]
    large = planes.planes(rows, length if isinstance(length, int) else None)
    pictures = pictures_of(points, rows)
    return replace(section, small=small, across=drawn.across, large=large, pictures=pictures, maps=mapped)


def _measures(rows: pd.DataFrame, family: str, told: Told) -> tuple[list[str], list[str]]:
    """The measures that a family shows, and those of its own, in order; none where another stands instead."""
    named = [str(m) for m in rows["measure"].drop_duplicates()]
    there = {family_of(m, told) for m in rows.loc[rows["value"].notna(), "measure"].drop_duplicates()}
    if _shown(family).instead in there:
        return [], []
    own = in_order([m for m in named if family_of(m, told) == family], family)
    return [m for m in named if shown_in(m, family, told)], own


def _shown(family: str) -> Family:
    return FAMILIES.get(family) or Family(family.replace("_", " ").capitalize(), "", ())


def explanations(measures: Iterable[str], told: Told) -> tuple[Explanation, ...]:
    """Those of these measures that the run explains: name, title, and each part of the explanation."""
    named = [m for m in dict.fromkeys(measures) if m in told]
    parts = [tuple((key, str(told[m][key])) for key in _EXPLAINED if told[m].get(key)) for m in named]
    return tuple((m, title_of(m, told), part) for m, part in zip(named, parts, strict=True) if part)
