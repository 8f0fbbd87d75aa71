"""Sections of the pages of kinds that have other ones than a measured run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from isoscope.show.charts import Chart
from isoscope.show.colours import Pair
from isoscope.show.figures.panels import Panel
from isoscope.show.measures import Family, Told, title_of
from isoscope.show.page.section import Section, explanations
from isoscope.show.readings import unique


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
    explained: Iterable[str] | None = None,
    folded: bool = False,
    wordy: bool = False,
) -> list[Section]:
    """A section of the panels that draw something; none without any, unless it is `wordy` and has words.

    The measures of its panels are explained, or those that are named.
    """
    shown = [panel for panel in panels if panel.filled]
    if not (shown or maps or (wordy and words)):
        return []
    of_panels = unique(measure for panel in shown for measure in panel.measures)
    explains = explanations(of_panels if explained is None else explained, told)
    return [Section(name, Family(heading, asks, folded=folded), shown, words, key or {}, maps, explains)]


def panel_of(measure: str, told: Told, chart: Chart, remark: str = "") -> Panel:
    """The panel of one measure, under its title."""
    return Panel((measure,), title_of(measure, told), remark, chart)
