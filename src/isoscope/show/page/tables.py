"""The tables of the page: the rows, the notes, and where it all comes from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from isoscope.formatting import ABSENT, short
from isoscope.show.measures import title_of
from isoscope.show.readings import ATTENTION, QUERY_KEY, SiteReading, models, read, unique, where

MOST_ROWS = 1500
"""More rows make a browser slow; the page says how many it leaves out and where they are."""

NAMING = (
    *("rogue_contribution", "outlier_dimensions", "massive_activations", "largest_activation"),
    *("trace", "trace_on_data", "regime_density", "propagation_agreement", "softmax_agreement"),
)
"""Measures whose note is part of the value (a dimension, a regime, a p) and no remark on it."""

NUMBERS = ("step", "value", "null", "95 % interval", "n")
"""Columns set to the right."""


@dataclass(frozen=True)
class Cell:
    """What a cell shows, and the key it is sorted by: a number where `number`, else the text.

    Where `exact`, the key is what is shown with all its digits.
    """

    text: str
    key: str
    number: bool = False
    exact: bool = False


@dataclass(frozen=True)
class Note:
    """A remark, and what it is on."""

    text: str
    on: str


Line = dict[str, Cell]


def table(rows: pd.DataFrame, told: Mapping[str, Mapping[str, object]]) -> list[Line]:
    """The first `MOST_ROWS` rows as cells, heads last; model and step only where there are several."""
    readings = sorted(read(rows), key=lambda r: r.head is not None)
    several = len(models(readings)) > 1
    stepped = len({r.step for r in readings}) > 1
    return [_line(r, title_of(r.measure, told), several, stepped) for r in readings[:MOST_ROWS]]


def columns(lines: list[Line]) -> list[str]:
    """The names of the columns."""
    return list(lines[0]) if lines else []


def _line(reading: SiteReading, title: str, several: bool, stepped: bool) -> Line:
    line: Line = {"model": _words(reading.model)} if several else {}
    if stepped:
        line["step"] = _number(reading.step)
    kinds = ("layer", "output", "cloud", *ATTENTION, *QUERY_KEY)
    kind = kinds.index(reading.kind) if reading.kind in kinds else len(kinds)
    place = 10**8 * kind + 10**4 * reading.place + (-1 if reading.head is None else reading.head)
    line["site"] = Cell(reading.site, str(place), True)
    line["measure"] = _words(title)
    line["value"] = _number(reading.value)
    line["null"] = _number(reading.null)
    line["95 % interval"] = Cell(reading.interval or ABSENT, _key(reading.low), True)
    line["n"] = _number(reading.n)
    line["note"] = _words(reading.note)
    return line


def notes(rows: pd.DataFrame, facts: Mapping[str, Mapping[str, object]]) -> list[Note]:
    """What the rows and the units remark, each text once, with all it is on."""
    grouped: dict[str, list[SiteReading]] = {}
    for reading in read(rows):
        part = reading.measure in NAMING or reading.kind == "comparison"
        if reading.note and not (part and reading.known):
            grouped.setdefault(reading.note, []).append(reading)
    units: dict[str, list[str]] = {}
    for unit, known in facts.items():
        told = known.get("notes")
        for text in [told] if isinstance(told, str) else told if isinstance(told, list | tuple) else []:
            units.setdefault(str(text), []).append(unit)
    every = len(facts)
    return [
        *(Note(text, "" if every == 1 or len(on) == every else _few(on)) for text, on in units.items()),
        *(Note(text, _on(group)) for text, group in grouped.items()),
    ]


def _on(group: list[SiteReading]) -> str:
    measures = unique(r.measure for r in group)
    steps = {r.step for r in group if r.step is not None}
    at = f" at {len(steps)} steps" if len(steps) > 1 else ""
    return f"{_few(measures)} in {where(group)}{at} of {_few(models(group))}"


def _few(names: list[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def facts_table(known: Mapping[str, object], without: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    """Names and values as text; what is nested is written as JSON, names of inner fields joined by a dot."""
    lines: list[tuple[str, str]] = []
    for key, value in known.items():
        if key in without:
            continue
        if isinstance(value, Mapping):
            lines += [(f"{key}.{inner}", text) for inner, text in facts_table(value)]
        else:
            lines.append((str(key), _fact(value)))
    return lines


def _fact(value: object) -> str:
    if value is None or value == "":
        return ABSENT
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and all(isinstance(item, str | int | float) for item in value):
        return ", ".join(map(str, value)) or ABSENT
    return json.dumps(value, ensure_ascii=False, default=str)


def _words(text: str) -> Cell:
    return Cell(text, text)


def _number(value: float | None) -> Cell:
    if value is None:
        return Cell(ABSENT, "", True)
    return Cell(f"{value:,}" if isinstance(value, int) else short(value), _key(value), True, True)


def _key(value: float) -> str:
    return "" if value != value else repr(value)
