"""Every sentence on attention: where it must be said and, at the edge of its condition, where it must not."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from isoscope.results.row import Row
from tests.show.made import attention_rows, row
from tests.show.said import HEADLINE, Case, Table, cases

NAN = math.nan
DRIFT, CROSS = "drift in attention", "cross_attention"


def attended(measure: str, *values: float, half: float | None = None, **at: object) -> list[Row]:
    """One row a layer of attention, from layer 1 on."""
    where = {"kind": "attention"} | at
    return [row(measure, value, half=half, **{"layer": i, **where}) for i, value in enumerate(values, 1)]


def bound(measure: str, low: float, high: float, **at: object) -> list[Row]:
    """A row of the attention of layer 1 by its interval."""
    place = {"kind": "attention", "layer": 1} | at
    return [row(measure, (low + high) / 2, low=low, high=high, **place)]


def sink(whole: tuple[float, float], without: tuple[float, float], random: tuple[float, float]) -> list[Row]:
    """A sink by the intervals of its mass as it is, without the mean query and without a random vector."""
    ends = {"": whole, "_without_drift": without, "_without_random": random}
    return [r for end, of in ends.items() for r in bound(f"sink_mass{end}", *of, null=0.01)]


def entropies(whole: float, without: float, random: float, half: float | None = 0.01) -> list[Row]:
    """A drift share, and the normalised entropy as it is, without the mean query, without a random vector."""
    ends = {"": whole, "_without_drift": without, "_without_random": random}
    rows = [r for end, x in ends.items() for r in attended(f"normalised_entropy{end}", x, half=half)]
    return [*attended("drift_share", 0.4, null=0.01), *rows]


def share(value: float, cross: float = 0.0, null: float = 0.01, **at: object) -> list[Row]:
    return [*attended("drift_share", value, null=null, **at), *attended("cross_term", cross, **at)]


CARRIED = sink((0.30, 0.32), (0.0, 0.03), (0.25, 0.3))  # excess .30: at most .03 is left, at least .15 stays
STAYS = sink((0.30, 0.32), (0.16, 0.2), (0.3, 0.3))

FOUND: Table = {
    "attention": (
        (
            "The normalised entropy of attention is 0.5; even attention has 1.",
            attended("normalised_entropy", 0.5),
            attended("normalised_entropy", 0.5, 0.6),
        ),
        (
            "The normalised entropy of attention is 0.5 in layer 1 to 0.6 in layer 2; even",
            attended("normalised_entropy", 0.5, 0.6),
            attended("normalised_entropy", 0.5),
        ),
        (
            "The share of attention on the first token is 0.3; chance gives 0.01.",
            attended("sink_mass", 0.3, null=0.01),
            attended("sink_mass", 0.3, null=NAN),
        ),
        (
            "Cross-attention: the share of attention on the first token is 0.2",
            [*attended("sink_mass", 0.3), *attended("sink_mass", 0.2, kind=CROSS)],
            [*attended("sink_mass", 0.2), *attended("sink_mass", 0.3, kind=CROSS)],
        ),
        (
            "is up to 0.4 in layer 2",
            attended("sink_mass", 0.3, 0.4),
            attended("sink_mass", 0.4),
        ),
        (
            "Cross-attention: the share",
            [*attended("sink_mass", 0.3), *attended("sink_mass", 0.3, kind=CROSS)],
            attended("sink_mass", 0.3, kind=CROSS),
        ),
    ),
    DRIFT: (
        (
            "40 % of the variance of scores within rows is drift (chance 1 %).",
            share(0.4),
            share(0.4, null=NAN),
        ),
        (
            "Up to 40 % of the variance of scores within rows is drift in layer 2",
            attended("drift_share", 0.3, 0.4),
            attended("drift_share", 0.4),
        ),
        (
            "(95 % interval 30 % to 50 %; chance 0 %)",
            attended("drift_share", 0.4, half=0.1),
            attended("drift_share", 0.4),
        ),
        ("cross term 0.201, so no clean split", share(0.4, 0.201), share(0.4, 0.2)),
        ("so no clean split", share(0.4, -0.201), share(0.4, -0.2)),
        (
            "Without the mean query the normalised entropy there rises from 0.50 to 0.52",
            entropies(0.5, 0.521, 0.5),
            entropies(0.5, 0.514, 0.5),
        ),
        ("there falls from 0.52 to 0.50", entropies(0.521, 0.5, 0.5), entropies(0.514, 0.5, 0.5)),
        ("there rises", entropies(0.25, 0.75, 0.25, 0.2), entropies(0.25, 0.75, 0.25, 0.36)),
        ("there falls", entropies(0.75, 0.25, 0.25, 0.2), entropies(0.75, 0.25, 0.25, 0.36)),
        ("; without a random vector", entropies(0.5, 0.9, 0.5), entropies(0.5, 0.9, 0.5)[:-1]),
        ("Without the mean query", entropies(0.5, 0.9, 0.5), entropies(0.5, 0.9, 0.5)[:-2]),
        ("is drift (", share(0.4), share(0.4, null=NAN)),
        ("Up to", attended("drift_share", 0.3, 0.4), attended("drift_share", 0.4)),
        ("is drift in layer", attended("drift_share", 0.3, 0.4), attended("drift_share", 0.4)),
        (
            "the normalised entropy there is 0.51, with it 0.50",
            entropies(0.5, 0.514, 0.5),
            entropies(0.5, 0.521, 0.5),
        ),
        ("there is 0.90, with it", entropies(0.5, 0.9, 0.5, half=None), entropies(0.5, 0.9, 0.5)),
        (
            "of the same length it goes to 0.60",
            entropies(0.5, 0.9, 0.604),
            entropies(0.5, 0.9, 0.596),
        ),
        ("of the same length it goes to 0.10", entropies(0.5, 0.9, 0.1), entropies(0.5, 0.9, 0.5)),
        (
            "of the same length it stays at 0.60",
            entropies(0.5, 0.9, 0.596),
            entropies(0.5, 0.9, 0.604),
        ),
        (
            "The sink of layer 1 is carried by the mean query: the first token takes 0.31, without the mean "
            "query 0.01 (chance 0.01), without a random vector 0.28.",
            sink((0.30, 0.32), (0.0, 0.029), (0.25, 0.3)),
            STAYS,
        ),
        ("carried", CARRIED, sink((0.30, 0.32), (0.0, 0.045), (0.25, 0.3))),  # more than a tenth may be left
        ("carried", CARRIED, sink((0.30, 0.32), (0.0, 0.03), (0.15, 0.3))),  # the control may take half
        ("carried", CARRIED, sink((0.059, 0.57), (0.0, 0.03), (0.25, 0.3))),  # may be no sink
        (
            "carried",
            [
                r
                for e, o in (
                    ("", (0.161, 0.2)),
                    ("_without_drift", (0.05, 0.05)),
                    ("_without_random", (0.17, 0.2)),
                )
                for r in bound(f"sink_mass{e}", *o, null=0.05)
            ],
            [
                r
                for e, o in (
                    ("", (0.149, 0.2)),
                    ("_without_drift", (0.05, 0.05)),
                    ("_without_random", (0.17, 0.2)),
                )
                for r in bound(f"sink_mass{e}", *o, null=0.05)
            ],
        ),  # chance alone gives a third of it
        ("carried", CARRIED, [*attended("sink_mass", 0.31, null=0.01), *CARRIED[1:]]),
        ("carried", CARRIED, [*CARRIED[:1], *attended("sink_mass_without_drift", 0.01), *CARRIED[2:]]),
        ("carried", CARRIED, [*CARRIED[:2], *attended("sink_mass_without_random", 0.3)]),
        ("carried", CARRIED, CARRIED[:2]),
        (
            "carried",
            sink((0.0605, 0.0695), (0.0, 0.015), (0.05, 0.06)),
            sink((0.0595, 0.0705), (0.0, 0.015), (0.05, 0.06)),
        ),
        (
            "carried",
            sink((0.30, 0.32), (0.0, 0.0399), (0.25, 0.3)),
            sink((0.30, 0.32), (0.0, 0.0401), (0.25, 0.3)),
        ),
        (
            "The sink of layer 1 is carried",
            [*CARRIED, *(replace(r, layer=2) for r in STAYS)],
            [*(replace(r, layer=2) for r in CARRIED), *STAYS],
        ),
        ("carried", CARRIED, CARRIED[::2]),
        (
            "In layer 1 most of the sink stays without the mean query (0.18 of 0.31).",
            sink((0.30, 0.32), (0.161, 0.2), (0.3, 0.3)),
            sink((0.30, 0.32), (0.159, 0.2), (0.3, 0.3)),
        ),
    ),
    "queries": (
        (
            "In units of the mean length, the mean key is 0.4; chance gives 0.03.",
            [
                *attended("query_relative_drift", 0.5, null=0.03),
                *attended("key_relative_drift", 0.4, null=0.03),
            ],
            attended("query_relative_drift", 0.5, null=0.03),
        ),
        (
            "the mean query is up to 0.5 in layer 2; chance gives 0.03.",
            attended("query_relative_drift", 0.4, 0.5, null=0.03),
            attended("query_relative_drift", 0.5, null=0.03),
        ),
        (
            "The mean query and the mean key point to the same side in 1 of 1 heads, to opposite sides in 0.",
            bound("query_key_cosine", 0.001, 0.2, head=0),
            bound("query_key_cosine", 0.0, 0.2, head=0),
        ),
        (
            "to opposite sides in 1.",
            bound("query_key_cosine", -0.2, -0.001, head=0),
            bound("query_key_cosine", -0.2, 0.0, head=0),
        ),
        (
            "The cosine of the mean query and the mean key, averaged over heads, is 0.1.",
            attended("query_key_cosine", 0.1),
            [*attended("query_key_cosine", 0.1), *bound("query_key_cosine", 0.1, 0.2, head=0)],
        ),
        (
            "is 0.1 in layer 1 to 0.2 in layer 2.",
            attended("query_key_cosine", 0.1, 0.2),
            attended("query_key_cosine", 0.1),
        ),
        (
            "averaged over heads",
            [*attended("query_key_cosine", 0.1), *attended("query_key_cosine", 0.1, head=0)],
            bound("query_key_cosine", 0.1, 0.2, head=0),
        ),
    ),
    HEADLINE: (
        (
            "40 % of the variance of scores within rows is drift.",
            share(0.4),
            share(0.4, 0.21),
        ),
        ("is drift (cross term −0.3, so no clean split).", share(0.4, -0.3), share(0.4, -0.2)),
        ("within rows is drift", share(0.021), share(0.02)),
        ("within rows is drift", share(0.4), share(0.4, null=NAN)),
        (
            "Up to 40 % of the variance of scores within rows is drift in layer 2.",
            attended("drift_share", 0.3, 0.4),
            share(0.4),
        ),
        ("The sink of layer 1 is carried by the mean query.", CARRIED, STAYS),
        ("; the sink of layer 1 is carried by the mean query.", [*share(0.4), *CARRIED], CARRIED),
        (
            "At step 5, 40 % of the variance",
            [r for step in (0, 5) for r in attended("drift_share", 0.4, step=step)],
            attended("drift_share", 0.4, step=5),
        ),
        (
            "At step 5, 60 %",
            [*share(0.4, step=0), *share(0.6, step=5)],
            [*share(0.6, step=0), *share(0.4, step=5)],
        ),
        ("is drift", share(0.4), [*share(0.4), *share(0.4, model="other")]),
        ("is drift", attention_rows(0.4), attention_rows(0.4, kind=CROSS)),
    ),
}
CASES = cases(FOUND)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_sentence_is_said_where_it_holds_and_only_there(case: Case) -> None:
    assert case.words in case.there()
    assert case.words not in case.elsewhere()
