"""What is kept when memory is short: halves go first, then d×d records, and the rows say so."""

from __future__ import annotations

import re

import pandas as pd
import pytest
import torch

import isoscope
from isoscope.cli.options import parse_bytes
from isoscope.stats.centre import Centre
from isoscope.stats.dimensions import Dimensions
from isoscope.stats.directions import Contributions, Directions
from isoscope.stats.moments import Moments
from isoscope.stats.orientation import Orientation
from isoscope.stats.reservoir import Reservoir
from isoscope.stats.types import Types
from isoscope.stats.within import Within
from tests.laws.law_measures import MEASURES
from tests.models import tiny
from tests.run.independent import assert_merged

SITES = tiny.LAYERS + 1
STATS = (Directions, Contributions, Orientation, Centre, Moments, Within, Dimensions, Reservoir, Types)
LARGE = {
    measure.name for measure in MEASURES if {Orientation, Moments, Reservoir, Types} & set(measure.stats)
}
OF_TYPES = {measure.name for measure in MEASURES if Types in measure.stats}  # the largest, in a tiny model
NULLS_OF_HALVES = [
    "isoscore",
    "isoscore_star",
    "participation_ratio",
    "stable_rank",
    "top_share",
    "spectral_exponent",
]
UNDEFINED = {  # in so little data, and at the first layer
    "mean_cosine_rare",
    "relative_drift_rare",
    "mean_cosine_middle",
    "relative_drift_middle",
}


def needed(parts: int) -> int:
    return SITES * sum(stat.size(tiny.WIDTH, parts) for stat in STATS)


def table(memory: float) -> pd.DataFrame:
    data = [{"input_ids": ids["input_ids"]} for ids in (tiny.ids(8, 24, seed) for seed in (1, 2))]
    return isoscope.observe(tiny.model("bert"), data, measures="all", memory=memory).frame()


def without_nulls_of_halves(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of one half have nulls that know less of the dependence; all else is the same."""
    return rows.assign(null=rows.null.mask(rows.measure.isin(NULLS_OF_HALVES)))


@pytest.fixture(scope="module")
def full() -> pd.DataFrame:
    return table(2e9)


def test_all_the_stats_are_named_above() -> None:
    assert {stat for measure in MEASURES for stat in measure.stats} == set(STATS)


def test_just_enough(full: pd.DataFrame) -> None:
    assert set(full[full.value.isna()].measure) <= UNDEFINED
    assert table(needed(2)).equals(full)


@pytest.mark.parametrize("memory", [needed(2) - 1, needed(1)])
def test_without_room_for_halves(full: pd.DataFrame, memory: float) -> None:
    rows = table(memory)
    split = rows.measure == "participation_ratio_split"
    assert rows[split].value.isna().all()
    assert set(rows[split].note) == {"two halves do not fit the memory allowed; raise --memory"}
    assert_merged(*map(without_nulls_of_halves, (rows[~split], full[~split])))
    assert rows[split].n.tolist() == full[split].n.tolist()


@pytest.mark.parametrize(("memory", "gone"), [(needed(1) - 1, OF_TYPES), (1, LARGE)])
def test_without_room_for_the_largest(full: pd.DataFrame, memory: float, gone: set[str]) -> None:
    rows = table(memory)
    left_out = rows.measure.isin(gone)
    assert rows[left_out].value.isna().all()
    split = rows.measure == "participation_ratio_split"
    kept = ~left_out & ~split
    assert_merged(*map(without_nulls_of_halves, (rows[kept], full[kept])))
    (note,) = set(rows[left_out].note)
    found = re.fullmatch(
        r"all records need (.+) and (.+) are allowed: raise --memory or choose fewer --layers", note
    )
    assert found is not None, note
    enough = parse_bytes(found[1])
    assert needed(1) <= enough <= 1.01 * needed(1)
    assert set(table(enough).query("value.isna()").measure) <= {*UNDEFINED, "participation_ratio_split"}


def test_fewer_layers_need_less(full: pd.DataFrame) -> None:
    data = [tiny.ids(8, 24)]
    one = isoscope.observe(
        tiny.model("bert"), data, measures="all", layers="2", memory=needed(2) / SITES
    ).frame()
    assert set(one[one.value.isna()].measure) <= UNDEFINED


def test_measures_that_are_not_asked_for_take_no_room() -> None:
    data = [tiny.ids(8, 24)]
    rows = isoscope.observe(tiny.model("bert"), data, measures=["drift", "mean_cosine"], memory=1).frame()
    assert not rows.value.isna().any()


def test_a_cloud_is_planned_alike() -> None:
    cloud = torch.randn(40, 6, generator=torch.Generator().manual_seed(0))
    rows = isoscope.describe(cloud, sequence=torch.arange(40) // 4, measures="all", memory=1).frame()
    needing = {measure.name for measure in MEASURES if measure.needs & {"tokens", "layers"}}
    assert set(rows[rows.value.isna()].measure) == LARGE - needing
