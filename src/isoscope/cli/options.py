"""Options that several verbs share, and how their texts are read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from isoscope.errors import IsoscopeError

Measures = Annotated[
    str | None,
    typer.Option(help="Measures by name, separated by commas. [default: all; see `isoscope list measures`]"),
]
Memory = Annotated[str, typer.Option(help="The most memory that records may take.")]
Seed = Annotated[int, typer.Option(help="Decides the jackknife groups and halves.")]
Json = Annotated[bool, typer.Option("--json", help="Print rows as JSON instead of a table.")]
Out = Annotated[Path | None, typer.Option(help="The run folder. [default: runs/NAME-ID]")]

_UNITS = {"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}


def parse_names(text: str | None) -> list[str] | None:
    """Split a list of names at its commas; None stays None."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def parse_bytes(text: str) -> float:
    """Read a size.

    >>> parse_bytes("2GB")
    2000000000.0
    """
    found = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([KMGT]?B?)\s*", text.upper())
    unit = found[2] if found and (found[2] in _UNITS) else f"{found[2]}B" if found else ""
    if not found or unit not in _UNITS:
        raise IsoscopeError(f"'{text}' is no size of memory; write for example 500MB or 2GB.")
    return float(found[1]) * _UNITS[unit]


def parse_share(text: str, option: str) -> tuple[int, int]:
    """A share of the work: i/n is every nth, from the ith on, the first being 0.

    >>> parse_share("2/3", "--only")
    (2, 3)
    """
    first, _, count = text.partition("/")
    if not (first.isdecimal() and count.isdecimal() and int(first) < int(count)):
        raise IsoscopeError(f"{option} is i/n with i from 0 to n − 1, such as 0/4; got '{text}'.")
    return int(first), int(count)
