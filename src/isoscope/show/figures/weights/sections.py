"""The sections of the page on weights, by the sites they show: localisation, vocabulary, the final norm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pandas as pd

from isoscope.show.figures.albums import Album, Line
from isoscope.show.figures.maps import maps
from isoscope.show.figures.panels import Drawn, Panel, figures
from isoscope.show.figures.weights import norms, planes, vocabulary
from isoscope.show.figures.weights.heads import heads
from isoscope.show.figures.weights.vocabulary import HIDDEN, VOCABULARY, Grid
from isoscope.show.measures import FAMILIES, Family, Told, in_order
from isoscope.show.readings import QUERY_KEY

WEIGHED: dict[str, Callable[[str], bool]] = {
    "query_key": lambda kind: kind in QUERY_KEY,
    "vocabulary": lambda kind: kind in VOCABULARY,
    "norm": norms.is_norm,
}
"""The sections, and whether a kind of site is in each."""

_SHOWN = {"vocabulary": vocabulary.MEASURES, "norm": norms.SHOWN}
"""Measures of other families that a section shows, and so explains."""

_DASHED = {"softmax_agreement": "other heads"}
"""What the null of a panel is called here, where it is not that of random W."""
_NOTHING = Drawn(())


def is_weighed(kind: str) -> bool:
    """Whether a kind of site is shown here, and not among what was seen on data."""
    return any(has(kind) for has in WEIGHED.values())


@dataclass(frozen=True)
class WeightSection:
    """A section on weights: what it says, its panels in order, the heads to pick from, and its tables."""

    family: str
    words: str
    measures: tuple[str, ...]
    large: tuple[Panel, ...] = ()
    heads: Album[dict[str, Line]] | None = None
    maps: tuple[Panel, ...] = ()
    small: Drawn = _NOTHING
    tables: tuple[Grid, ...] = ()
    lines: tuple[tuple[str, str, str, str, str], ...] = ()

    @property
    def shown(self) -> Family:
        """Its heading and what it asks."""
        return FAMILIES[self.family]

    @property
    def id(self) -> str:
        """What a link to it is called."""
        return self.family

    @property
    def wide_maps(self) -> bool:
        """Whether maps stand two in a row: self-attention beside cross-attention, or as many as fill rows."""
        return self.small.across == 2 or len(self.maps) in (1, 2, 4)

    @property
    def panels(self) -> list[Panel]:
        """All its panels."""
        heads = self.heads.panels.values() if self.heads else ()
        return [*self.large, *heads, *self.maps, *self.small.panels]


def weight_sections(
    rows: pd.DataFrame,
    points: pd.DataFrame | None,
    told: Told,
    length: int | None,
    words: Callable[[pd.DataFrame, str], str],
) -> list[WeightSection]:
    """The sections there are; `length` is the T of the regimes, `words` writes what a section says."""
    kinds = rows["kind"].drop_duplicates()
    found = []
    for family, has in WEIGHED.items():
        mine = [str(kind) for kind in kinds if has(str(kind))]
        own = rows[rows["kind"].isin(mine)]
        measures = in_order(map(str, own["measure"].drop_duplicates()), family)
        measures = [m for m in measures if m in (*FAMILIES[family].measures, *_SHOWN.get(family, ()))]
        if not own["value"].notna().any():
            continue
        beside = rows[rows["kind"].isin([*mine, *HIDDEN])] if family == "vocabulary" else own
        section = WeightSection(family, words(beside, family), tuple(measures))
        if family == "query_key":
            section = _localisation(section, own, points, told, length)
        elif family == "vocabulary":
            tables = vocabulary.tables(beside, told)
            section = replace(section, large=vocabulary.scatters(points), tables=tables)
        else:
            stages = Drawn(norms.stages(own, told))
            section = replace(section, small=stages, lines=tuple(norms.weights(own, told)))
        found.append(section)
    return found


def _localisation(
    section: WeightSection, rows: pd.DataFrame, points: pd.DataFrame | None, told: Told, length: int | None
) -> WeightSection:
    mapped = maps(rows, "query_key", told)
    here = {measure: {**told.get(measure, {}), "family": "query_key"} for measure in section.measures}
    drawn = figures(rows, "query_key", here)  # whatever family the run tells: the section is of the site
    covered = {panel.measures[0] for panel in mapped}
    small = []
    for panel in drawn.panels:
        called = _DASHED.get(panel.measures[0], "random W")
        remark = panel.remark.replace("random weights", called).replace(" ", "\N{NO-BREAK SPACE}")
        # short and in one line, so that panels side by side look alike
        small += [replace(panel, remark=remark)] if panel.measures[0] not in covered else []
    drawn, large = replace(drawn, panels=tuple(small)), planes.planes(rows, length)
    return replace(section, large=large, heads=heads(points, rows), maps=mapped, small=drawn)
