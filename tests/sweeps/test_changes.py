"""Change points: planted ones are found where they are, and series that only wander or bend have none."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from isoscope.results.run import Run
from isoscope.results.store import RunFolder
from isoscope.results.trajectory import Trajectory
from isoscope.sweeps.together import changes
from isoscope.sweeps.together.change_model import EDGE, Array, model
from isoscope.sweeps.together.changes import CHANCE, LEAST, change_rows, find_changes
from tests.show.made import row
from tests.tiers import nightly
from tests.typed import frame

STEPS = [10 * i for i in range(32)]
X = np.linspace(0, 1, len(STEPS))
SERIES = 120


def noise(seed: int, series: int = SERIES, steps: int = len(STEPS)) -> Array:
    return np.random.default_rng(seed).standard_normal((steps, series))


def marked(found: list[list[changes.Change]]) -> float:
    """The share of series with a jump or a turn."""
    return sum(any(change.kind != "stray" for change in one) for one in found) / len(found)


SMOOTH = {
    "straight": X[:, None] + 0.05 * noise(0),
    "relaxing": np.exp(-5 * X)[:, None] + 0.01 * noise(1),
    "relaxing, hardly any noise": np.exp(-5 * X)[:, None] + 1e-5 * noise(2),
    "bending": (X**2)[:, None] + 0.02 * noise(3),
    "a broad rise": (1 / (1 + np.exp(-8 * (X - 0.5))))[:, None] + 0.01 * noise(4),
    "a wave": np.sin(6 * X)[:, None] + 0.02 * noise(5),
    "a walk": noise(6).cumsum(0),
    "a walk and noise": noise(7).cumsum(0) + noise(8),
    "a smooth walk": noise(9).cumsum(0).cumsum(0),
}


ALWAYS = ("a walk and noise",)


@pytest.mark.parametrize("name", [*ALWAYS, *nightly(*(name for name in SMOOTH if name not in ALWAYS))])
def test_what_wanders_or_bends_has_no_change(name: str) -> None:
    """Of 120 series at most 4 are marked: at a rate of 1 %, 5 or more have a chance of .8 %."""
    assert marked(find_changes(STEPS, SMOOTH[name])) * SERIES <= 4


def test_against_white_noise_alone_walks_would_be_full_of_changes() -> None:
    """So the test above can fail: with the first mix only, which is white noise about a line, it does."""
    whole = model(tuple(float(step) for step in STEPS))
    white = replace(whole, mixes=whole.mixes[:1])
    gains, _, nulls = white.score(SMOOTH["a walk"])
    wrong = [white.chance(float(gain), nulls[:, at]) <= CHANCE for at, gain in enumerate(gains)]
    assert np.mean(wrong) > 0.5


FALLING = np.exp(-5 * X)[:, None]
DOUBLING = [0, *(2**i for i in range(31))]
SHRINKING = {
    "noise": (STEPS, FALLING * noise(21)),
    "a walk": (STEPS, (FALLING * noise(22)).cumsum(0)),
    "a relaxation": (STEPS, 1 - 0.5 * np.exp(-8 * X)[:, None] + 1e-3 * FALLING * noise(23)),
    "a walk in steps": (DOUBLING, (np.sqrt(np.diff(DOUBLING, prepend=0))[:, None] * noise(24)).cumsum(0)),
}


@pytest.mark.parametrize("name", ["a walk", *nightly("noise", "a relaxation", "a walk in steps")])
def test_noise_that_shrinks_or_grows_along_training_is_no_change(name: str) -> None:
    """In all four 5 % or less are marked; against even shocks alone, which come first, 10 to 40 % are."""
    steps, values = SHRINKING[name]
    assert marked(find_changes(steps, values)) * SERIES <= 9
    whole = model(tuple(changes.axis(np.array(steps)).tolist()))
    even = replace(whole, mixes=whole.mixes[:96])
    gains, _, nulls = even.score(values)
    assert np.mean([even.chance(float(g), nulls[:, at]) <= CHANCE for at, g in enumerate(gains)]) > 0.1


@pytest.mark.nightly
def test_a_clear_jump_in_even_noise_is_still_found_and_so_is_one_in_noise_that_shrinks() -> None:
    after = (np.arange(32) >= 16)[:, None]
    assert marked(find_changes(STEPS, noise(25) + 10 * after)) > 0.9
    assert marked(find_changes(STEPS, FALLING * noise(26) + 10 * FALLING[16] * after)) > 0.9


@pytest.mark.parametrize("below", ["a walk", *nightly("noise", "a relaxation")])
def test_jumps_are_found_and_their_interval_holds_them(below: str) -> None:
    random = np.random.default_rng(3)
    base = {"noise": noise(10), "a walk": noise(11) + 0.5 * noise(12).cumsum(0)}
    base["a relaxation"] = 40 * np.exp(-3 * X)[:, None] + noise(13)
    at = random.integers(EDGE + 1, len(STEPS) - EDGE, SERIES)
    values = base[below] + 12 * (np.arange(len(STEPS))[:, None] >= at)
    found = find_changes(STEPS, values)
    jumps = [[change for change in one if change.kind == "jump"] for one in found]
    told = [i for i, one in enumerate(jumps) if one]
    assert len(told) > 0.75 * SERIES
    held = sum(any(c.low <= STEPS[at[i] - 1] and STEPS[at[i]] <= c.high for c in jumps[i]) for i in told)
    assert held / len(told) >= 0.93
    sizes = [one[0].size for one in jumps if len(one) == 1]
    assert np.median(sizes) == pytest.approx(12, abs=1)


@pytest.mark.nightly
def test_turns_are_found_and_their_interval_holds_them() -> None:
    """A turn lies anywhere between checkpoints."""
    random = np.random.default_rng(4)
    at = random.uniform(X[EDGE + 2], X[-EDGE - 3], SERIES)
    values = 30 * np.maximum(X[:, None] - at, 0) + 0.03 * noise(14)
    found = find_changes(STEPS, values)
    turns = [[change for change in one if change.kind == "turn"] for one in found]
    told = [i for i, one in enumerate(turns) if one]
    assert len(told) > 0.7 * SERIES
    held = sum(any(c.low <= 310 * at[i] <= c.high for c in turns[i]) for i in told)
    assert held / len(told) >= 0.93
    assert all(math.isnan(change.size) for one in turns for change in one)


def test_two_changes_are_told_apart() -> None:
    values = noise(15, 40) + 25 * (np.arange(32) >= 10)[:, None] - 25 * (np.arange(32) >= 22)[:, None]
    found = find_changes(STEPS, values)
    both = [[(change.kind, change.step) for change in one] for one in found]
    assert sum(one == [("jump", 100), ("jump", 220)] for one in both) > 30
    assert all(len(one) <= changes.MOST_CHANGES for one in found)


def test_one_wrong_checkpoint_is_a_stray_and_no_change() -> None:
    values = 0.01 * noise(16, 40) + X[:, None]
    values[12] += 1.0
    found = find_changes(STEPS, values)
    assert all([(change.kind, change.step) for change in one] == [("stray", 120)] for one in found)


def test_a_restless_stretch_is_no_change() -> None:
    """A walk whose steps are ten times as large for a while: most jumps in it are of its own kind."""
    size = np.where((np.arange(32) > 10) & (np.arange(32) < 22), 10.0, 1.0)[:, None]
    values = (size * noise(17)).cumsum(0)
    whole = model(tuple(float(step) for step in STEPS))
    gains, _, nulls = whole.score(values)
    even = np.mean([whole.chance(float(g), nulls[:, at]) <= CHANCE for at, g in enumerate(gains)])
    assert marked(find_changes(STEPS, values)) < 0.15 < even  # against shocks of one size it has


def test_early_checkpoints_make_a_logarithmic_axis() -> None:
    early = np.array([0, *(2**i for i in range(12))])
    assert np.ptp(np.diff(changes.axis(early)[2:])) < 0.3
    assert changes.axis(np.array(STEPS)).tolist() == STEPS


def test_values_that_are_not_there_are_left_out() -> None:
    values = noise(18, 3) + 30 * (np.arange(32) >= 20)[:, None]
    values[[3, 9], 0] = math.nan
    values[5:, 1] = math.nan
    values[:, 2] = 7.0
    one, few, flat = find_changes(STEPS, values)
    assert [(change.kind, change.high) for change in one] == [("jump", 200)]
    assert few == [] and flat == []


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_scale_and_trend_do_not_matter(scale: float) -> None:
    plain = noise(19, 8) + 15 * (np.arange(32) >= 13)[:, None]
    moved = scale * (plain + 100 * X[:, None] + 1e3)
    told = [[(c.kind, c.low, c.high) for c in one] for one in find_changes(STEPS, plain)]
    assert told == [[(c.kind, c.low, c.high) for c in one] for one in find_changes(STEPS, moved)]


@pytest.mark.nightly
def test_many_steps_are_thinned() -> None:
    steps = list(range(1000))
    found = find_changes(steps, noise(20, 2, 1000) + 40 * (np.arange(1000) >= 500)[:, None])
    for one in found:
        assert [change.kind for change in one] == ["jump"]
        assert one[0].low < 500 <= one[0].high and one[0].high - one[0].low <= 40


def a_trajectory(steps: list[int]) -> Trajectory:
    folder = RunFolder(None, Run("sweep", "small", {}, {}))  # type: ignore[arg-type]
    return Trajectory(folder, tuple(map(str, steps)), tuple(steps), {}, {})


def test_rows_tell_the_place_and_few_checkpoints_the_reason() -> None:
    random = np.random.default_rng(6)
    made = [
        row(m, 10.0 * (layer == 1 and step >= 160) + random.standard_normal(), step=step, layer=layer)
        for step in STEPS
        for layer in (0, 1)
        for m in ("drift", "mean_norm")
    ]
    found, looked = change_rows(a_trajectory(STEPS), frame(made))
    assert looked == 4
    jumps = {(r.layer, r.measure): (r.value, r.low, r.high, r.n) for r in found}
    assert jumps == {(1, "jump_in_drift"): (160, 150, 160, 32), (1, "jump_in_mean_norm"): (160, 150, 160, 32)}
    assert all(r.note.startswith("by +") and "p = " in r.note and r.step is None for r in found)
    few = STEPS[: LEAST - 1]
    (only,), looked = change_rows(a_trajectory(few), frame([r for r in made if r.step in few]))
    assert looked == 0 and math.isnan(only.value)
    assert only.note == f"change points need {LEAST} checkpoints; there are {LEAST - 1}"


def test_doubted_checkpoints_are_left_out() -> None:
    random = np.random.default_rng(7)
    made = [row("drift", random.standard_normal() + 30 * (step == 150), step=step) for step in STEPS]
    found, _ = change_rows(a_trajectory(STEPS), frame(made))
    assert [(r.measure, r.value) for r in found] == [("stray_in_drift", 150)]
    assert change_rows(a_trajectory(STEPS), frame(made), without=[150])[0] == []


def test_a_chance_that_is_not_worked_out_to_the_end_is_on_the_same_side() -> None:
    prepared = model(tuple(np.arange(12.0).tolist()))
    values = np.random.default_rng(3).standard_normal((12, 20)).cumsum(0)
    values[6:, :4] += 30.0
    gains, _, nulls = prepared.score(values)
    assert np.allclose(prepared.gains(values), gains, rtol=1e-9)
    early, whole = (
        np.array([replace(prepared).chance(gains[i], nulls[:, i], most=most) for i in range(20)])
        for most in (CHANCE, 1.0)
    )
    assert (
        ((early <= CHANCE) == (whole <= CHANCE)).all() and (early <= CHANCE).any() and (early < whole).any()
    )
    assert (early[early <= CHANCE] == whole[early <= CHANCE]).all()


def test_a_large_jump_is_found_where_it_is() -> None:
    noise = np.random.default_rng(0).standard_normal((32, 1))
    values = noise + 30.0 * (np.arange(32) >= 20)[:, None]
    (found,) = find_changes(list(range(0, 320, 10)), values)
    assert [(change.kind, change.low, change.high) for change in found] == [("jump", 190, 200)]
