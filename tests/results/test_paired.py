"""The change between two readings: paired by group where both are of the same inputs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from scipy import stats

from isoscope.results.paired import PAIRED, ROUNDING, UNPAIRED, paired
from isoscope.results.reading import Influence, Reading
from isoscope.results.row import COLUMNS, INFLUENCE, Row, frame
from isoscope.results.run import Run
from isoscope.results.store import RunFolder, open_run
from isoscope.results.trajectory import trajectory

NOISE = np.random.default_rng(0).normal(size=32)


def reading(value: float, each: np.ndarray | None = None, inputs: str = "a", half: float = 1.0) -> Reading:
    moves = None if each is None else Influence(value, 31.0, each, inputs)
    return Reading(value, 9, low=value - half, high=value + half, influence=moves)


def test_a_pair_has_the_t_interval_of_the_differences() -> None:
    units = np.random.default_rng(1).normal(size=(2, 32)) + np.array([[5.0], [5.2]])

    def of(x: np.ndarray) -> Reading:  # the mean of 32 units, each a group
        return reading(float(x.mean()), (x - x.mean()) / math.sqrt(32 * 31))

    found = paired(of(units[0]), of(units[1]))
    expected = stats.ttest_rel(units[1], units[0]).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx(tuple(expected), rel=1e-12)
    assert (found.tag, found.null, found.n) == (PAIRED, 0.0, 9)
    wider = paired(of(units[0]), of(units[1]), comparisons=20)
    expected = stats.ttest_rel(units[1], units[0]).confidence_interval(1 - 0.05 / 20)
    assert (wider.low, wider.high) == pytest.approx(tuple(expected), rel=1e-12)


def test_other_inputs_are_not_paired() -> None:
    one, other = reading(1.0, NOISE), reading(2.0, NOISE + 0.001)
    assert paired(one, other).excludes(0)
    for apart in (reading(2.0, NOISE + 0.001, "b"), reading(2.0), reading(2.0, NOISE[:16])):
        by = paired(one, apart)
        assert (by.tag, by.low, by.high) == (UNPAIRED, pytest.approx(1 - math.sqrt(2)), 1 + math.sqrt(2))
    assert not paired(Reading(1.0, 9), other).bounded
    assert paired(reading(1.0), reading(3.0)).above(0)
    assert not paired(reading(1.0), reading(3.0), comparisons=20).excludes(0)


def test_the_unpaired_form_takes_the_ends_that_face_each_other() -> None:
    one, other = Reading(1.0, 9, low=0.7, high=1.4), Reading(2.0, 5, low=1.7, high=3.0)
    by = paired(one, other)
    assert (by.low, by.high) == pytest.approx((1 - math.hypot(0.3, 0.4), 1 + math.hypot(1.0, 0.3)))
    assert by.n == 5


def test_rounding_is_no_change() -> None:
    one = reading(1.0, NOISE)
    assert not paired(one, reading(1.0 + ROUNDING / 2, NOISE)).excludes(0)
    assert paired(one, reading(1.0 + 2 * ROUNDING, NOISE)).excludes(0)
    assert not paired(one, one).excludes(0)


def test_an_estimate_and_a_value_that_disagree_are_no_change() -> None:
    """The length of a mean is lifted by noise, and its interval is that of the estimate without it."""
    noisier = replace(reading(1.2, NOISE), influence=Influence(0.9, 31.0, NOISE, "a"))
    by = paired(reading(1.0, NOISE), noisier)
    assert by.low < 0 < by.value == by.high


def row(step: int, layer: int, made: Reading, head: int | None = None) -> Row:
    return Row.at("r", "m", "", step, "layer", layer, head, "drift", made)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    kept = open_run(tmp_path / "run", Run("sweep", "m", {}, {}))
    for step in range(3):
        moves = Influence(0.5, 30.5, NOISE * step, "inputs")
        rows = [
            row(step, 0, replace(reading(1.0), influence=moves)),
            row(step, 0, reading(1.0), head=1),
            row(step, 1, replace(reading(1.0), influence=replace(moves, inputs=""))),
        ]
        kept.write(f"step {step:06d}", rows, {})
    return kept


def moves_of(rows: pd.DataFrame) -> list[Influence | None]:
    return list(rows[INFLUENCE])


def test_what_groups_do_is_kept_beside_the_rows(folder: RunFolder) -> None:
    assert list(folder.frame().columns) == list(COLUMNS)
    first, of_head, unknown, second, *_ = moves_of(folder.frame(influence=True))
    assert first is not None and second is not None and unknown is not None and of_head is None
    assert (first.centre, first.degrees, first.inputs) == (0.5, 30.5, "inputs")
    np.testing.assert_allclose(second.each, NOISE, rtol=1e-7)
    own = moves_of(folder.frame("step 000001", influence=True))[2]
    assert own is not None and unknown.inputs != own.inputs  # where inputs are not known, a file pairs alone
    pd.testing.assert_frame_equal(folder.frame(influence=True)[list(COLUMNS)], folder.frame())


def test_of_a_trajectory_some_steps_can_be_paired(folder: RunFolder) -> None:
    rows = trajectory(folder).rows(heads=False, influence=[0, 2])
    assert [each is not None for each in rows[INFLUENCE]] == [True, True, False, False, True, True]
    assert INFLUENCE not in trajectory(folder).rows(heads=False)


def test_a_table_is_written_with_what_groups_do(folder: RunFolder, tmp_path: Path) -> None:
    again = open_run(tmp_path / "again", folder.run)
    again.write("m", folder.frame(influence=True), {})
    for mine, its in zip(
        moves_of(again.frame(influence=True)), moves_of(folder.frame(influence=True)), strict=True
    ):
        assert (mine is None) == (its is None)
        assert mine is None or its is None or (mine.inputs, *mine.each) == (its.inputs, *its.each)


@pytest.mark.parametrize("kept", [lambda rows: frame(rows), lambda rows: rows])
def test_folders_without_it_are_read(tmp_path: Path, kept: Callable[[list[Row]], pd.DataFrame]) -> None:
    old = open_run(tmp_path / "old", Run("measure", "m", {}, {}))
    old.write("m", kept([row(0, 0, reading(1.0))]), {})
    assert pq.read_schema(old.file_of("m")).names == list(COLUMNS)
    assert moves_of(old.frame(influence=True)) == [None]
    assert trajectory(old).rows(influence=[0])[INFLUENCE].tolist() == [None]
