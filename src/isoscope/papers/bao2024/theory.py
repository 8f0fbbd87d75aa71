"""Claim: where signal passes follows from tr W and ‖W‖_F, and a narrow spectrum localises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import pandas as pd

from isoscope.formatting import short
from isoscope.papers.bao2024 import walks
from isoscope.papers.claims import Claim, Found, Verdict, all_of, is_above, is_below
from isoscope.papers.intervals import over, over_seeds
from isoscope.papers.lines import series
from isoscope.papers.workshop import Workshop
from isoscope.results.points import points_frame
from isoscope.results.reading import Reading
from isoscope.results.row import frame
from isoscope.show.charts import Chart, Series
from isoscope.show.regimes import REGIMES

CLOSE = 0.02  # how far off the closed form may be where it is taken
APART = 0.5  # how much more signal must pass inside than outside of the stretch that a regime names
EVEN, HALF, NONE = 0.9, (1 / 3, 2 / 3), 0.1  # ρ where it should be 1, ½ and 0


def experiment(workshop: Workshop) -> Found:
    """All W of every seed; a seed has its own W and its own walks."""
    width = workshop.scale.arm.width
    size = min(512, 4 * width), min(16_384, 128 * width)
    asked = [walks.Asked(*size, seed) for seed in range(workshop.seeds)]
    answers = workshop.side_by_side(walks.walked, asked)
    rows = [row for each, _ in answers for row in each]
    return Found(frame(rows), points_frame(point for _, each in answers for point in each))


def judge(rows: pd.DataFrame) -> Verdict:
    """Regimes as they should be at the longest T, the closed form close, only a narrow spectrum localised."""
    longest, names = walks.GROWING[-1], [made.regime for made in walks.MADE]
    inside, outside = (
        {name: _of(rows, name, f"propagation_{where}", longest) for name in names}
        for where in ("inside", "outside")
    )
    apart = [_difference(rows, name, longest) for name in walks.LOCALISED]
    error = _worst(rows)
    ends = (walks.SPREADS[0], walks.SPREADS[-1])
    narrow, wide = (_of(rows, f"spread {spread:g}", "localisation") for spread in ends)
    low, high = HALF
    above = [(inside["uniform"], EVEN), (inside["uniform_half"], low), (narrow, APART)]
    above += [(each, APART) for each in apart]
    below = [(inside["uniform_half"], high), (inside["vanishing"], NONE), (error, CLOSE), (wide, NONE)]
    parts = [*(is_above(*each) for each in above), *(is_below(*each) for each in below)]
    told = ", ".join(
        f"{REGIMES[name].label} {short(inside[name].value)} against {short(outside[name].value)}"
        for name in walks.LOCALISED
    )
    few = _of(rows, f"{walks.TRACED}, rank 2", "propagation_error")
    said = (
        f"At T = {longest} ρ inside and outside of the stretch of a regime is: {told}. With "
        f"tr W = 1 the late half exceeds the early by {narrow.said} where the spectrum is narrow and by "
        f"{wide.said} where it is wide. The Gaussian form is off by at most {error.said} where it is taken."
    )
    details = (
        f"Where signal should pass everywhere ρ is {inside['uniform'].said}, by half "
        f"{inside['uniform_half'].said}, nowhere {inside['vanishing'].said}. The Gaussian form fails at low "
        f"rank: by {few.said} for a multiple of a projection on two dimensions."
    )
    return all_of(parts, said, details)


def _difference(rows: pd.DataFrame, name: str, length: int) -> Reading:
    """How much larger ρ is inside the stretch of a regime than outside, at this T."""
    own = rows[(rows["model"] == name) & (rows["n"] == length)]
    wide = own.pivot_table(index="revision", columns="measure", values="value")
    return over((wide["propagation_inside"] - wide["propagation_outside"]).tolist())


def _of(rows: pd.DataFrame, model: str, measure: str, length: int | None = None) -> Reading:
    own = rows[(rows["model"] == model) & (rows["measure"] == measure)]
    return over_seeds(own if length is None else own[own["n"] == length])


def _worst(rows: pd.DataFrame) -> Reading:
    """The largest mean error of W for which the closed form is taken in every seed."""
    taken = rows[rows["measure"] == "closed_form"].groupby("model")["value"].min()
    names = [*taken[taken == 1].index, *(made.regime for made in walks.MADE)]
    own = rows[(rows["measure"] == "propagation_error") & rows["model"].isin(names)]
    each = [over_seeds(part) for _, part in own.groupby(["model", "n"])]
    return max(each, key=lambda found: found.value)


def draw(rows: pd.DataFrame, points: pd.DataFrame) -> list[Chart]:
    """ρ(t) of every regime, how it comes about as T grows, localisation lost, and the error by rank."""
    grown, alike = [], []
    for name in walks.LOCALISED:
        lengths, label = [float(length) for length in walks.GROWING], REGIMES[name].label
        grown.append(series(label, lengths, [_difference(rows, name, length) for length in walks.GROWING]))
        likeness = [_of(rows, name, "softmax_likeness", length) for length in walks.GROWING]
        alike.append(series(label, lengths, likeness))
    spread = _by(rows, [f"spread {each:g}" for each in walks.SPREADS], "spectrum_variance", "localisation")
    off = []
    for name in (walks.TRACED, walks.TRACELESS):
        models = [arm for rank in walks.RANKS if (arm := f"{name}, rank {rank}") in set(rows["model"])]
        off.append(_by(rows, models, "query_key_rank", "propagation_error", name))
    return [
        _profiles(points, walks.LOCALISED, "ρ(t) where attention localises"),
        _profiles(points, [made.regime for made in walks.MADE if not made.trace], "ρ(t) where it does not"),
        Chart("Inside less outside, as T grows", "T", "difference of ρ", grown, log_x=True,
              levels=((APART, "localised above"),)),
        Chart("With tr W = 1: localisation lost as the spectrum widens", "variance of the eigenvalues",
              "late half less early half", [spread], log_x=True, levels=((0.0, ""),)),
        Chart("How far the Gaussian form is off", "effective rank of W", "largest |difference| of ρ", off,
              log_x=True, log_y=True, levels=((CLOSE, "taken below"),)),
        Chart("The last query’s attention: piecewise linear against softmax", "T", "Spearman over positions",
              alike, log_x=True, levels=((1.0, "the same order"),)),
    ]  # fmt: skip


def _profiles(points: pd.DataFrame, names: Sequence[str], title: str) -> Chart:
    """Simulation as dots on the line of the closed form."""
    own = points[(points["picture"] == "profile") & (points["layer"] == walks.GROWING[-1])]
    lines = []
    ways: tuple[tuple[str, Literal["line", "dots"]], ...] = (("closed form", "line"), ("simulated", "dots"))
    for name in names:
        for how, style in ways:
            part = own[own["series"] == f"{name}, {how}"]
            x, y = part["x"].tolist(), part["y"].tolist()
            lines.append(Series(REGIMES[name].label, x, y, style=style, told=[how] * len(x)))
    remark = f"T = {walks.GROWING[-1]}; lines closed form, dots simulated"
    return Chart(title, "t/T", "ρ", lines, remark=remark)


def _by(rows: pd.DataFrame, models: Sequence[str], across: str, up: str, name: str = "tr W = 1") -> Series:
    x = [_of(rows, model, across).value for model in models]
    return series(name, x, [_of(rows, model, up) for model in models])


CLAIM = Claim(
    "regimes", "Where signal passes follows from the trace and the size of W", experiment=experiment,
    judge=judge, draw=draw,
    expected="If inputs walk at random and the last one queries, tr W and ‖W‖_F alone say from where signal "
    "passes as T grows: the late half, places beside the middle, the early half, everywhere, or nowhere. "
    "Attention localises where the spectrum of W is narrow about a mean that is not zero.",
    method="W are made up, one of each regime: a multiple of the identity and Gaussian noise, for T from 16 "
    "to 1,024. ρ(t) is had by the Gaussian closed form and by simulation of walks (given the last input, "
    "scores are exactly Gaussian, so only that one is drawn). Then tr W = 1 is held while the spectrum "
    "widens; and W of low rank, with ‖W‖_F .1, 1 and 10, say where the closed form fails. Every seed has its "
    "own W and walks.",
    reconstructed="The paper's theorems are for T → ∞ and have regimes by ≪ and ≫: a ≪ b is taken as "
    "10·a ≤ b. That ρ inside is at least .5 above that outside is our reading of “localised”.",
    measures=("trace", "frobenius", "spectrum_variance", "query_key_rank"),
)  # fmt: skip
