"""The tables of the page: the rows, the notes, and where it all comes from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from isoscope.formatting import ABSENT, short
from isoscope.show.measures import Told, how_shown, title_of
from isoscope.show.readings import ATTENTION, QUERY_KEY, SiteReading, models, read, steps, unique, where
from isoscope.show.say.course import notes_of

MOST_ROWS = 1500  # more rows make a browser slow; the page says how many it leaves out and where they are
NUMBERS = ("step", "value", "null", "95 % interval", "n")  # columns set to the right
_KINDS = ("layer", "output", "cloud", *ATTENTION, *QUERY_KEY)


@dataclass(frozen=True)
class Cell:
    """What a cell shows; `exact` is that number with all its digits, `place` another to sort the cell by."""

    text: str
    exact: str | None = None
    place: str | None = None


def table(rows: pd.DataFrame, told: Told) -> list[dict[str, Cell]]:
    """The first `MOST_ROWS` rows as cells, heads last; model and step only where there are several."""
    readings = sorted(read(rows), key=lambda r: r.head is not None)
    several = {"model": len(models(readings)) > 1, "step": len({r.step for r in readings}) > 1}
    lines = [_line(r, title_of(r.measure, told)) for r in readings[:MOST_ROWS]]
    return [{name: cell for name, cell in line.items() if several.get(name, True)} for line in lines]


def _line(reading: SiteReading, title: str) -> dict[str, Cell]:
    kind = _KINDS.index(reading.kind) if reading.kind in _KINDS else len(_KINDS)
    place = 10**8 * kind + 10**4 * reading.place + (-1 if reading.head is None else reading.head)
    return {
        "model": Cell(reading.model), "step": _number(reading.step),
        "site": Cell(reading.site, place=str(place)), "measure": Cell(title),
        "value": _number(reading.value), "null": _number(reading.null),
        "95 % interval": Cell(reading.interval or ABSENT, place=_key(reading.low)),
        "n": _number(reading.n), "note": Cell(reading.note),
    }  # fmt: skip


def notes(rows: pd.DataFrame, facts: Mapping[str, Mapping[str, object]]) -> list[tuple[str, str]]:
    """The remarks of the units and the rows, each text once, with all it is on."""
    grouped: dict[str, list[SiteReading]] = {}
    for reading in read(rows):
        part = how_shown(reading.measure).note_is_value or reading.kind == "comparison"
        if reading.note and not (part and reading.known):
            grouped.setdefault(reading.note, []).append(reading)
    units: dict[str, list[str]] = {}
    for unit, known in facts.items():
        for text in notes_of(known):
            units.setdefault(str(text), []).append(unit)
    every = len(facts)
    told = [(text, "" if every == 1 or len(on) == every else _few(on)) for text, on in units.items()]
    for text, group in grouped.items():
        at = f" at {len(steps(group))} steps" if len(steps(group)) > 1 else ""
        names, places = _few(unique(r.measure for r in group)), where(group)
        told.append((text, f"{names} in {places}{at} of {_few(models(group))}"))
    return told


def _few(names: list[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def facts_table(known: Mapping[str, object], without: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    """Names and values as text; what is nested is written as JSON, names of inner fields joined by a dot."""
    lines: list[tuple[str, str]] = []
    for key, value in known.items():
        if key not in without:
            nested = facts_table(value) if isinstance(value, Mapping) else None
            lines += [(str(key), _fact(value))] if nested is None else [(f"{key}.{k}", v) for k, v in nested]
    return lines


def _fact(value: object) -> str:
    if value is None or isinstance(value, str):
        return value or ABSENT
    if isinstance(value, list | tuple) and all(isinstance(item, str | int | float) for item in value):
        return ", ".join(map(str, value)) or ABSENT
    return json.dumps(value, ensure_ascii=False, default=str)


def _number(value: float | None) -> Cell:
    if value is None:
        return Cell(ABSENT, place="")
    return Cell(f"{value:,}" if isinstance(value, int) else short(value), _key(value))


def _key(value: float) -> str:
    return "" if value != value else repr(value)
