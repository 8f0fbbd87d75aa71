"""A contrast as it is made: its trials, its units, what may differ in one folder, and runs that go wrong."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from isoscope.errors import IsoscopeError
from isoscope.lab.contrast import contrast as lab
from isoscope.lab.contrast.contrast import Contrast, contrast, make, open_contrast, parse_entropies
from isoscope.lab.contrast.fit import fit
from isoscope.lab.train.experiment import Experiment
from isoscope.lab.train.training import Diverged, Recipe, Training
from isoscope.lab.variants.maps import sigmoid

TINY = Experiment(layers=1, width=8, heads=2, length=8, recipe=Recipe(steps=2, batch_size=2))


def small(*attention: str, seeds: int = 1, base: Experiment = TINY) -> Contrast:
    return contrast(base, attention or ("softmax", "sigmoid"), ["pre"], ["none"], (0.4, 0.6), seeds)


def finished(asked: Contrast, out: Path, share: tuple[int, int] = (0, 1), parallel: int = 1) -> pd.DataFrame:
    folder = open_contrast(asked, out)
    *_, (done, total) = make(asked, folder, device="cpu", share=share, parallel=parallel)
    assert done == total
    return folder.frame()


def test_arms_are_what_is_said() -> None:
    asked = contrast(
        TINY, ["softmax", "qk-norm"], ["pre", "post"], ["none", "locater=.1,target=1"], (0.4, 0.6), 3
    )
    assert list(asked.arms) == [
        "softmax, pre", "softmax, pre, locater=.1,target=1",
        "softmax, post", "softmax, post, locater=.1,target=1",
        "qk-norm, pre", "qk-norm, pre, locater=.1,target=1",
        "qk-norm, post", "qk-norm, post, locater=.1,target=1",
    ]  # fmt: skip
    assert asked.reference == "softmax, pre"
    trials = asked.trials()
    assert len(trials) == 8 * 2 * 3
    assert len({trial.unit for trial in trials}) == len(trials)
    assert {trial.experiment.recipe.steps for trial in trials} == {2}
    assert trials[0].unit == "softmax, pre, entropy 0.4, seed 0"
    assert trials[2].experiment.penalty == "locater=.1,target=1+entropy=10,target=0.4"
    assert [trial.experiment.recipe.seed for trial in trials[:17]] == [0] * 16 + [1]


def test_a_control_without_attention_is_driven_nowhere() -> None:
    trials = small("softmax", "convolution", seeds=2).trials()
    assert [trial.unit for trial in trials if trial.arm == "convolution"] == [
        "convolution, seed 0", "convolution, seed 1",
    ]  # fmt: skip
    assert all(not trial.experiment.penalty for trial in trials if trial.arm == "convolution")


def test_a_contrast_that_says_nothing_is_refused() -> None:
    with pytest.raises(IsoscopeError, match="two arms or more"):
        small("softmax", "softmax")
    with pytest.raises(IsoscopeError, match="two entropies or more"):
        contrast(TINY, ["softmax", "sigmoid"], ["pre"], [""], (0.4, 0.4), 1)
    with pytest.raises(IsoscopeError, match="did you mean 'sigmoid'"):
        small("softmax", "sigmoidal")


def test_what_is_written_is_read() -> None:
    assert parse_entropies("2") == (0.35, 0.75)
    assert parse_entropies("5") == (0.35, 0.45, 0.55, 0.65, 0.75)
    assert parse_entropies(" .2, .9,.5 ") == (0.2, 0.9, 0.5)
    for wrong in ("", "1", "0", "-2", ".5", "1.5,.5", "0,.5", "many", ".4;.6", "nan,.5"):
        with pytest.raises(IsoscopeError, match="--entropies is how many, 2 or more, or a list"):
            parse_entropies(wrong)


def test_rows_are_those_of_an_arm_at_the_end(tmp_path: Path) -> None:
    rows = finished(small("softmax", "differential", "convolution"), tmp_path)
    assert set(rows.model) == {"softmax", "differential", "convolution"}
    assert set(rows[rows.model == "softmax"].revision) == {"entropy 0.4, seed 0", "entropy 0.6, seed 0"}
    assert set(rows[rows.model == "convolution"].revision) == {"seed 0"}
    assert set(rows.step) == {2}
    assert rows["head"].isna().all()
    assert set(rows[rows.model == "differential"].kind) >= {
        "mixed_attention",
        "attention",
        "layer",
        "training",
    }
    assert not rows[rows.model == "convolution"].kind.isin(["attention", "mixed_attention"]).any()
    points = fit(rows, "softmax").points
    assert points[points.arm != "convolution"].entropy.between(0, 1).all()
    assert points[points.arm == "convolution"].entropy.isna().all()
    assert not rows.duplicated(["model", "revision", "kind", "layer", "measure"]).any()


def test_it_goes_on_trial_by_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = small(seeds=2)
    whole = finished(asked, tmp_path / "whole")
    made: list[str] = []
    real = lab.try_

    def broken(trial: lab.Trial, run: str, device: str) -> lab.Answer:
        if len(made) == 3:
            raise KeyboardInterrupt
        made.append(trial.unit)
        return real(trial, run, device)

    monkeypatch.setattr(lab, "try_", broken)
    with pytest.raises(KeyboardInterrupt):
        finished(asked, tmp_path / "run")
    first, made[:] = made.copy(), []
    monkeypatch.setattr(
        lab, "try_", lambda trial, run, device: (made.append(trial.unit), real(trial, run, device))[1]
    )
    rows = finished(asked, tmp_path / "run")
    assert sorted(first + made) == sorted(trial.unit for trial in asked.trials())
    pd.testing.assert_frame_equal(rows, whole)
    made.clear()
    finished(asked, tmp_path / "run")
    assert not made


def test_shares_make_the_whole(tmp_path: Path) -> None:
    asked = small()
    for share in range(3):
        rows = finished(asked, tmp_path / "shares", (share, 3))
    pd.testing.assert_frame_equal(rows, finished(asked, tmp_path / "whole"))


@pytest.mark.nightly
def test_processes_make_the_same(tmp_path: Path) -> None:
    asked = small()
    rows = finished(asked, tmp_path / "two", parallel=2)
    pd.testing.assert_frame_equal(rows, finished(asked, tmp_path / "one"))


def test_a_folder_grows_by_arms_and_seeds_and_refuses_another_recipe(tmp_path: Path) -> None:
    finished(small(), tmp_path)
    rows = finished(small("softmax", "qk-norm"), tmp_path)
    assert set(rows.model) == {"softmax", "sigmoid", "qk-norm"}
    longer = replace(TINY, recipe=replace(TINY.recipe, steps=3, rate=1e-4))
    with pytest.raises(IsoscopeError, match=r"other settings \(rate, steps\)"):
        open_contrast(small(base=longer), tmp_path)
    with pytest.raises(IsoscopeError, match=r"other settings \(reference\)"):
        open_contrast(small("sigmoid", "softmax"), tmp_path)


def test_one_that_goes_wrong_is_told_and_spoils_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = small(seeds=3)
    real = Training.check

    def check(training: Training) -> None:
        attend = training.model.blocks[0].attention.attend
        if training.recipe.seed == 1 and getattr(attend, "weights_of", None) is sigmoid:
            raise Diverged("the loss is nan at step 1, and it began in the head.")
        real(training)

    monkeypatch.setattr(Training, "check", check)
    rows = finished(asked, tmp_path)
    lost = rows[(rows.model == "sigmoid") & rows.revision.str.endswith("seed 1")]
    assert len(lost) == 2
    assert lost.value.isna().all()
    facts = open_contrast(asked, tmp_path).facts()["sigmoid, entropy 0.4, seed 1"]
    assert facts["notes"] == [
        "sigmoid, entropy 0.4, seed 1: the loss is nan at step 1, and it began in the head."
    ]
    found = fit(rows, "softmax").differences
    loss = found[(found.measure == "loss") & (found.layer == 0)].iloc[0]
    assert loss.n in (0, 2)  # untrained for two steps, entropies may not overlap
    assert math.isnan(loss.low)


def test_entropies_are_reached(tmp_path: Path) -> None:
    """A tiny model, in seconds: the lines have something to be fitted on."""
    base = Experiment(
        layers=1, width=16, heads=2, length=16, recipe=Recipe(steps=80, batch_size=8, rate=1e-2)
    )
    rows = finished(contrast(base, ["softmax", "qk-norm"], ["pre"], ["none"], (0.4, 0.7), 1), tmp_path)
    points = fit(rows, "softmax").points
    loss = points[points.measure == "loss"]
    np.testing.assert_allclose(loss.entropy, loss.aim, atol=0.06)
    found = fit(rows, "softmax").differences
    assert found[found.measure == "relative_drift"].value.notna().all()
