"""What tables of sentences share: a case, rows that are quickly written, and what is said of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from isoscope.results.row import Row, frame
from isoscope.show.say.words import headline, sentences
from tests.show.made import row

BETWEEN = "mean_cosine_between"
HEADLINE = "headline"
Say = Callable[[], str]
Line = tuple[str, Say, Say]
"""Some words of a sentence, what is said where it holds, and what where it does not."""

Table = Mapping[str, Sequence[tuple[str, Sequence[Row], Sequence[Row]]]]
"""By family (or `HEADLINE`): some words of a sentence, rows of which it is said, rows of which it is not."""


@dataclass(frozen=True)
class Case:
    """A sentence known by some of its words, what is said where it holds, and what where it does not."""

    name: str
    words: str
    there: Say
    elsewhere: Say


def cases(table: Table) -> list[Case]:
    """Every line of a table."""
    return [
        Case(f"{family}: {words}", words, partial(said, there, family), partial(said, apart, family))
        for family, lines in table.items()
        for words, there, apart in lines
    ]


def said(rows: Sequence[Row], family: str = HEADLINE) -> str:
    """The headline, or the sentences of a family."""
    return headline(frame(rows)) if family == HEADLINE else sentences(frame(rows), family)


def layers(measure: str, *values: float, half: float | None = 0.01, **where: object) -> list[Row]:
    """One row a layer, from layer 0 on."""
    return [row(measure, value, half=half, layer=at, **where) for at, value in enumerate(values)]


def along(*values: float, measure: str = BETWEEN, half: float | None = 0.01, **where: object) -> list[Row]:
    """One row a step: 0, 100, 200 and so on."""
    return [row(measure, value, half=half, step=100 * at, **where) for at, value in enumerate(values)]


def of_models(*values: float, half: float | None = 0.01, **where: object) -> list[Row]:
    """One row of the mean cosine a model: a, b, c and so on."""
    return [row(BETWEEN, value, half=half, model="abcdefgh"[at], **where) for at, value in enumerate(values)]
