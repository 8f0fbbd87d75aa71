"""Keys depend on content and seed alone, and spread sequences evenly over groups and halves."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from isoscope.data.batch import as_batch
from isoscope.data.keys import content_keys
from isoscope.stats.seen import GROUPS


def tokens(n: int = 4000, length: int = 12, seed: int = 0) -> torch.Tensor:
    return torch.randint(0, 50, (n, length), generator=torch.Generator().manual_seed(seed))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**31), size=st.integers(1, 40))
def test_a_key_does_not_depend_on_the_batch_or_the_order(seed, size):
    rows = tokens(40, seed=seed)
    whole = content_keys(rows, seed)
    order = torch.randperm(40, generator=torch.Generator().manual_seed(seed))
    assert torch.equal(content_keys(rows[order], seed), whole[order])
    assert torch.equal(torch.cat([content_keys(part, seed) for part in rows.split(size)]), whole)


def test_a_key_does_not_depend_on_the_padding():
    rows = tokens(3, 5)
    mask = torch.tensor([[1] * 5, [1, 1, 1, 0, 0], [0, 1, 1, 1, 1]])
    padded = as_batch({"input_ids": rows, "attention_mask": mask}, seed=3).keys
    alone = [content_keys(row[own.bool()][None], 3) for row, own in zip(rows, mask, strict=True)]
    assert torch.equal(padded, torch.cat(alone))


@pytest.mark.parametrize(
    "rows",
    [tokens(), torch.arange(4000)[:, None], torch.randn(4000, 3)],
    ids=["tokens", "numbers", "vectors"],
)
def test_groups_and_halves_are_even_and_independent(rows):
    keys = content_keys(rows, 0)
    group, half = keys % GROUPS, (keys // GROUPS) % 2
    counts = torch.zeros(GROUPS, 2).index_put((group, half), torch.ones(len(keys)), accumulate=True)
    assert stats.chisquare(counts.flatten().numpy()).pvalue > 1e-4
    assert stats.chi2_contingency(counts.numpy()).pvalue > 1e-4
    assert (keys >= 0).all() and len(keys.unique()) == len(rows.unique(dim=0))


def test_another_seed_makes_other_groups():
    one, other = (content_keys(tokens(), seed) % GROUPS for seed in (0, 1))
    assert float((one == other).double().mean()) == pytest.approx(1 / GROUPS, abs=0.015)


def test_what_is_swapped_or_moved_has_another_key():
    rows = torch.tensor([[1, 2, 3], [3, 2, 1], [2, 1, 3], [0, 1, 2], [1, 2, 0]])
    assert len(content_keys(rows, 0).unique()) == 5


def test_no_rows_have_no_keys_and_an_empty_row_has_one():
    assert content_keys(torch.zeros(0, 4), 0).shape == (0,)
    assert content_keys(torch.zeros(2, 0), 0).shape == (2,)
