"""What is kept when memory is short: halves go first, then d×d records, and the rows say so."""

from __future__ import annotations

import re

import pandas as pd
import pytest
import torch

import isoscope
from isoscope.cli.options import parse_bytes
from isoscope.measures.table import MEASURES
from isoscope.stats.centre import Centre
from isoscope.stats.directions import Directions
from isoscope.stats.moments import Moments
from isoscope.stats.orientation import Orientation
from isoscope.stats.within import Within
from tests.models import tiny
from tests.run.independent import assert_merged

SITES = tiny.LAYERS + 1
STATS = (Directions, Orientation, Centre, Moments, Within)
SQUARE = {measure.name for measure in MEASURES if measure.stat in (Orientation, Moments)}


def needed(parts: int) -> int:
    return SITES * sum(stat.size(tiny.WIDTH, parts) for stat in STATS)


def table(memory: float) -> pd.DataFrame:
    data = [{"input_ids": ids["input_ids"]} for ids in (tiny.ids(8, 24, seed) for seed in (1, 2))]
    return isoscope.observe(tiny.model("bert"), data, memory=memory).frame()


@pytest.fixture(scope="module")
def full() -> pd.DataFrame:
    return table(2e9)


def test_all_the_stats_are_named_above() -> None:
    assert {measure.stat for measure in MEASURES} == set(STATS)


def test_just_enough(full: pd.DataFrame) -> None:
    assert not full.value.isna().any()
    assert table(needed(2)).equals(full)


@pytest.mark.parametrize("memory", [needed(2) - 1, needed(1)])
def test_without_room_for_halves(full: pd.DataFrame, memory: float) -> None:
    rows = table(memory)
    split = rows.measure == "participation_ratio_split"
    assert rows[split].value.isna().all()
    assert set(rows[split].note) == {"two halves do not fit the memory allowed; raise --memory"}
    assert_merged(rows[~split], full[~split])
    assert rows[split].n.tolist() == full[split].n.tolist()


@pytest.mark.parametrize("memory", [needed(1) - 1, 1])
def test_without_room_for_matrices(full: pd.DataFrame, memory: float) -> None:
    rows = table(memory)
    square = rows.measure.isin(SQUARE)
    assert rows[square].value.isna().all()
    assert rows[~square].equals(full[~square]), "what grows with d is still exact"
    (note,) = set(rows[square].note)
    found = re.fullmatch(
        r"its records need (.+) and (.+) are allowed: raise --memory or choose fewer --layers", note
    )
    assert found is not None, note
    enough = parse_bytes(found[1])
    assert needed(1) <= enough <= 1.01 * needed(1)
    assert (
        not table(enough)[square]
        .value.drop(rows.index[rows.measure == "participation_ratio_split"])
        .isna()
        .any()
    )


def test_fewer_layers_need_less(full: pd.DataFrame) -> None:
    data = [tiny.ids(8, 24)]
    one = isoscope.observe(tiny.model("bert"), data, layers="2", memory=needed(2) / SITES).frame()
    assert not one.value.isna().any()


def test_measures_that_are_not_asked_for_take_no_room() -> None:
    data = [tiny.ids(8, 24)]
    rows = isoscope.observe(tiny.model("bert"), data, measures=["drift", "mean_cosine"], memory=1).frame()
    assert not rows.value.isna().any()


def test_a_cloud_is_planned_alike() -> None:
    cloud = torch.randn(40, 6, generator=torch.Generator().manual_seed(0))
    rows = isoscope.describe(cloud, sequence=torch.arange(40) // 4, memory=1).frame()
    assert set(rows[rows.value.isna()].measure) == SQUARE
