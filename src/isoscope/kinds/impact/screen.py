"""The terminal output of an impact: a table of repairs × tasks per layer with the geometry, and words."""

from __future__ import annotations

from collections.abc import Sequence

from isoscope.formatting import ABSENT, short
from isoscope.kinds.impact.effects import VERDICTS, Effect, effects, finding, ordered
from isoscope.kinds.screen import WIDTH, Column, Screen, Table, headed, notes_of
from isoscope.results.store import RunFolder
from isoscope.show.measures import Told, title_of
from isoscope.show.readings import SiteReading, read, unique

_GEOMETRY = {"mean_cosine_between": "mean\ncosine", "effective_rank": "effective\nrank"}
_HUBS = ("hub_skewness", "anti_hubs")
_MOST = 7  # scores in the table; the page has all
_JSON = ("site", "measure", "repair", "verdict")


def screen_of(folder: RunFolder, width: int = WIDTH) -> Screen:
    """A table per layer, what its signs mean, and the verdicts in words."""
    rows, told = ordered(folder), folder.run.measures
    found, readings = effects(rows), [r for r in read(rows) if not r.about]
    tables = []
    for place in dict.fromkeys(each.place for each in found):
        here = [r for r in readings if (r.kind, r.layer) == place]
        tables.append(_table(here, [each for each in found if each.place == place], told))
    signs = ", ".join(f"{sign} {word}" for word, sign in VERDICTS.items() if word != "undefined")
    key = f"score, its change, and the verdict by a paired 95 % interval: {signs}"
    verdicts = [{name: getattr(each, name) for name in _JSON} | {"said": each.by.note} for each in found]
    return Screen((*tables, key, finding(found, told)), notes_of(folder.facts()), {"verdicts": verdicts})


def _table(readings: Sequence[SiteReading], found: Sequence[Effect], told: Told) -> Table:
    """A line per repair: geometry, then scores with their changes."""
    measures = unique(each.measure for each in sorted(found, key=lambda each: not each.main))
    shown = [m for m in measures if m not in _HUBS]
    shown = [*shown[: _MOST - len(_HUBS)], *(m for m in _HUBS if m in measures)]
    geometry = [m for m in _GEOMETRY if any(r.measure == m for r in readings)]
    value = {(r.measure, r.model): short(r.value) for r in readings}
    change = {(each.measure, each.repair): f"\n{each.change} {VERDICTS[each.verdict]}" for each in found}
    lines = []
    for repair in unique(r.model for r in readings):
        at = [(measure, repair) for measure in (*geometry, *shown)]
        lines.append((repair, *(value.get(one, ABSENT) + change.get(one, "") for one in at)))
    heads = (*(_GEOMETRY[m] for m in geometry), *(title_of(measure, told) for measure in shown))
    columns = (Column("repair", right=False), *headed((), heads, folds=True))
    return Table(columns, tuple(lines), found[0].site)
