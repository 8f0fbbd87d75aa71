"""The experiments of machina2024 at their smallest, and what they are made of against naive twins."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch
import transformers

from isoscope.geometry import cosine
from isoscope.models.weights import open_weights
from isoscope.papers import workshop as making
from isoscope.papers.claims import measured
from isoscope.papers.machina2024 import PAPER, along, sizes, vocabulary
from isoscope.papers.machina2024 import arms as arms_module
from isoscope.papers.machina2024.arms import STEPS, Plan, arms, tied
from isoscope.papers.machina2024.frequency import Gradient, along_drift, as_types, bands
from isoscope.papers.machina2024.judging import PUBLIC, by_group, changes, pick
from isoscope.papers.machina2024.weighing import I_OWN, I_UNIT, INPUT, OUTPUT, TIED, vocabularies
from isoscope.papers.workshop import Workshop
from isoscope.results.trajectory import FAILED
from isoscope.stats.types import Types
from tests.models.tiny import CONFIGS, tokenizer
from tests.papers.cases import row, tiny_workshop
from tests.typed import frame

CLAIMS = [pytest.param(claim, id=claim.name) for claim in PAPER.claims]


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    """One seed of the smallest models, on a small text of few words, weighed at three steps."""
    folder = tmp_path_factory.mktemp("machina")
    text = folder / "text.txt"
    text.write_text(
        "\n".join(f"the {i % 7} cats saw {'a dog ' * (i % 3)}of size {i % 11}." for i in range(400))
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arms_module, "LARGER", Plan((0.25, 0.5, 1.0), "log:20", 3))
        patch.setattr(along, "READ", 2)
        yield replace(tiny_workshop(folder / "models", seeds=1), data={"text": str(text)})


@pytest.fixture(scope="module")
def rows(workshop: Workshop) -> pd.DataFrame:
    return along.along_training(workshop)[0]


def test_every_model_is_weighed_at_every_step(workshop: Workshop, rows: pd.DataFrame) -> None:
    made = arms(workshop)
    assert [each.name for each in made] == ["width 4", "width 8", "width 16", "width 8, tied"]
    for each in made:
        own = rows[(rows["model"] == each.name) & (rows["revision"] == f"seed {each.seed}")]
        kinds = {TIED} if "tied" in each.name else {INPUT, OUTPUT}
        assert kinds == set(own["kind"]) & {TIED, INPUT, OUTPUT}
        for kind in (*kinds, "output", "norm_output", "output_gradient"):
            there = set(own.loc[own["kind"] == kind, "step"])
            assert there == {0, 2, 4}


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_claim_is_tried_judged_and_drawn(workshop: Workshop, rows: pd.DataFrame, claim: object) -> None:
    found = claim.experiment(workshop)  # type: ignore[attr-defined]
    assert len(found.rows)
    assert claim.verdict(found.rows).held is None  # type: ignore[attr-defined]  # one seed has no interval
    points = pd.DataFrame() if found.points is None else found.points
    charts = claim.draw(found.rows, points)  # type: ignore[attr-defined]
    assert 1 <= len(charts) <= 7
    assert all(chart.series for chart in charts)


def test_a_training_that_went_wrong_costs_its_own_arm_and_seed(
    workshop: Workshop, rows: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = arms(workshop)[1]
    name, seed = wrong.name, wrong.seed
    monkeypatch.setattr(Workshop, "_at_end", lambda self, asked: asked != wrong.experiment)
    monkeypatch.setattr(making, "_train", lambda asked: "the loss is nan at step 3.")
    found = along.along_training(workshop)[0]
    lost = found[found["measure"] == FAILED]
    assert lost[["model", "revision"]].to_numpy().tolist() == [[name, f"seed {seed}"]]
    assert set(measured(found)["model"]) == set(rows["model"]) - {name}
    for claim in PAPER.claims:
        own = claim.experiment(workshop)
        assert f"{name} (seed {seed})" in claim.verdict(own.rows).said
        assert claim.draw(own.rows, pd.DataFrame() if own.points is None else own.points)


def test_what_is_weighed_is_not_weighed_again(
    workshop: Workshop, rows: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("weighed again")

    monkeypatch.setattr(along, "weigh_checkpoint", refuse)
    again = along.along_training(workshop)[0]
    pd.testing.assert_frame_equal(again, rows)
    victim = next((workshop.models / f"weighed-{arms(workshop)[0].experiment.digest}" / "rows").iterdir())
    held = victim.read_bytes()
    victim.unlink()
    with pytest.raises(AssertionError, match="weighed again"):
        along.along_training(workshop)
    victim.write_bytes(held)


def test_a_tied_model_has_one_matrix_and_learns_it_from_both_ends(workshop: Workshop) -> None:
    plain = arms(workshop)[0].experiment
    lesson = plain.lesson()
    model, other = tied(plain).build(lesson), plain.build(lesson)
    own = model.state_dict()
    assert own.keys() == other.state_dict().keys() - {"head.weight"}
    assert all(torch.equal(weight, other.state_dict()[name]) for name, weight in own.items())
    assert tied(plain).digest != plain.digest
    assert list(vocabularies(open_weights(model))) == [TIED]
    tokens = torch.tensor([[1, 2, 1]])
    model(tokens)[..., 5].sum().backward()
    assert model.tokens.weight.grad[5].norm() > 0  # a token that only answers
    assert model.tokens.weight.grad[7].norm() == 0


def test_the_gradient_of_the_output_is_that_of_autograd() -> None:
    torch.manual_seed(3)
    matrix = torch.randn(13, 5, requires_grad=True)
    bias = torch.randn(13)
    states, tokens = torch.randn(3, 7, 5), torch.randint(13, (3, 7))
    loss = torch.nn.functional.cross_entropy(
        (states[:, :-1] @ matrix.T + bias).flatten(0, 1), tokens[:, 1:].flatten()
    )
    (expected,) = torch.autograd.grad(loss, matrix)
    found = Gradient(matrix.detach(), bias)
    found.add(states[:1], tokens[:1])
    found.add(states[1:], tokens[1:])
    torch.testing.assert_close(found.mean, expected)


def test_bands_are_mean_cosines_of_their_rows() -> None:
    random = torch.Generator().manual_seed(5)
    matrix = torch.randn(60, 4, generator=random) + 0.3
    counts = torch.cat([torch.zeros(7), torch.ones(20), torch.full((20,), 30.0), torch.full((13,), 5e3)])
    record = as_types(matrix, counts[:59])  # the last token never occurs either
    assert isinstance(record, Types)
    share = counts.clamp_min(0.5)
    share[59] = 0.5
    share = share / share.sum()
    found = bands(matrix, counts[:59])
    for band, mine in (
        ("rare", share < 1e-4),
        ("middle", (share >= 1e-4) & (share < 1e-3)),
        ("frequent", share >= 1e-3),
    ):
        assert mine.sum() > 2
        assert found[f"mean_cosine_{band}"].value == pytest.approx(cosine.mean_cosine(matrix[mine]))
        centre = matrix[mine].double().mean(0).norm() / matrix[mine].double().norm(dim=1).mean()
        assert found[f"relative_drift_{band}"].value == pytest.approx(float(centre))


def test_a_step_along_the_mean_row_is_seen() -> None:
    rows = torch.tensor([[1.0, 0.0], [1.0, 1.0]])
    assert along_drift(-rows, rows) == pytest.approx(1)
    assert along_drift(rows, rows) == pytest.approx(-1)


def test_ends_of_training_and_groups() -> None:
    table = frame(
        [
            row("a", I_OWN, 0.9, kind=OUTPUT, step=0),
            row("a", I_OWN, 0.2, kind=OUTPUT, step=8),
            row("a", I_OWN, math.nan, kind=OUTPUT, step=9),
            row("b", I_OWN, 0.5, kind=OUTPUT, revision="", step=None),
            row("c", I_OWN, 0.6, kind=OUTPUT, revision="", step=3),
            row("c", I_OWN, 0.4, kind=OUTPUT, revision="", step=5),
        ]
    )
    first, last = (pick(table, OUTPUT, I_OWN, at) for at in ("first", "last"))
    assert by_group(last) == {"a": {"seed 0": 0.2}, PUBLIC: {"b": 0.5, "c": 0.4}}
    assert by_group(first) == {"a": {"seed 0": 0.9}, PUBLIC: {"c": 0.6}}
    assert changes(first, last)["a"].value == pytest.approx(-0.7)


@pytest.mark.parametrize(("sign", "held"), [(1, True), (-1, False)])
def test_public_sizes_are_judged_by_rank(sign: int, held: bool) -> None:
    def of(name: str, number: int) -> Iterator[object]:
        yield row(name, "parameters", 10.0**number, kind="model", revision="", step=9)
        for measure in (I_OWN, I_UNIT):
            yield row(name, measure, 0.5 + sign * 0.05 * number, kind=OUTPUT, revision="", step=9)
        between = 0.5 - sign * 0.05 * number
        yield row(name, "mean_cosine_between", between, kind="output", revision="", step=9)

    table = frame([each for number, name in enumerate(sizes.SIZES) for each in of(name, number)])  # type: ignore[misc]
    assert sizes.SIZE.verdict(table).held is held


def test_the_checkpoints_are_those_of_the_paper() -> None:
    assert len(STEPS) == 21
    assert STEPS[:3] == (0, 7000, 14000)
    assert STEPS[-1] == 143_000


def test_public_models_that_are_not_here_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr(along, "SIZES", ("pythia-70m",))
    monkeypatch.setattr(along, "CONTRASTS", ("amber",))
    found = vocabulary.FALL.experiment(tiny_workshop(tmp_path, public=True)).rows
    verdict = vocabulary.FALL.verdict(found)
    assert verdict.held is None
    assert "hf download EleutherAI/pythia-70m" in verdict.said
    assert "And 1 more" in verdict.said and found["note"].str.contains("LLM360/Amber").any()


def test_a_public_model_that_is_here_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "neox"
    torch.manual_seed(0)
    transformers.GPTNeoXForCausalLM(CONFIGS["gpt_neox"]()).save_pretrained(folder)
    tokenizer("none").save_pretrained(folder)
    text = tmp_path / "text.txt"
    text.write_text("a cat sat on a mat, and then it went away again. " * 60)
    monkeypatch.setattr(along, "SIZES", (str(folder),))
    monkeypatch.setattr(along, "CONTRASTS", ())
    workshop = replace(tiny_workshop(tmp_path / "models", public=True), data={"text": str(text)})
    found = along.along_training(workshop)[0]
    assert f"{folder}, along training" in set(found["model"])  # a folder has no checkpoints
    own = found[found["model"] == str(folder)]
    assert {INPUT, OUTPUT, "norm_output", "output_gradient", "output", "norm"} <= set(own["kind"])
    for claim in PAPER.claims:
        rows = claim.experiment(workshop).rows
        assert claim.verdict(rows).held is None  # one model is no sample
        assert "Not measured" in claim.verdict(rows).said
