"""An untrained block over its seeds: means with intervals, and the norms that a block leaves as they are."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats

from isoscope.lab.block.block import ITERATED

LEAST = 3  # seeds for an interval
SETTLED = 1e-3  # of all that passes change: a last pass that changes less is called none
ROUNDING = 1e-6  # of a norm
_BY = ["norm", "bias", "kind", "layer", "measure"]


def over_seeds(rows: pd.DataFrame) -> pd.DataFrame:
    """One line a norm, bias, site and measure: mean over `n` seeds, `std`, t interval from three seeds on."""
    whole = rows[rows["head"].isna() & rows["value"].notna()]
    whole = whole.rename(columns={"arm": "norm", "setting": "bias"})
    lines = whole.groupby(_BY, sort=False)["value"].agg(value="mean", std="std", n="count").reset_index()
    enough = lines["n"] >= LEAST
    degrees = (lines["n"] - 1).where(enough, 1)
    half = stats.t.ppf(0.975, degrees) * lines["std"] / np.sqrt(lines["n"])
    half = half.where(enough, math.nan)
    lines = lines.assign(low=lines["value"] - half, high=lines["value"] + half)
    return lines.sort_values(["bias"], kind="stable").reset_index(drop=True)


def curve(lines: pd.DataFrame, norm: str, kind: str, layer: int, measure: str) -> pd.DataFrame:
    """The lines of one quantity of one norm, by growing bias."""
    mine = (lines["norm"] == norm) & (lines["kind"] == kind) & (lines["measure"] == measure)
    return lines[mine & (lines["layer"] == layer)].sort_values("bias")


def kept_norm(entering: Sequence[float], leaving: Sequence[float]) -> float:
    """The norm that leaves as it entered: where `leaving` crosses `entering` under a growing bias, or NaN."""
    last, before = math.nan, 0.0
    for x, y in zip(entering, leaving, strict=True):
        if x == y:
            return float(x)
        if (y - x) * before < 0:
            return float(last + before / (before - (y - x)) * (x - last))
        last, before = x, y - x
    return math.nan


def fixed_points(rows: pd.DataFrame) -> pd.DataFrame:
    """Of every norm: the norm that one pass keeps; by bias, where many passes lead, and if they settle there.

    Sought seed by seed: `kept` is the mean over the `keeping` of `seeds` that keep one. Further columns are
    norm, bias (NaN without passes), first and last (mean norms before and after all passes), growth (of the
    last pass, a factor), passes and settles.
    """
    mine = rows[(rows["measure"] == "mean_norm") & rows["kind"].isin(("layer", ITERATED))]
    lines = over_seeds(mine)
    found: list[dict[str, object]] = []
    for norm, own in mine.groupby("arm", sort=False):
        kept = []
        for _, part in own.groupby("seed"):
            each = (curve(over_seeds(part), str(norm), "layer", at, "mean_norm") for at in (0, 1))
            kept.append(kept_norm(*(line["value"].tolist() for line in each)))
        sure = [each for each in kept if not math.isnan(each)]
        told = {"norm": norm, "keeping": len(sure), "seeds": len(kept)}
        told["kept"] = sum(sure) / len(sure) if sure else math.nan
        passed = lines[(lines["norm"] == norm) & (lines["kind"] == ITERATED)]
        for bias, line in passed.groupby("bias"):
            norms = line.sort_values("layer")["value"].tolist()
            first, near, last = norms[0], norms[-2], norms[-1]
            settles = abs(last - near) <= SETTLED * abs(last - first) + ROUNDING * last
            led = {"first": first, "last": last, "growth": last / near if near else math.nan}
            found.append({**told, "bias": bias, **led, "passes": len(norms) - 1, "settles": settles})
        if passed.empty:
            found.append({**told, "bias": math.nan})
    columns = ["norm", "bias", "kept", "keeping", "seeds", "first", "last", "growth", "passes", "settles"]
    return pd.DataFrame(found, columns=columns)
