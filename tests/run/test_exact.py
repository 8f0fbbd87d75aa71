"""Every reading equals an independent float64 computation from materialised hidden states."""

from __future__ import annotations

import dataclasses
import random

import numpy as np
import pytest

import isoscope
from tests.laws.law_measures import MEASURES
from tests.run.independent import (
    ABSOLUTE,
    RELATIVE,
    Origin,
    assert_merged,
    assert_tables_agree,
    check,
    readings,
)
from tests.tiers import nightly


@pytest.mark.parametrize("pack", [False, *nightly(True)])
def test_a_tiny_bert(bert: str, lines: str, pack: bool) -> None:
    check(bert, lines, pack=pack, length=40, limit=40)


def test_any_order_of_the_inputs(bert: str, lines: str) -> None:
    loaded = isoscope.load(bert)
    data = isoscope.text(lines, loaded.tokenizer, pack=False, max_length=40, batch_size=7)
    mixed = list(data.sequences)
    random.Random(0).shuffle(mixed)
    other = dataclasses.replace(data, sequences=tuple(mixed))
    a, b = isoscope.observe(loaded, data, measures="all"), isoscope.observe(loaded, other, measures="all")
    assert_tables_agree(a.frame(), b.frame(), RELATIVE, ABSOLUTE)


def test_packed_batches_in_any_order_and_from_files(bert: str, lines: str) -> None:
    loaded = isoscope.load(bert)
    data = isoscope.text(lines, loaded.tokenizer, max_length=40, batch_size=7)
    batches = list(data)
    random.Random(1).shuffle(batches)
    once = isoscope.observe(loaded, data, measures="all").frame()
    # the same batches, so the same hidden states: only the order of the sums differs
    assert_merged(isoscope.observe(loaded, batches, measures="all").frame(), once)
    by_address = isoscope.observe(bert, lines, measures="all").frame()
    assert by_address.layer.tolist() == once.layer.tolist()


def test_the_independent_computation_knows_every_measure() -> None:
    x = np.random.default_rng(0).normal(size=(9, 3))
    number = np.arange(9)
    found = readings(x, Origin(number, number, number % 2, number % 3, number), x, x)
    assert set(found) == {measure.name for measure in MEASURES}


def test_the_check_can_fail(bert: str, lines: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Were special tokens counted as data, or one part in ten thousand lost, it would be seen."""
    from tests.run import independent

    true = independent.readings
    off = {"mean_norm": 1 + 1e-4}
    monkeypatch.setattr(
        independent,
        "readings",
        lambda *cloud: {name: value * off.get(name, 1) for name, value in true(*cloud).items()},
    )
    with pytest.raises(AssertionError, match="mean_norm"):
        check(bert, lines, pack=True, length=40, limit=20)
