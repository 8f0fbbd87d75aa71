"""Rows as a table: the columns and types of the schema, and what was put in."""

from __future__ import annotations

import math
from dataclasses import asdict

import pandas as pd
import pytest

from isoscope.results.reading import Reading
from isoscope.results.row import COLUMNS, Row, frame

ROWS = [
    Row.at("r", "m", "", 3, "layer", 0, None, "drift", Reading(1.5, 7, 0.25, 1.0, 2.0)),
    Row.at(
        "r", "m", "live", None, "attention", 2, 1, "entropy", Reading(math.nan, 0, note="no row that counts")
    ),
    Row.at("", "größer", "", 2**40, "output", None, None, "drift", Reading(-math.inf, 2**40)),
]


@pytest.mark.parametrize("rows", [ROWS, ROWS[:1], ROWS[1:2], []])
def test_a_frame_is_the_rows_one_by_one(rows: list[Row]) -> None:
    plain = pd.DataFrame([asdict(row) for row in rows], columns=list(COLUMNS)).astype(COLUMNS)
    pd.testing.assert_frame_equal(frame(iter(rows)), plain)
    assert {name: str(kind) for name, kind in frame(rows).dtypes.items()} == COLUMNS
