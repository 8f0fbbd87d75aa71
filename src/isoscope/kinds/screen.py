"""The terminal output of a run as data, which `isoscope.cli.screen.terminal` renders and prints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from isoscope.show.say.course import notes_of as told_of

WIDTH = 140  # columns of a terminal where none is known


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
    return tuple(dict.fromkeys(str(note) for known in facts.values() for note in told_of(known)))


def headed(left: Iterable[str], right: Iterable[str] = (), *, folds: bool = False) -> tuple[Column, ...]:
    """Columns by their headings, the first ones on the left."""
    return (*(Column(h, right=False, folds=folds) for h in left), *(Column(h, folds=folds) for h in right))
