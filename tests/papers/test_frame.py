"""Every claim of every paper turns its verdict when rows contradict it, and draws what it is given."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pandas as pd
import pytest

from isoscope.errors import IsoscopeError
from isoscope.papers.claims import Claim, Found, Verdict, all_of, failed, is_above, is_below, lacking, of_seed
from isoscope.papers.intervals import by_seed, over, over_seeds
from isoscope.papers.paper import Paper, headline, judged, left, make, run_of
from isoscope.papers.table import PAPERS, paper_of
from isoscope.papers.workshop import Workshop
from isoscope.results.reading import Reading
from isoscope.results.store import open_run, read_run
from isoscope.show.charts import Chart, Series
from tests.papers.cases import row, tiny_workshop
from tests.typed import frame

CLAIMS = [(paper.name, claim) for paper in PAPERS for claim in paper.claims]
NAMED = [f"{paper} {claim.name}" for paper, claim in CLAIMS]
NO_POINTS = pd.DataFrame(columns=["unit", "picture", "kind", "layer", "head", "series", "x", "y"])


def case_of(paper: str, claim: Claim) -> object:
    return import_module(f"tests.papers.cases_{paper}").CASES[claim.name]


@pytest.mark.parametrize(("paper", "claim"), CLAIMS, ids=NAMED)
@pytest.mark.parametrize(("which", "held"), [("agree", True), ("contradict", False), ("undecided", None)])
def test_a_verdict_turns_with_the_rows(paper: str, claim: Claim, which: str, held: bool | None) -> None:
    verdict = claim.verdict(getattr(case_of(paper, claim), which))
    assert verdict.held is held, verdict.said
    assert any(letter.isdigit() for letter in verdict.said), "a verdict says the numbers that decide"
    assert verdict.said.rstrip().endswith("."), verdict.said


@pytest.mark.parametrize(("paper", "claim"), CLAIMS, ids=NAMED)
def test_a_claim_draws_and_says_what_it_is(paper: str, claim: Claim) -> None:
    charts = claim.draw(case_of(paper, claim).agree, NO_POINTS)  # type: ignore[attr-defined]
    assert charts, "a claim has a figure"
    assert all(isinstance(chart, Chart) and chart.title for chart in charts)
    assert claim.expected.endswith(".")
    assert claim.method.endswith(".")
    assert claim.name == claim.name.lower().replace(" ", "-")


@pytest.mark.parametrize(("paper", "claim"), CLAIMS, ids=NAMED)
def test_what_failed_leaves_a_claim_undecided_with_the_reason(paper: str, claim: Claim) -> None:
    verdict = claim.verdict(failed("bert", "its weights are not on this machine"))
    assert verdict.held is None
    assert "weights are not on this machine" in verdict.said


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.name)
def test_claims_of_a_paper_have_names_of_their_own(paper: Paper) -> None:
    names = [claim.name for claim in paper.claims]
    assert len(set(names)) == len(names)
    assert all(why.endswith(".") for why in paper.absent.values())


def test_a_paper_that_does_not_exist_is_told() -> None:
    with pytest.raises(IsoscopeError, match="did you mean 'godey2024'"):
        paper_of("godey2023")


def test_intervals_decide_and_points_do_not() -> None:
    sure, point = Reading(0.5, 5, low=0.4, high=0.6), Reading(0.5, 1)
    wide = Reading(0.5, 3, low=-1, high=2)
    assert [is_above(each, 0, "it").held for each in (sure, point, wide)] == [True, None, None]
    assert [is_below(each, 1, "it").held for each in (sure, point, wide)] == [True, None, None]
    assert is_above(sure, 0.7, "it").held is False
    assert "0.5 [no interval]" in is_above(point, 0, "it").said
    assert all_of([Verdict(None, "a."), Verdict(False, "b.")]).held is False
    assert all_of([]).held is None


def test_over_seeds_takes_one_value_a_seed() -> None:
    rows = frame(
        [row("m", "x", seed + layer, seed=seed, layer=layer) for seed in range(4) for layer in (0, 2)]
    )
    assert by_seed(rows) == {f"seed {seed}": seed + 1.0 for seed in range(4)}
    assert by_seed(rows, "max")["seed 1"] == 3.0
    assert over_seeds(rows) == over([1.0, 2.0, 3.0, 4.0])
    assert not over_seeds(rows[rows["revision"] == "seed 0"]).bounded


class Toy:
    """A paper with a claim that works, counting how often, and one that fails at first."""

    def __init__(self) -> None:
        self.tried: list[str] = []
        self.broken = True

    def paper(self) -> Paper:
        plain = Claim("works", "It works", "It works.", "So.", self.works, judge, draw)
        other = replace(plain, name="fails", title="It fails", experiment=self.fails)
        return Paper("toy", "A toy", "nobody", (plain, other), {"all else": "It is a toy."})

    def works(self, workshop: Workshop) -> Found:
        self.tried.append("works")
        return Found(
            frame([row("m", "x", 1.0 + seed / 10, seed=seed) for seed in range(3)]), notes=("a note",)
        )

    def fails(self, workshop: Workshop) -> Found:
        self.tried.append("fails")
        if self.broken:
            raise ZeroDivisionError("nothing to divide by")
        return self.works(workshop)


def judge(rows: pd.DataFrame) -> Verdict:
    return is_above(over_seeds(rows), 0.0, "x")


def draw(rows: pd.DataFrame, points: pd.DataFrame) -> list[Chart]:
    return [Chart("x", "layer", "", [Series("m", [1.0], [1.0])])]


def test_a_claim_that_fails_costs_no_other_and_is_tried_again(tmp_path: Path) -> None:
    toy, room = Toy(), tiny_workshop(tmp_path / "models")
    paper = toy.paper()
    folder = open_run(tmp_path / "run", run_of(paper, room))
    make(left(paper, folder), room, folder)
    found = judged(paper, read_run(folder.path))
    assert [each.verdict.held for each in found] == [True, None]
    assert "nothing to divide by" in found[1].verdict.said
    assert found[1].charts() == []
    assert headline(found) == "1 of 2 claims as expected, 1 undecided at this scale."
    assert folder.facts()["works"]["verdict"] == "as expected"
    toy.broken = False
    make(left(paper, folder), room, folder)
    assert toy.tried == ["works", "fails", "fails", "works"]
    assert [each.verdict.held for each in judged(paper, folder)] == [True, True]
    assert not left(paper, folder)


def test_rows_that_a_judge_cannot_read_are_undecided(tmp_path: Path) -> None:
    def puzzled(rows: pd.DataFrame) -> Verdict:
        raise KeyError("a column")

    paper = Toy().paper()
    paper = replace(paper, claims=(replace(paper.claims[0], judge=puzzled),))
    room = tiny_workshop(tmp_path)
    folder = open_run(tmp_path / "run", run_of(paper, room))
    make(paper.claims, room, folder)
    (found,) = judged(paper, folder)
    assert found.verdict.held is None
    assert "KeyError" in found.verdict.said


def test_rows_of_other_sizes_are_not_gone_on_with(tmp_path: Path) -> None:
    paper, room = Toy().paper(), tiny_workshop(tmp_path)
    other = replace(room, scale=replace(room.scale, arm=replace(room.scale.arm, steps=5)))
    open_run(tmp_path / "run", run_of(paper, room))
    with pytest.raises(IsoscopeError, match="other settings \\(arm\\)"):
        open_run(tmp_path / "run", run_of(paper, other))


def test_what_is_lacking_is_named() -> None:
    rows = pd.concat([failed("bert", "not here"), frame([row("m", "x", 1.0)])], ignore_index=True)
    assert "bert" in lacking(rows)
    assert lacking(frame([row("m", "x", 1.0)])) == ""
    seeds = pd.concat([of_seed(failed("patches", "no number"), "patches", n) for n in (0, 1, 4, 0)])
    words = of_seed(failed("words", "no memory"), "words", 2)
    several = pd.concat([seeds, failed("bert", "offline"), words])
    assert "Not measured: patches (seeds 0, 1, 4), bert, words (seed 2) (the" in lacking(several)
