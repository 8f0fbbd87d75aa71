"""A contrast of arms as they come: what is read of a trial, how its folder grows, what is said of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from isoscope.errors import IsoscopeError
from isoscope.lab.contrast import trial as contrast_trial
from isoscope.lab.contrast.contrast import Contrast, contrast, make, open_contrast, run_of
from isoscope.lab.contrast.fit import AS_THEY_CAME, Fitted, fit
from isoscope.lab.contrast.trial import propagation_rows, told_besides, weigh_trial
from isoscope.lab.train.experiment import Experiment
from isoscope.lab.train.training import Recipe
from isoscope.models.source import Model
from isoscope.results.points import Points, points_frame
from isoscope.results.reading import Reading
from isoscope.results.row import Row
from isoscope.results.store import RunFolder
from tests.conftest import Answer
from tests.typed import frame

TINY = Experiment(layers=2, width=8, heads=2, length=8, recipe=Recipe(steps=2, batch_size=2))
PENALTIES = ("none", "cosreg=-1", "locater=.1,target=1,keep=.5")


def free(
    *penalty: str, base: Experiment = TINY, attention: str = "softmax", norm: str = "post", seeds: int = 1,
    probe: str = "",
) -> Contrast:  # fmt: skip
    return contrast(base, attention.split(","), [norm], penalty or PENALTIES, (), seeds, probe=probe)


def finished(asked: Contrast, out: Path) -> tuple[RunFolder, pd.DataFrame]:
    folder = open_contrast(asked, out)
    *_, (done, total) = make(asked, folder, device="cpu")
    assert done == total
    return folder, folder.frame()


def test_arms_are_named_by_what_tells_them_apart_and_trained_once_a_seed() -> None:
    asked = free(seeds=2)
    assert list(asked.arms) == list(PENALTIES)
    trials = asked.trials()
    assert [trial.unit for trial in trials] == [f"{arm}, seed {i}" for i in range(2) for arm in PENALTIES]
    assert [trial.experiment.penalty for trial in trials[:3]] == ["", *PENALTIES[1:]]
    assert {trial.experiment.norm for trial in trials} == {"post"}
    several = free("none", attention="softmax,qk-norm")
    assert list(several.arms) == ["softmax", "qk-norm"]


def test_a_folder_knows_what_names_do_not_tell(tmp_path: Path) -> None:
    asked = free()
    assert {"attention": "softmax", "norm": "post", "driven": False}.items() <= run_of(asked).question.items()
    folder = open_contrast(asked, tmp_path)
    assert open_contrast(free("none", "istar=1"), tmp_path).run.id == folder.run.id  # arms may be added
    with pytest.raises(IsoscopeError, match=r"other settings \(norm\)"):
        open_contrast(free(norm="pre"), tmp_path)
    with pytest.raises(IsoscopeError, match=r"other settings \(.*probe.*\)"):
        open_contrast(free(probe="order"), tmp_path)
    driven = contrast(TINY, ["softmax", "sigmoid"], ["pre"], ["none"], (0.4, 0.6), 1)
    assert not {"attention", "norm", "driven", "probe"} & set(run_of(driven).question)


def test_rows_have_loss_spectra_and_probes_of_every_layer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isoscope.lab.train.probes.DRAWN", 96)
    contrast_trial._questions.cache_clear()
    folder, rows = finished(free(probe="order"), tmp_path)
    own = rows[rows.kind == "training"].pivot(index="model", columns="measure", values="value")
    np.testing.assert_allclose(own.perplexity, np.exp(own.loss))
    spectra = rows[(rows.kind == "query_key") & rows["head"].isna()]
    for measure in ("trace", "spectrum_variance", "frobenius", "propagation_mean", "propagation_agreement"):
        assert sorted(spectra[(spectra.measure == measure) & (spectra.model == "none")].layer) == [1, 2]
    assert sorted(rows[(rows.measure == "trace") & (rows.model == "none")]["head"].dropna()) == [0, 0, 1, 1]
    probed = rows[rows.measure == "probe_accuracy"]
    assert sorted(probed[probed.model == "none"].layer) == [0, 1, 2]
    assert (probed.low <= probed.value).all()
    assert (probed["null"] >= 0.5).all()
    assert not rows.duplicated(["model", "revision", "kind", "layer", "head", "measure"]).any()
    assert set(folder.points("none, seed 0").picture) == {"spectrum", "plane", "propagation"}
    found = fit(rows, "none")
    assert found.arms[0] == "none"
    assert set(found.points.measure) <= set(AS_THEY_CAME)
    assert {"probe_accuracy", "normalised_entropy", "trace", "perplexity"} <= set(found.points.measure)
    told = {*folder.run.measures}
    assert set(rows.measure) <= told


def test_spectra_are_those_of_the_weights() -> None:
    """By the formula, from the weights as they lie in the model; the norm in front is the block's before."""
    experiment = Experiment(layers=1, width=8, heads=2, length=8, norm="none")
    lesson = experiment.lesson()
    model = experiment.build(lesson)
    rows, _, _ = weigh_trial(Model(model, "arm", "seed 0"), lesson)
    attention = model.blocks[0].attention
    query, key = (part.weight.detach().double().view(2, 4, 8) for part in (attention.query, attention.key))
    for head in range(2):
        eigenvalues = torch.linalg.eigvals(query[head].mT @ key[head] / 2)
        read = {row.measure: row.value for row in rows if row.head == head}
        assert read["trace"] == pytest.approx(float(eigenvalues.real.sum()))
        spread = (eigenvalues - eigenvalues.mean()).abs().square().mean()
        assert read["spectrum_variance"] == pytest.approx(float(spread))


def test_rho_in_two_numbers() -> None:
    curves = {(1, 0): [0.2, 0.4, 0.9], (1, 1): [0.5, 0.5, 0.5], (2, 0): [1.0, 0.0, 0.5]}
    drawn = [
        Points("propagation", "query_key", layer, head, series, [0.1, 0.5, 0.9], y)
        for (layer, head), y in curves.items()
        for series in ("predicted", "measured")
    ]
    other = Points("propagation", "query_key", 1, 0, "random", [0.5], [7.0])
    found = {
        (layer, name): (one.value, one.n)
        for layer, name, one in propagation_rows(points_frame([*drawn, other]))
    }
    assert found == {
        (1, "propagation_mean"): (pytest.approx(0.5), 2),
        (1, "propagation_range"): (pytest.approx(0.35), 2),
        (2, "propagation_mean"): (pytest.approx(0.5), 1),
        (2, "propagation_range"): (pytest.approx(1.0), 1),
    }


@pytest.mark.parametrize(("task", "name"), [("images", "accuracy"), ("masked", "perplexity"), ("frames", "")])
def test_every_task_is_told_in_its_own_terms(task: str, name: str) -> None:
    experiment = Experiment(task=task, layers=1, width=8, heads=2, length=8, recipe=Recipe(steps=1))
    (trial, *_) = free(base=experiment).trials()
    rows, _, _ = contrast_trial.try_(trial, "run", "cpu")
    told = {row.measure: row.value for row in rows if row.kind == "training"}
    assert set(told) == {"loss", name} - {""}
    if name == "accuracy":
        lesson = experiment.lesson()
        model = trial.experiment.build(lesson)
        training = contrast_trial.Training(model, lesson, trial.experiment.recipe)
        for _ in training.steps():
            pass
        with torch.no_grad():
            given = model(lesson.held.inputs).argmax(1)
        assert told["accuracy"] == pytest.approx(float((given == lesson.held.targets).double().mean()))


def test_a_trial_in_sixteen_bits_is_read_in_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isoscope.lab.train.probes.DRAWN", 96)
    contrast_trial._questions.cache_clear()
    (exact, *_), (half, *_) = (
        free(base=Experiment(layers=1, width=8, heads=2, length=8, recipe=recipe), probe="order").trials()
        for recipe in (Recipe(steps=0), Recipe(steps=0, bfloat16=True))
    )
    rows, others = (
        {(row.kind, row.layer, row.head, row.measure): row.value for row in contrast_trial.try_(*each)[0]}
        for each in ((exact, "run", "cpu"), (half, "run", "cpu"))
    )
    contrast_trial._questions.cache_clear()
    assert set(rows) == set(others)
    for where in (("query_key", 1, 0, "trace"), ("query_key", 1, 1, "frobenius")):
        assert rows[where] == pytest.approx(others[where], rel=1e-12)  # weights have all their bits
    assert abs(rows["layer", 1, None, "probe_accuracy"] - others["layer", 1, None, "probe_accuracy"]) < 0.2


@pytest.mark.parametrize("attention", ["differential", "sigma", "qk-norm", "convolution", "sigmoid"])
def test_a_variant_whose_weights_say_less_is_still_an_arm(attention: str) -> None:
    asked = free("none", attention=f"softmax,{attention}")
    rows, facts, _ = contrast_trial.try_(asked.trials()[1], "run", "cpu")
    assert {row.measure for row in rows} >= {"loss", "relative_drift", "perplexity"}
    assert any(row.kind == "query_key" for row in rows) == (attention != "convolution")
    assert isinstance(facts["notes"], list)


def row(arm: str, seed: int, kind: str, layer: int | None, name: str, value: float) -> Row:
    return Row.at("run", arm, f"seed {seed}", 100, kind, layer, None, name, Reading(value, 64))


def planted(seeds: int = 5, arms: tuple[str, ...] = ("none", "istar=1")) -> tuple[pd.DataFrame, np.ndarray]:
    """Seeds that differ by much, arms by little; gives rows, and how the loss of the second differs."""
    random = np.random.default_rng(seeds)
    lift = random.normal(0, 10.0, seeds)
    apart = 0.3 + random.normal(0, 0.1, (len(arms), seeds))
    apart[0] = 0
    rows = []
    for (place, arm), seed in ((pair, seed) for pair in enumerate(arms) for seed in range(seeds)):
        rows.append(row(arm, seed, "training", None, "loss", lift[seed] + apart[place, seed]))
        for layer in (1, 2):
            rows.append(
                row(arm, seed, "attention", layer, "normalised_entropy", 0.5 + 0.01 * place + 0.1 * seed)
            )
            rows.append(row(arm, seed, "layer", layer, "isoscore", 0.2 * layer + place))
            rows.append(row(arm, seed, "query_key", layer, "trace", layer + 3.0 * place))
            rows.append(row(arm, seed, "attention", layer, "attention_mass", math.nan))
    return frame(rows), apart[1]


def one(fitted: Fitted, measure: str, layer: int = 0, arm: str = "istar=1") -> pd.Series:
    found = fitted.differences
    (line,) = found[(found.measure == measure) & (found.layer == layer) & (found.arm == arm)].iloc
    return line


def test_differences_are_paired_by_seed() -> None:
    rows, apart = planted()
    fitted = fit(rows, "none")
    loss = one(fitted, "loss")
    wanted = stats.ttest_1samp(apart, 0).confidence_interval()
    assert (loss.value, loss.low, loss.high) == pytest.approx((apart.mean(), wanted.low, wanted.high))
    assert (loss.n, loss.note) == (5, "")
    assert math.isnan(loss["at"])
    assert one(fitted, "isoscore", 2).value == pytest.approx(1.0)
    assert one(fitted, "trace").value == pytest.approx(3.0)
    assert one(fitted, "normalised_entropy", 1).value == pytest.approx(0.01)
    assert "attention_mass" not in set(fitted.points.measure)  # nobody has one


def test_a_seed_that_one_arm_lacks_is_left_out() -> None:
    rows, apart = planted()
    lost = (rows.model == "istar=1") & (rows.revision == "seed 3")
    loss = one(fit(rows[~lost], "none"), "loss")
    assert loss.n == 4
    assert loss.value == pytest.approx(np.delete(apart, 3).mean())
    only = (rows.model == "none") == (rows.revision == "seed 0")
    assert one(fit(rows[only], "none"), "loss").n == 0


def test_everything_that_is_shown_is_told() -> None:
    told = told_besides()
    assert set(AS_THEY_CAME) - set(contrast_trial.MEASURES) - {"loss"} <= set(told)
    for words in told.values():
        assert {"family", "title", "says", "null", "interval"} <= set(words)


def test_as_a_person_types_it(isoscope: Callable[..., Answer], tmp_path: Path) -> None:
    words = ["contrast", "characters", "--attention", "softmax", "--entropies", "none", "--seeds", "2"]
    words += ["--penalty", "none;locater=.1,target=1,keep=.5", "--penalty", "cosreg=-1", "--layers", "1"]
    words += ["--width", "8", "--heads", "2", "--length", "8", "--steps", "2", "--batch-size", "2"]
    answer = isoscope(*words, "--out", tmp_path / "run")
    assert answer.code == 0, answer.err
    for word in ("none: its own", "locater=.1,target=1,keep=.5", "difference from none", "Perplexity"):
        assert word in answer.out
    assert "entropy of nan" not in answer.out
    page = (tmp_path / "run" / "report.html").read_text()
    assert "As they came" in page
    assert "At the same entropy" not in page
    wrong = isoscope(*words, "--probe", "/no/such.tsv", "--out", tmp_path / "other")
    assert "no data at '/no/such.tsv'" in wrong.err
    assert not (tmp_path / "other").exists()
