"""What a contrast says: each quantity against the measured entropy, arm against arm at the same entropy.

Of every layer, arm and seed a line is fitted through the trials, quantity against the entropy measured in
that layer. Arms are compared at the middle of the common range of entropies (where all arms have none, of the
arm's and the reference's), paired by seed, with a t interval from three seeds on. Without attention, or where
no trial was driven to an entropy, lines are level.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd
from scipy import stats

QUANTITIES = (
    "loss", "mean_cosine_between", "relative_drift", "isoscore", "drift_share", "query_relative_drift",
    "key_relative_drift", "sink_mass", "attention_mass",
)  # fmt: skip
AS_THEY_CAME = (
    "loss", "perplexity", "accuracy", "probe_accuracy", "normalised_entropy", "spectrum_variance", "trace",
    "frobenius", "spectrum_mean", "propagation_mean", "propagation_range", "propagation_agreement",
    "trace_on_data", "frobenius_on_data", "mean_cosine_between", "relative_drift", "isoscore",
    "effective_rank", "rank_residual", "score_std", "drift_share", "query_relative_drift",
    "key_relative_drift", "sink_mass", "attention_mass",
)  # fmt: skip
"""The quantities of arms that were driven nowhere: the entropy is one of them."""
LEAST = 3  # seeds for an interval
FEW = "measured at fewer than two entropies"
LEVEL = "without attention: the same at every entropy"
_ENTROPY = "normalised_entropy"
_TRIAL = ["arm", "aim", "seed"]
_KINDS = ["layer", "attention", "mixed_attention", "query_key"]


@dataclass(frozen=True)
class Fitted:
    """`points` of each trial, layer (0: their mean) and quantity; `lines` of each seed; `differences`."""

    points: pd.DataFrame
    lines: pd.DataFrame
    differences: pd.DataFrame
    arms: tuple[str, ...]


def fit(rows: pd.DataFrame, reference: str, arms: Iterable[str] = ()) -> Fitted:
    """All lines and differences; `arms` come in this order after the reference, others behind them."""
    driven = bool(rows["setting"].notna().any())
    points = points_of(rows, QUANTITIES if driven else AS_THEY_CAME)
    if not driven:  # of what nobody has, such as a mass that a softmax has not, nothing is said
        points = points[points.groupby("measure")["value"].transform("count") > 0].reset_index(drop=True)
    why = FEW if driven else "not measured"
    there = list(dict.fromkeys([reference, *arms, *sorted(points["arm"].unique())]))
    order = tuple(arm for arm in there if (points["arm"] == arm).any())
    lines, differences = [], []
    for (measure, layer), part in points.groupby(["measure", "layer"], sort=False):
        own = lines_of(part).assign(measure=str(measure), layer=int(str(layer)))
        lines.append(own)
        for arm in [arm for arm in order if arm != reference]:
            place = {"measure": measure, "layer": layer, "arm": arm}
            differences.append({**place, **compare(own, arm, reference, why)})
    made = pd.concat(lines, ignore_index=True) if lines else lines_of(points).assign(measure="", layer=0)
    return Fitted(points, _typed(made), _typed(pd.DataFrame(differences, columns=_COLUMNS)), order)


def points_of(rows: pd.DataFrame, quantities: Sequence[str] = QUANTITIES) -> pd.DataFrame:
    """Quantities beside the entropy of their layer: arm, aim, seed, layer, entropy, measure, value.

    What leaves block i goes with its attention, the loss and means over layers with the mean entropy.
    """
    rows = rows.rename(columns={"setting": "aim"})
    rows = rows[rows["head"].isna() & rows["seed"].notna()]
    inside = rows[rows["kind"].isin(_KINDS) & (rows["layer"] > 0)]
    mixed = inside["kind"] == "mixed_attention"
    inside = pd.concat([inside[mixed & inside["value"].notna()], inside[~mixed]])
    inside = inside.drop_duplicates([*_TRIAL, "layer", "measure"])
    sharp = inside[inside["measure"] == _ENTROPY].rename(columns={"value": "entropy"})
    sharp = sharp[[*_TRIAL, "layer", "entropy"]]
    mean = sharp.groupby(_TRIAL, dropna=False, as_index=False)["entropy"].mean()
    layered = inside[inside["measure"].isin(quantities)].merge(sharp, "left", [*_TRIAL, "layer"])
    parts = layered.groupby([*_TRIAL, "measure"], dropna=False, as_index=False)["value"]
    over = parts.agg(lambda values: float(values.mean(skipna=False)))  # of all layers, or of none
    told = rows[(rows["kind"] == "training") & rows["measure"].isin(quantities)]
    whole = pd.concat([told[[*_TRIAL, "measure", "value"]], over]).merge(mean, "left", _TRIAL)
    every = pd.concat([whole.assign(layer=0), layered])[[*_TRIAL, "layer", "entropy", "measure", "value"]]
    rank = {name: place for place, name in enumerate(quantities)}
    by = ["rank", "layer", "arm", "seed", "aim"]
    ordered = every.assign(rank=every["measure"].map(rank)).sort_values(by, ignore_index=True)
    return _typed(ordered.drop(columns="rank"))


def lines_of(points: pd.DataFrame) -> pd.DataFrame:
    """A straight line for every arm and seed, with the range of entropies that it was fitted on."""
    found = []
    for (arm, seed), part in points.groupby(["arm", "seed"], sort=False):
        level = bool(part["aim"].isna().all())
        part = part[part["value"].notna() & (part["entropy"].notna() | level)]
        x, y = part["entropy"].to_numpy(float), part["value"].to_numpy(float)
        if level and len(y):
            line = (0.0, float(y.mean()), -math.inf, math.inf)
        elif len(set(x)) > 1:
            slope = float(((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum())
            line = (slope, float(y.mean() - slope * x.mean()), float(x.min()), float(x.max()))
        else:
            continue
        found.append((arm, seed, *line))
    return pd.DataFrame(found, columns=["arm", "seed", "slope", "intercept", "since", "until"])


def common(lines: pd.DataFrame) -> tuple[float, float] | None:
    """The range of entropies in which every one of these lines was measured; None where there is none."""
    if lines.empty:
        return None
    since, until = float(lines["since"].max()), float(lines["until"].min())
    return (since, until) if since < until and math.isfinite(until - since) else None


def compare(lines: pd.DataFrame, arm: str, reference: str, why: str = FEW) -> dict[str, object]:
    """How the line of an arm differs from the reference's in the middle of their common range, else `why`."""
    mine, theirs = lines[lines["arm"] == arm], lines[lines["arm"] == reference]
    if mine.empty or theirs.empty:
        return _nothing(why)
    pair = pd.concat([mine, theirs])
    if bool((pair["until"] == math.inf).all()):
        return {**_nothing(""), **_difference(mine, theirs, 0.0)}
    among = common(lines)
    within = among or common(pair)
    if within is None:
        return _nothing("no common range of entropies")
    middle = (within[0] + within[1]) / 2
    control = math.isinf(float(mine["until"].max()))
    note = "" if among else "in the range of this arm and the reference; all arms have none in common"
    told = {"at": middle, "range_low": within[0], "range_high": within[1], "control": control}
    return {**_difference(mine, theirs, middle), **told, "note": LEVEL if control else note}


def _difference(mine: pd.DataFrame, theirs: pd.DataFrame, at: float) -> dict[str, object]:
    """How lines differ at an entropy over seeds: mean, t interval where there are enough, and spread."""
    lines = (each.set_index("seed") for each in (mine, theirs))
    one, other = (each["intercept"] + each["slope"] * at for each in lines)
    differences = (one - other).dropna().to_numpy(float)
    count = len(differences)
    if not count:
        return _nothing("")
    mean, half = float(differences.mean()), math.nan
    if count >= LEAST:
        half = float(stats.t.ppf(0.975, count - 1) * differences.std(ddof=1) / math.sqrt(count))
    least, most = float(differences.min()), float(differences.max())
    ends = {"low": mean - half, "high": mean + half, "least": least, "most": most}
    return {"value": mean, "n": count, **ends}


_NUMBERS = ("value", "low", "high", "least", "most", "at", "range_low", "range_high")
_COLUMNS = ["measure", "layer", "arm", "n", *_NUMBERS, "note", "control"]


def _nothing(why: str) -> dict[str, object]:
    return {"n": 0, **dict.fromkeys(_NUMBERS, math.nan), "note": why, "control": False}


def _typed(table: pd.DataFrame) -> pd.DataFrame:
    return table.astype({name: "int64" for name in ("layer", "seed") if name in table})
