"""Every sentence of advice: where it must be said, and where it must not."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
import torch

from isoscope.errors import IsoscopeError
from isoscope.kinds.advise.findings import NONE, Dimension, Findings, Space, findings
from isoscope.kinds.advise.sentences import PARTS, WRITERS, Said, advice, headline
from isoscope.repair.advise.advise import advise
from isoscope.repair.advise.sample import halves
from isoscope.results.reading import Reading
from isoscope.show.readings import SiteReading
from tests.typed import frame


def number(value: float, reach: float = 0.01, null: float = 0.0) -> SiteReading:
    return replace(bare(value, null), n=500, low=value - reach, high=value + reach, measure="row")


def bare(value: float, null: float = math.nan, n: int = 0) -> SiteReading:
    """A reading without an interval, of no row."""
    return replace(NONE, value=value, null=null, n=n)


def space(name: str, mean: float, kept: float | None = None, rank: float = 90, score: float = 0.8) -> Space:
    return Space(
        name=name,
        cosine=number(mean),
        drift=number(0.5),
        isoscore=bare(score, null=0.9, n=500),
        rank=bare(rank, null=95, n=500),
        quantiles={q: bare(mean + (q - 50) / 1000) for q in (1, 5, 25, 50, 75, 95, 99)},
        kept=NONE if kept is None else number(kept),
        anti_hubs=number(0.02),
    )


def dimensions(*shares: float) -> tuple[Dimension, ...]:
    joined = [sum(shares[: i + 1]) for i in range(len(shares))]
    return tuple(
        Dimension(10 * i, number(one), number(both, null=0.02 * (i + 1)))
        for i, (one, both) in enumerate(zip(shares, joined, strict=True))
    )


CONE = Findings(
    before=replace(
        space("before", 0.9),
        norm=number(5.0),
        norm_variation=bare(0.05),
        copies=bare(0.0),
        constant=bare(0.0),
        left_out=bare(0.0, n=1000),
        no_direction=bare(0.0, n=1000),
    ),
    after=(space("centre", 0.0, 0.92), space("abtt:3", 0.0, 0.7), space("whiten:100", 0.0, 0.4)),
    dimensions=dimensions(0.01, 0.01, 0.01),
    width=100,
    tokens=Space("tokens"),
    all_tokens=Space("all tokens"),
    pool="mean",
)


def before(**changes: object) -> Findings:
    return replace(CONE, before=replace(CONE.before, **changes))  # type: ignore[arg-type]


def centred(mean: SiteReading) -> Findings:
    return replace(CONE, after=(replace(CONE.after[0], cosine=mean), *CONE.after[1:]))


def of_tokens(with_special: SiteReading = NONE, **changes: SiteReading) -> Findings:
    every = replace(CONE.all_tokens, cosine=with_special)
    return replace(CONE, tokens=replace(CONE.tokens, **changes), all_tokens=every)  # type: ignore[arg-type]


ROUND = replace(before(cosine=number(0.01)), after=(space("centre", 0.0, 0.99),))
ROGUE = replace(CONE, dimensions=dimensions(0.4, 0.3, 0.11), after=(*CONE.after, space("rogue:3", 0.05, 0.8)))
GROUPS = before(quantiles={**CONE.before.quantiles, 5: number(0.09)})
UNEVEN = replace(before(isoscore=bare(0.1, null=0.9, n=500)), after=(space("whiten:9", 0.0, 0.4),))

CASES: tuple[tuple[str, Findings, Findings], ...] = (  # a piece of the sentence, where it is, where it is not
    ("has 0.$", CONE, ROUND),
    ("little above the 0", before(cosine=number(0.05)), CONE),
    ("not to be told from the 0", before(cosine=number(0.005)), CONE),
    ("Without an interval it cannot be told", before(cosine=bare(0.9)), CONE),
    ("about as evenly as can be", CONE, before(rank=bare(20, null=95))),
    ("over few of the 100 dimensions", before(rank=bare(20, null=95)), CONE),
    ("over many directions, unevenly", UNEVEN, CONE),
    ("same length, 5: dot products rank as", before(norm_variation=bare(1e-6)), CONE),
    ("Lengths vary by 40 %", before(norm_variation=bare(0.4)), CONE),
    ("3 % of the vectors are copies", before(copies=bare(0.03)), CONE),
    ("neighbours of none", before(anti_hubs=number(0.2)), before(anti_hubs=number(0.105))),
    ("^1 of 1000 vectors has NaN", before(left_out=bare(1, n=1000)), CONE),
    ("^7 of 1000 vectors are zero", before(no_direction=bare(7, n=1000)), CONE),
    ("1 of 100 dimensions is the same", before(constant=bare(1)), CONE),
    ("One common direction makes it", CONE, centred(number(0.095))),
    ("not one common direction alone", centred(number(0.3)), CONE),
    ("Whether one common direction is all cannot be told", centred(number(0.1)), CONE),
    ("It is not one cone: some pairs", GROUPS, CONE),
    ("Do not judge by the mean cosine", GROUPS, CONE),
    ("Two dimensions .0 and 10. carry 70 % .69 to 71 %.", ROGUE, CONE),
    ("Dimension 0 alone carries 70 %", replace(ROGUE, dimensions=dimensions(0.7, 0.1, 0.1)), ROGUE),
    ("Three dimensions .0, 10 and 20. carry 60 %", replace(ROGUE, dimensions=dimensions(*[0.2] * 3)), ROGUE),
    ("stand out but do not make it alone", replace(CONE, dimensions=dimensions(0.3, 0.1, 0)), CONE),
    ("No few dimensions make it", CONE, ROGUE),
    ("Frequent tokens point", of_tokens(frequent=number(0.4), rarer=number(0.2)), CONE),
    (
        "Rarer tokens point",
        of_tokens(frequent=number(0.2), rarer=number(0.4)),
        of_tokens(frequent=number(0.2), rarer=number(0.23)),
    ),
    ("tokens up, from 0.30", of_tokens(cosine=number(0.3), with_special=number(0.5)), CONE),
    (
        "tokens down, from 0.50",
        of_tokens(cosine=number(0.5), with_special=number(0.3)),
        of_tokens(cosine=number(0.33), with_special=number(0.3)),
    ),
    (
        "Pooling adds to it",
        of_tokens(with_special=number(0.3)),
        replace(of_tokens(with_special=number(0.3)), pool="cls"),
    ),
    ("^abtt:3: nine in ten cosines lie between -?", CONE, ROUND),
    ("nobody's neighbour .before, 20 %", before(anti_hubs=number(0.2)), CONE),
    ("subtract the mean .`isoscope repair … --with centre`", CONE, centred(number(0.095))),
    ("Your cosines lie above 0 because of one common direction", CONE, GROUPS),
    ("If you rank by cosine, 8 % .7 to 9 %. of", CONE, ROUND),
    ("set to 0 the dimensions that carry it is one way: `rogue:3`", ROGUE, replace(ROGUE, after=CONE.after)),
    ("`abtt:3` keeps most of the neighbours", centred(number(0.3)), CONE),
    (
        "None of the repairs that were tried",
        replace(CONE, after=(space("centre", 0.3, 0.9), space("abtt:1", 0.2, 0.9))),
        centred(number(0.3)),
    ),
    ("Nothing to repair in the scale", ROUND, CONE),
    ("Whether there is anything to repair cannot be told.*includes", before(cosine=number(0.1)), ROUND),
    ("it has no interval to hold against", before(cosine=bare(0.9)), CONE),
    (r"Whitening .`whiten[:0-9]*`. would even it out .IsoScore 0.1 to 0.8.", UNEVEN, CONE),
)


@pytest.mark.parametrize(("piece", "there", "not_there"), CASES, ids=[case[0] for case in CASES])
def test_a_sentence_is_said_where_it_holds_and_only_there(
    piece: str, there: Findings, not_there: Findings
) -> None:
    assert any(re.search(piece, one.text) for one in advice(there))
    assert not any(re.search(piece, one.text) for one in advice(not_there))


def test_what_is_not_known_is_always_said() -> None:
    for found in (CONE, ROUND, ROGUE, UNEVEN, before(cosine=bare(0.9))):
        (one,) = [one for one in advice(found) if one.part == "unknown"]
        assert "`isoscope impact`" in one.text


def test_no_sentence_says_that_a_repair_helps() -> None:
    for _, there, _ in CASES:
        for one in advice(there):
            assert not re.search(r"\b(better|improve\w*|helped|will help)\b", one.text)


def test_without_intervals_nothing_is_advised() -> None:
    unsure = before(cosine=bare(0.9))
    assert not any("subtract the mean" in one.text for one in advice(unsure))
    assert "nothing is advised" in headline(unsure)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (CONE, "because of one common direction. Subtracting the mean"),
        (centred(number(0.3)), "subtracting the mean alone does not"),
        (
            centred(number(0.05, 0.2)),
            "whether subtracting the mean is enough cannot be told from 500 vectors",
        ),
        (replace(CONE, after=()), "not around 0"),
        (GROUPS, "some pairs point alike and others do not"),
        (ROUND, "Nothing to repair in the scale of cosines"),
        (before(cosine=number(0.1)), "cannot be told from 500 vectors"),
    ],
)
def test_headlines(found: Findings, said: str) -> None:
    assert said in headline(found)


def test_a_wide_cone_is_no_group() -> None:
    wide = before(cosine=number(0.2), quantiles={q: bare(0.2 + (q - 50) / 300) for q in (5, 95)})
    assert not any("not one cone" in one.text for one in advice(wide))
    assert any("One common direction makes it" in one.text for one in advice(wide))


def test_repairs_that_cannot_be_told_apart_are_named_together() -> None:
    close = replace(centred(number(0.3)), after=(space("abtt:3", 0.0, 0.70), space("standardise", 0.0, 0.69)))
    assert [each.name for each in close.gentlest] == ["abtt:3", "standardise"]
    assert any("`abtt:3` and `standardise` keep most" in one.text for one in advice(close))


def test_how_numbers_are_written() -> None:
    assert cosine(-0.0004) == "0.000"
    assert told(Reading(0.9981, 9, low=0.9979, high=0.9983)) == "0.9981 (95 % interval 0.9979 to 0.9983)"
    assert per_cent(Reading(0.03, 9, low=0.02, high=0.04)) == "3 % (2 to 4 %)"


def real() -> tuple[list[Said], set[str]]:
    """What is said of planted vectors, and the rows that there are."""
    points = torch.randn(300, 30) @ torch.diag(torch.linspace(0.1, 2, 30)) + 4 * torch.randn(30)
    points[:, 5] += 60
    points[0], points[10:20] = torch.nan, points[1]
    rows = frame(advise(halves([(points, None)])).rows)
    names = {
        f"{row.model}/{'' if row.kind != 'dimension' else f'dimension.{row.layer}/'}{row.measure}"
        for row in rows.itertuples()
    }
    return advice(findings(rows)), names


def test_every_sentence_names_rows_that_are_there() -> None:
    said, names = real()
    assert {one.part for one in said} == set(PARTS)
    for one in said:
        assert one.rows, one.text
        assert set(one.rows) <= names
    assert any("Dimension 5 alone carries" in one.text for one in said)
    assert any("have NaN" in one.text or "has NaN" in one.text for one in said)


def test_every_writer_has_a_case() -> None:
    writers = [writer for part in PARTS for writer in WRITERS[part]]
    spoken = {writer.__name__ for writer in writers for _, there, _ in CASES if list(writer(there))}
    assert spoken == {writer.__name__ for writer in writers}


def test_rows_of_another_run_are_refused() -> None:
    rows = frame(advise(halves([(torch.randn(100, 5), None)]), ["centre"]).rows)
    with pytest.raises(IsoscopeError, match="not of `isoscope advise`"):
        findings(rows[rows.model != "before"])
