"""Advice at the edge of its conditions (all of it is in tests/repair/test_advice.py), and its headlines."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from isoscope.kinds.advise.findings import NONE, Findings, Space
from isoscope.kinds.advise.screen import advice, headline
from isoscope.show.readings import SiteReading
from tests.repair.test_advice import (
    CONE,
    GROUPS,
    UNEVEN,
    bare,
    before,
    centred,
    dimensions,
    number,
    of_tokens,
    space,
)
from tests.show.said import Case


def said(found: Findings) -> str:
    return "\n".join(one.text for one in advice(found))


def between(low: float, high: float, null: float = 0.0) -> SiteReading:
    return replace(bare((low + high) / 2, null, 500), low=low, high=high)


def joined(low: float, high: float, null: float = 0.02, width: int = 100) -> Findings:
    """Three dimensions, the third with those before it in this interval."""
    few = dimensions(0.1, 0.1, 0.1)
    last = replace(few[2], joined=between(low, high, null))
    return replace(CONE, dimensions=(*few[:2], last), width=width)


def quantiles(least: float, most: float, mean: float = 0.4) -> Findings:
    own = CONE.before.quantiles
    return before(cosine=number(mean), quantiles={**own, 5: bare(least), 95: bare(most)})


def tried(*after: Space) -> Findings:
    return replace(CONE, after=after)


def evenness(rank: float, score: float) -> Findings:
    return before(rank=bare(rank, null=100, n=500), isoscore=bare(score, null=1.0, n=500))


def whitened(score: float, null: float = 0.9) -> Findings:
    return replace(UNEVEN, after=(replace(UNEVEN.after[0], isoscore=bare(score, null=null)),))


WEAKLY, UNSURE = before(cosine=between(0.02, 0.09)), before(cosine=between(0.02, 0.4))
LEFT = space("centre", 0.3, 0.9)
NEAR = replace(space("abtt:3", 0.0), cosine=between(-0.099, 0.099))
FAR = replace(NEAR, cosine=between(-0.1, 0.099), kept=number(0.9))
KEPT = [replace(NEAR, kept=number(0.9)), replace(NEAR, name="whiten", kept=between(0.87, 0.889))]
HUBS = {"anti_hubs": between(0.101, 0.2)}
LINES: tuple[tuple[str, Findings, Findings], ...] = (  # some words, where they are said, where not
    ("over many dimensions \\(effective", evenness(50, 0.8), evenness(49, 0.8)),
    ("over few of the 100", evenness(49, 0.9), evenness(50, 0.9)),
    ("over many dimensions, unevenly", evenness(50, 0.49), evenness(50, 0.5)),
    ("About their mean", CONE, before(rank=NONE)),
    (
        "All vectors have the same length",
        before(norm_variation=bare(0.00099)),
        before(norm_variation=bare(0.001)),
    ),
    (
        "Lengths vary by",
        before(norm_variation=bare(0.201)),
        before(norm_variation=bare(0.2)),
    ),
    ("are copies of another", before(copies=bare(0.01)), before(copies=bare(0.0099))),
    ("neighbours of none", before(**HUBS), before(anti_hubs=between(0.1, 0.2))),
    (
        "^2 of 1000 vectors have NaN",
        before(left_out=bare(2, n=1000)),
        before(left_out=bare(1, n=1000)),
    ),
    ("^1 of 1000 vectors are zero and are left out", before(no_direction=bare(1, n=1000)), CONE),
    ("2 of 100 dimensions are the same", before(constant=bare(2)), CONE),
    (
        "Frequent tokens",
        of_tokens(frequent=number(0.06), rarer=number(0.0)),
        of_tokens(frequent=number(0.05), rarer=number(0.0)),
    ),
    (
        "All tokens point",
        of_tokens(with_special=number(0.06), cosine=number(0.0)),
        of_tokens(with_special=number(0.05), cosine=number(0.0)),
    ),
    (
        "(carry|carries) .* of the mean cosine",
        joined(0.01, 0.1),
        replace(CONE, dimensions=dimensions(0.1, 0.1)),
    ),
    (
        "(carry|carries) .* of the mean cosine",
        joined(0.01, 0.1),
        replace(joined(0.01, 0.1), before=WEAKLY.before),
    ),
    ("The cause is one common direction", centred(between(-0.1, 0.099)), centred(between(-0.1, 0.1))),
    ("The mean vector is not the only cause", centred(between(0.101, 0.5)), centred(between(0.1, 0.5))),
    ("cause is one common direction", CONE, tried(*CONE.after[1:])),
    ("It is not one cone", quantiles(0.1, 0.5), quantiles(0.101, 0.5)),
    ("It is not one cone", quantiles(0.1, 0.5), quantiles(0.1, 0.499)),
    ("^Few dimensions .* carry", joined(0.501, 0.6), joined(0.5, 0.6)),
    ("^Few dimensions .* carry", joined(0.501, 0.6, 0.5), joined(0.501, 0.6, 0.501)),
    ("^Few dimensions .* carry", joined(0.6, 0.7, width=7), joined(0.6, 0.7, width=6)),
    ("No few dimensions are the cause", joined(0.01, 0.499), joined(0.01, 0.5)),
    ("No few dimensions", joined(0.01, 0.1), replace(joined(0.01, 0.1), dimensions=dimensions(0.1, 0.1))),
    (
        "Frequent tokens point",
        of_tokens(frequent=number(0.251), rarer=number(0.2)),
        of_tokens(frequent=number(0.249), rarer=number(0.2)),
    ),
    (
        "Frequent tokens point",
        of_tokens(frequent=number(0.4), rarer=number(0.2)),
        of_tokens(frequent=number(0.4, 0.15), rarer=number(0.2, 0.15)),
    ),
    (
        "All tokens point",
        of_tokens(cosine=number(0.2), with_special=number(0.251)),
        of_tokens(cosine=number(0.2), with_special=number(0.249)),
    ),
    (
        "All tokens point",
        of_tokens(cosine=number(0.2), with_special=number(0.4)),
        of_tokens(cosine=number(0.2, 0.15), with_special=number(0.4, 0.15)),
    ),
    ("Pooling adds to it", of_tokens(with_special=number(0.87)), of_tokens(with_special=number(0.887))),
    (
        "First find out what they stand for",
        replace(CONE, dimensions=dimensions(0.7, 0.1, 0.1), after=(space("rogue:1", 0.05, 0.8),)),
        CONE,
    ),
    (
        "Setting these dimensions to 0",
        replace(joined(0.6, 0.7), after=(replace(LEFT, name="rogue:3", cosine=between(0.1, 0.889)),)),
        replace(joined(0.6, 0.7), after=(replace(LEFT, name="rogue:3", cosine=between(0.1, 0.91)),)),
    ),
    (
        "No repair that was tried certainly brings the mean cosine within 0.10 of 0.",
        tried(LEFT, FAR),
        tried(LEFT, NEAR),
    ),
    (
        "The mean cosine comes within 0.10 of 0 with `abtt:3`; how many neighbours stay is not known.",
        tried(LEFT, NEAR),
        tried(LEFT, KEPT[0]),
    ),
    (
        "bring the mean cosine within 0.10 of 0, most neighbours stay with `abtt:3`: 90 %",
        tried(LEFT, *KEPT),
        tried(LEFT, FAR),
    ),
    (
        "most neighbours stay with `abtt:3` and `whiten`: about 90 %",
        tried(LEFT, KEPT[0], replace(KEPT[1], kept=between(0.88, 0.9))),
        tried(LEFT, *KEPT),
    ),
    ("would make the spread more even .IsoScore 0.1 to 0.1", whitened(0.11), whitened(0.1)),
    ("and keep 40 %", whitened(0.5), replace(UNEVEN, after=(replace(UNEVEN.after[0], kept=NONE),))),
    ("which keeps", CONE, tried(space("centre", 0.0))),
    ("most neighbours stay", tried(LEFT, *KEPT), CONE),
    ("most neighbours stay", tried(LEFT, *KEPT), GROUPS),
    ("Whether there is anything to repair", UNSURE, CONE),
    ("Try it on a task first", whitened(0.5), whitened(0.05)),
    ("Neighbours were searched among", CONE, tried(space("centre", 0.0))),
    ("Nothing to repair in", before(cosine=between(0.0, 0.099)), before(cosine=between(0.0, 0.1))),
    ("includes 0.10. Use more vectors", UNSURE, WEAKLY),
)
FIRST: tuple[tuple[str, Findings, Findings], ...] = (
    ("The mean cosine is 0.9; without an interval nothing is advised.", before(cosine=bare(0.9)), CONE),
    ("because of one common direction. Subtracting the mean moves them to", CONE, centred(number(0.3))),
    (", which keeps 92 % .91 to 93 %. of the ten nearest neighbours", CONE, tried(space("centre", 0.0))),
    ("some pairs point alike and others do not, so their mean, 0.90, says little", GROUPS, CONE),
    ("subtracting the mean alone does not bring", centred(number(0.3)), centred(number(0.1))),
    (
        "whether subtracting the mean brings them around 0 is not known",
        centred(number(0.1)),
        centred(number(0.3)),
    ),
    ("brings them around 0 is not known.$", tried(), centred(number(0.3))),
    ("^Nothing to repair in the scale of cosines: nine in ten lie", WEAKLY, UNSURE),
    ("^Whether there is anything to repair cannot be told from 500 vectors: the mean", UNSURE, WEAKLY),
)

CASES = [
    Case(words, words, lambda f=there, s=say: s(f), lambda f=apart, s=say: s(f))  # type: ignore[misc]
    for say, lines in ((said, LINES), (headline, FIRST))
    for words, there, apart in lines
]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_sentence_is_said_where_it_holds_and_only_there(case: Case) -> None:
    assert re.search(case.words, case.there(), re.M)
    assert not re.search(case.words, case.elsewhere(), re.M)
