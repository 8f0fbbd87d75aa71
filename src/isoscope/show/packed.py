"""Cells of large maps and points of clouds as two letters each, a third of the room that numbers take.

4,096 levels between the least and the largest are as fine as the three digits that a map shows; where they
would be coarse beside the map's colours, numbers stay as they are.
"""

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from typing import Any

import numpy as np

LEAST = 1024  # cells of a map below which it is not worth it
MANY = 32  # points of a cloud from which on it is
LETTERS = string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/"
_GAP = len(LETTERS) ** 2 - 1  # the last level is no number but a cell that is not there
_SHADES = 500  # levels that the colours of a map must have at least
Cells = Sequence[Sequence[float | None]]


def written(figure: dict[str, Any]) -> dict[str, Any]:
    """The figure with its large maps packed."""
    traces = []
    for trace in figure["data"]:
        cells = trace.get("z")
        large = cells and len(cells) * len(cells[0]) >= LEAST
        z = packed(cells, trace.get("zmin"), trace.get("zmax")) if large else None
        traces.append({**trace, "z": z} if z else trace)
    return {**figure, "data": traces}


def line(values: Sequence[float | None]) -> object:
    """Points along one axis, as letters where they are many."""
    return packed([values]) or values if len(values) >= MANY else values


def packed(cells: Cells, least: float | None = None, most: float | None = None) -> dict[str, Any] | None:
    """Lines of cells as letters, with what the first and the last level stand for.

    None where the levels would be coarse beside colours from `least` to `most`, or no cell is a number.

    >>> packed([[0.0, None, 1.0]])
    {'across': 3, 'low': 0.0, 'high': 1.0, 'letters': 'AA///+'}
    """
    values = np.array([[math.nan if cell is None else cell for cell in line] for line in cells], dtype=float)
    there = np.isfinite(values)
    if not there.any():
        return None
    low, high = float(values[there].min()), float(values[there].max())
    shown = high - low if least is None or most is None else most - least
    if high - low > shown * (_GAP - 1) / _SHADES:
        return None
    levels = np.full(values.shape, _GAP)
    levels[there] = np.rint((values[there] - low) / ((high - low) or 1.0) * (_GAP - 1)).astype(int)
    letters = np.frombuffer(LETTERS.encode(), np.uint8)
    pairs = np.stack([letters[levels // len(LETTERS)], letters[levels % len(LETTERS)]], -1)
    return {"across": values.shape[1], "low": low, "high": high, "letters": pairs.tobytes().decode()}
