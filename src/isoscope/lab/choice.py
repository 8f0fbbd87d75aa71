"""Choosing a line of a table by its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from isoscope.errors import unknown_name

Line = TypeVar("Line", bound=Any)  # whatever has a name


def chosen(kind: str, name: str, table: Sequence[Line]) -> Line:
    """The line of this name, or an error that says what there is."""
    lines = {line.name: line for line in table}
    if name not in lines:
        raise unknown_name(kind, name, lines)
    return lines[name]
