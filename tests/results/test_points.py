"""Points of pictures in a run folder: the same as they went in, there with the rows or not at all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from isoscope.errors import IsoscopeError
from isoscope.results.points import POINT_COLUMNS, Points, points_frame
from isoscope.results.reading import Reading
from isoscope.results.row import Row
from isoscope.results.run import Run
from isoscope.results.store import RunFolder, open_run, read_run

ROW = Row.at("0", "m", "", None, "attention", 1, None, "query_drift", Reading(1.0, 5))


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return open_run(tmp_path / "run", Run("measure", "m", {"seed": 0}, {}))


def made(seed: int, n: int = 5) -> pd.DataFrame:
    x, y = np.random.default_rng(seed).normal(size=(2, n)).tolist()
    head = Points("shared", "attention", 3, 1, "query", x, y)
    return points_frame([head, Points("spectrum", "vocabulary", None, None, "input", y, x)])


def test_points_come_back_as_they_went_in(folder: RunFolder) -> None:
    for name, seed in (("step 2", 2), ("step 1", 1)):
        folder.write(name, [ROW], {"notes": []}, made(seed))
    again = read_run(folder.path)
    pd.testing.assert_frame_equal(again.points("step 2").drop(columns="unit"), made(2))
    every = again.points()
    assert list(every.columns) == ["unit", *POINT_COLUMNS]
    assert every.unit.unique().tolist() == again.units() == ["step 1", "step 2"]
    pd.testing.assert_frame_equal(every[every.unit == "step 1"].drop(columns="unit"), made(1))
    assert every["layer"].isna().sum() == every["head"].isna().sum() == 10
    assert len(again.frame()) == 2


def test_the_same_points_make_the_same_file(folder: RunFolder) -> None:
    folder.write("a", [ROW], {}, made(0))
    (file,) = (folder.path / "points").iterdir()
    first = file.read_bytes()
    folder.write("a", [ROW], {}, made(0))
    assert file.read_bytes() == first
    folder.write("a", [ROW], {}, made(1))
    assert file.read_bytes() != first  # so that it could differ


def test_without_points_there_are_the_columns_and_no_folder(folder: RunFolder) -> None:
    for points in (None, points_frame([])):
        folder.write("a", [ROW], {}, points)
    for found in (folder.points(), folder.points("a"), folder.points("b")):
        assert len(found) == 0
        assert found.dtypes.equals(made(0).assign(unit="a")[["unit", *POINT_COLUMNS]].dtypes)
    assert not (folder.path / "points").exists()


def test_points_are_there_before_rows_and_are_not_read_without_them(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.replace

    def fails_on_rows(self: Path, target: Path) -> Path:
        if target.parent.name == "rows":
            raise OSError(28, "No space left on device")
        return real(self, target)

    monkeypatch.setattr(Path, "replace", fails_on_rows)
    with pytest.raises(IsoscopeError, match="No space left on device; nothing was left half-written"):
        folder.write("a", [ROW], {}, made(0))
    assert not folder.has("a")
    assert len(list((folder.path / "points").iterdir())) == 1
    assert len(folder.points()) == len(folder.points("a")) == 0
    monkeypatch.undo()
    folder.write("a", [ROW], {}, made(1))
    pd.testing.assert_frame_equal(folder.points("a").drop(columns="unit"), made(1))


def test_points_that_cannot_be_written_keep_the_rows_out(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", refuses)
    with pytest.raises(IsoscopeError, match=r"cannot write .*points"):
        folder.write("a", [ROW], {}, made(0))
    assert not folder.has("a")
    assert list((folder.path / "points").iterdir()) == []


def test_a_broken_file_is_named(folder: RunFolder) -> None:
    folder.write("a", [ROW], {}, made(0))
    (file,) = (folder.path / "points").iterdir()
    file.write_bytes(b"no parquet")
    with pytest.raises(IsoscopeError, match=r"cannot read .*points.*Remove it to measure it again"):
        folder.points()
    assert len(folder.frame()) == 1


def test_a_series_has_as_many_x_as_y() -> None:
    with pytest.raises(ValueError, match="shared, query: 2 x and 1 y"):
        points_frame([Points("shared", "attention", 1, 0, "query", [1.0, 2.0], [1.0])])
