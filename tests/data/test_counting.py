"""Which of the vectors at a site count: as the data says, pooled, flattened, or all with a remark."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from isoscope.data.batch import Batch
from isoscope.data.counting import select_counted
from isoscope.errors import IsoscopeError


def select(seen: Tensor, counts: Tensor | None) -> tuple[Tensor, Tensor, str]:
    found = select_counted(seen.shape, Batch({}, counts, torch.arange(2)))
    return found.of(seen), found.sequence, found.remark


def test_positions_that_count() -> None:
    seen = torch.arange(12.0).reshape(2, 3, 2)
    counts = torch.tensor([[True, False, True], [False, True, False]])
    points, sequence, remark = select(seen, counts)
    assert points.tolist() == [[0.0, 1.0], [4.0, 5.0], [8.0, 9.0]]
    assert sequence.tolist() == [0, 0, 1]
    assert remark == ""
    everything, sequence, remark = select(seen, None)
    assert torch.equal(everything, seen.reshape(6, 2))
    assert sequence.tolist() == [0, 0, 0, 1, 1, 1]
    assert remark == ""


@pytest.mark.parametrize("length", [16, 17, 19])
def test_a_pooled_position_counts_when_all_around_it_does(length: int) -> None:
    """A remainder that makes no whole position is left aside, as strided pooling does."""
    counts = torch.ones(2, length, dtype=torch.bool)
    counts[0, 0] = False  # spoils the first of four, and the second beside it
    counts[1, 11:] = False  # spoils the third and the fourth, and the second beside them
    counts[0, 16:] = False  # in the remainder
    seen = torch.arange(8.0).reshape(2, 4, 1)
    points, sequence, remark = select(seen, counts)
    assert points.flatten().tolist() == [2.0, 3.0, 4.0]
    assert sequence.tolist() == [0, 0, 1]
    assert remark == "pooled 4 to 1: counts where all around it do"


def test_lengths_that_do_not_fit_count_all_and_say_so() -> None:
    points, _, remark = select(torch.zeros(2, 5, 3), torch.zeros(2, 3, dtype=torch.bool))
    assert points.shape == (10, 3)
    assert remark == "5 positions where the data has 3: all of them counted"


def test_one_vector_a_sequence() -> None:
    points, sequence, remark = select(torch.zeros(2, 5), torch.ones(2, 3, dtype=torch.bool))
    assert points.shape == (2, 5)
    assert sequence.tolist() == [0, 1]
    assert remark == ""


def test_positions_laid_end_to_end() -> None:
    counts = torch.tensor([[True, False], [False, True]])
    points, sequence, _ = select(torch.arange(4.0)[:, None], counts)
    assert points.flatten().tolist() == [0.0, 3.0]
    assert sequence.tolist() == [0, 1]


@pytest.mark.parametrize("shape", [(3,), (2, 3, 4, 5), (3, 4, 5), (3, 5)])
def test_other_shapes_are_an_error(shape: tuple[int, ...]) -> None:
    with pytest.raises(IsoscopeError, match=r"what can be measured is \[sequences, positions, dimensions\]"):
        select(torch.zeros(shape), None)


def test_tokens_go_with_their_positions() -> None:
    counts = torch.tensor([[True, False, True], [False, True, False]])
    tokens = torch.tensor([[5, 6, 7], [8, 9, 4]])
    batch = Batch({}, counts, torch.arange(2))
    found = select_counted((2, 3, 2), batch, tokens=tokens)
    assert found.token is not None and found.token.tolist() == [5, 7, 9]
    assert (found.position % 2**32).tolist() == [1, 2, 1]
    pooled = select_counted((2, 1, 2), batch, tokens=tokens)
    assert pooled.token is None


def test_positions_of_different_grids_are_different_places() -> None:
    """But padding a batch further changes no position."""
    batch = Batch({}, torch.ones(2, 8, dtype=torch.bool), torch.arange(2))
    longer = Batch({}, torch.ones(2, 12, dtype=torch.bool), torch.arange(2))
    full = select_counted((2, 8, 3), batch).position
    padded = select_counted((2, 12, 3), longer).position
    before = torch.ones(2, 12, dtype=torch.bool)
    before[:, :4] = False
    left = select_counted((2, 12, 3), Batch({}, before, torch.arange(2))).position
    pooled = select_counted((2, 4, 3), batch).position
    spoken = select_counted((2, 8, 3), replace(batch, decoder_counts=batch.counts), decoder=True)
    assert set(full.tolist()) <= set(padded.tolist())
    assert left.tolist() == full.tolist()
    assert not set(full.tolist()) & {*pooled.tolist(), *spoken.position.tolist()}
