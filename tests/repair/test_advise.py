"""Advice as rows: two halves that share nothing, numbers of the one that nothing was fitted on."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from isoscope.errors import IsoscopeError
from isoscope.repair.advise.advise import BEFORE, REPAIRS, advise, recipes
from isoscope.repair.advise.pairs import EXPLAINED
from isoscope.repair.advise.sample import LEAST, halves, rows_of
from isoscope.repair.fit.transforms import fit
from isoscope.results.row import Row
from isoscope.run.observe.observe import describe


def cloud(n: int = 300, width: int = 12) -> torch.Tensor:
    return torch.randn(n, width) @ torch.randn(width, width) + 3 * torch.randn(width)


def value(rows: tuple[Row, ...], model: str, measure: str) -> float:
    (found,) = [row.value for row in rows if (row.model, row.measure) == (model, measure)]
    return found


def as_set(points: torch.Tensor) -> set[tuple[float, ...]]:
    return {tuple(row) for row in points.tolist()}


def test_halves_share_nothing_and_copies_count_once() -> None:
    points = cloud(200)
    points[150:170] = points[3] * (1 + 1e-7)  # what another batch rounds off
    found = halves([(points[:90], None), (points[90:], None)])
    assert not as_set(found.fit.points) & as_set(found.shown.points)
    assert (found.copies, found.seen, found.usable, len(found.fit) + len(found.shown)) == (20, 200, 200, 180)
    assert abs(len(found.fit) - len(found.shown)) <= 1


def test_sequences_are_not_parted() -> None:
    sequence = torch.arange(40).repeat_interleave(5) * 1000
    found = halves([(cloud(200), sequence)])
    assert found.sequences
    assert not set(found.fit.unit.tolist()) & set(found.shown.unit.tolist())
    assert len(found.fit) == len(found.shown) == 100


def test_batches_do_not_matter_and_a_sample_is_kept() -> None:
    points = cloud(500)
    whole = halves([(points, None)], most=100)
    parts = halves(((part, None) for part in points.split(37)), most=100)
    assert len(whole.fit) + len(whole.shown) == 100
    assert torch.equal(whole.shown.points, parts.shown.points)
    assert whole.digest == parts.digest
    assert whole.digest != halves([(points + 1, None)], most=100).digest


def test_what_cannot_be_used_is_counted() -> None:
    points = cloud(100)
    points[3, 2], points[9, 0], points[17] = torch.nan, torch.inf, 0
    found = halves([(points, None)])
    assert (found.left_out, found.no_direction, len(found.fit) + len(found.shown)) == (2, 1, 97)
    told = advise(found, ["centre"])
    assert value(told.rows, BEFORE, "left_out") == 2
    assert value(told.rows, BEFORE, "no_direction") == 1
    assert "2 of 100 vectors have NaN or Inf and are left out" in told.notes


@pytest.mark.parametrize(
    ("points", "said"),
    [
        (torch.ones(1, 4), f"at least {LEAST} vectors.*got 1"),
        (torch.full((50, 4), torch.nan), "got 0 .50 more have NaN or Inf"),
        (torch.zeros(50, 4), "got 0 .50 more are zero"),
        (torch.randn(50, 1), "vectors of one dimension"),
        (torch.full((50, 4), 0.3), "all 50 vectors are the same"),
        (torch.eye(4).repeat(20, 1), "4 different vectors cannot be parted"),
    ],
)
def test_bad_input_is_one_sentence(points: torch.Tensor, said: str) -> None:
    with pytest.raises(IsoscopeError, match=said):
        halves([(points, None)])


def test_rows_of_an_array_are_drawn_by_lot() -> None:
    vectors = np.arange(40, dtype=np.float32).reshape(20, 2)
    (drawn,) = [batch for batch, _ in rows_of(vectors, 7)]
    assert len(as_set(drawn)) == 7
    assert as_set(drawn) <= as_set(torch.from_numpy(vectors))
    assert torch.equal(drawn, next(rows_of(vectors, 7))[0])
    every = torch.cat([batch for batch, _ in rows_of(vectors, None, at_once=6)])
    assert torch.equal(every, torch.from_numpy(vectors))


def test_every_number_is_of_the_half_that_nothing_was_fitted_on() -> None:
    given = halves([(cloud(), None)])
    told = advise(given, ["centre", "whiten"])
    for recipe, name in (("centre", "centre"), ("whiten", "whiten:12")):
        moved = fit(recipe, given.fit.points).apply(given.shown.points)
        there = describe(moved, measures=["mean_cosine_between", "isoscore"]).frame()
        for measure, expected in zip(there.measure, there.value, strict=True):
            assert value(told.rows, name, measure) == pytest.approx(expected, abs=1e-12)
    own = describe(given.shown.points, measures=["relative_drift"]).frame()
    assert value(told.rows, BEFORE, "relative_drift") == pytest.approx(own.value[0])
    # fitted where it is shown, whitening would be perfect
    assert value(told.rows, "whiten:12", "isoscore") < 0.999


def test_dimensions_are_chosen_on_the_other_half() -> None:
    points = torch.randn(400, 20)
    points[:, 7] += 6
    points[:, 2] += 3
    told = advise(halves([(points, None)]), ["rogue:2"])
    named = [row for row in told.rows if row.measure == "dimension_share"]
    assert [row.layer for row in named][:2] == [7, 2]
    assert named[0].value == pytest.approx(0.8, abs=0.05)
    assert abs(named[2].value) < 0.05  # what is largest by chance on one half is nothing on the other
    assert named[0].low < 0.8 < named[0].high or named[0].value == pytest.approx(0.8, abs=0.02)


def test_a_repair_that_cannot_be_fitted_is_left_out_with_its_reason() -> None:
    given = halves([(cloud(80, 3), None)])
    told = advise(given, ["abtt:3", "centre"])
    assert told.tried == ("centre",)
    assert any("abtt:3 is left out" in note and "would leave nothing" in note for note in told.notes)


def test_each_repair_by_default_and_each_row_explained() -> None:
    told = advise(halves([(cloud(), None)]))
    assert [name.split(":")[0] for name in told.tried] == list(REPAIRS)
    own = {row.measure for row in told.rows} - set(describe(cloud()).frame().measure)
    assert own <= set(EXPLAINED)


def test_recipes() -> None:
    assert recipes(None) == REPAIRS
    assert recipes("centre;centre; abtt,whiten:2") == ("centre", "abtt,whiten:2")
    with pytest.raises(IsoscopeError, match="did you mean 'centre'"):
        recipes("center")
    with pytest.raises(IsoscopeError, match="names no repair"):
        recipes(";")
