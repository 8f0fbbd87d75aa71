"""The sections of a page: one a family, its question, what it says, and its panels.

A training run shows each family along its steps, every other run along its layers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from isoscope.show.colours import Pair
from isoscope.show.figures.albums import Album, Line
from isoscope.show.figures.clouds import album
from isoscope.show.figures.comparison import scatter
from isoscope.show.figures.maps import maps
from isoscope.show.figures.panels import Drawn, Panel, figures
from isoscope.show.measures import FAMILIES, Family, Told, family_of, in_order, name_of, shown_in, title_of
from isoscope.show.page.training import Trained, Training, live_figures, trained
from isoscope.show.readings import ATTENTION, PLACES, read, unique
from isoscope.show.say.training import changed
from isoscope.show.say.words import CLAIM, LIVE, sentences

_ALONG = (*PLACES, *ATTENTION, "training")
"""Where a family is followed; weights, which have the same measures, have sections of their own."""
_EXPLAINED = ("formula", "says", "misleads", "null", "range", "interval", "source")

Explanation = tuple[str, str, tuple[tuple[str, str], ...]]
"""A measure's name, its title, and the parts of what the run tells of it."""


@dataclass(frozen=True)
class Section:
    """A family on the page: its question, what it says, its panels: the claim's large in front, maps last.

    `clouds` are the pictures of queries and keys, in their section. Of a training run `trained` are its
    figures along the steps, and `changes` what they say.
    """

    family: str
    shown: Family
    words: str
    large: tuple[Panel, ...]
    small: tuple[Panel, ...]
    maps: tuple[Panel, ...]
    drawn: Drawn
    explained: tuple[Explanation, ...]
    clouds: Album[list[Line]] | None = None
    trained: Trained | None = None
    changes: str = ""

    @property
    def id(self) -> str:
        """What a link to it is called."""
        return self.family.replace(" ", "-")

    @property
    def panels(self) -> list[Panel]:
        """All its panels."""
        clouds = self.clouds.panels.values() if self.clouds else ()
        trained = self.trained.panels if self.trained else ()
        return [*self.large, *self.small, *self.maps, *trained, *clouds]

    @property
    def wide(self) -> bool:
        """Whether panels stand two in a row: two models, or a number that three would leave gaps in."""
        return self.drawn.across == 2 or (self.drawn.across == 1 and len(self.small) in (2, 4))

    @property
    def wide_maps(self) -> bool:
        """The same of the maps, and where there is one: it need not be as wide as the page."""
        return self.drawn.across == 2 or len(self.maps) in (1, 2, 4)


def plain_section(
    name: str,
    family: Family,
    panels: Sequence[Panel],
    *,
    words: str = "",
    key: Mapping[str, Pair] | None = None,
    maps: Sequence[Panel] = (),
    explained: tuple[Explanation, ...] = (),
) -> Section:
    """A section of small panels that share a key, and of maps below them."""
    drawn = Drawn(tuple(panels), tuple((key or {}).items()))
    return Section(name, family, words, (), tuple(panels), tuple(maps), drawn, explained)


def section_of(rows: pd.DataFrame, told: Told, points: pd.DataFrame | None, family: str) -> Section | None:
    """The section of a family; None where none of its measures can be drawn."""
    made = scatter(rows) if family == "comparison" else figures(rows, family, told)
    mapped = maps(rows, family, told)
    named = [str(m) for m in rows["measure"].drop_duplicates()]
    covered = in_order([m for m in named if family_of(m, told) == family], family)
    if not (made.panels or mapped) or not covered:
        return None
    shown = [m for m in named if shown_in(m, family, told)]
    return Section(
        family=family,
        shown=_shown(family),
        words=sentences(rows[rows["measure"].isin(shown)], family),
        large=tuple(p for p in made.panels if p.measures[0] == CLAIM),
        small=tuple(p for p in made.panels if p.measures[0] != CLAIM),
        maps=mapped,
        drawn=made,
        explained=explanations(covered, told),
        clouds=album(points, rows) if family == "queries" else None,
    )


def trained_section(of: Training, points: pd.DataFrame | None, family: str) -> Section | None:
    """The same of a training run, along its steps."""
    made = live_figures(of) if family == LIVE else trained(of, family)
    if made is None:
        return None
    rows = of.words_rows()
    named = [str(m) for m in rows["measure"].drop_duplicates()]
    covered = in_order([m for m in named if family_of(m, of.told) == family], family)
    if family == LIVE:
        covered = unique(m for panel in made.small for m in panel.measures if m not in named)
    clouds = album(points, of.last_rows()) if family == "queries" else None
    large = unique(m for panel in made.large for m in panel.measures)
    changes: list[str] = []
    for m in large:
        found = read(of.every[(of.every["measure"] == m) & of.every["kind"].isin(_ALONG)])
        changes += filter(None, [changed(found, name_of(m, of.told), spanned=not changes)])
    shown = rows["measure"].isin([m for m in named if shown_in(m, family, of.told)])
    return Section(
        family=family,
        shown=_shown(family),
        words=sentences(rows[shown], family),
        large=(),
        small=(),
        maps=maps(of.last_rows(), family, of.told) if clouds else (),
        drawn=Drawn((*made.large, *made.small), of.places.key),
        explained=explanations(covered, of.told),
        clouds=clouds,
        trained=made,
        changes="\n".join(changes),
    )


def _shown(family: str) -> Family:
    return FAMILIES.get(family) or Family(family.replace("_", " ").capitalize(), "", ())


def explanations(measures: Iterable[str], told: Told) -> tuple[Explanation, ...]:
    """Those of these measures that the run explains: name, title, and each part of the explanation."""
    found = [(m, title_of(m, told), _explained(told.get(m, {}))) for m in measures]
    return tuple(item for item in found if item[2])


def _explained(told: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    return tuple((key, str(told[key])) for key in _EXPLAINED if told.get(key))
