"""Perplexity with a repair before the head, against transformers' own loss and a model changed by hand."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from torch import nn
from torch.nn import functional

from isoscope.errors import IsoscopeError
from isoscope.models.source import load
from isoscope.repair.fit.transforms import fit
from isoscope.repair.impact.perplexity import (
    Spoken,
    head_states,
    in_place,
    judge_spoken,
    open_speaker,
    open_spoken,
    perplexity,
)
from tests.models import tiny

WORDS = (
    "the",
    "cat",
    "sat",
    "on",
    "a",
    "mat",
    "and",
    "looked",
    "at",
    "the",
    "dog",
    "while",
)


def text(seed: int, lines: int = 60) -> str:
    random = np.random.default_rng(seed)
    return "".join(" ".join(random.choice(WORDS, 12)) + f" {seed} {i}\n" for i in range(lines))


@pytest.fixture(scope="module")
def gpt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GPT-2 with its head, random."""
    folder = tmp_path_factory.mktemp("gpt")
    torch.manual_seed(0)
    transformers.GPT2LMHeadModel(tiny.CONFIGS["gpt2"]()).save_pretrained(folder)
    tiny.tokenizer("none").save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def spoken(gpt: Path, tmp_path_factory: pytest.TempPathFactory) -> Spoken:
    folder = tmp_path_factory.mktemp("texts")
    (folder / "judged.txt").write_text(text(1))
    (folder / "fitted.txt").write_text(text(2))
    files = (str(folder / "judged.txt"), str(folder / "fitted.txt"))
    return open_spoken(load(str(gpt), device="cpu"), *files, sequences=12, max_length=40)


def by_hand(model: nn.Module, spoken: Spoken) -> float:
    """The mean loss of what follows every position but the first."""
    losses = []
    for batch in spoken.judged:
        ids = batch.tokens()
        assert ids is not None
        with torch.no_grad():
            logits = model(input_ids=ids).logits
        losses.append(
            functional.cross_entropy(logits[:, 1:-1].flatten(0, 1), ids[:, 2:].flatten(), reduction="none")
        )
    return float(torch.cat(losses).double().mean().exp())


def test_perplexity_is_that_of_transformers(gpt: Path, spoken: Spoken) -> None:
    model = transformers.AutoModelForCausalLM.from_pretrained(gpt).eval()
    found = perplexity(spoken.speaker, spoken.judged, name="judged")
    assert found.value == pytest.approx(by_hand(model, spoken), rel=1e-5)
    assert (found.measure, found.per, found.n, found.sign) == ("perplexity.judged", "sequences", 12, -1)


@pytest.mark.parametrize("recipe", ["centre", "standardise", "abtt:2", "rogue"])
def test_a_repair_before_the_head_is_one_in_the_head(gpt: Path, spoken: Spoken, recipe: str) -> None:
    """W(Ax + c) + b as a layer of its own gives the same."""
    states = head_states(spoken.speaker, spoken.fitted)
    repair = fit(recipe, states, precise=True)
    model = copy.deepcopy(transformers.AutoModelForCausalLM.from_pretrained(gpt)).eval()
    matrix, offset = (part.float() for part in repair.affine())
    weight = model.lm_head.weight.detach()
    model.lm_head = nn.Linear(weight.shape[1], weight.shape[0])
    with torch.no_grad():
        model.lm_head.weight.copy_(weight @ matrix)
        model.lm_head.bias.copy_(weight @ offset)
    found = perplexity(spoken.speaker, spoken.judged, repair)
    assert found.value == pytest.approx(by_hand(model, spoken), rel=1e-4)


def test_states_are_what_enters_the_head(gpt: Path, spoken: Spoken) -> None:
    model = transformers.AutoModel.from_pretrained(gpt).eval()
    batch = next(iter(spoken.fitted))
    with torch.no_grad():
        wanted = model(input_ids=batch.tokens()).last_hidden_state[:, 1:]  # position 0 does not count
    ours = head_states(spoken.speaker, spoken.fitted)[: wanted.shape[0] * wanted.shape[1]]
    torch.testing.assert_close(ours, wanted.flatten(0, 1), atol=1e-5, rtol=1e-5)


def test_whitening_keeps_the_coordinates_of_the_model() -> None:
    cloud = torch.randn(400, 6).double() @ torch.randn(6, 6).double()
    whitening = fit("whiten", cloud)
    back = in_place(whitening)
    matrix = back.affine()[0]
    torch.testing.assert_close(matrix, matrix.T)
    torch.testing.assert_close(back.apply(cloud).T.cov(), torch.eye(6).double())
    assert in_place(fit("whiten:2", cloud)).gives == 6


def test_verdicts(spoken: Spoken) -> None:
    found = judge_spoken(spoken, ["centre", "standardise"])
    for each in found[1:]:
        assert each.changes[0].verdict != "cannot matter"  # centring moves every logit its own way
        assert each.outcomes[0].value != found[0].outcomes[0].value
    assert {row.measure for row in found[0].geometry} >= {"mean_cosine_between"}


def test_models_that_do_not_speak(tiny_bert: Path, tmp_path: Path) -> None:
    with pytest.raises(IsoscopeError, match="no perplexity"):
        open_speaker(load(str(tiny_bert), device="cpu"))
    torch.manual_seed(0)
    config = tiny.CONFIGS["bert"]()
    transformers.BertForMaskedLM(config).save_pretrained(tmp_path)
    tiny.tokenizer("both").save_pretrained(tmp_path)
    with pytest.raises(IsoscopeError, match="no perplexity"):
        open_speaker(load(str(tmp_path), device="cpu"))


def test_texts_that_share_a_line(gpt: Path, tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text(text(1))
    (tmp_path / "two.txt").write_text(text(2) + text(1, 3))
    model = load(str(gpt), device="cpu")
    with pytest.raises(IsoscopeError, match=r"3 lines of .*one.txt, which is judged, are in"):
        open_spoken(model, str(tmp_path / "one.txt"), str(tmp_path / "two.txt"))
    with pytest.raises(IsoscopeError, match="give --fit"):
        open_spoken(model, str(tmp_path / "one.txt"), None)


@pytest.mark.parametrize(
    "recipe", ["whiten", "whiten:3", "whiten:4,centre", "whiten,abtt:2", "standardise,whiten:5,whiten:2"]
)
def test_what_follows_a_whitening_is_turned_back_with_it(recipe: str) -> None:
    cloud = torch.randn(300, 6).double() @ torch.randn(6, 6).double() + 2
    repair = fit(recipe, cloud)
    turned = in_place(repair)
    there, back = repair.apply(cloud), turned.apply(cloud)
    assert back.shape == cloud.shape
    assert torch.allclose(there @ there.T, back @ back.T, atol=1e-9)  # the same but for a rotation
    if recipe.startswith("whiten") and "," not in recipe:
        matrix = turned.affine()[0]
        assert torch.allclose(matrix, matrix.T, atol=1e-9)  # QᵀSQ: no rotation at all
