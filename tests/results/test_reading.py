"""The one type of a number with its uncertainty, and that no other class decides by an interval."""

from __future__ import annotations

import ast
import math
from pathlib import Path

import pytest

from isoscope.results.reading import Reading
from isoscope.results.row import Row

SOURCE = Path(__file__).parents[2] / "src" / "isoscope"
JUDGING = {"above", "below", "bounded"}


def judging(source: str) -> set[str]:
    """The classes of a piece of code that define one of `JUDGING`, as a method or as a field."""
    return {
        node.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ClassDef)
        for part in node.body
        if (isinstance(part, ast.FunctionDef) and part.name in JUDGING)
        or (isinstance(part, ast.AnnAssign) and ast.unparse(part.target) in JUDGING)
    }


ENDS = {"low", "high"}
DECIDING = ("kinds/", "lab/", "repair/", "run/", "show/say/", "sweeps/")
"""Where a variable called `low` or `high` is the end of an interval, and none of an axis or a range."""


def ends_compared(source: str, *, names: bool) -> list[str]:
    """The comparisons of the ends of intervals in some code; `names` where `low` and `high` are such."""

    def is_end(node: ast.AST) -> bool:
        at = (
            node.slice.value
            if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)
            else ""
        )
        named = isinstance(node, ast.Name) and names and node.id in ENDS
        return named or at in ENDS or (isinstance(node, ast.Attribute) and node.attr in ENDS)

    found = []
    for node in ast.walk(ast.parse(source)):
        compared = isinstance(node, ast.Compare)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            compared = node.func.attr in {"between", "ge", "gt", "le", "lt"}
        if compared and any(map(is_end, ast.walk(node))):
            found.append(ast.unparse(node))
    return found


def test_ends_of_intervals_are_compared_by_readings_alone() -> None:
    found = {}
    for file in SOURCE.rglob("*.py"):
        name = file.relative_to(SOURCE).as_posix()
        calls = ends_compared(file.read_text(encoding="utf-8"), names=name.startswith(DECIDING))
        found |= {name: calls} if calls and not name.startswith("results/") else {}
    assert found == {}


@pytest.mark.parametrize(
    "code",
    [
        "reading.low > 0",
        "0 >= line['high']",
        "rows['low'] - rows['null'] > 0",
        "rows['low'].gt(0)",
        "low <= 0 <= high",
        "low * sign > 0",
    ],
)
def test_an_end_that_is_compared_elsewhere_is_seen(code: str) -> None:
    assert ends_compared(code, names=True)


def test_no_other_class_judges_by_an_interval() -> None:
    found = {
        f"{file.relative_to(SOURCE)}: {name}"
        for file in SOURCE.rglob("*.py")
        for name in judging(file.read_text())
    }
    assert found == {"results/reading.py: Reading"}


@pytest.mark.parametrize(
    "body",
    ["def above(self, level): return self.low > level", "bounded: bool = False", "def below(self): ..."],
)
def test_another_class_that_judges_is_seen(body: str) -> None:
    assert judging(f"def f():\n    class Number:\n        x = 1\n        {body}") == {"Number"}


@pytest.mark.parametrize(
    ("low", "high", "bounded", "above", "below"),
    [
        (0.4, 0.6, True, True, False),
        (-0.6, -0.4, True, False, True),
        (-0.1, 0.1, True, False, False),
        (math.nan, math.nan, False, False, False),
        (0.4, math.nan, False, False, False),
        (0.4, math.inf, False, False, False),
        (-math.inf, -0.4, False, False, False),
    ],
)
def test_nothing_is_decided_without_an_interval(
    low: float, high: float, bounded: bool, above: bool, below: bool
) -> None:
    reading = Reading(0.0, 5, low=low, high=high)
    assert (reading.bounded, reading.above(0), reading.below(0)) == (bounded, above, below)
    assert bool(reading.interval) == bounded


@pytest.mark.parametrize(("value", "known"), [(0.0, True), (math.nan, False), (math.inf, False)])
def test_a_value_is_known_if_it_is_finite(value: float, known: bool) -> None:
    assert Reading(value, 5).known == known


def test_a_row_is_a_reading_at_its_coordinates() -> None:
    reading = Reading(0.5, 9, 0.1, 0.4, 0.6, "note")
    row = Row.at("r", "m", "main", 3, "layer", 2, None, "drift", reading)
    assert (row.run, row.model, row.revision, row.step) == ("r", "m", "main", 3)
    assert (row.kind, row.layer, row.head, row.measure) == ("layer", 2, None, "drift")
    assert {name: getattr(row, name) for name in vars(reading)} == vars(reading)
    assert row.above(0.3)
    assert Row.at("r", "m", "main", 3, "layer", 2, None, "drift", row) == row
