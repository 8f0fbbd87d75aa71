"""What a user's loop yields becomes a batch."""

from __future__ import annotations

import pytest
import torch

from isoscope.data.batch import Batch, as_batch
from isoscope.errors import IsoscopeError

IDS = torch.tensor([[5, 6, 7], [8, 9, 1]])
MASK = torch.tensor([[1, 1, 1], [1, 1, 0]])


def test_a_tensor() -> None:
    batch = as_batch(IDS, seed=0)
    assert batch.counts is None
    assert len(batch) == 2
    assert torch.equal(as_batch(IDS.flip(0), seed=0).keys, batch.keys.flip(0))


def test_a_batch_is_left_alone() -> None:
    batch = Batch(IDS, None, torch.arange(2))
    assert as_batch(batch, seed=0) is batch


def test_a_mapping_with_a_mask() -> None:
    batch = as_batch({"attention_mask": MASK, "input_ids": IDS}, seed=0)
    assert batch.counts is not None
    assert batch.counts.tolist() == MASK.bool().tolist()
    longer = {
        "input_ids": torch.tensor([[5, 6, 7, 1, 1], [8, 9, 1, 1, 1]]),
        "attention_mask": torch.tensor([[1, 1, 1, 0, 0], [1, 1, 0, 0, 0]]),
    }
    assert torch.equal(as_batch(longer, seed=0).keys, batch.keys), "padding is not part of a key"


@pytest.mark.parametrize("axis", [0, 1])
def test_the_padding_mask_of_torch_says_the_opposite(axis: int) -> None:
    x = torch.randn(2, 3, 4)
    inputs = {"src": x.movedim(0, axis), "src_key_padding_mask": ~MASK.bool()}
    batch = as_batch(inputs, seed=0, batch_axis=axis)
    assert batch.counts is not None
    assert batch.counts.tolist() == MASK.bool().tolist()
    assert len(batch) == 2
    x[1, 2] = 0.0  # padding
    assert torch.equal(as_batch(inputs, seed=0, batch_axis=axis).keys, batch.keys)


def test_the_first_sequence_alone() -> None:
    first = as_batch({"input_ids": IDS, "attention_mask": MASK, "scale": torch.ones(3)}, seed=0).first()
    assert {name: tuple(x.shape) for name, x in first.inputs.items()} == {
        "input_ids": (1, 3),
        "attention_mask": (1, 3),
        "scale": (3,),
    }
    assert len(first) == 1
    assert as_batch(torch.randn(7, 5, 4), seed=0, batch_axis=1).first(1).inputs.shape == (7, 1, 4)


@pytest.mark.parametrize("item", ["text", 3, [IDS], {"labels": 3}, {1: IDS}])
def test_what_is_no_batch(item: object) -> None:
    name = type(item).__name__
    with pytest.raises(
        IsoscopeError, match=f"a batch is a tensor, a mapping of names to tensors, or a Batch; got {name}"
    ):
        as_batch(item, seed=0)
