"""What a claim is: the paper's expectation, an experiment that makes rows, and a judge who reads only those.

A verdict is derived from intervals, never from bare points; where none can be had it is undecided and says
why. A claim on k numbers holds where each does, and fails where one is the other way by an interval of 1 −
.05/k. What could not be made is a row `failed` with its reason: page and verdict can be made anew from rows
alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from isoscope.formatting import short
from isoscope.papers.intervals import widened
from isoscope.results.reading import Reading
from isoscope.results.row import Row, frame
from isoscope.results.trajectory import FAILED
from isoscope.show.charts import Chart

if TYPE_CHECKING:
    from isoscope.papers.workshop import Workshop

WORDS = {True: "as expected", False: "not as expected", None: "undecided at this scale"}


@dataclass(frozen=True)
class Verdict:
    """The verdict on a claim (None: undecided) with its sentence; `found` is compared with `level`."""

    held: bool | None
    said: str
    details: str = ""
    found: Reading | None = None
    level: float = math.nan

    @property
    def word(self) -> str:
        """In words."""
        return WORDS[self.held]

    def stands(self, looks: int) -> bool:
        """Whether it is decided also where it is one of so many looks."""
        if self.held is None or self.found is None:
            return self.held is not None
        wide = widened(self.found, looks)
        return wide.above(self.level) or wide.below(self.level)


@dataclass(frozen=True)
class Found:
    """What an experiment found: rows, points of pictures, and remarks that a reader must know."""

    rows: pd.DataFrame
    points: pd.DataFrame | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Claim:
    """One claim of a paper.

    `expected` is what the paper expects, in our words; `method` how it was tried here; `reconstructed` what
    of it the paper does not tell and is ours (empty: nothing). `judge` is given the claim's rows and nothing
    else, `draw` its rows and points. `measures` are explained beside the figures.
    """

    name: str
    title: str
    expected: str
    method: str
    experiment: Callable[[Workshop], Found]
    judge: Callable[[pd.DataFrame], Verdict]
    draw: Callable[[pd.DataFrame, pd.DataFrame], Sequence[Chart]]
    reconstructed: str = ""
    measures: tuple[str, ...] = ()

    def verdict(self, rows: pd.DataFrame) -> Verdict:
        """The judge's, or undecided where there is nothing but what failed."""
        if len(measured(rows)):
            return self.judge(rows)
        first, *others = dict.fromkeys(map(str, rows["note"])) or ["there are no rows."]
        more = f" And {len(others)} more of the kind; the notes have them." if others else ""
        return Verdict(None, f"Nothing was measured: {first}{more}")


def of_seed(rows: pd.DataFrame, arm: str, seed: int) -> pd.DataFrame:
    """Rows with the coordinates of one arm and seed of an experiment."""
    return rows.assign(model=arm, revision=f"seed {seed}", arm=arm, seed=seed).astype({"seed": "Int64"})


def failed(model: str, why: str, revision: str = "") -> pd.DataFrame:
    """The row of what could not be made or measured, with its reason."""
    lost = Reading(math.nan, 0, note=why)
    return frame([Row.at("", model, revision, None, "model", None, None, FAILED, lost)])


def measured(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows but those of what failed."""
    return rows[rows["measure"] != FAILED]


def kept(rows: pd.DataFrame, which: pd.Series[bool]) -> pd.DataFrame:
    """These rows, and those of what failed."""
    return rows[which | (rows["measure"] == FAILED)].reset_index(drop=True)


def lacking(rows: pd.DataFrame) -> str:
    """Which models failed, or which seeds of them, as the end of a sentence; empty where none did."""
    lost = rows[rows["measure"] == FAILED].drop_duplicates(["model", "revision"])
    names = []
    for model, own in lost.groupby("model", sort=False):
        seeded = len(own) > 1 and own["seed"].notna().all()
        which = ", ".join(filter(None, map(str, own["seed" if seeded else "revision"])))
        names.append(called(model, f"seeds {which}" if seeded else which))
    return f" Not measured: {', '.join(names)} (the notes say why)." if names else ""


def called(model: object, revision: object) -> str:
    """A model, with its seed or checkpoint where it has one."""
    return f"{model} ({revision})" if revision else str(model)


def is_above(found: Reading, level: float, what: str = "") -> Verdict:
    """Held where all of the interval is above the level, not where all is below, else undecided."""
    return _against(found, level, what, "above", held=found.above(level), turned=found.below(level))


def is_below(found: Reading, level: float, what: str = "") -> Verdict:
    """Held where all of the interval is below the level, not where all is above, else undecided."""
    return _against(found, level, what, "below", held=found.below(level), turned=found.above(level))


def _against(found: Reading, level: float, what: str, side: str, *, held: bool, turned: bool) -> Verdict:
    open_ = "not told from" if found.bounded else "which without an interval is not told from"
    end = side if held else f"not {side}" if turned else open_
    said = f"{what} is {found.said}, {end} {short(level)}."
    return Verdict(True if held else False if turned else None, said, found=found, level=level)


def all_of(parts: Sequence[Verdict], said: str = "", details: str = "") -> Verdict:
    """Held where every part held, not where one surely did not, else undecided; says `said`, or all they say.

    Surely is by an interval for as many looks as there are parts.
    """
    turned = [part for part in parts if part.held is False]
    told = said or " ".join(part.said for part in parts)
    if any(part.stands(len(parts)) for part in turned):
        return Verdict(False, told, details)
    if turned:
        which = f"{len(turned)} {'is' if len(turned) == 1 else 'are'} the other way"
        told += f" Of {len(parts)} numbers {which}, but not by an interval for {len(parts)} looks."
    return Verdict(True if parts and all(part.held for part in parts) else None, told, details)
