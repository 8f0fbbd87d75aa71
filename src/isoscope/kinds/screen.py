"""The terminal output of a run as data, which `isoscope.cli.screen.terminal` renders and prints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import pandas as pd

Item = TypeVar("Item")
WIDTH = 140
"""Columns of a terminal where none is known."""


@dataclass(frozen=True)
class Column:
    """A column of a table: its heading, its side, and whether its cells may be folded into several lines."""

    heading: str
    right: bool = True
    folds: bool = False
    least: int | None = None


@dataclass(frozen=True)
class Cell:
    """A cell with a colour."""

    text: str
    colour: str


@dataclass(frozen=True)
class Table:
    """Columns and lines; `rules` are the lines that a rule stands above, `boxed` is False without a frame."""

    columns: tuple[Column, ...]
    lines: tuple[tuple[str | Cell, ...], ...]
    title: str = ""
    caption: str = ""
    rules: frozenset[int] = frozenset()
    boxed: bool = True


@dataclass(frozen=True)
class Screen:
    """Notes, then tables and sentences in order; `--json` prints notes and rows, and `json` besides."""

    shown: tuple[Table | str, ...]
    notes: tuple[str, ...] = ()
    json: Mapping[str, object] = field(default_factory=dict)


def notes_of(facts: Mapping[str, Mapping[str, object]]) -> tuple[str, ...]:
    """The notes of all units, each once."""
    found: list[str] = []
    for known in facts.values():
        listed = known.get("notes")
        found += map(str, listed) if isinstance(listed, list | tuple) else []
    return tuple(dict.fromkeys(found))


def records(table: pd.DataFrame) -> list[dict[str, object]]:
    """The lines of a table as JSON has them: a number that is missing is null."""
    return [
        {str(name): None if pd.isna(value) else value for name, value in line.items()}
        for line in table.astype(object).to_dict("records")
    ]


def headed(left: Iterable[str], right: Iterable[str] = (), *, folds: bool = False) -> tuple[Column, ...]:
    """Columns by their headings, the first ones on the left."""
    return (*(Column(h, right=False, folds=folds) for h in left), *(Column(h, folds=folds) for h in right))


def spaced(items: Sequence[Item], most: int) -> list[Item]:
    """At most `most` of these items (never fewer than 2), evenly spaced, the first and the last among them.

    >>> spaced("abcdefg", 4)
    ['a', 'c', 'e', 'g']
    """
    count, last = max(2, min(most, len(items))), len(items) - 1
    return list(items) if count > last else [items[i * last // (count - 1)] for i in range(count)]
