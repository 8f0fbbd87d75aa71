"""On a GPU the readings are those of float64 on the CPU; skipped where there is none."""

from __future__ import annotations

import pandas as pd
import pytest
import torch

from isoscope import describe, observe
from isoscope.data.batch import as_batch
from isoscope.lab.model.transformer import Shape, build
from isoscope.models.source import Model
from isoscope.run.observe.fold import Folder
from isoscope.run.observe.memory import Plan
from isoscope.run.observe.observe import look
from isoscope.stats.base import Stat
from isoscope.stats.centre import Centre
from isoscope.stats.dimensions import Dimensions
from isoscope.stats.directions import Directions
from isoscope.stats.moments import Moments
from isoscope.stats.reservoir import Reservoir
from isoscope.stats.rows import Rows
from isoscope.stats.within import Within

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

ROOM = {  # absolute for cosines, else relative
    **dict.fromkeys(("mean_cosine", "mean_cosine_between"), 1e-5),
    **dict.fromkeys(("participation_ratio", "isoscore", "top_share", "stable_rank"), 1e-3),
    **dict.fromkeys(("effective_rank", "rankme"), 1e-2),
    **dict.fromkeys(("drift", "relative_drift", "mean_norm", "rank_residual", "intra_similarity"), 1e-5),
}


def differences(there: pd.DataFrame, here: pd.DataFrame) -> dict[str, float]:
    """How far the readings on the GPU lie from those on the CPU, by measure: the worst of its sites."""
    merged = there.merge(here, on=["kind", "layer", "measure"], suffixes=("", "_here"))
    merged = merged[merged.measure.isin(ROOM)]
    size = merged.value_here.abs().where(~merged.measure.str.contains("cosine"), 1.0)
    apart = (merged.value - merged.value_here).abs() / size
    assert apart.notna().all()
    return dict(apart.groupby(merged.measure).max())


def check(there: pd.DataFrame, here: pd.DataFrame) -> None:
    found = differences(there, here)
    assert len(found) > 8
    assert {name: x for name, x in found.items() if x > ROOM[name]} == {}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("shift", [0.0, 0.2, 30.0, 1000.0])
@pytest.mark.parametrize("rank", [12, 200])
def test_a_cloud_reads_as_in_float64(dtype: torch.dtype, shift: float, rank: int) -> None:
    """Means up to a thousand times the spread, few directions and many, a coordinate ten times as wide."""
    random = torch.Generator().manual_seed(rank)
    points = torch.randn(6000, rank, generator=random) @ torch.randn(rank, 200, generator=random) / rank**0.5
    points[:, 3] *= 10
    points = (points + shift).to(dtype)
    sequence = torch.arange(6000) // 50
    here = describe(points.double(), sequence=sequence).frame()
    there = describe(points.cuda(), sequence=sequence).frame()
    check(there, here)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("shift", [0.0, 30.0, 1000.0])
def test_a_wide_cloud_reads_as_in_float64(dtype: torch.dtype, shift: float) -> None:
    """Its covariance comes from the tensor cores; its spectrum falls as that of hidden states does."""
    if shift == 1000 and dtype == torch.bfloat16:
        pytest.skip("eight bits do not hold a mean of a thousand spreads: every coordinate is the same")
    random = torch.Generator().manual_seed(0)
    falls = torch.arange(1, 641) ** -0.75
    turn = torch.linalg.qr(torch.randn(640, 640, generator=random)).Q
    points = ((torch.randn(8000, 640, generator=random) * falls) @ turn + shift * falls[0]).to(dtype)
    sequence = torch.arange(8000) // 100
    names = ["participation_ratio", "isoscore", "top_share", "stable_rank", "effective_rank", "rankme"]
    names += ["mean_cosine", "mean_cosine_between", "drift", "relative_drift", "mean_norm"]
    here = describe(points.double(), sequence=sequence, measures=names).frame()
    there = describe(points.cuda(), sequence=sequence, measures=names).frame()
    check(there, here)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("shift", [0.0, 0.2, 30.0])
@pytest.mark.parametrize("widest", [1.0, 1000.0])
def test_a_wide_cloud_of_few_directions_reads_as_in_float64(
    dtype: torch.dtype, shift: float, widest: float
) -> None:
    """Twelve directions of 640, one coordinate `widest` times as wide as the others.

    628 directions hold rounding alone, in 16 bits a millionth of the spread: there float32 sums end.
    """
    random = torch.Generator().manual_seed(1)
    points = torch.randn(5000, 12, generator=random) @ torch.randn(12, 640, generator=random) / 12**0.5
    points[:, 3] *= widest
    points = (points + shift).to(dtype)
    sequence = torch.arange(5000) // 50
    here = describe(points.double(), sequence=sequence, measures=list(ROOM)).frame()
    there = describe(points.cuda(), sequence=sequence, measures=list(ROOM)).frame()
    check(there, here)


@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype")
@pytest.mark.parametrize(("parts", "share"), [(1, 1.0), (2, 1.0), (2, 0.3)])
def test_no_batch_waits_for_the_gpu(parts: int, share: float) -> None:
    """From the second on, when it is known how attention is laid out: torch raises where it would wait."""
    model = build(Shape(vocabulary=50, width=64), seed=0).cuda()
    batches = [as_batch(torch.randint(50, (16, 100), device="cuda"), seed=0) for _ in range(3)]
    found = look(Model(model, "small"), batches[0])
    layers: tuple[type[Stat], ...] = (Directions, Centre, Dimensions, Within, Moments, Reservoir)
    folder = Folder((*found.shapes, *found.attention), Plan(layers, parts), (Rows,), found, share)
    folder.fold(model, batches[0])
    torch.cuda.set_sync_debug_mode("error")
    try:
        with pytest.raises(RuntimeError, match="synchroniz"):
            float(torch.ones(1, device="cuda"))
        for batch in batches[1:]:
            folder.fold(model, batch)
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_a_cloud_in_float64_reads_the_same_to_the_last_digits() -> None:
    points, sequence = torch.randn(5000, 130, dtype=torch.float64) + 0.2, torch.arange(5000) // 50
    here = describe(points, sequence=sequence).frame()
    there = describe(points.cuda(), sequence=sequence).frame()
    assert (there.value - here.value).abs().max() < 1e-9 * here.value.abs().max()


def test_not_finite_vectors_are_left_out_alike() -> None:
    points, sequence = torch.randn(3000, 64), torch.arange(3000) // 30
    points[::100, 5], points[1::250, 0], points[7] = torch.nan, torch.inf, 0
    here = describe(points.double(), sequence=sequence).frame()
    there = describe(points.cuda(), sequence=sequence).frame()
    check(there, here)
    for name in ("not_finite", "zero_vectors"):
        assert there[there.measure == name].value.tolist() == here[here.measure == name].value.tolist()
    assert there.n.tolist() == here.n.tolist()


@pytest.mark.parametrize("length", [100, 37])
def test_a_model_reads_as_in_float64(length: int) -> None:
    model = build(Shape(vocabulary=50, width=64), seed=0)
    batches = [torch.randint(50, (16, length)) for _ in range(3)]
    here = observe(model.double(), batches).frame()
    there = observe(model.float().cuda(), batches).frame()
    check(there, here)
    attention = here.kind == "attention"
    both = there[attention].merge(here[attention], on=["layer", "measure"], suffixes=("", "_here"))
    apart = (both.value - both.value_here).abs() / (1e-3 + both.value_here.abs())
    assert apart.max() < 1e-2, both.loc[apart.idxmax()].to_dict()
    rows = observe(model.bfloat16(), batches).frame()
    undefined = set(rows[rows.value.isna()].measure)
    assert all(name.endswith(("_rare", "_middle")) for name in undefined), "tokens are too few to be rare"
