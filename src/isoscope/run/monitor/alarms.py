"""Alarms: plain functions of the rows of recent steps, each with its words and where its threshold is from.

An alarm looks at layers, not at single heads: a head that attends to one token is how many heads work. Two
of them (entropy, scores) speak of change: they fire when a threshold is crossed among the recent steps, so
that a model that comes sharp from elsewhere does not set them off. None of the papers gives a number that
holds for every model; each threshold below says what stands on either side of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import inf, isnan, nan
from typing import Any, NamedTuple
from weakref import ref

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from isoscope.errors import IsoscopeError
from isoscope.sites import ATTENTION, Site

# Zhai et al. 2023 call it collapse when a layer's attention entropy falls to nearly 0 and training becomes
# unstable. Here 0.1 of what even attention has; healthy language models are at .38 (upper half of a 135M
# model) to .58 (all layers of a 25M byte model).
LEAST_ENTROPY = 0.1
# Dong, Cordonnier & Loukas 2021: without skips the residual falls to 0. The most anisotropic layer published
# of a model in use, GPT-2's last with a mean cosine of .978, still has √(1 − .978) = .15.
LEAST_RESIDUAL = 0.1
# Kimi K2 (2025) clips queries and keys once a score passes 100; Wortsman et al. 2023 see all runs diverge
# whose scores pass 10⁴; Gemma 2 caps them at 50.
LARGEST_SCORE = 100.0
# In the untrained block of Godey et al. 2024 a share of .93 is where attention begins to sharpen by drift
# alone (a bias of norm 100, normalised entropy .90; at .98 it is .65); a 25M byte model trains to .62.
LARGEST_SHARE = 0.9
# A share of next to nothing says nothing: where attention is still even, scores vary by rounding and chance.
EVEN = 0.95


@dataclass(frozen=True)
class Alarm:
    """What is wrong, since which step, where, in one sentence."""

    name: str
    step: int
    site: str
    words: str


class AlarmRaised(IsoscopeError):  # noqa: N818  (it is what happened, not what went wrong in here)
    """An alarm that was asked to end training; `alarm` is what it says."""

    def __init__(self, alarm: Alarm) -> None:
        super().__init__(alarm.words)
        self.alarm = alarm


AlarmFunction = Callable[[pd.DataFrame], Alarm | None]


def entropy_collapse(rows: pd.DataFrame) -> Alarm | None:
    """The normalised attention entropy of a layer fell below 0.1."""
    return _past(
        rows, "entropy_collapse", "normalised_entropy", LEAST_ENTROPY, below=True, crossed=True,
        words="entropy collapse at step {step}: attention at {site} has {value:.3f} of the entropy of even "
        "attention, from {was:.3f}; lower the learning rate, or normalise queries and keys.",
    )  # fmt: skip


def rank_collapse(rows: pd.DataFrame) -> Alarm | None:
    """Less than 0.1 of a sequence's norm is left when its mean is taken away."""
    return _past(
        rows, "rank_collapse", "rank_residual", LEAST_RESIDUAL, below=True, crossed=False,
        words="rank collapse at step {step}: at {site} the positions of a sequence are one vector up to "
        "{value:.3f} of their norm; look at the initialisation and at the residual path.",
    )  # fmt: skip


def score_growth(rows: pd.DataFrame) -> Alarm | None:
    """The largest attention score of a layer passed 100."""
    return _past(
        rows, "score_growth", "largest_score", LARGEST_SCORE, below=False, crossed=True,
        words="scores grow: at step {step} the largest at {site} is {value:.4g}, from {was:.4g}; normalise "
        "or clip queries and keys, or lower the learning rate.",
    )  # fmt: skip


def drift_takes_over(rows: pd.DataFrame) -> Alarm | None:
    """More than 0.9 of the variance of a layer's scores is the mean query's, and attention is not even."""
    return _past(
        rows, "drift_share", "drift_share", LARGEST_SHARE, below=False, crossed=False, but_even=True,
        words="drift takes over at step {step}: {percent:.0f} % of the variance of the scores at {site} is "
        "that of the mean query, the same for every query.",
    )  # fmt: skip


def not_a_number(rows: pd.DataFrame) -> Alarm | None:
    """NaN or Inf was seen: at which step first, and there at which site first.

    It names the step at which the bad ones that last until now began. Where that step is no longer among the
    recent ones nothing is said: it was said then, and the first of those in view would be a wrong one.
    """
    counts = "not_finite", "not_finite_rows"
    latest = _latest(rows, *counts)
    if latest and not any(row.value > 0 for row in latest):
        return None
    counted = _layers(rows, *counts)
    bad = [row for row in counted if row.value > 0]
    seen, broken = sorted({row.step for row in counted}), {row.step for row in bad}
    if not seen or seen[-1] not in broken:
        return None
    clean = [step for step in seen if step not in broken]
    if not clean and len(seen) > 1:
        return None
    step = int(next(step for step in seen if not clean or step > clean[-1]))

    def way(row: _Layer) -> tuple[float, bool]:
        """Along the way of the data: what enters, the attention of block 1, what leaves it, … the output."""
        return inf if row.layer is None else row.layer, row.kind not in ATTENTION

    first = min((row for row in bad if row.step == step), key=way)
    what = "attention rows" if first.measure == "not_finite_rows" else "vectors"
    if min(broken) < step:
        begun = f"again at step {step}, beginning at {first.site}"
    elif clean:
        begun = f"first at step {step}, first at {first.site}"
    else:  # nothing was seen before: whether it is the first cannot be told
        begun = f"at step {step}, beginning at {first.site}"
    return Alarm(
        "not_finite",
        step,
        first.site,
        f"NaN or Inf {begun}: {first.value:.0f} of {first.n} {what}; everything measured before is kept.",
    )


ALARMS: tuple[AlarmFunction, ...] = (
    not_a_number,
    entropy_collapse,
    rank_collapse,
    score_growth,
    drift_takes_over,
)


def _past(
    rows: pd.DataFrame,
    name: str,
    measure: str,
    threshold: float,
    *,
    below: bool,
    crossed: bool,
    words: str,
    but_even: bool = False,
) -> Alarm | None:
    """The alarm of the site that is furthest past the threshold at the last step; None where none is past.

    With `but_even`, sites whose attention is even are passed over. Where it must have `crossed` it, some
    earlier step must lie on the other side. `words` take the step, the site, its value (or percent) and what
    it `was`, the farthest before.
    """
    sign = -1.0 if below else 1.0
    past = [
        (sign * row.value, row.site) for row in _latest(rows, measure) if sign * row.value > sign * threshold
    ]
    if not past:  # nearly always: what was before is not looked at
        return None
    last = rows["step"].max()
    before: dict[str, list[float]] = {}
    for row in _layers(rows, measure):
        if row.step != last and not isnan(row.value):
            before.setdefault(row.site, []).append(sign * row.value)
    entropies = _latest(rows, "normalised_entropy") if but_even else ()
    spared = {row.site for row in entropies if row.value > EVEN}
    found = [
        (value, site)
        for value, site in past
        if site not in spared and not (crossed and min(before.get(site, [inf])) > sign * threshold)
    ]
    if not found:
        return None
    value, site = max(found)
    was = sign * min(before.get(site, [nan]))
    told = words.format(step=last, site=site, value=sign * value, percent=100 * value, was=was)
    return Alarm(name, int(last), site, told)


class _Layer(NamedTuple):
    """A row of a whole site: of all columns, those that are looked at."""

    measure: str
    kind: str
    layer: int | None
    step: int
    value: float
    n: int

    @property
    def site(self) -> str:
        return _site(self.kind, self.layer)


def _layers(rows: pd.DataFrame, *measures: str) -> list[_Layer]:
    """The rows of whole sites, of these measures, of all steps."""
    return _taken(rows, (rows["measure"].isin(measures) & rows["head"].isna()).to_numpy(bool))


def _latest(rows: pd.DataFrame, *measures: str) -> list[_Layer]:
    """Those of the last step, which every alarm asks for: of one table they are looked up once."""
    if _last[0]() is not rows:
        step = rows["step"].to_numpy("float64", na_value=nan)
        whole = rows["head"].isna().to_numpy()  # heads are nine rows of ten
        _last[:] = ref(rows), _taken(rows, (step == step.max(initial=-inf)) & whole)
    return [row for row in _last[1] if row.measure in measures]


_last: list[Any] = [lambda: None, []]  # a table, and its rows of the last step


def _taken(rows: pd.DataFrame, where: NDArray[np.bool_]) -> list[_Layer]:
    which = np.flatnonzero(where)
    columns = (rows[name].array.take(which) for name in _Layer._fields)
    return [
        _Layer(measure, kind, None if pd.isna(layer) else layer, *rest)
        for measure, kind, layer, *rest in zip(*columns, strict=True)
    ]


@cache
def _site(kind: str, layer: int | None) -> str:
    return str(Site(kind, None if layer is None else int(layer)))
