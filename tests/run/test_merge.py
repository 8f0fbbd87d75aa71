"""Observations of parts of the data, made in other processes, merge into that of the whole."""

from __future__ import annotations

import dataclasses
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest
import torch

import isoscope
from isoscope.data.batch import Batch
from isoscope.run.observe.observation import Observation
from tests.models import tiny
from tests.run.independent import assert_merged

LENGTH, SIZE = 32, 4


def observe_part(folder: str, file: str, part: int, parts: int) -> Observation:
    """Every `parts`-th batch, from the `part`-th on."""
    loaded = isoscope.load(folder)
    data = isoscope.text(file, loaded.tokenizer, max_length=LENGTH, batch_size=SIZE)
    return isoscope.observe(loaded, list(data)[part::parts], counterfactual=False)


@pytest.mark.nightly
def test_two_processes(bert: str, lines: str) -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(observe_part, bert, lines, part, 2) for part in (0, 1)]
        first, second = (part.result(timeout=100) for part in waiting)
    whole = observe_part(bert, lines, 0, 1).frame()
    assert_merged(first.merge(second).frame(), whole)
    assert_merged(second.merge(first).frame(), whole)
    assert (first.frame().n < whole.n).any()


def test_halves_of_the_sequences(bert: str, lines: str) -> None:
    loaded = isoscope.load(bert)
    data = isoscope.text(lines, loaded.tokenizer, max_length=LENGTH, batch_size=SIZE)
    middle = len(data.sequences) // 2 // SIZE * SIZE  # whole batches, so the same hidden states
    data = dataclasses.replace(data, documents=tuple(range(len(data.sequences))))  # each a document
    halves = [
        dataclasses.replace(data, sequences=data.sequences[some], documents=data.documents[some])
        for some in (slice(middle), slice(middle, None))
    ]
    first, second = (isoscope.observe(loaded, half, counterfactual=False) for half in halves)
    assert_merged(first.merge(second).frame(), isoscope.observe(loaded, data, counterfactual=False).frame())


def test_an_observation_travels(bert: str, lines: str) -> None:
    seen = observe_part(bert, lines, 0, 3)
    again = pickle.loads(pickle.dumps(seen))
    assert again.frame().equals(seen.frame())
    assert again.measures == seen.measures


def test_what_does_not_merge() -> None:
    data = [tiny.ids()]
    bert = tiny.model("bert")
    whole = isoscope.observe(bert, data)
    with pytest.raises(ValueError, match="different sites do not merge"):
        whole.merge(isoscope.observe(bert, data, layers="0"))
    with pytest.raises(ValueError, match="different records do not merge"):
        whole.merge(isoscope.observe(bert, data, measures=["drift"]))


def test_merging_leaves_both_as_they_were() -> None:
    bert = tiny.model("bert")
    first, second = (isoscope.observe(bert, [tiny.ids(seed=seed)]) for seed in (1, 2))
    before = pickle.dumps((first.frame(), second.frame()))
    first.merge(second).frame()
    renewed = (dataclasses.replace(first).frame(), dataclasses.replace(second).frame())
    assert pickle.dumps(renewed) == before


def test_a_batch_made_by_hand_merges_too() -> None:
    bert = tiny.model("bert")
    counts = torch.ones(3, 24, dtype=torch.bool)
    counts[:, :20] = False
    seen = isoscope.observe(bert, [Batch(tiny.ids(), counts, torch.arange(3))])
    assert set(seen.merge(seen).frame().query("measure == 'mean_cosine'").n) == {2 * 12}
