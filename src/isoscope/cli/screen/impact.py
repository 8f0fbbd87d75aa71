"""What an impact shows: a table of repairs × tasks a layer with the geometry, words, page and figure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd
from rich.table import Table
from rich.text import Text

from isoscope.cli.pages import write_page
from isoscope.cli.screen import terminal as screen
from isoscope.errors import IsoscopeError
from isoscope.formatting import short
from isoscope.kinds.impact.effects import (
    AS_IT_IS,
    CHANGE,
    VERDICTS,
    Effect,
    Place,
    effects,
    finding,
    is_main,
    places,
)
from isoscope.results import store
from isoscope.results.store import RunFolder
from isoscope.show.measures import title_of
from isoscope.show.readings import unique

_GEOMETRY = (("mean_cosine_between", "mean\ncosine"), ("effective_rank", "effective\nrank"))
_HUBS = ("hub_skewness", "anti_hubs")
_MOST = 7  # scores in the table; the page has all


def finish_impact(folder: RunFolder, *, json: bool = False) -> None:
    """Show what is in the folder, and write page and figure where their libraries are there."""
    rows = folder.frame()
    if rows.empty:
        raise IsoscopeError(f"{folder.path} holds nothing yet; `isoscope impact` fills it.")
    rows = ordered(rows, folder)
    found = effects(rows)
    notes = _notes(folder.facts())
    with screen.bar("writing the page"):
        page, drawn = write_page(folder), _write_figure(folder, found)
    screen.warn(notes)
    if json:
        beside = {"run": folder.run.id, "folder": str(folder.path), "page": page, "figures": drawn}
        screen.show_json(rows, notes=notes, verdicts=_verdicts(found), **beside)
        return
    for place in places(found):
        screen.show_table(_table(rows, [each for each in found if each.place == place], folder))
    signs = ", ".join(f"{sign} {word}" for word, sign in VERDICTS.items() if word != "undefined")
    screen.say(f"score, its change, and the verdict by a paired 95 % interval: {signs}")
    screen.say(finding(found, folder.run.measures))
    for name, where in (("page", [page]), ("figure", drawn)):
        if any(where):
            screen.say(f"{name}: {', '.join(where)}")


def ordered(rows: pd.DataFrame, folder: RunFolder) -> pd.DataFrame:
    """The rows in the order of the layers, repairs as they were asked for."""
    asked = [AS_IT_IS, *map(str, _list(folder.run.question.get("repairs")))]
    place = rows["model"].map({name: number for number, name in enumerate(asked)})
    layer = rows["layer"].fillna(10**6)
    return rows.assign(place=place, at=layer).sort_values(["at", "place"], kind="stable").drop(
        columns=["place", "at"]
    ).reset_index(drop=True)  # fmt: skip


def _table(rows: pd.DataFrame, found: Sequence[Effect], folder: RunFolder) -> Table:
    """A line a repair: geometry, then scores with their changes."""
    told, place = folder.run.measures, found[0].place
    here = _here(rows, place)
    measures = unique(each.measure for each in found)
    main = [m for m in measures if is_main(m)]
    shown = [*main, *(m for m in measures if m not in main and m not in _HUBS)]
    shown = [*shown[: _MOST - len(_HUBS)], *(m for m in _HUBS if m in measures)]
    table = Table(title=Text(found[0].site), title_justify="left")
    table.add_column("repair", no_wrap=True)
    geometry = [(m, head) for m, head in _GEOMETRY if (here["measure"] == m).any()]
    for _, head in geometry:
        table.add_column(head, justify="right")
    for measure in shown:
        table.add_column(Text(title_of(measure, told)), justify="right")
    value = {(m, r): v for m, r, v in zip(here["measure"], here["model"], here["value"], strict=True)}
    change = {(each.measure, each.repair): each for each in found}
    for repair in unique(here["model"]):
        cells = [_number(value.get((m, repair), math.nan)) for m, _ in geometry]
        cells += [_cell(value.get((m, repair), math.nan), change.get((m, repair))) for m in shown]
        table.add_row(Text(str(repair)), *cells)
    return table


def _here(rows: pd.DataFrame, place: Place) -> pd.DataFrame:
    kind, layer = place
    at = rows["layer"].isna() if layer is None else rows["layer"] == layer
    return rows[(rows["kind"] == kind) & at & ~rows["measure"].str.endswith(CHANGE)]


def _number(value: float) -> Text:
    return Text("–" if math.isnan(value) else short(value))


def _cell(value: float, change: Effect | None) -> Text:
    if change is None:
        return _number(value)
    sign = "+" if change.by.value > 0 else ""
    return Text(f"{short(value)}\n{sign}{short(change.by.value, 2)} {VERDICTS[change.verdict]}")


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


def _list(given: object) -> list[object]:
    return list(given) if isinstance(given, list | tuple) else []


def _notes(facts: Mapping[str, Mapping[str, object]]) -> list[str]:
    told = [str(note) for known in facts.values() for note in _list(known.get("notes"))]
    return list(dict.fromkeys(told))


def _write_figure(folder: RunFolder, found: Sequence[Effect]) -> list[str]:
    from isoscope.kinds.impact.figures import printed_impact

    try:
        bodies = printed_impact(found, folder.run.measures)
    except ImportError as missing:
        screen.warn([f"no figure was written: {missing.name} is not installed"])
        return []
    for kind, body in bodies.items():
        store.write_whole(folder.path / f"figure.{kind}", body)
    return [str(folder.path / f"figure.{kind}") for kind in bodies]
