"""The fit of a contrast, on rows that were made: a planted difference is found, as often as is said."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import pandas as pd
import pytest

from isoscope.lab.contrast.fit import Fitted, common, fit, lines_of, points_of
from isoscope.results.reading import Reading
from isoscope.results.row import Row, frame

AIMS = (0.35, 0.55, 0.75)
LAYERS = (1, 2, 3)
Value = Callable[[str, int, int, float], float]


def row(arm: str, aim: float | None, seed: int, kind: str, layer: int | None, name: str, value: float) -> Row:
    aimed = "" if aim is None else f"entropy {aim:g}, "
    return Row.at("run", arm, f"{aimed}seed {seed}", 100, kind, layer, None, name, Reading(value, 64))


def trial(arm: str, aim: float, seed: int, entropy: Callable[[int], float], value: Value) -> Iterator[Row]:
    for layer in LAYERS:
        at = entropy(layer)
        yield row(arm, aim, seed, "attention", layer, "normalised_entropy", at)
        yield row(arm, aim, seed, "layer", layer, "relative_drift", value(arm, seed, layer, at))
        yield row(arm, aim, seed, "attention", layer, "drift_share", value(arm, seed, layer, at) / 2)
    yield row(arm, aim, seed, "layer", 0, "relative_drift", 99.0)  # what enters the first block
    yield row(arm, aim, seed, "output", None, "relative_drift", 77.0)
    mean = sum(map(entropy, LAYERS)) / len(LAYERS)
    yield row(arm, aim, seed, "training", None, "loss", value(arm, seed, 0, mean))


def made(
    value: Value,
    *,
    seeds: int = 5,
    arms: tuple[str, ...] = ("softmax", "qk-norm"),
    shift: dict[str, float] | None = None,
    random: np.random.Generator | None = None,
) -> pd.DataFrame:
    """Trials of some arms; `shift` moves the entropies that an arm reaches."""
    random = random or np.random.default_rng(0)
    rows: list[Row] = []
    for arm in arms:
        for seed in range(seeds):
            for aim in AIMS:
                reached = aim + random.normal(0, 0.01, 4) + (shift or {}).get(arm, 0.0)
                rows += trial(arm, aim, seed, lambda layer, reached=reached: float(reached[layer]), value)
    return frame(rows)


def one(fitted: Fitted, measure: str, layer: int = 0, arm: str = "qk-norm") -> pd.Series:
    found = fitted.differences
    (line,) = found[(found.measure == measure) & (found.layer == layer) & (found.arm == arm)].iloc
    return line


def planted(arm: str, seed: int, layer: int, at: float) -> float:
    """Straight lines: the arm lies .2 higher, and .1·layer more; its slope is the steeper by 1."""
    own = 0.2 + 0.1 * layer + (at - 0.55) if arm == "qk-norm" else 0.0
    return 1.0 + 0.3 * seed - 2.0 * at + own


def test_straight_lines_are_found_exactly() -> None:
    fitted = fit(made(planted), "softmax")
    assert fitted.arms == ("softmax", "qk-norm")
    for layer in LAYERS:
        found = one(fitted, "relative_drift", layer)
        assert found["at"] == pytest.approx((found.range_low + found.range_high) / 2)
        assert found.value == pytest.approx(0.2 + 0.1 * layer + found["at"] - 0.55)
        assert found.low == pytest.approx(found.value)  # the seeds agree once they are paired
        assert found.n == 5
        assert one(fitted, "drift_share", layer).value == pytest.approx(found.value / 2)
    loss = one(fitted, "loss")
    assert loss.value == pytest.approx(0.2 + loss["at"] - 0.55)
    slopes = fitted.lines[fitted.lines.measure == "loss"].groupby("arm").slope.mean()
    assert slopes.to_dict() == pytest.approx({"softmax": -2.0, "qk-norm": -1.0})


def test_the_mean_over_layers_is_the_mean_over_layers() -> None:
    points = points_of(made(planted))
    mean = points[(points.measure == "relative_drift") & (points.layer == 0)]
    assert len(mean) == 2 * 5 * 3
    for _, line in mean.iterrows():
        same = points[(points.arm == line.arm) & (points.seed == line.seed) & (points.aim == line.aim)]
        layers = same[(same.measure == "relative_drift") & (same.layer > 0)]
        assert len(layers) == 3
        assert line.value == pytest.approx(layers.value.mean())
        assert line.entropy == pytest.approx(layers.entropy.mean())
        assert same[same.measure == "loss"].entropy.item() == pytest.approx(line.entropy)


def test_the_range_is_where_every_line_was_measured() -> None:
    rows = made(planted, arms=("softmax", "qk-norm", "sigmoid"), shift={"qk-norm": 0.1, "sigmoid": -0.2})
    fitted = fit(rows, "softmax", arms=("sigmoid",))
    assert fitted.arms == ("softmax", "sigmoid", "qk-norm")
    points = fitted.points[(fitted.points.measure == "relative_drift") & (fitted.points.layer == 2)]
    each = points.groupby(["arm", "seed"]).entropy
    found = one(fitted, "relative_drift", 2)
    assert found.range_low == each.min().max()
    assert found.range_high == each.max().min()
    assert 0.44 < found.range_low < found.range_high < 0.56
    assert found.note == ""


def test_no_range_in_common_is_no_number() -> None:
    rows = made(planted, arms=("softmax", "qk-norm", "sigmoid"), shift={"sigmoid": 0.45})
    fitted = fit(rows, "softmax")
    lost = one(fitted, "relative_drift", 1, "sigmoid")
    assert math.isnan(lost.value)
    assert math.isnan(lost["at"])
    assert (lost.n, lost.note) == (0, "no common range of entropies")
    other = one(fitted, "relative_drift", 1)  # of the pair there is one
    assert other.note == "in the range of this arm and the reference; all arms have none in common"
    assert other.value == pytest.approx(0.3 + other["at"] - 0.55)


@pytest.mark.parametrize("seeds", [1, 2])
def test_too_few_seeds_have_a_spread_and_no_interval(seeds: int) -> None:
    def uneven(arm: str, seed: int, layer: int, at: float) -> float:
        return planted(arm, seed, layer, at) + (0.1 * seed if arm == "qk-norm" else 0.0)

    found = one(fit(made(uneven, seeds=seeds), "softmax"), "relative_drift", 1)
    assert found.n == seeds
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert found.most - found.least == pytest.approx(0.1 * (seeds - 1))


def test_a_control_without_attention_lies_level() -> None:
    """It has no entropy and no share of drift; its other quantities are held against the reference's line."""
    rows = [
        each
        for seed in range(4)
        for each in (
            *(row("convolution", None, seed, "layer", layer, "relative_drift", 5.0) for layer in LAYERS),
            row("convolution", None, seed, "training", None, "loss", 3.0 + 0.3 * seed),
        )
    ]
    fitted = fit(pd.concat([made(planted, seeds=4), frame(rows)], ignore_index=True), "softmax")
    for measure in ("loss", "relative_drift"):
        found, other = (one(fitted, measure, 0, arm) for arm in ("convolution", "qk-norm"))
        assert found["at"] == other["at"]
        assert found.n == 4
        assert found.note == "without attention: the same at every entropy"
    loss = one(fitted, "loss", 0, "convolution")
    assert loss.value == pytest.approx(2.0 + 2.0 * loss["at"])
    lost = one(fitted, "drift_share", 0, "convolution")
    assert math.isnan(lost.value)
    assert lost.note == "measured at fewer than two entropies"
    assert one(fitted, "drift_share").n == 4


def test_a_quantity_that_is_nan_spoils_nothing_else() -> None:
    rows = made(planted)
    lost = (rows.model == "qk-norm") & (rows.measure == "drift_share")
    fitted = fit(rows.assign(value=rows.value.mask(lost)), "softmax")
    assert math.isnan(one(fitted, "drift_share", 1).value)
    assert one(fitted, "relative_drift", 1).n == 5
    went_wrong = (rows.revision == "entropy 0.55, seed 2") & (rows.model == "qk-norm")
    fitted = fit(rows[~went_wrong], "softmax")
    assert one(fitted, "relative_drift", 1).value == pytest.approx(
        0.3 + one(fitted, "relative_drift", 1)["at"] - 0.55
    )


def test_of_a_mixture_the_mixture_counts() -> None:
    rows = made(planted, seeds=3)
    sharp = rows[(rows.model == "qk-norm") & (rows.measure == "normalised_entropy")]
    mixed = sharp.assign(kind="mixed_attention", value=sharp.value - 0.05)
    share = rows[(rows.model == "qk-norm") & (rows.measure == "drift_share")]
    mixed_share = share.assign(kind="mixed_attention", value=math.nan)
    points = points_of(pd.concat([rows, mixed, mixed_share], ignore_index=True))
    before = points_of(rows)
    mine = points.arm == "qk-norm"
    np.testing.assert_allclose(points.entropy[mine], before.entropy[mine] - 0.05)
    np.testing.assert_allclose(points.value, before.value)  # of the maps where the mixture has none


@pytest.mark.nightly
def test_the_interval_covers_what_was_planted() -> None:
    """95 of 100 times, with seeds that differ, noise in every trial and entropies that miss their aim."""
    random = np.random.default_rng(7)
    draws = 400  # each is a layer of its own
    lifts = random.normal(0, 1.0, (4, draws))
    rows: list[Row] = []
    for arm, own in (("softmax", 0.0), ("qk-norm", 0.25)):
        for seed, aim in product(range(4), AIMS):
            reached = aim + random.normal(0, 0.02, draws)
            values = own + lifts[seed] - 0.8 * reached + random.normal(0, 0.05, draws)
            for layer, (at, value) in enumerate(zip(reached, values, strict=True), start=1):
                rows.append(row(arm, aim, seed, "attention", layer, "normalised_entropy", at))
                rows.append(row(arm, aim, seed, "layer", layer, "isoscore", value))
    found = fit(frame(rows), "softmax").differences.query("layer > 0")
    assert len(found) == draws
    hits = ((found.low <= 0.25) & (found.high >= 0.25)).mean()
    assert 0.92 < hits < 0.98
    assert (found.high - found.low).max() < 1.0  # the seeds' own lift, sd 1, is paired away


def test_two_entropies_or_no_line() -> None:
    points = points_of(made(planted))
    alone = points[(points.aim == 0.35) & (points.measure == "loss")]
    assert lines_of(alone).empty
    assert common(lines_of(alone)) is None
    two = points[(points.aim != 0.55) & (points.measure == "loss")]
    assert len(lines_of(two)) == 10
    low, high = common(lines_of(two)) or (0.0, 0.0)
    assert 0.34 < low < high < 0.77


def test_rows_of_something_else_are_nothing() -> None:
    fitted = fit(frame([]), "softmax")
    assert (len(fitted.points), len(fitted.lines), len(fitted.differences), fitted.arms) == (0, 0, 0, ())
