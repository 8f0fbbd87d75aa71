"""Every sentence of advice: where it must be said, and where it must not."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
import torch

from isoscope.errors import IsoscopeError
from isoscope.kinds.advise.findings import NONE, Dimension, Findings, Space, findings
from isoscope.kinds.advise.screen import CAUSES, DO, HEADLINES, PARTS, Said, advice, headline, per_cent
from isoscope.repair.advise.advise import advise
from isoscope.repair.advise.sample import halves
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
    ("over few of the 100 dimensions", before(rank=bare(20, null=95)), CONE),
    ("over many dimensions, unevenly", UNEVEN, CONE),
    ("same length, 5: dot products rank as", before(norm_variation=bare(1e-6)), CONE),
    ("Lengths vary by 40 %", before(norm_variation=bare(0.4)), CONE),
    ("3 % of the vectors are copies", before(copies=bare(0.03)), CONE),
    ("neighbours of none", before(anti_hubs=number(0.2)), before(anti_hubs=number(0.105))),
    ("^1 of 1000 vectors have NaN", before(left_out=bare(1, n=1000)), CONE),
    ("^7 of 1000 vectors are zero", before(no_direction=bare(7, n=1000)), CONE),
    ("1 of 100 dimensions are the same", before(constant=bare(1)), CONE),
    ("The cause is one common direction", CONE, centred(number(0.095))),
    ("The mean vector is not the only cause", centred(number(0.3)), CONE),
    ("Whether the mean vector is the only cause cannot be told", centred(number(0.1)), CONE),
    ("It is not one cone: some pairs", GROUPS, CONE),
    ("Do not judge by the mean cosine", GROUPS, CONE),
    ("Few dimensions .0 and 10. carry 70 % .69 to 71 %.", ROGUE, CONE),
    ("Few dimensions .0. carry 70 %", replace(ROGUE, dimensions=dimensions(0.7, 0.1, 0.1)), ROGUE),
    ("Few dimensions .0, 10 and 20. carry 60 %", replace(ROGUE, dimensions=dimensions(*[0.2] * 3)), ROGUE),
    ("No few dimensions are the cause", CONE, ROGUE),
    ("Frequent tokens point", of_tokens(frequent=number(0.4), rarer=number(0.2)), CONE),
    (
        "Rarer tokens point",
        of_tokens(frequent=number(0.2), rarer=number(0.4)),
        of_tokens(frequent=number(0.2), rarer=number(0.23)),
    ),
    (
        "All tokens point more alike .*: mean cosine 0.5 ",
        of_tokens(cosine=number(0.3), with_special=number(0.5)),
        CONE,
    ),
    (
        "Tokens without special ones .* point more alike than all of them: mean cosine 0.5 ",
        of_tokens(cosine=number(0.5), with_special=number(0.3)),
        of_tokens(cosine=number(0.33), with_special=number(0.3)),
    ),
    (
        "Pooling adds to it",
        of_tokens(with_special=number(0.3)),
        replace(of_tokens(with_special=number(0.3)), pool="cls"),
    ),
    ("Subtract the mean .`isoscope repair … --with centre`", CONE, centred(number(0.095))),
    ("which keeps 92 % .91 to 93 %. of the ten", CONE, ROUND),
    (
        "Setting these dimensions to 0 .`rogue:3`. brings the mean cosine to 0.05",
        ROGUE,
        replace(ROGUE, after=CONE.after),
    ),
    ("most neighbours stay with `abtt:3`", centred(number(0.3)), CONE),
    (
        "No repair that was tried certainly brings",
        replace(CONE, after=(space("centre", 0.3, 0.9), space("abtt:1", 0.2, 0.9))),
        centred(number(0.3)),
    ),
    ("Nothing to repair in the scale", ROUND, CONE),
    ("Whether there is anything to repair cannot be told.*includes", before(cosine=number(0.1)), ROUND),
    ("and has no interval", before(cosine=bare(0.9)), CONE),
    ("Whitening .`whiten[:0-9]*`. would make the spread more even .IsoScore 0.1 to 0.8.", UNEVEN, CONE),
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
    assert not any("Subtract the mean" in one.text for one in advice(unsure))
    assert "nothing is advised" in headline(unsure)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (CONE, "because of one common direction. Subtracting the mean"),
        (centred(number(0.3)), "subtracting the mean alone does not"),
        (
            centred(number(0.05, 0.2)),
            "whether subtracting the mean brings them around 0 is not known",
        ),
        (replace(CONE, after=()), "brings them around 0 is not known"),
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
    assert any("The cause is one common direction" in one.text for one in advice(wide))


def test_repairs_that_cannot_be_told_apart_are_named_together() -> None:
    close = replace(centred(number(0.3)), after=(space("abtt:3", 0.0, 0.70), space("standardise", 0.0, 0.69)))
    assert [each.name for each in close.gentlest] == ["abtt:3", "standardise"]
    assert any("stay with `abtt:3` and `standardise`: about 70 %" in one.text for one in advice(close))


def test_how_shares_are_written() -> None:
    assert per_cent(number(0.03)) == "3 % (2 to 4 %)"
    assert per_cent(bare(0.0123)) == "1.2 %"


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
    assert any("Few dimensions (5) carry" in one.text for one in said)
    assert any("have NaN" in one.text for one in said)


def test_every_verdict_has_its_sentences() -> None:
    verdicts = {there.verdict for _, there, _ in CASES}
    assert verdicts == set(HEADLINES)
    assert set(CAUSES) | set(DO) == verdicts


def test_rows_of_another_run_are_refused() -> None:
    rows = frame(advise(halves([(torch.randn(100, 5), None)]), ["centre"]).rows)
    with pytest.raises(IsoscopeError, match="not of `isoscope advise`"):
        findings(rows[rows.model != "before"])
