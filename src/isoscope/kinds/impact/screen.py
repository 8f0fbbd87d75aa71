"""The terminal output of an impact: a table of repairs × tasks per layer with the geometry, and words."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from isoscope.formatting import short
from isoscope.kinds.impact.effects import (
    VERDICTS,
    Effect,
    Place,
    effects,
    finding,
    is_change,
    is_main,
    ordered,
    places,
)
from isoscope.kinds.screen import WIDTH, Column, Screen, Table, headed, notes_of, rows_of
from isoscope.results.store import RunFolder
from isoscope.show.measures import Told, title_of
from isoscope.show.readings import unique

_GEOMETRY = (("mean_cosine_between", "mean\ncosine"), ("effective_rank", "effective\nrank"))
_HUBS = ("hub_skewness", "anti_hubs")
_MOST = 7  # scores in the table; the page has all


def screen_of(folder: RunFolder, width: int = WIDTH) -> Screen:
    """A table per layer, what its signs mean, and the verdicts in words."""
    rows = ordered(rows_of(folder, "nothing yet; `isoscope impact` fills it."), folder.run.question)
    found, notes, told = effects(rows), notes_of(folder.facts()), folder.run.measures
    tables = [_table(rows, [one for one in found if one.place == place], told) for place in places(found)]
    signs = ", ".join(f"{sign} {word}" for word, sign in VERDICTS.items() if word != "undefined")
    key = f"score, its change, and the verdict by a paired 95 % interval: {signs}"

    def json() -> dict[str, object]:
        return {"notes": list(notes), "verdicts": _verdicts(found), "rows": rows}

    return Screen((*tables, key, finding(found, told)), json, notes)


def _table(rows: pd.DataFrame, found: Sequence[Effect], told: Told) -> Table:
    """A line per repair: geometry, then scores with their changes."""
    here = _here(rows, found[0].place)
    measures = unique(each.measure for each in found)
    main = [m for m in measures if is_main(m)]
    shown = [*main, *(m for m in measures if m not in main and m not in _HUBS)]
    shown = [*shown[: _MOST - len(_HUBS)], *(m for m in _HUBS if m in measures)]
    geometry = [(m, head) for m, head in _GEOMETRY if (here["measure"] == m).any()]
    value = {(m, r): v for m, r, v in zip(here["measure"], here["model"], here["value"], strict=True)}
    change = {(each.measure, each.repair): each for each in found}
    lines = []
    for repair in unique(here["model"]):
        cells = [short(value.get((m, repair), math.nan)) for m, _ in geometry]
        cells += [_cell(value.get((m, repair), math.nan), change.get((m, repair))) for m in shown]
        lines.append((str(repair), *cells))
    heads = (*(head for _, head in geometry), *(title_of(measure, told) for measure in shown))
    columns = (Column("repair", right=False), *headed((), heads, folds=True))
    return Table(columns, tuple(lines), found[0].site)


def _here(rows: pd.DataFrame, place: Place) -> pd.DataFrame:
    kind, layer = place
    at = rows["layer"].isna() if layer is None else rows["layer"] == layer
    return rows[(rows["kind"] == kind) & at & ~is_change(rows)]


def _cell(value: float, change: Effect | None) -> str:
    if change is None:
        return short(value)
    sign = "+" if change.by.value > 0 else ""
    return f"{short(value)}\n{sign}{short(change.by.value, 2)} {VERDICTS[change.verdict]}"


def _verdicts(found: Sequence[Effect]) -> list[dict[str, object]]:
    return [
        {
            "site": each.site,
            "measure": each.measure,
            "repair": each.repair,
            "verdict": each.verdict,
            "said": each.by.note,
        }
        for each in found
    ]
