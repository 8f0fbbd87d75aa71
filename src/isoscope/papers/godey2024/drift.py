"""Claims: in Transformers the mean cosine goes with the drift, layer by layer; in CNNs it does not.

Correlations are over the layers of each model, and over those of all Transformers pooled. Layers are not
independent, so Fisher's interval is nominal: verdicts hang on intervals over seeds, or over models.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import Literal

import pandas as pd
from scipy import stats

from isoscope.formatting import listed, short
from isoscope.papers.claims import Claim, Found, Verdict, all_of, is_above, is_below, lacking, measured
from isoscope.papers.godey2024.arms import NO_ATTENTION, states
from isoscope.papers.intervals import apart, correlation, over, paired, within
from isoscope.papers.lines import dots, series
from isoscope.papers.workshop import Workshop
from isoscope.results.reading import Reading
from isoscope.results.row import Row, frame
from isoscope.show.charts import Chart, Series

POOLED = "all Transformers, pooled"
KIND = "correlation"
GAP = "squared_drift_gap"
_KINDS: tuple[Literal["spearman", "pearson"], ...] = ("spearman", "pearson")
_OF = ("drift", "relative_drift")


def experiment(workshop: Workshop) -> Found:
    """Every layer of every model, and the correlations over them."""
    rows = states(workshop)
    return Found(pd.concat([rows, correlations(measured(rows))], ignore_index=True))


def layers(rows: pd.DataFrame) -> pd.DataFrame:
    """One line a model, seed and layer, with A and both drifts as columns."""
    own = rows[(rows["kind"] == "layer") & rows["head"].isna()]
    place = ["model", "revision", "layer"]
    wide = own.pivot_table(index=place, columns="measure", values="value", sort=False)
    return wide.reset_index().rename(columns={"mean_cosine_between": "A"})


def correlations(rows: pd.DataFrame) -> pd.DataFrame:
    """Correlations as rows: within every model and seed, and of every seed over the Transformers' layers."""
    wide, found = layers(rows), list[Row]()
    for every in (wide, wide[~wide["model"].isin(NO_ATTENTION)].assign(model=POOLED)):
        for (model, revision), part in every.groupby(["model", "revision"], sort=False):
            found += _of(str(model), str(revision), part)
    return frame(found)


def _of(model: str, revision: str, part: pd.DataFrame) -> list[Row]:
    at = ("", model, revision, None, KIND, None, None)
    rows = []
    for kind, of in product(_KINDS, _OF):
        x, y = part[of].tolist(), part["A"].tolist()
        each = correlation(x, y, kind)
        p = getattr(stats, f"{kind}r")(x, y).pvalue if each.bounded else math.nan
        note = f"nominal: p = {short(float(p), 2)}, layers are not independent"
        rows.append(Row.at(*at, f"{kind}_{of}", replace(each, null=0.0, note=note)))
    gap = float((part["A"] - part["relative_drift"] ** 2).abs().mean())
    return [*rows, Row.at(*at, GAP, Reading(gap, len(part), note="mean of |A − relative drift²|"))]


def replicated(rows: pd.DataFrame) -> Reading:
    """Over seeds, each the mean of its models; where models are there once, without seeds, over models."""
    seeds = rows.groupby("revision")["value"].mean()
    return within(over((seeds if len(seeds) > 1 else rows["value"]).tolist()), -1, 1)


def judge(rows: pd.DataFrame) -> Verdict:
    """Within Transformers and over all of them A must go up with the drift."""
    own = _correlations(rows)
    inside = own[~own["model"].isin((*NO_ATTENTION, POOLED))]
    pooled, gaps = own[own["model"] == POOLED], inside[inside["measure"] == GAP]["value"]
    drift, relative = (replicated(inside[inside["measure"] == f"spearman_{of}"]) for of in _OF)
    what = "Spearman's correlation of the mean cosine with the drift, over the layers of a Transformer,"
    parts = [is_above(drift, 0.0, what), is_above(relative, 0.0, "With the relative drift it")]
    nominal = pooled[pooled["measure"] == "pearson_relative_drift"]["value"].mean()
    tail = (
        f" Over all their layers pooled, Pearson's with the relative drift is {short(float(nominal))} "
        f"(nominal); the mean cosine differs from the relative drift squared by {short(float(gaps.mean()))} "
        "on average, so that this is close to saying one thing twice."
    )
    whole = all_of(parts)
    return Verdict(whole.held, whole.said + tail + lacking(rows), _table(inside))


def _table(rows: pd.DataFrame) -> str:
    """Spearman's and Pearson's of every model with both drifts, means over seeds."""
    told = []
    for model, part in rows.groupby("model", sort=False):
        means = part.groupby("measure")["value"].mean()
        table = [[means.get(f"{kind}_{of}", math.nan) for kind in _KINDS] for of in _OF]
        each = (" and ".join(short(float(value), 2) for value in values) for values in table)
        told.append(f"{model} {', '.join(each)}")
    what = "Spearman's and Pearson's with the drift, then both with the relative drift, by model"
    return f"{what}: {'; '.join(told)}."


def judge_convolutional(rows: pd.DataFrame) -> Verdict:
    """The correlation with the drift must be lower in each CNN than in Transformers; public ones are one."""
    every = _correlations(rows)
    own = every[(every["measure"] == "spearman_drift") & every["value"].notna() & (every["model"] != POOLED)]
    convolves = own["model"].isin(NO_ATTENTION)
    transformers = own[~convolves]
    said = "Spearman's correlation of the mean cosine with the drift over layers is "
    said += f"{replicated(transformers).said if len(transformers) else 'not known'} in Transformers"
    if own["revision"].nunique() > 1:
        usual = transformers.groupby("revision")["value"].mean()
        each = {
            str(model): paired(dict(usual), dict(part.groupby("revision")["value"].mean()))
            for model, part in own[convolves].groupby("model", sort=False)
        }
    else:
        each = {"CNNs": apart(transformers["value"].tolist(), own[convolves]["value"].tolist())}
    told = [f"by {found.said} in {model}" for model, found in each.items()]
    rest = f"from that it differs {listed(told)}" if told else "no CNN was measured"
    verdict = all_of([is_below(found, 0.0) for found in each.values()], f"{said}; {rest}.")
    relative = every[(every["measure"] == "spearman_relative_drift") & (every["model"] != POOLED)]
    convolves = relative["model"].isin(NO_ATTENTION)
    inside, outside = replicated(relative[convolves]), replicated(relative[~convolves])
    details = (
        f"With the relative drift it is {inside.said} in CNNs and {outside.said} in Transformers: it decides "
        "nothing here, since the paper speaks of the drift."
    )
    return Verdict(verdict.held, verdict.said + lacking(rows), details)


def _correlations(rows: pd.DataFrame) -> pd.DataFrame:
    there = measured(rows)
    return there[there["kind"] == KIND]


def draw(rows: pd.DataFrame, points: pd.DataFrame) -> list[Chart]:
    """A against relative drift, a dot a layer; and the correlations within every model."""
    x = [i / 50 for i in range(51)]
    lines = [
        *_against(layers(measured(rows)), "relative_drift"),
        Series("relative drift²", x, [at * at for at in x]),
    ]
    named = "Mean cosine against the relative drift"
    return [Chart(named, "relative drift", "mean cosine", lines), *_within(rows)]


def draw_convolutional(rows: pd.DataFrame, points: pd.DataFrame) -> list[Chart]:
    """The correlations within every model, first, so that colours are the usual; A against drift in CNNs."""
    wide = layers(measured(rows))
    lines = _against(wide[wide["model"].isin(NO_ATTENTION)], "drift")
    named = "Mean cosine against the drift"
    return [*_within(rows), Chart(named, "drift, ‖mean‖", "mean cosine", lines, log_x=True)]


def _against(wide: pd.DataFrame, column: str) -> list[Series]:
    told, models = "{revision}, layer {layer}", wide.groupby("model", sort=False)
    return [dots(str(model), part, column, "A", told) for model, part in models]


def _within(rows: pd.DataFrame) -> list[Chart]:
    own = _correlations(rows)
    own = own[own["model"] != POOLED]
    names = list(dict.fromkeys(map(str, own["model"])))
    charts = []
    for of in _OF:
        mine, title = own[own["measure"] == f"spearman_{of}"], of.replace("_", " ")
        each = {name: over(mine[mine["model"] == name]["value"].tolist()) for name in names}
        found = [series(name, [name], [within(one, -1, 1)], "dots") for name, one in each.items()]
        named = f"Spearman's correlation with the {title}, within a model"
        charts.append(Chart(named, "", "", found, levels=((0.0, ""),)))
    return charts


_METHOD = (
    "The layers of each model (what enters the first block counts as layer 0) are correlated: mean cosine "
    "between sequences against ‖mean‖ and against ‖mean‖/mean norm. Layers are not independent, so that "
    "p-values in the rows are nominal; the interval is over seeds, of public models over models."
)
CLAIM = Claim(
    "drift-correlation", "Anisotropy goes with drift", experiment=experiment, judge=judge, draw=draw,
    expected="In Transformers, layers whose vectors have a larger common mean (drift) are the more "
    "anisotropic.",
    method=_METHOD + " If norms were equal, the mean cosine would be the relative drift squared.",
    measures=("mean_cosine_between", "drift", "relative_drift"),
)  # fmt: skip
CONVOLUTIONAL_CLAIM = Claim(
    "convolutional-drift", "Not so in CNNs", experiment=experiment, judge=judge_convolutional,
    draw=draw_convolutional,
    expected="In convolutional networks anisotropy does not follow the drift, as BatchNorm removes means.",
    method=_METHOD
    + " Each CNN, with BatchNorm and without, is held against the Transformers of the same seeds.",
    measures=("mean_cosine_between", "drift"),
)  # fmt: skip
