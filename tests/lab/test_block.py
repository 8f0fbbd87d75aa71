"""The untrained block against analytic values, and its parts against the naive way."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest
import torch
from torch.nn import functional as F  # noqa: N812

from isoscope.errors import IsoscopeError
from isoscope.lab.block.block import OF_VECTORS, Setting, Unit, fresh, make, read_unit, run_of, unit_of, units
from isoscope.lab.block.parts import look_inside, read_scores
from isoscope.lab.block.seeds import curve, fixed_points, kept_norm, over_seeds
from isoscope.results.row import frame
from isoscope.results.store import open_run

SMALL = Setting(width=96, heads=3, length=40, sequences=10, passes=5)


def read(setting: Setting, norm: str, bias: float, seed: int = 0) -> pd.Series:
    """Values of one unit by kind, layer and measure."""
    table = frame(read_unit(setting, Unit(norm, bias, seed))[0])
    return table.set_index(["kind", "layer", "measure"])["value"].sort_index()


@pytest.mark.parametrize(("inputs", "variance"), [("normalised", 1 / (1 + 1e-5 / 0.02**2)), ("raw", 0.02**2)])
@pytest.mark.parametrize("relative", [0.0, 0.5, 2.0, 8.0])
def test_what_enters_is_as_anisotropic_as_the_bias_makes_it(
    inputs: str, variance: float, relative: float
) -> None:
    """A = N²/(N² + d·σ²), σ² the variance of a coordinate, and the norm is √(N² + d·σ²).

    A LayerNorm of vectors as small as the table's has σ² = 1/(1 + ε/.02²) = .976, ε being 1e-5.
    """
    setting = Setting(width=192, heads=3, length=24, sequences=8, inputs=inputs, passes=0)
    spread = setting.width * variance
    bias = relative * math.sqrt(spread)
    found = read(setting, "post", bias)
    assert found["layer", 0, "mean_cosine"] == pytest.approx(bias**2 / (bias**2 + spread), abs=0.01)
    assert found["layer", 0, "mean_norm"] == pytest.approx(math.sqrt(bias**2 + spread), rel=0.01)


def test_the_drift_share_is_that_of_the_bias() -> None:
    """E[share] ≈ N²/(N² + d), over seeds; at no bias its null."""
    width, seeds = SMALL.width, 6
    for bias in (math.sqrt(width), 3 * math.sqrt(width)):
        found = [read(SMALL, "post", bias, seed)["attention", 1, "drift_share"] for seed in range(seeds)]
        assert sum(found) / seeds == pytest.approx(bias**2 / (bias**2 + width), abs=0.06)
    assert read(SMALL, "post", 0.0)["attention", 1, "drift_share"] < 0.02


def test_post_norms_give_the_root_of_the_width_and_pre_reverses() -> None:
    """A bias sharpens attention only where it enters after the norm: LN(x + b) → LN(b)."""
    low, high = 0.0, 400.0
    post, pre = ([read(SMALL, norm, bias) for bias in (low, high)] for norm in ("post", "pre"))
    for found in post:
        assert found["layer", 1, "mean_norm"] == pytest.approx(math.sqrt(SMALL.width), rel=1e-3)
    entropy = "attention", 1, "normalised_entropy"
    assert post[1][entropy] < post[0][entropy] - 0.01
    assert 1 - pre[0][entropy] == pytest.approx(1 - post[0][entropy], rel=0.1)  # without a bias both see x
    assert 1 - pre[1][entropy] < 0.1 * (1 - pre[0][entropy])
    assert pre[1]["attention_input", 1, "mean_cosine"] > 0.99


@pytest.mark.parametrize("norm", ["post", "pre", "none", "sandwich"])
def test_stages_are_those_of_the_block(norm: str) -> None:
    """Residuals are sums of what went before, norms are norms, and the last is what leaves."""
    block, x = fresh(SMALL, Unit(norm, 7.0, 1))
    stages = look_inside(block, x).stages
    with torch.no_grad():
        attended = block.inner_attention(block.attention(block.norm_attention(x), None))
        torch.testing.assert_close(stages["attention_residual"], x + attended)
        middle = block.after_attention(x + attended)
        if norm == "post":
            torch.testing.assert_close(stages["attention_normed"], F.layer_norm(x + attended, x.shape[-1:]))
            torch.testing.assert_close(block(x), F.layer_norm(stages["mlp_residual"], x.shape[-1:]))
        else:
            assert "attention_normed" not in stages
            assert "mlp_residual" not in stages
        torch.testing.assert_close(stages["mlp_output"], block.mlp(block.norm_mlp(middle)))
    assert ("attention_input" in stages) == (norm in ("pre", "sandwich"))
    assert ("mlp_scaled" in stages) == (norm == "sandwich")
    assert not any(part._forward_hooks for part in block.modules())


def test_rows_of_stages_are_read_from_the_stages() -> None:
    block, x = fresh(SMALL, Unit("post", 7.0, 1))
    found = read(SMALL, "post", 7.0, 1)
    for kind, stage in look_inside(block, x).stages.items():
        unit = F.normalize(stage.double().flatten(0, 1), dim=1)
        n = len(unit)
        cosine = ((unit @ unit.T).sum() - n) / (n * (n - 1))
        assert found[kind, 1, "mean_cosine"] == pytest.approx(float(cosine), rel=1e-5, abs=1e-6)
        assert set(found[kind, 1].index) == set(OF_VECTORS)


@pytest.mark.parametrize("shift", [0.0, 30.0])
def test_scores_against_the_naive_way(shift: float) -> None:
    """In float64 from all scores at once, whatever constant stands in each row."""
    query, key = torch.randn(3, 2, 7, 5), torch.randn(3, 2, 7, 5)
    key[..., 0] += shift  # the same for all keys of a row, and different between rows
    found = read_scores(query, key)
    scores = query.double() @ key.double().transpose(-1, -2) / math.sqrt(5)
    by_head = scores.transpose(0, 1).flatten(1)
    assert found.mean == pytest.approx(float(scores.mean()), rel=1e-5, abs=1e-6)
    assert found.pooled_std == pytest.approx(float(by_head.std(1, unbiased=False).mean()), rel=1e-5)
    assert found.smallest_weight == pytest.approx(float(scores.softmax(-1).amin(-1).mean()), rel=1e-4)
    within = (scores - scores.mean(-1, keepdim=True)).square().mean(-1).mean().sqrt()
    assert (found.pooled_std > 3 * within) == (shift > 0)  # the test can tell pooled from within rows
    for series, values in (("score", scores[0]), ("within row", scores[0] - scores[0].mean(-1, True))):
        middle, density = found.histograms[series]
        width = middle[1] - middle[0]
        assert sum(density) * width == pytest.approx(1)
        mean = sum(x * y for x, y in zip(middle, density, strict=True)) * width
        assert mean == pytest.approx(float(values.mean()), abs=width)
        assert middle[0] - width / 2 == pytest.approx(float(values.min()), rel=1e-5)


def test_scores_that_are_all_the_same() -> None:
    found = read_scores(torch.zeros(2, 1, 4, 3), torch.randn(2, 1, 4, 3))
    assert (found.mean, found.pooled_std) == (0.0, 0.0)
    assert found.smallest_weight == pytest.approx(0.25)


def test_a_seed_fixes_weights_inputs_and_direction() -> None:
    """Norms and biases differ in nothing else, and the bias has its norm."""
    (one, x), (other, y) = fresh(SMALL, Unit("post", 0.0, 4)), fresh(SMALL, Unit("pre", 9.0, 4))
    torch.testing.assert_close(one.attention.query.weight, other.attention.query.weight)
    added = (y - x).reshape(-1, SMALL.width)
    torch.testing.assert_close(added, added[:1].expand_as(added), atol=1e-5, rtol=0)
    assert float(added[0].norm()) == pytest.approx(9.0, rel=1e-5)
    assert not torch.equal(x, fresh(SMALL, Unit("post", 0.0, 5))[1])


def test_passes_are_passes() -> None:
    """By hand: the block on its own output, norms of two sequences."""
    block, x = fresh(SMALL, Unit("none", 3.0, 2))
    found, at = read(SMALL, "none", 3.0, 2), x[:2]
    for number in range(SMALL.passes + 1):
        expected = float(at.norm(dim=-1).mean())
        assert found["iterated", number, "mean_norm"] == pytest.approx(expected, rel=1e-4)
        with torch.no_grad():
            at = block(at)


def test_norms_that_stay(tmp_path: Path) -> None:
    """Post: √d, reached in one pass from raw inputs of any bias. Pre: none, norms grow."""
    setting = Setting(width=48, heads=3, length=12, sequences=8, inputs="raw", passes=3)
    folder = open_run(tmp_path / "run", run_of(setting))
    asked = units(["post", "pre"], (0.0, 3.0, 20.0), 3)
    done = list(make(setting, asked, folder))
    assert done[0] == (0, 18)
    assert done[-1] == (18, 18)
    assert list(make(setting, asked, folder)) == [(18, 18)]  # nothing again
    lines = over_seeds(folder.frame())
    points = fixed_points(folder.frame()).set_index("norm")
    assert points.kept["post"].iloc[0] == pytest.approx(math.sqrt(48), rel=1e-3)
    assert points.settles["post"].all()
    assert points["last"]["post"].to_numpy() == pytest.approx(math.sqrt(48), rel=1e-3)
    assert (points.keeping["post"] == 3).all()
    assert (points.keeping["pre"] < 3).all()
    assert not points.settles["pre"].any()
    assert points.growth["pre"].mean() > 1
    entering = curve(lines, "post", "layer", 0, "mean_norm")
    assert entering.bias.tolist() == [0, 3, 20]
    assert (entering.n == 3).all()
    assert all(one < other for one, other in pairwise(entering.value))


def test_intervals_over_seeds_are_those_of_t() -> None:
    values = [1.0, 2.0, 4.0]
    table = frame(
        row
        for seed in range(3)
        for row in read_unit(Setting(12, 2, 3, 8, passes=0), Unit("post", 1.0, seed))[0]
    )
    table = table[(table.measure == "mean_norm") & (table.kind == "layer") & (table.layer == 0)]
    line = over_seeds(table.assign(value=values)).iloc[0]
    half = 4.302653 * math.sqrt(7 / 3) / math.sqrt(3)  # t at .975 with 2 degrees; the variance is 7/3
    assert (line["value"], line["n"]) == (pytest.approx(7 / 3), 3)
    assert line["high"] - line["value"] == pytest.approx(half, rel=1e-5)
    assert math.isnan(over_seeds(table.assign(value=values)[:2]).iloc[0]["low"])


@pytest.mark.parametrize(
    ("entering", "leaving", "kept"),
    [
        ([1, 2, 4], [3, 3, 3], 3.0),
        ([2, 4], [2, 9], 2.0),
        ([20, 40], [20.001, 40.001], math.nan),
        ([4, 8], [3, 3], math.nan),
        ([1, 2], [1.2, 2.5], math.nan),
        ([], [], math.nan),
    ],
)
def test_the_norm_that_one_pass_keeps(entering: list[float], leaving: list[float], kept: float) -> None:
    assert kept_norm(entering, leaving) == pytest.approx(kept, nan_ok=True)


def test_what_cannot_be() -> None:
    with pytest.raises(IsoscopeError, match="no kind of inputs is called 'rough'"):
        Setting(inputs="rough")
    with pytest.raises(IsoscopeError, match="two sequences or more"):
        Setting(sequences=1)
    with pytest.raises(IsoscopeError, match="7 heads do not divide a width of 768"):
        Setting(heads=7)
    with pytest.raises(IsoscopeError, match="rows of a block are of"):
        unit_of("bert", "main")
