"""The experiments of bao2024 at their smallest, and what they are made of against naive twins."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from isoscope.errors import IsoscopeError
from isoscope.geometry.spectra import qk_matrix
from isoscope.lab.train.experiment import Experiment
from isoscope.papers import workshop as making
from isoscope.papers.bao2024 import PAPER, models, reading, sweep, walks
from isoscope.papers.bao2024.models import deep, settings, shallow, swept
from isoscope.papers.bao2024.penalty import SHALLOW, changes, of_arm
from isoscope.papers.bao2024.reading import Look, is_localised, leans, look, looked, public, together
from isoscope.papers.bao2024.walks import MADE, TRACED, Asked, few_of, made_of, walked, within
from isoscope.papers.claims import WORDS, Claim
from isoscope.papers.scales import scale_of
from isoscope.papers.workshop import Workshop
from isoscope.results.trajectory import FAILED
from tests.papers.cases import row, tiny_workshop
from tests.papers.cases_bao2024 import CASES
from tests.typed import frame

CLAIMS = [pytest.param(claim, id=claim.name) for claim in PAPER.claims]


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    """Two seeds of the smallest models on a small text, few walks, few lengths."""
    folder = tmp_path_factory.mktemp("bao")
    text = folder / "text.txt"
    text.write_text("\n".join(f"line {i % 13} says {'so ' * (i % 4)}{i % 7}." for i in range(400)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(walks, "GROWING", (16, 32))
        patch.setattr(walks, "SPREADS", (0.1, 10.0))
        patch.setattr(sweep, "STARTS", 3)
        patch.setattr(models, "_CROSS", ((0.1, 1.0), (0.1, 2.0)))
        yield replace(tiny_workshop(folder / "models"), data={"text": str(text)})


@pytest.mark.parametrize("claim", CLAIMS)
def test_every_claim_is_tried_judged_and_drawn(workshop: Workshop, claim: object) -> None:
    found = claim.experiment(workshop)  # type: ignore[attr-defined]
    assert len(found.rows)
    assert not (found.rows["measure"] == FAILED).any()
    verdict = claim.verdict(found.rows)  # type: ignore[attr-defined]
    assert verdict.held is None, "two seeds have no interval"
    assert verdict.word in WORDS.values()
    charts = claim.draw(found.rows, found.points)  # type: ignore[attr-defined]
    assert 1 <= len(charts) <= 6
    assert any(len(one.x) for chart in charts for one in chart.series)


def test_public_models_that_are_not_here_leave_claims_undecided(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(name: str, **given: object) -> None:
        raise IsoscopeError(f"the weights of {name} are not here; download them first.")

    monkeypatch.setattr(reading, "load", absent)
    room = replace(workshop, scale=replace(workshop.scale, public=True))
    for name in ("trained-heads", "prediction-and-attention", "inputs-walk"):
        claim = next(one for one in PAPER.claims if one.name == name)
        rows = claim.experiment(room).rows
        lost = rows[rows["measure"] == FAILED]
        assert set(lost["model"]) == set(reading.PUBLIC)
        assert lost["note"].str.contains("download them first").all()
        both = pd.concat([CASES[name].agree, lost], ignore_index=True)
        verdict = claim.verdict(both)
        assert verdict.held is None
        assert "gpt2" in verdict.said


def test_a_public_model_is_read_once_and_judged_by_its_layers(
    workshop: Workshop, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[str] = []
    own = reading.load

    def here(name: str, **given: object) -> object:
        asked.append(name)
        return own(str(tiny_bert))

    monkeypatch.setattr(reading, "load", here)
    room = replace(workshop, scale=replace(workshop.scale, public=True), models=tmp_path)
    rows = public(room, ["gpt2"])
    again = public(room, ["gpt2"])
    assert asked == ["gpt2"]
    assert set(rows["model"]) == {"gpt2"}
    pd.testing.assert_frame_equal(rows, again)
    assert {"lean", "localised_share", "localised_share_on_data", "propagation_agreement"} <= set(
        rows["measure"]
    )
    for name, case in (("trained-heads", "agree"), ("prediction-and-attention", "agree")):
        claim = next(one for one in PAPER.claims if one.name == name)
        both = pd.concat([getattr(CASES[name], case), rows], ignore_index=True)
        assert "gpt2" in claim.verdict(both).said
        assert claim.draw(both, pd.DataFrame(columns=["picture", "layer", "head", "series", "x", "y"]))


@pytest.mark.parametrize("seed", range(3))
def test_lean_and_shares_are_those_of_the_whole_matrix(seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    query, key = torch.randn(2, 3, 7, 4, dtype=torch.float64, generator=random)
    rows = []
    naive = []
    for head, matrix in enumerate(qk_matrix(query, key)):
        trace, square = float(matrix.trace()), float((matrix @ matrix).trace())
        size = float(torch.linalg.matrix_norm(matrix))
        note = "regime: late" if head else "regime: undecided"
        own = {"kind": "query_key", "head": head}
        rows += [row("m", "trace", trace, note=note, **own), row("m", "trace_square", square, **own)]
        rows += [row("m", "frobenius", size, **own)]
        naive.append(abs(trace) / 2 / math.sqrt(size**2 / 3 + square / 4))
    made = frame(rows)
    assert leans(made).tolist() == pytest.approx(naive, rel=1e-12)
    all_heads = together(made).set_index("measure")["value"]
    assert all_heads["lean"] == pytest.approx(np.mean(naive))
    assert all_heads["localised_share"] == pytest.approx(2 / 3)
    assert "localised_share_on_data" not in all_heads
    assert is_localised(made[made["measure"] == "trace"]).tolist() == [False, True, True]


def test_a_training_is_looked_at_once_and_named_by_who_asks(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own = deep(workshop, 0, narrow=False)
    (training,), _ = workshop.train([workshop.training("one", own)])
    room = replace(workshop, models=tmp_path)
    asked = Look(training, (0, own.recipe.steps), (own.recipe.steps,), "cpu")
    ((rows, points),) = looked(room, [asked])
    direct, _ = look(asked)
    assert sorted(rows["value"].dropna()) == pytest.approx(sorted(direct["value"].dropna()))
    assert set(points["picture"]) >= {"propagation"}
    monkeypatch.setattr(reading, "look", lambda asked: pytest.fail("read again"))
    named = replace(training, name="two", arm="first", about="λ 1", setting=2.0)
    ((other, _),) = looked(room, [replace(asked, training=named)])
    assert set(other["model"]) == {"two"}
    assert set(other["revision"]) == {"seed 0"}
    assert set(zip(other["arm"], other["about"], other["setting"], strict=True)) == {("first", "λ 1", 2.0)}
    assert len(other) == len(rows)


@pytest.mark.parametrize("made", MADE, ids=lambda made: made.regime)
def test_made_up_heads_have_their_trace_and_their_stretch(made: walks.Made) -> None:
    parts = made_of(made.trace, made.spread_at(100), 24, seed=3)
    matrix = (parts.query @ parts.key.mT)[0]
    noise = made.spread_at(100)
    assert float(matrix.trace()) == pytest.approx(made.trace, abs=4 * noise / math.sqrt(24) + 1e-9)
    size = float(torch.linalg.matrix_norm(matrix))
    assert size**2 == pytest.approx(made.trace**2 / 24 + noise**2, rel=0.25)
    u = torch.arange(1, 101) / 100
    share = float(within(made, u).double().mean())
    assert share == pytest.approx(min(0.5, 1 / abs(made.trace)) if made.trace else 1.0, abs=0.011)


@pytest.mark.parametrize("rank", [1, 3, 8])
@pytest.mark.parametrize("traced", [True, False])
def test_heads_of_low_rank_have_their_rank_and_size(rank: int, traced: bool) -> None:
    parts = few_of(rank, 2.5, 16, seed=rank, traced=traced)
    matrix = (parts.query @ parts.key.mT)[0]
    assert int(torch.linalg.matrix_rank(matrix)) == rank
    assert float(torch.linalg.matrix_norm(matrix)) == pytest.approx(2.5)
    if traced:
        assert float(matrix.trace()) == pytest.approx(2.5 * math.sqrt(rank))


def test_the_closed_form_fails_at_low_rank_and_is_said_not_to_be_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("GROWING", "SPREADS"):
        monkeypatch.setattr(walks, name, getattr(walks, name)[:1])
    rows = frame(walked(Asked(32, 512, 0))[0])
    few = rows[rows["model"].str.startswith(TRACED)].pivot_table(
        index="model", columns="measure", values="value"
    )
    assert few.loc[f"{TRACED}, rank 2", "propagation_error"] > 0.1
    assert few.loc[f"{TRACED}, rank 2", "closed_form"] == 0
    assert (
        few.loc[f"{TRACED}, rank 32", "propagation_error"] < few.loc[f"{TRACED}, rank 2", "propagation_error"]
    )


def test_a_variance_is_compared_by_its_ratio() -> None:
    rows = CASES["locater"].agree
    assert changes(rows, SHALLOW)["spectrum_variance"].value == pytest.approx(0.1, rel=0.01)
    own = of_arm(rows, SHALLOW)
    twice = pd.concat([own, own.assign(about="λ 0.1", setting=1.0, value=2 * own["value"])])
    found = changes(twice, SHALLOW)
    assert found["spectrum_variance"].value == pytest.approx(2)
    assert found["perplexity"].value == pytest.approx(8)


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_training_that_went_wrong_costs_its_own_arm_and_seed(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, claim: Claim
) -> None:
    own, at_end = making._train, Workshop._at_end

    def wrong(asked: tuple[Experiment, Path, str]) -> str:
        return "the loss is nan at step 3." if asked[0].recipe.seed == 1 else own(asked)

    def not_there(self: Workshop, asked: Experiment) -> bool:
        return asked.recipe.seed != 1 and at_end(self, asked)

    monkeypatch.setattr(making, "_train", wrong)
    monkeypatch.setattr(Workshop, "_at_end", not_there)
    rows = claim.experiment(workshop).rows
    lost = rows[rows["measure"] == FAILED]
    assert set(lost["revision"]) == (set() if claim.name == "regimes" else {"seed 1"})
    assert len(rows) > len(lost)
    verdict = claim.verdict(rows)
    assert verdict.held is None
    assert len(lost) == 0 or "(seed 1)" in verdict.said


def test_sizes_at_every_scale_are_models_that_can_be_built(tmp_path: Path) -> None:
    for name in ("laptop", "gpu", "full"):
        room = Workshop(scale_of(name), tmp_path, 3)
        assert (models.STRENGTH, models.TARGET) in settings(room), "the setting that decides"
        assert shallow(room, 0, "").layers == shallow(room, 0, "").heads == 1
        for size in swept(room):
            room.experiment("characters", size=size)
        shapes = [(size.width, size.heads) for size in swept(room)]
        assert len(set(shapes)) == len(shapes)
