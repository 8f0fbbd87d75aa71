"""An observation reads each measure once a site, for the layer and its heads together."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

import isoscope
from isoscope.measures.base import Measure
from tests.models import tiny


def counted(measure: Measure, reads: Counter[str]) -> Measure:
    def read(*records: Any) -> Any:
        reads[measure.name] += 1
        return measure.read(*records)

    return replace(measure, read=read)


def test_a_measure_is_read_once_a_site() -> None:
    seen = isoscope.observe(tiny.model("gpt2"), [tiny.ids()], heads=True)
    reads: Counter[str] = Counter()
    watched = replace(seen, measures=tuple(map(partial(counted, reads=reads), seen.measures)))
    table = watched.frame()
    watched.notes()
    assert table.equals(seen.frame())
    assert table["head"].notna().any()
    rows = table[table["head"].isna()].groupby("measure").size()
    assert reads and all(number <= rows[name] for name, number in reads.items())


def test_rows_bear_the_run_they_are_asked_for() -> None:
    seen = isoscope.observe(tiny.model("gpt2"), [tiny.ids()], measures=["drift", "entropy"])
    assert {row.run for row in seen.rows("one")} == {"one"}
    assert {row.run for row in seen.rows()} == {""}
    assert {row.model for row in seen.rows("two")} == {seen.model}
