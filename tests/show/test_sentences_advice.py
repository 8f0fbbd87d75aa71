"""Advice at the edge of its conditions (all of it is in tests/repair/test_advice.py), and its headlines."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from isoscope.kinds.advise.findings import NONE, Findings, Space
from isoscope.kinds.advise.sentences import advice, headline
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
    ("where a space without a common direction has 0.", before(cosine=between(0.101, 0.9)), UNSURE),
    (": little above the 0 of", WEAKLY, UNSURE),
    (
        ": little above the 0",
        before(cosine=between(0.001, 0.099)),
        before(cosine=between(0.001, 0.1)),
    ),
    (": above the 0 of a space without a common direction, how far cannot be told.", UNSURE, WEAKLY),
    (": under the 0 of", before(cosine=between(-0.02, -0.001)), before(cosine=between(-0.02, 0.0))),
    ("not to be told from the 0", before(cosine=between(0.0, 0.02)), before(cosine=between(0.001, 0.02))),
    ("about as evenly as can be", evenness(80, 0.8), evenness(79, 0.8)),
    ("spread fairly evenly .effective", evenness(80, 0.79), evenness(80, 0.8)),
    ("over few of the 100", evenness(49, 0.9), evenness(50, 0.9)),
    ("over many directions, unevenly", evenness(50, 0.49), evenness(50, 0.5)),
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
        ", while a few are among those of very many .skewness 2.",
        before(**HUBS),
        before(**HUBS, hubness=between(1.0, 3.0)),
    ),
    (
        "^2 of 1000 vectors have NaN",
        before(left_out=bare(2, n=1000)),
        before(left_out=bare(1, n=1000)),
    ),
    ("^1 of 1000 vectors is zero and has no", before(no_direction=bare(1, n=1000)), CONE),
    ("2 of 100 dimensions are the same", before(constant=bare(2)), CONE),
    ("dimensions (is|are) the same", before(constant=bare(1)), CONE),
    ("Find out where they come from", before(left_out=bare(1, n=9)), CONE),
    ("while a few", before(**HUBS, hubness=between(1.05, 3.0)), before(**HUBS, hubness=between(1.0, 3.0))),
    (
        "Frequent tokens",
        of_tokens(frequent=number(0.06), rarer=number(0.0)),
        of_tokens(frequent=number(0.05), rarer=number(0.0)),
    ),
    (
        "tokens up",
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
    ("One common direction makes it", centred(between(-0.1, 0.099)), centred(between(-0.1, 0.1))),
    ("not one common direction alone", centred(between(0.101, 0.5)), centred(between(0.1, 0.5))),
    ("common direction makes it", CONE, tried(*CONE.after[1:])),
    ("It is not one cone", quantiles(0.1, 0.5), quantiles(0.101, 0.5)),
    ("It is not one cone", quantiles(0.1, 0.5), quantiles(0.1, 0.499)),
    ("Three dimensions .* carry", joined(0.501, 0.6), joined(0.5, 0.6)),
    ("Three dimensions .* carry", joined(0.501, 0.6, 0.5), joined(0.501, 0.6, 0.501)),
    ("Three dimensions .* carry", joined(0.6, 0.7, width=7), joined(0.6, 0.7, width=6)),
    ("stand out but do not make it", joined(0.041, 0.4), joined(0.04, 0.4)),
    ("stand out but do not make it", joined(0.3, 0.499), joined(0.3, 0.5)),
    ("No few dimensions make it", joined(0.01, 0.499), joined(0.01, 0.5)),
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
        "of tokens up",
        of_tokens(cosine=number(0.2), with_special=number(0.251)),
        of_tokens(cosine=number(0.2), with_special=number(0.249)),
    ),
    (
        "of tokens up",
        of_tokens(cosine=number(0.2), with_special=number(0.4)),
        of_tokens(cosine=number(0.2, 0.15), with_special=number(0.4, 0.15)),
    ),
    ("Pooling adds to it", of_tokens(with_special=number(0.87)), of_tokens(with_special=number(0.88))),
    (
        "stay; .*nobody's neighbour",
        tried(replace(LEFT, cosine=number(0.0), anti_hubs=between(0.031, 0.1))),
        tried(replace(LEFT, cosine=number(0.0), anti_hubs=between(0.03, 0.1))),
    ),
    (
        "nobody's neighbour .before, 2 %",
        tried(replace(LEFT, anti_hubs=between(0.0, 0.009))),
        tried(replace(LEFT, anti_hubs=between(0.0, 0.01))),
    ),
    ("centre: .*; effective rank", CONE, tried(replace(LEFT, rank=NONE))),
    ("centre: .* of the ten nearest neighbours stay", CONE, tried(replace(LEFT, kept=NONE))),
    (
        "First look at dimension 0: what does it stand for",
        replace(CONE, dimensions=dimensions(0.7, 0.1, 0.1), after=(space("rogue:1", 0.05, 0.8),)),
        CONE,
    ),
    (
        "set to 0 the dimensions",
        replace(joined(0.6, 0.7), after=(replace(LEFT, name="rogue:3", cosine=between(0.1, 0.889)),)),
        replace(joined(0.6, 0.7), after=(replace(LEFT, name="rogue:3", cosine=between(0.1, 0.89)),)),
    ),
    (
        " and keeps .* of the neighbours. First look at dimensions 0, 10 and 20: what do they",
        replace(joined(0.6, 0.7), after=(space("rogue:3", 0.1, 0.8),)),
        replace(joined(0.6, 0.7), after=(space("rogue:3", 0.1),)),
    ),
    (
        "None of the repairs that were tried brings the mean cosine within 0.10 of 0 for certain.",
        tried(LEFT, FAR),
        tried(LEFT, NEAR),
    ),
    (
        "The mean cosine comes within 0.10 of 0 with `abtt:3`; how many neighbours stay is not certain.",
        tried(LEFT, NEAR),
        tried(LEFT, KEPT[0]),
    ),
    (
        "bring the mean cosine within 0.10 of 0, `abtt:3` keeps most of the neighbours, 90 %",
        tried(LEFT, *KEPT),
        tried(LEFT, FAR),
    ),
    (
        "`abtt:3` and `whiten` keep most .* about 90 %; which of them keeps more cannot be told at this n",
        tried(LEFT, KEPT[0], replace(KEPT[1], kept=between(0.87, 0.89))),
        tried(LEFT, *KEPT),
    ),
    ("would even it out", whitened(0.45), whitened(0.44)),
    ("would make it more even .IsoScore 0.1 to 0.1", whitened(0.11), whitened(0.1)),
    ("and change 60 %", whitened(0.5), replace(UNEVEN, after=(replace(UNEVEN.after[0], kept=NONE),))),
    ("and change", whitened(0.5), replace(UNEVEN, after=(replace(UNEVEN.after[0], kept=NONE),))),
    ("If you rank by cosine", CONE, tried(space("centre", 0.0))),
    ("most of the neighbours", tried(LEFT, *KEPT), CONE),
    ("most of the neighbours", tried(LEFT, *KEPT), GROUPS),
    ("Whether there is anything to repair", UNSURE, CONE),
    ("Do not do it unseen", whitened(0.5), whitened(0.05)),
    ("Neighbours were looked for among", CONE, tried(space("centre", 0.0))),
    ("Nothing to repair in", before(cosine=between(0.0, 0.099)), before(cosine=between(0.0, 0.1))),
    ("includes 0.10. More vectors would tell", UNSURE, WEAKLY),
)
FIRST: tuple[tuple[str, Findings, Findings], ...] = (
    ("The mean cosine is 0.90; without an interval nothing is advised.", before(cosine=bare(0.9)), CONE),
    ("because of one common direction. Subtracting the mean moves them to", CONE, centred(number(0.3))),
    (", and keeps 92 % .91 to 93 %. of the nearest neighbours", CONE, tried(space("centre", 0.0))),
    ("some pairs point alike and others do not, so their mean, 0.90, tells little of any", GROUPS, CONE),
    ("and subtracting the mean alone does not bring", centred(number(0.3)), centred(number(0.1))),
    (
        "whether subtracting the mean is enough cannot be told from 500",
        centred(number(0.1)),
        centred(number(0.3)),
    ),
    (", not around 0.$", tried(), centred(number(0.3))),
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
