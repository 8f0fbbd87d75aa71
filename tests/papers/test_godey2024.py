"""The experiments of godey2024 at the smallest size; and their numbers against what defines them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from scipy import stats

from isoscope.lab.train.experiment import Experiment
from isoscope.models import zoo
from isoscope.papers import workshop as making
from isoscope.papers.claims import Claim, measured
from isoscope.papers.godey2024 import (
    PAPER,
    arms,
    cosine,
    counterfactual,
    drift,
    training,
    untrained,
)
from isoscope.papers.intervals import over
from isoscope.papers.workshop import Workshop
from isoscope.results.trajectory import FAILED
from tests.papers.cases import row, tiny_workshop
from tests.papers.cases_godey2024 import CASES, drifting
from tests.typed import frame


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.mark.parametrize("claim", PAPER.claims, ids=lambda claim: claim.name)
def test_an_experiment_gives_rows_that_its_judge_and_its_figures_can_read(claim: Claim, models: Path) -> None:
    found = claim.experiment(tiny_workshop(models))
    assert len(measured(found.rows)) == len(found.rows) > 0
    assert set(found.rows["revision"]) == {"seed 0", "seed 1"}
    verdict = claim.verdict(found.rows)
    assert verdict.held is None, "two seeds have no interval"
    assert "no interval" in f"{verdict.said} {verdict.details}" or "0 of" in verdict.said
    charts = claim.draw(found.rows, pd.DataFrame())
    assert all(series.y for chart in charts for series in chart.series)


@pytest.mark.parametrize("claim", PAPER.claims, ids=lambda claim: claim.name)
def test_a_training_that_went_wrong_costs_its_own_arm_and_seed(
    claim: Claim, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, at_end = making._train, Workshop._at_end

    def is_wrong(asked: Experiment) -> bool:
        return asked.task == "characters" and asked.recipe.seed == 1

    def wrong(asked: tuple[Experiment, Path, str]) -> str:
        return "the loss is nan at step 3." if is_wrong(asked[0]) else own(asked)

    def not_there(self: Workshop, asked: Experiment) -> bool:
        return not is_wrong(asked) and at_end(self, asked)

    monkeypatch.setattr(making, "_train", wrong)
    monkeypatch.setattr(Workshop, "_at_end", not_there)
    rows = claim.experiment(tiny_workshop(models)).rows
    gone = rows[rows["measure"] == FAILED]
    trained = claim.name not in ("untrained-block", "pre-norm-reversal")
    assert len(gone) == trained
    assert set(gone["model"]) <= {"characters, causal"}
    assert set(measured(rows)["revision"]) >= {"seed 0"}
    assert not trained or "characters, causal (seed 1)" in claim.verdict(rows).said


def test_clouds_are_of_the_head_that_is_pulled_most(models: Path) -> None:
    workshop = tiny_workshop(models)
    asked = (workshop.experiment("characters", seed=seed) for seed in range(2))
    ended, _ = workshop.train(workshop.training(training.MODEL, each) for each in asked)
    points = training.clouds(ended)
    assert set(points["picture"]) == set(training.AXES)
    assert set(points["series"]) == {
        f"{what}, step {step}" for what in ("queries", "keys") for step in (0, 4)
    }
    rows = ended[0].read(heads=True).set_index(["layer", "head"])
    pull = 1.0
    for name in ("query_key_cosine", "query_relative_drift", "key_relative_drift"):
        pull = pull * rows[rows["measure"] == name]["value"].abs()
    assert set(zip(points["layer"], points["head"], strict=True)) == {pull.idxmax()}
    charts = training.draw_clouds(points)
    assert [chart.title for chart in charts] == list(training.AXES.values())
    assert all(len(chart.series) == 4 and chart.centred for chart in charts)
    assert training.draw_clouds(training.clouds([])) == []


def test_a_sign_that_no_head_has_turns_the_verdict() -> None:
    rows = CASES["queries-and-keys"].agree
    mine = rows["measure"] == "query_key_cosine"
    same = rows.assign(value=rows["value"].where(~mine, rows["value"].abs()))
    assert training.judge_drift(rows).held is True
    assert training.judge_drift(same).held is False


def test_every_arm_is_there_in_every_modality(models: Path) -> None:
    rows = cosine.experiment(tiny_workshop(models)).rows
    assert set(rows["model"]) == {arm.name for arm in arms.ARMS}


def test_public_names_are_in_the_zoo_and_absent_ones_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (*arms.PUBLIC, *arms.CONVOLUTIONAL):
        zoo.find(name)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(arms, "PUBLIC", ("bert",))
    monkeypatch.setattr(arms, "CONVOLUTIONAL", ())
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    found = cosine.experiment(tiny_workshop(tmp_path, public=True))
    verdict = cosine.CLAIM.verdict(found.rows)
    assert verdict.held is None
    assert "bert" in verdict.said
    assert "download" in verdict.said


def test_what_leaves_the_final_norm_is_the_last_layer() -> None:
    rows = frame([row("m", "x", 1.0, layer=2), row("m", "x", 2.0, kind="output", layer=None)])
    assert cosine.at_the_end(rows)["layer"].tolist() == [2, 3]


def test_correlations_are_those_of_the_layers() -> None:
    rows = drifting(1, -1)
    found = rows[(rows["kind"] == drift.KIND) & (rows["revision"] == "seed 1")]
    wide = drift.layers(rows[rows["kind"] == "layer"])
    name = arms.ARMS[-1].name
    own = wide[(wide["model"] == name) & (wide["revision"] == "seed 1")]
    mine = found[found["model"] == name].set_index("measure")["value"]
    assert mine["pearson_drift"] == pytest.approx(stats.pearsonr(own["drift"], own["A"]).statistic)
    assert mine[drift.GAP] == pytest.approx((own["A"] - own["relative_drift"] ** 2).abs().mean())
    attending = wide[~wide["model"].isin(arms.NO_ATTENTION) & (wide["revision"] == "seed 1")]
    pooled = found[found["model"] == drift.POOLED].set_index("measure")["value"]
    expected = stats.spearmanr(attending["relative_drift"], attending["A"]).statistic
    assert pooled["spearman_relative_drift"] == pytest.approx(expected)


def test_seeds_are_what_is_repeated_or_models_where_there_are_none() -> None:
    rows = frame([row(m, "x", (s + i) / 8, seed=s) for i, m in enumerate("ab") for s in range(3)])
    assert drift.replicated(rows) == over([0.0625, 0.1875, 0.3125])
    once = frame([row(name, "x", i / 8, seed=0) for i, name in enumerate("abcd")])
    assert drift.replicated(once) == over([0.0, 0.125, 0.25, 0.375])
    wide = frame([row("a", "x", value, seed=s) for s, value in enumerate((0.0, 0.5, 1.0))])
    assert drift.replicated(wide).high == 1, "no correlation is above 1"


def test_the_change_under_a_bias_is_paired_by_seed() -> None:
    rows = frame(
        row(f"post, bias {bias}", "score_std", value, seed=seed, kind="attention")
        for seed, pair in enumerate([(1.0, 2.0), (5.0, 6.5), (9.0, 11.0)])
        for bias, value in zip((0, 100), pair, strict=True)
    )
    found, none, most = untrained.change(rows, "post", "score_std")
    assert (none, most) == (0.0, 100.0)
    assert found == over([1.0, 1.5, 2.0])


def test_the_rarer_sign_and_the_size_of_cosines() -> None:
    values = {0: (0.5, -0.5, 0.5, 0.5), 1: (0.1, 0.1, -0.1, -0.1), 2: (1.0, 1.0, 1.0, 1.0)}
    rows = frame(
        row("m", "query_key_cosine", value, seed=seed, head=head, step=9, null=0.2)
        for seed, own in values.items()
        for head, value in enumerate(own)
    )
    size, rarer, chance = training.cosines(rows)
    assert size == over([0.5, 0.1, 1.0])
    assert rarer == over([0.25, 0.5, 0.0])
    assert chance == 0.2


def test_what_taking_out_changes_is_the_mean_over_layers() -> None:
    rows = frame(
        row("m", measure, value, layer=layer, kind="attention")
        for layer, pair in enumerate([(0.5, 0.7), (0.4, 0.8), (0.3, float("nan"))])
        for measure, value in zip((counterfactual.AS_IS, counterfactual.WITHOUT), pair, strict=True)
    )
    found = counterfactual.changes(rows, counterfactual.AS_IS, counterfactual.WITHOUT)
    assert found["value"].tolist() == [pytest.approx(0.3)]
