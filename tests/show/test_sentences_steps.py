"""Every sentence on steps and on sweeps: where it must be said, and where it must not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest

from isoscope.kinds.sweep.sentences import alike_words, changes_words, correlation_words, opening
from isoscope.results.row import Row
from isoscope.results.trajectory import Trajectory
from isoscope.show.page.training import Finding
from isoscope.show.readings import read
from isoscope.show.say.course import changed
from tests.show.made import row
from tests.show.said import Case, Line, Say, along, layers
from tests.typed import frame

NAN = math.nan
LAST = "cka_last_checkpoint"


def by_steps(rows: Sequence[Row], spanned: bool = True) -> Say:
    return lambda: changed(read(frame(rows)), "x", spanned=spanned)


def steps(*values: float, half: float | None = 0.01, **where: object) -> list[Row]:
    return along(*values, measure="x", half=half, **where)


ATTENDED = [
    *layers("x", 0.1, 0.3, step=0, kind="attention"),
    *layers("x", 0.4, 0.8, step=9, kind="attention"),
]
BARE = [*layers("x", 0.1, 0.3, half=None, step=0), *layers("x", 0.4, 0.8, half=None, step=9)]
BOTH = [*steps(0.1, 0.3), *steps(0.3, 0.1, layer=1)]
WENT = 0.55  # a turn from .3 to .5 is one beyond this

TOUCH = [row("x", 0.1, low=0.0, high=0.2, step=0), row("x", 0.24, low=0.14, high=0.34, step=100)]

STEPS: tuple[Line, ...] = (
    (
        "From step 0 to step 100 the x rose from 0.10 to 0.12",
        by_steps(steps(0.1, 0.121)),
        by_steps(steps(0.1, 0.114)),
    ),
    ("fell from 0.12", by_steps(steps(0.121, 0.1)), by_steps(steps(0.114, 0.1))),
    ("The x rose", by_steps(steps(0.1, 0.3), spanned=False), by_steps(steps(0.1, 0.3))),
    ("From step", by_steps(steps(0.1, 0.3)), by_steps(steps(0.1))),
    ("the x", by_steps(steps(0.1, 0.3)), by_steps([*steps(0.1), row("x", 0.3, half=0.01, step=9, layer=1)])),
    ("rose in layer 0 (from 0.10 to 0.30) and fell in layer 1 (", by_steps(BOTH), by_steps(BOTH[:2])),
    ("rose everywhere, most in layer 1 (from 0.30 to 0.80)", by_steps(ATTENDED), by_steps(ATTENDED[::2])),
    (
        "fell everywhere, most in layer 1 (from 0.90 to 0.20)",
        by_steps([*steps(0.5, 0.4), *steps(0.9, 0.2, layer=1)]),
        by_steps([*steps(0.9, 0.2), *steps(0.5, 0.4, layer=1)]),
    ),
    (
        "went from",
        by_steps([*steps(0.1, 0.3), *steps(0.1, 0.3, half=None, layer=1)]),
        by_steps([*steps(0.1, 0.3), *steps(0.1, 0.3, layer=1)]),
    ),
    ("a peak", by_steps(steps(1.0, 1.26, 0.0)), by_steps(steps(1.0, 1.24, 0.0))),
    (
        "rose in layers 0–1, most in layer 1 (",
        by_steps(
            [
                *ATTENDED,
                *steps(0.1, kind="attention", layer=2),
                row("x", 0.1, half=0.01, step=9, kind="attention", layer=2),
            ]
        ),
        by_steps(ATTENDED),
    ),
    (
        "; in layer 1 no change is distinguishable from chance",
        by_steps([*steps(0.1, 0.3), *steps(0.1, 0.1, layer=1)]),
        by_steps(BOTH),
    ),
    (
        "shows no change distinguishable from chance: 0.1, then 0.114",
        by_steps(steps(0.1, 0.114)),
        by_steps(steps(0.1, 0.114, half=None)),
    ),
    (
        "went from 0.1 to 0.114 (without intervals).",
        by_steps(steps(0.1, 0.114, half=None)),
        by_steps(steps(0.1, 0.114)),
    ),
    ("went from 0.1–0.3 to 0.4–0.8 (without intervals)", by_steps(BARE), by_steps(BARE[::2])),
    (
        "; on the way it had a peak of 0.55",
        by_steps(steps(0.3, WENT + 0.001, 0.5)),
        by_steps(steps(0.3, WENT - 0.001, 0.5)),
    ),
    ("a peak of 0.551", by_steps(steps(0.5, 0.551, 0.3)), by_steps(steps(0.5, 0.551, 0.3, half=0.031))),
    ("a low of 0.2", by_steps(steps(0.3, 0.249, 0.5)), by_steps(steps(0.3, 0.251, 0.5))),
    ("a low of 0.249", by_steps(steps(0.5, 0.249, 0.3)), by_steps(steps(0.5, 0.249, 0.3, half=0.031))),
    (
        "a peak of 0.551",
        by_steps(steps(0.3, 0.551, 0.5, half=None)),
        by_steps(steps(0.3, 0.549, 0.5, half=None)),
    ),
    ("a peak of 0.8", by_steps(steps(0.5, 0.8, 0.5)), by_steps(steps(0.5, 0.62, 0.5))),  # a fourth of .5
    (
        "a peak",
        by_steps(steps(0.3, 0.9, 0.5)),
        by_steps([*steps(0.3), row("x", 0.9, step=100), row("x", 0.5, half=0.01, step=200)]),
    ),
    (
        "0.9 in layer 1 at step 100",
        by_steps([*steps(0.3, 0.3, 0.5), *steps(0.3, 0.9, 0.5, layer=1)]),
        by_steps(steps(0.3, 0.9, 0.5, layer=1)),
    ),
    ("a peak", by_steps(steps(0.0, 1.26, 1.0)), by_steps(steps(0.0, 1.25, 1.0))),
    (
        "a low of 0.1 in layer 1",  # the farthest is told
        by_steps([*steps(0.5, 0.7, 0.5), *steps(0.5, 0.1, 0.5, layer=1)]),
        by_steps([*steps(0.5, 1.0, 0.5), *steps(0.5, 0.1, 0.5, layer=1)]),
    ),
    ("rose", by_steps(TOUCH[:1] + steps(0.0, 0.31)[1:]), by_steps(TOUCH)),
    ("fell", by_steps(steps(0.31, 0.0)), by_steps([replace(r, step=100 - (r.step or 0)) for r in TOUCH])),
    (
        "went from 0.1 to 0.3",
        by_steps([*steps(0.1), row("x", 0.3, step=100)]),
        by_steps(steps(0.1, 0.3)),
    ),
    ("rose", by_steps(steps(0.1, 0.3)), by_steps(steps(0.1, 0.3, head=0))),
    ("rose", by_steps(steps(0.1, 0.3)), by_steps(steps(0.1, NAN))),
    (
        "the output",
        by_steps([*steps(0.1, 0.3), *steps(0.5, 0.2, kind="output")]),
        by_steps([*steps(0.1, 0.3), *steps(0.5, 0.2, layer=3)]),
    ),
)


def opened(
    count: int, failed: int = 0, doubtful: int = 0, *, examined: bool = True, numbered: bool = False
) -> str:
    units = tuple(f"step{at}" for at in range(count))
    lost = {f"lost{at}": "gone" for at in range(failed)}
    of = Trajectory(None, units, tuple(range(count)), {}, lost, numbered)  # type: ignore[arg-type]
    return opening(of, tuple(Finding(f"step{at}", at, "twin", "") for at in range(doubtful)), examined)


def change(what: str, measure: str, at: int, low: int, high: int, layer: int = 0) -> Row:
    return row(f"{what}_in_{measure}", float(at), low=float(low), high=float(high), layer=layer)


def changes(*rows: Row, looked: object = 40) -> str:
    return changes_words(frame(rows), {"series looked at for changes": looked}, {})


def strays(count: int, looked: int, at: int = 8, more: int = 0) -> str:
    """So many series have a stray at this step, and some `more` at step 16."""
    rows = [row(f"stray_in_{name}", float(at)) for name in "abcdefgh"[:count]]
    rows += [row(f"stray_in_{name}", 16.0, layer=1) for name in "abcdefgh"[:more]]
    return changes(change("jump", "drift", 64, 32, 64), *rows, looked=looked)


def alike(*values: float, others: Sequence[float] = ()) -> str:
    """By CKA with the last checkpoint along the steps, in layer 0 and, where given, in layer 1."""
    rows = along(*values, measure=LAST, half=None)
    return alike_words(frame([*rows, *along(*others, measure=LAST, half=None, layer=1)]))


def correlated(*values: tuple[float, float], heads: bool = True, end: str = "", side: str = "query") -> str:
    return correlation_words(
        read(
            frame(
                row(
                    f"entropy_with_{side}_drift{end}", value, kind="attention", layer=1 + at,
                    head=0 if heads else None, note=f"p = {p}; as good as 9" if p == p else "too few",
                )
                for at, (value, p) in enumerate(values)
            )
        )
    )  # fmt: skip


JUMPS = [change("jump", measure, 64, 32, 64) for measure in ("a", "b", "c", "d", "e")]
PLACES = [
    change("jump", name, high, low, high)
    for names, low, high in (("ab", 32, 64), ("cd", 512, 999), ("ef", 2000, 3000), ("gh", 9000, 9999))
    for name in names
]
APART = [change("jump", "a", 64, 32, 64), change("jump", "b", 999, 512, 999)]
SHORT = row("changes", NAN, note="fewer than 8 checkpoints")
SWEEP: tuple[Line, ...] = (
    (
        "Checkpoints measured: 2 from step 0 to step 1;",
        partial(opened, 2),
        partial(opened, 2, numbered=True),
    ),
    ("; failed: 1", partial(opened, 2, 1), partial(opened, 2)),
    ("possibly not what they claim to be: 2", partial(opened, 3, 0, 2), partial(opened, 3, 0, 1)),
    ("nothing wrong was found in their files", partial(opened, 2), partial(opened, 2, examined=False)),
    ("nothing wrong was found in their files", partial(opened, 1), partial(opened, 1, 0, 1)),
    ("Fewer than 8 checkpoints.", partial(changes, SHORT), partial(changes, *JUMPS)),
    (
        "None of 40 series jumps or turns by more than it wanders and bends anyway.",
        changes,
        partial(changes, JUMPS[0]),
    ),
    ("None of", changes, partial(changes, looked=None)),
    ("None of", changes, partial(changes, looked=0)),
    (
        "chance alone marks about 40,",
        partial(changes, *JUMPS, looked=4000),
        partial(changes, *JUMPS, looked=400),
    ),
    # three places are told
    (
        "The largest group",
        partial(changes, *PLACES[:2]),
        partial(changes, PLACES[0], change("jump", "b", 99, 64, 128)),
    ),
    (
        "5 of 400 series jump or turn; chance alone marks about 4, more where shocks differ much in size.",
        partial(changes, *JUMPS, looked=400),
        changes,
    ),
    ("1 of 40 series", partial(changes, JUMPS[0], change("turn", "a", 64, 32, 64)), partial(changes, *JUMPS)),
    ("chance alone marks about 1,", partial(changes, JUMPS[0]), partial(changes, JUMPS[0], looked=400)),
    (
        "The largest group (2) changes between step 32 and step 64: a and b.",
        partial(changes, *JUMPS[:2]),
        partial(changes, *APART),
    ),
    (
        "The largest group",
        partial(changes, *JUMPS[:2]),
        partial(changes, JUMPS[0], change("turn", "a", 64, 32, 64)),
    ),
    ("a, b, c and 2 more.", partial(changes, *JUMPS), partial(changes, *JUMPS[:3])),
    (
        "The checkpoint of step 8 differs from its neighbours in 3",
        partial(strays, 3, 30),
        partial(strays, 2, 9),
    ),
    ("differs from its", partial(strays, 4, 40), partial(strays, 4, 41)),
    ("step 16 differs", partial(strays, 3, 30, at=16), partial(strays, 4, 30, more=3)),
    (
        "CKA with the last checkpoint is above 0.9 in layer 0 from step 0 on",
        partial(alike, 0.91),
        partial(alike, 0.9),
    ),
    ("layer 0 from step 100 on", partial(alike, 0.5, 0.91), partial(alike, 0.5, 0.91, 0.9, 0.95)),
    ("layer 0 from step 200 on", partial(alike, 0.5, NAN, 0.95), partial(alike, 0.5, 0.95, 0.95)),
    (
        "layer 0 from step 100 on and layer 1 from step 0 on.",
        partial(alike, 0.5, 0.95, others=[0.95, 0.95]),
        partial(alike, 0.5, 0.95),
    ),
    ("CKA with the last", partial(alike, 0.95), alike),
    (
        "Along training, entropy and the drift of queries correlate with a median r of "
        "−0.90 (p < 0.01 and r < 0 in 2, r > 0 in 0 of 3 heads).",
        partial(correlated, (-0.95, 0.001), (-0.9, 0.0099), (0.5, 0.01)),
        partial(correlated, (-0.95, 0.001), (-0.9, 0.01), (0.5, 0.01)),
    ),
    (
        "r < 0 in 0, r > 0 in 1 of 1 heads",
        partial(correlated, (0.9, 0.001)),
        partial(correlated, (-0.9, 0.001)),
    ),
    (
        "r < 0 in 1, r > 0 in 1 of 2",
        partial(correlated, (0.9, 0.001), (-0.9, 0.001)),
        partial(correlated, (0.9, 0.001)),
    ),
    (
        "r < 0 in 0, r > 0 in 0 of 1 layers",
        partial(correlated, (0.9, 0.01), heads=False),
        partial(correlated, (0.9, 0.009), heads=False),
    ),
    ("r < 0 in 0, r > 0 in 0 of 1 heads", partial(correlated, (0.9, NAN)), partial(correlated, (0.9, 0.001))),
    (
        "the drift of keys correlate",
        partial(correlated, (0.9, 0.1), side="key"),
        partial(correlated, (0.9, 0.1)),
    ),
    (
        "From checkpoint to checkpoint, entropy",
        partial(correlated, (0.9, 0.1), end="_changes"),
        partial(correlated, (0.9, 0.1)),
    ),
    (
        "Two slow series correlate in any case: p is for the number of independent "
        "checkpoints they are worth. No straight trend makes a correlation from "
        "checkpoint to checkpoint.",
        partial(correlated, (0.9, 0.1)),
        correlated,
    ),
)

CASES = [Case(line[0], *line) for line in (*STEPS, *SWEEP)]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_sentence_is_said_where_it_holds_and_only_there(case: Case) -> None:
    assert case.words in case.there()
    assert case.words not in case.elsewhere()
