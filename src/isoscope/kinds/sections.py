"""Sections of the pages of kinds that have other ones than a measured run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from isoscope.show.charts import Chart
from isoscope.show.colours import Pair
from isoscope.show.figures.panels import Panel
from isoscope.show.measures import Family, Told, title_of
from isoscope.show.page.section import Section, explanations


def section(
    name: str,
    heading: str,
    asks: str,
    panels: Iterable[Panel],
    told: Told,
    *,
    words: str = "",
    key: Mapping[str, Pair] | None = None,
    maps: Sequence[Panel] = (),
    explained: Iterable[str] = (),
    folded: bool = False,
    wordy: bool = False,
) -> list[Section]:
    """A section of the panels that draw something; none without any, unless it is `wordy` and has words."""
    shown = [panel for panel in panels if panel.filled]
    if not (shown or maps or (wordy and words)):
        return []
    family = Family(heading, asks, folded=folded)
    return [Section(name, family, shown, words, key or {}, maps, explanations(explained, told))]


def panel_of(measure: str, told: Told, chart: Chart, remark: str = "") -> Panel:
    """The panel of one measure, under its title."""
    return Panel((measure,), title_of(measure, told), remark, chart)
