"""A folder read as a trajectory: in order, no more than is asked for, and checkpoints only."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from isoscope.errors import IsoscopeError
from isoscope.results.reading import Reading
from isoscope.results.row import COLUMNS, Row
from isoscope.results.run import Run
from isoscope.results.store import RunFolder, open_run
from isoscope.results.trajectory import BETWEEN, FAILED, thinned, trajectory


def a_folder(path: Path) -> RunFolder:
    return open_run(path / "run", Run("sweep", "small", {"of": "test"}, {}))


def rows(step: int | None, *, heads: int = 2, model: str = "m") -> list[Row]:
    made = [
        Row.at("r", model, "main", step, "layer", layer, None, "drift", Reading(0.1 * layer, 9))
        for layer in range(3)
    ]
    for head in (None, *range(heads)):
        made += [
            Row.at("r", model, "main", step, "attention", 1, head, m, Reading(0.5, 9))
            for m in ("entropy", "sink_mass")
        ]
    return made


def failed(step: int | None, why: str) -> list[Row]:
    return [Row.at("r", "m", "", step, "checkpoint", None, None, FAILED, Reading(math.nan, 0, note=why))]


def test_steps_come_in_order_whatever_units_are_called(tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    for name, step in (("a", 1000), ("b", 8), ("z", 0), ("checkpoint-64", 64)):
        folder.write(name, rows(step, model=f"model of {name}"), {"known": name})
    folder.write(BETWEEN, rows(None), {})
    of = trajectory(folder)
    assert of.units == ("z", "b", "checkpoint-64", "a") and of.steps == (0, 8, 64, 1000)
    assert of.facts["b"]["known"] == "b" and BETWEEN not in of.facts
    assert not of.numbered and of.total == 5 * len(rows(0))
    every = of.rows()
    assert list(every["step"].drop_duplicates()) == [0, 8, 64, 1000]
    assert set(every["model"]) == {"small"} and set(every["revision"]) == {""}
    assert list(every.columns) == [*COLUMNS, "unit"]


def test_the_same_rows_as_the_folder_has(tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    for step in (5, 3, 11):
        folder.write(f"step {step:03d}", rows(step), {})
    found = trajectory(folder).rows().drop(columns="unit")
    oracle = folder.frame().assign(model="small", revision="").sort_values("step", kind="stable")
    pd.testing.assert_frame_equal(found, oracle.reset_index(drop=True))


def test_no_more_is_read_than_is_asked_for(tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    for step in (1, 2, 4):
        folder.write(str(step), rows(step, heads=3), {})
    of = trajectory(folder)
    assert len(of.rows(heads=False)) == 3 * 5 and len(of.rows(heads=True)) == 3 * 6
    own = of.rows({"sink_mass"}, heads=True, only={2, 4}, columns=("step", "measure", "value"))
    assert list(own.columns) == ["step", "measure", "value", "unit"] and len(own) == 6
    assert set(own["step"]) == {2, 4} and set(own["measure"]) == {"sink_mass"}
    nothing = of.rows(only=())
    assert nothing.empty and list(nothing.columns) == [*COLUMNS, "unit"]


def test_units_that_failed_are_told_with_their_reason(tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    folder.write("one", rows(1), {})
    folder.write("two", failed(2, "the file is truncated"), {"findings": []})
    folder.write("three", failed(None, ""), {})
    of = trajectory(folder)
    assert of.units == ("one",)
    assert of.failed == {"two": "the file is truncated", "three": "no reason is known"}
    assert "two" in of.facts


def test_without_steps_they_are_numbered_and_of_two_with_one_step_the_first_counts(tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    for name in ("late", "early"):
        folder.write(name, rows(None), {})
    of = trajectory(folder)
    assert of.numbered and of.units == ("early", "late") and of.steps == (0, 1)
    assert sorted(set(of.rows()["step"])) == [0, 1]
    folder.write("step7", rows(7), {})
    folder.write("step7-again", rows(7), {})
    of = trajectory(folder)
    assert not of.numbered and of.units == ("step7",)
    assert of.doubled == ("early", "late", "step7-again")


def test_an_empty_folder_has_no_checkpoint(tmp_path: Path) -> None:
    of = trajectory(a_folder(tmp_path))
    assert of.units == () and of.rows().empty and of.total == 0


def test_a_broken_file_and_another_schema_are_told(tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    folder.write("one", rows(1), {})
    file = next((folder.path / "rows").glob("*.parquet"))
    table = pq.read_table(file)
    pq.write_table(table.replace_schema_metadata({b"isoscope": b'{"unit": "one", "schema": 99}'}), file)
    with pytest.raises(IsoscopeError, match="has schema version 99"):
        trajectory(folder)
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(IsoscopeError, match="Remove it to measure it again"):
        trajectory(folder)


@pytest.mark.parametrize("count", [1, 2, 5, 64, 65, 1000])
def test_thinning_keeps_the_ends(count: int) -> None:
    kept = thinned(range(count), 64)
    assert len(kept) == len(set(kept)) == min(count, 64)
    assert kept[0] == 0 and kept[-1] == count - 1 and kept == sorted(kept)
