"""A claim that hangs on several numbers: rows that agree in all of them but one turn the verdict."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import pandas as pd
import pytest

from isoscope.papers.bao2024.collapse import ALONG
from isoscope.papers.machina2024.weighing import I_OWN, I_UNIT
from isoscope.papers.table import paper_of
from tests.papers import cases_bao2024 as bao
from tests.papers import cases_godey2024 as godey

Change = Callable[[pd.Series], pd.Series]


def turned(rows: pd.DataFrame, where: pd.Series, to: pd.DataFrame | Change) -> pd.DataFrame:
    """The same rows, those of `where` with the values of others, or changed."""
    assert where.any(), "nothing is turned"
    values = rows["value"]
    return rows.assign(
        value=values.where(~where, to["value"] if isinstance(to, pd.DataFrame) else to(values))
    )


def case(paper: str, claim: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    found = import_module(f"tests.papers.cases_{paper}").CASES[claim]
    return found.agree, found.contradict


def refused(paper: str, claim: str, rows: pd.DataFrame) -> None:
    known = {each.name: each for each in paper_of(paper).claims}[claim]
    agreed, _ = case(paper, claim)
    assert known.verdict(agreed).held is True
    verdict = known.verdict(rows)
    assert verdict.held is False, verdict.said


@pytest.mark.parametrize(
    ("paper", "claim", "column", "name"),
    [
        ("godey2024", "untrained-block", "measure", "mean_cosine"),
        ("godey2024", "untrained-block", "measure", "score_std"),
        ("godey2024", "untrained-block", "measure", "normalised_entropy"),
        ("godey2024", "untrained-block", "measure", "largest_weight"),
        ("godey2024", "queries-and-keys", "measure", "query_relative_drift"),
        ("godey2024", "queries-and-keys", "measure", "key_relative_drift"),
        ("godey2024", "queries-and-keys", "measure", "query_key_cosine"),
        ("godey2024", "scores-and-entropy", "measure", "score_std"),
        ("godey2024", "scores-and-entropy", "measure", "normalised_entropy"),
        ("machina2024", "vocabulary-along-training", "measure", I_OWN),
        ("machina2024", "vocabulary-along-training", "measure", I_UNIT),
        ("machina2024", "input-against-output", "measure", I_OWN),
        ("machina2024", "input-against-output", "measure", I_UNIT),
        ("machina2024", "centring", "model", "width 64, tied"),
        ("machina2024", "final-norm", "measure", "bias_cancels"),
        ("machina2024", "final-norm", "kind", "norm_output"),
        ("machina2024", "small-against-large", "measure", I_OWN),
        ("machina2024", "small-against-large", "measure", I_UNIT),
        ("machina2024", "small-against-large", "kind", "output"),
        ("bao2024", "collapse", "model", ALONG),
        ("bao2024", "locater", "measure", "perplexity"),
    ],
)
def test_one_number_that_contradicts(paper: str, claim: str, column: str, name: str) -> None:
    agree, contradict = case(paper, claim)
    refused(paper, claim, turned(agree, agree[column] == name, contradict))


@pytest.mark.parametrize("other", godey.CONVOLUTIONAL)
def test_each_cnn_counts_and_not_their_mean(other: str) -> None:
    rows = godey.CASES["convolutional-drift"].agree
    told = {name: -0.9 for name in godey.CONVOLUTIONAL} | {other: 0.9}
    values = rows["model"].map(lambda name: told.get(name, 0.5)) + rows["revision"].str[-1:].map(ord) / 1e4
    where = rows["measure"] == "spearman_drift"
    refused("godey2024", "convolutional-drift", rows.assign(value=rows["value"].where(~where, values)))


@pytest.mark.parametrize("lost", [godey.CONVOLUTIONAL, godey.TRANSFORMERS])
def test_without_one_side_nothing_is_said_of_cnns(lost: list[str]) -> None:
    rows = godey.CASES["convolutional-drift"].agree
    known = {each.name: each for each in paper_of("godey2024").claims}["convolutional-drift"]
    verdict = known.verdict(rows[~rows["model"].isin(lost)])
    assert verdict.held is None
    assert ("no CNN was measured" in verdict.said) == (lost == godey.CONVOLUTIONAL)


def test_heads_that_all_have_one_sign() -> None:
    rows = godey.CASES["queries-and-keys"].agree
    refused(
        "godey2024", "queries-and-keys", turned(rows, rows["measure"] == "query_key_cosine", pd.Series.abs)
    )


@pytest.mark.parametrize(("rise", "control"), [(-0.1, -0.3), (0.1, 0.3)])
def test_entropy_must_rise_and_by_more_than_by_chance(rise: float, control: float) -> None:
    refused("godey2024", "what-the-drift-does", godey.taken_out(rise, control))


@pytest.mark.parametrize(
    ("measure", "change"),
    [
        ("normalised_entropy", lambda entropy: 1.2 - entropy),
        ("spectrum_variance", lambda variance: 1 / variance),
    ],
)
def test_locater_that_does_the_one_and_not_the_other(measure: str, change: Change) -> None:
    rows = bao.CASES["locater"].agree
    refused("bao2024", "locater", turned(rows, rows["measure"] == measure, change))


def test_a_collapse_of_entropy_or_of_rank() -> None:
    rows = bao.CASES["collapse"].agree
    entropy = (rows["measure"] == "normalised_entropy") & (rows["model"] != ALONG)
    refused("bao2024", "collapse", turned(rows, entropy, lambda value: 1.2 - value))
    refused("bao2024", "collapse", bao.collapsing(1.0, -0.2))


@pytest.mark.parametrize(("regime", "value"), [("uniform", 0.2), ("uniform_half", 0.9), ("vanishing", 0.5)])
def test_a_regime_that_is_not_what_it_is_said_to_be(regime: str, value: float) -> None:
    rows = bao.CASES["regimes"].agree
    where = (rows["model"] == regime) & (rows["measure"] == "propagation_inside")
    refused("bao2024", "regimes", turned(rows, where, lambda old: 0 * old + value))


def test_regimes_of_which_no_more_passes_inside_or_as_much_when_wide() -> None:
    refused("bao2024", "regimes", bao.walks(inside=0.3))
    refused("bao2024", "regimes", bao.walks(wide=0.9))


def test_a_random_start_that_leans_with_width_or_training_that_takes_it_away() -> None:
    refused("bao2024", "width-and-heads", bao.sizes(0.5, 0.2))
    refused("bao2024", "width-and-heads", bao.sizes(-0.5, -0.2))
