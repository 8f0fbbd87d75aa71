"""While remembering, checkpoints of one model are looked at once; another model is looked at by itself."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from weakref import ref

import pytest
import torch
import transformers

from isoscope import load, observe
from isoscope.data.batch import as_batch
from isoscope.models import survey as module
from isoscope.models.survey import remembering, survey

IDS = torch.arange(20).view(2, 10)


def gpt2(seed: int = 0, layers: int = 2) -> transformers.GPT2Model:
    torch.manual_seed(seed)
    config = transformers.GPT2Config(
        vocab_size=32, n_positions=16, n_embd=8, n_layer=layers, n_head=2, bos_token_id=0, eos_token_id=0
    )
    return transformers.GPT2Model(config).eval()


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How often a model was really looked at."""
    module._last.clear()
    seen: list[object] = []
    really = module._survey
    monkeypatch.setattr(module, "_survey", lambda model, batch: seen.append(model) or really(model, batch))
    return lambda: len(seen)


def test_another_checkpoint_is_not_looked_at_and_gives_its_own_rows(looks: Callable[[], int]) -> None:
    alone = [observe(gpt2(seed), [IDS], seed=0).rows() for seed in (0, 1)]
    before = looks()
    with remembering():
        again = [observe(gpt2(seed), [IDS], seed=0).rows() for seed in (0, 1)]
    assert looks() == before + 1
    assert [str(rows) for rows in again] == [str(rows) for rows in alone]
    assert str(alone[0]) != str(alone[1])


def test_folders_of_one_model_are_alike(looks: Callable[[], int], tmp_path: Path) -> None:
    for seed in (0, 1):
        gpt2(seed).save_pretrained(tmp_path / str(seed))
    with remembering():
        for seed in (0, 1):
            observe(load(str(tmp_path / str(seed)), device="cpu"), [IDS], measures=["mean_cosine"])
    assert looks() == 1


def test_blocks_are_those_of_the_model_at_hand(looks: Callable[[], int]) -> None:
    one, other = gpt2(0), gpt2(1)
    with remembering():
        survey(one, as_batch(IDS, seed=0))
        found = survey(other, as_batch(IDS, seed=0))
    assert [found.blocks[name] for name in found.blocks] == list(other.h)


@pytest.mark.parametrize("change", ["layers", "dtype", "shape", "config", "part", "not remembering"])
def test_what_differs_is_looked_at(change: str, looks: Callable[[], int]) -> None:
    with remembering():
        survey(gpt2(), as_batch(IDS, seed=0))
        other = gpt2(1, layers=3 if change == "layers" else 2)
        if change == "dtype":
            other.double()
        if change == "config":
            other.config._attn_implementation = "eager"
            other.config.scale_attn_by_inverse_layer_idx = True
        if change == "part":
            other.h[1].mlp = torch.nn.Identity()
        if change != "not remembering":
            survey(other, as_batch(IDS[:, :7] if change == "shape" else IDS, seed=0))
    if change == "not remembering":
        survey(other, as_batch(IDS, seed=0))
    assert looks() == 2


def test_no_model_is_held() -> None:
    module._last.clear()
    model = gpt2()
    with remembering():
        survey(model, as_batch(IDS, seed=0))
    gone = ref(model.h[0])
    del model
    gc.collect()
    assert gone() is None
