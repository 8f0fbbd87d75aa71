"""What one look settles: the hidden state among tensors, the axis of sequences, the decoder's sites."""

from __future__ import annotations

import pytest
import torch
import transformers
from torch import Tensor, nn

import isoscope
from isoscope.data.batch import as_batch
from isoscope.errors import IsoscopeError
from isoscope.models.survey import survey
from tests.models import modal, tiny

WIDTH = 8


class Odd(nn.Module):
    """A block that takes and gives its hidden state among other tensors."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.form = form
        self.first, self.second = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, one: Tensor, other: Tensor) -> object:
        x = other if self.form == "second argument" else one
        hidden = x + self.second(self.first(x).relu())
        weights = hidden @ hidden.transpose(1, 2)
        match self.form:
            case "weights first":
                return weights, hidden
            case "mapping":
                return {"weights": weights, "hidden": hidden}
        return hidden


class OddModel(nn.Module):
    def __init__(self, form: str) -> None:
        super().__init__()
        self.form = form
        self.blocks = nn.ModuleList(Odd(form) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        bias = torch.zeros_like(x)
        for block in self.blocks:
            given = block(bias, x) if self.form == "second argument" else block(x, bias)
            x = (
                given
                if isinstance(given, Tensor)
                else given[1]
                if isinstance(given, tuple)
                else given["hidden"]
            )
        return x


@pytest.mark.parametrize("form", ["plain", "weights first", "mapping", "second argument"])
def test_the_hidden_state_is_what_the_next_block_takes_up(form: str) -> None:
    torch.manual_seed(0)
    plain = OddModel("plain")
    model = OddModel(form)
    model.load_state_dict(plain.state_dict())
    batches = [torch.randn(10, 9, WIDTH)]
    expected, found = isoscope.observe(plain, batches).frame(), isoscope.observe(model, batches).frame()
    assert found.value.equals(expected.value)


class Attending(nn.Module):
    """A block around torch.nn's attention, which takes sequences second unless told."""

    def __init__(self, batch_first: bool, swap: bool) -> None:
        super().__init__()
        self.swap = swap
        self.attention = nn.MultiheadAttention(WIDTH, 2, batch_first=batch_first)
        self.mlp = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        inside = x.transpose(0, 1) if self.swap else x
        mixed = self.attention(inside, inside, inside)[0]
        return x + self.mlp(mixed.transpose(0, 1) if self.swap else mixed)


class Around(nn.Module):
    """Embeds ids, and runs the blocks on what flows as [b, t, d] or, `turned`, as [t, b, d]."""

    def __init__(self, batch_first: bool, swap: bool, turned: bool) -> None:
        super().__init__()
        self.turned = turned
        self.embed = nn.Embedding(30, WIDTH)
        self.blocks = nn.ModuleList(Attending(batch_first, swap) for _ in range(2))

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids)
        x = x.transpose(0, 1) if self.turned else x
        for block in self.blocks:
            x = block(x)
        return x


@pytest.mark.parametrize(
    ("batch_first", "swap", "turned"), [(True, False, False), (False, True, False), (False, False, True)]
)
@pytest.mark.parametrize("size", [7, 12])
def test_sequences_are_told_from_positions(batch_first: bool, swap: bool, turned: bool, size: int) -> None:
    """However a model turns its tensors inside, the readings are those of the plain one."""
    torch.manual_seed(1)
    plain, model = Around(True, False, False).eval(), Around(batch_first, swap, turned).eval()
    model.load_state_dict(plain.state_dict())
    batches = [torch.randint(30, (size, 12)), torch.randint(30, (size, 12))]
    names = ["mean_cosine_between", "relative_drift"]
    expected = isoscope.observe(plain, batches, measures=names).frame()
    found = isoscope.observe(model, batches, measures=names).frame()
    for column in ("value", "low", "high"):
        torch.testing.assert_close(
            torch.tensor(found[column].to_numpy()), torch.tensor(expected[column].to_numpy()), equal_nan=True,
            rtol=1e-5, atol=1e-6,
        )  # fmt: skip


def test_sequences_second_throughout() -> None:
    torch.manual_seed(2)
    plain, model = Around(True, False, False).eval(), Around(False, False, False).eval()
    model.load_state_dict(plain.state_dict())
    ids = torch.randint(30, (9, 12))
    expected = isoscope.observe(plain, [ids], measures=["mean_cosine_between"]).frame()
    found = isoscope.observe(model, [ids.T], measures=["mean_cosine_between"]).frame()
    assert found.value.tolist() == pytest.approx(expected.value.tolist(), rel=1e-5)
    assert found.low.tolist() == pytest.approx(expected.low.tolist(), rel=1e-4)


def test_decoder_positions_have_their_own_padding() -> None:
    model = modal.build("t5")
    ids, fed = torch.randint(5, 90, (4, 10)), torch.randint(5, 90, (4, 6))
    mask = torch.ones_like(ids)
    mask[:, 7:] = 0
    batch = {"input_ids": ids, "attention_mask": mask, "decoder_input_ids": fed}
    table = isoscope.observe(model, [batch], measures=["mean_norm"], **tiny.EVERY).frame()
    assert table.n.tolist() == [28] * 4 + [24] * 4
    batch["decoder_attention_mask"] = torch.ones_like(fed).tril()[:, :6]
    table = isoscope.observe(model, [batch], measures=["mean_norm"], **tiny.EVERY).frame()
    assert table.n.tolist() == [28] * 4 + [int(batch["decoder_attention_mask"].sum())] * 4


@pytest.mark.parametrize("form", ["bool", "additive", "keys"])
def test_padding_in_a_full_mask_does_not_count(form: str) -> None:
    model = tiny.model("bert")
    ids = torch.randint(5, 90, (3, 8))
    keep = torch.ones(3, 8, dtype=torch.bool)
    keep[1:, 5:] = False
    square = (
        keep[:, None, None, :] & keep[:, None, :, None]
        | torch.eye(8, dtype=torch.bool) & keep[:, None, None, :]
    )
    masks = {
        "bool": square,
        "additive": torch.where(square, 0.0, torch.finfo(torch.float32).min),
        "keys": keep[:, None, None, :].expand(3, 1, 1, 8),
    }
    found = as_batch({"input_ids": ids, "attention_mask": masks[form]}, seed=0)
    assert found.counts is not None
    assert torch.equal(found.counts, keep)
    table = isoscope.observe(
        model, [{"input_ids": ids, "attention_mask": masks["bool"]}], measures=["mean_norm"], **tiny.EVERY
    )
    assert (table.frame().n == int(keep.sum())).all()


def test_keys_are_of_content_not_of_masks() -> None:
    embedded = torch.randn(6, 5, 4)
    mask = torch.ones(6, 5, dtype=torch.long)
    keys = as_batch({"attention_mask": mask, "token_type_ids": mask, "inputs_embeds": embedded}, seed=0).keys
    assert len(set(keys.tolist())) == 6


def test_a_model_that_cannot_run_on_the_data_says_so() -> None:
    model = transformers.T5Model(transformers.T5Config(**modal._T5))
    with pytest.raises(IsoscopeError, match="T5Model cannot be run on this data: You must specify"):
        isoscope.observe(model, [{"input_ids": torch.randint(5, 90, (2, 6))}])


def test_experts_side_by_side_are_no_layers() -> None:
    """A chain inside a block is a stage; a set of experts is not, though it is a list of like parts."""

    class Experts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mix = nn.Linear(WIDTH, WIDTH)
            self.experts = nn.ModuleList(
                nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH)) for _ in range(3)
            )

        def forward(self, x: Tensor) -> Tensor:
            return self.mix(x) + sum(expert(x) for expert in self.experts)

    model = nn.Sequential(*(Experts() for _ in range(2)))
    assert list(survey(model, as_batch(torch.randn(2, 5, WIDTH), seed=0)).blocks) == ["0", "1"]
