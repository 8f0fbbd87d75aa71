"""Rows of schema 1 get the typed columns of schema 2 from their names and notes."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from isoscope.results.schema1 import COLUMNS_1, upgraded, upgraded_facts

EMPTY = {"tag": "", "p": math.nan, "arm": "", "seed": math.nan, "setting": math.nan, "about": ""}


def rows(**given: object) -> pd.DataFrame:
    line = {"run": "r", "model": "m", "revision": "", "step": None, "kind": "layer", "layer": 1, "head": None}
    line |= {"measure": "drift", "value": 0.5, "n": 9, "null": 0.0, "low": 0.4, "high": 0.6, "note": ""}
    return pd.DataFrame([line | given]).astype(COLUMNS_1)


@pytest.mark.parametrize(
    ("given", "typed"),
    [
        ({}, {}),
        ({"model": "post, bias 0.5", "revision": "seed 3"}, {"arm": "post", "setting": 0.5, "seed": 3}),
        ({"model": "1 layer, 1 head: none", "revision": "seed 0"}, {"arm": "1 layer, 1 head", "seed": 0}),
        (
            {"model": "1 layer, 1 head: λ 0.1, τ 2", "revision": "seed 0"},
            {"arm": "1 layer, 1 head", "about": "λ 0.1", "setting": 2.0, "seed": 0},
        ),
        (
            {"model": "width 64, heads 4", "revision": "seed 0"},
            {"arm": "heads 4", "setting": 64.0, "seed": 0},
        ),
        ({"revision": "entropy 0.4, seed 2"}, {"arm": "m", "setting": 0.4, "seed": 2}),
        ({"revision": "seedling"}, {}),
        ({"measure": "trace", "note": "regime: middle_early; simulated"}, {"tag": "middle_early"}),
        ({"measure": "trace", "note": "regimes: 3 late · 1 early; 1 left out"}, {"tag": "3 late · 1 early"}),
        (
            {"measure": "jump_in_drift", "note": "by +1, p = 0.02"},
            {"tag": "jump", "about": "drift", "p": 0.02},
        ),
        ({"measure": "s.sts.change", "note": "hurt"}, {"tag": "hurt", "about": "s.sts"}),
        ({"measure": "s.sts.change", "note": "of no kind"}, {"tag": "undefined", "about": "s.sts"}),
        ({"note": "nominal p = 1e-05"}, {"p": 1e-05}),
    ],
)
def test_a_row_is_typed(given: dict[str, object], typed: dict[str, object]) -> None:
    found = upgraded(rows(**given), {}).iloc[0]
    for name, expected in (EMPTY | typed).items():
        value = math.nan if found[name] is pd.NA else found[name]
        assert (
            value == expected if isinstance(expected, str) else value == pytest.approx(expected, nan_ok=True)
        )


def test_findings_are_taken_off_the_notes() -> None:
    facts = {"findings": [{"words": "a twin of step 2."}, {"words": "out of order."}]}
    for note, plain in (
        ("a twin of step 2.; out of order.", ""),
        ("few layers; a twin of step 2.; out of order.", "few layers"),
        ("few layers", "few layers"),
    ):
        assert upgraded(rows(note=note), facts).iloc[0]["note"] == plain


def test_the_note_on_the_budget_has_a_place_of_its_own() -> None:
    assert upgraded_facts({"notes": ["heed", "a budget of 2 % …"]})["budget note"] == "a budget of 2 % …"
    assert upgraded_facts({})["budget note"] == ""
