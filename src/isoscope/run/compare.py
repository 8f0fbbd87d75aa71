"""Whether a model's anisotropy follows its drift from layer to layer, for one model and over many.

Spearman and Pearson correlation of the mean cosine with the drift and with the relative drift, over the
layers of each model and over the layers of all. The p-values are nominal: layers of one model are not
independent. And when norms are equal the mean cosine is about the square of the relative drift, so the
two are no independent evidence of each other; both are said beside the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import permutations
from os import PathLike
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from isoscope.errors import IsoscopeError
from isoscope.measures.table import MEASURES
from isoscope.models.inputs import open_data
from isoscope.models.source import load
from isoscope.results.place import default_out
from isoscope.results.reading import Reading
from isoscope.results.row import Row
from isoscope.results.store import RunFolder, open_run, read_run
from isoscope.run.observe.observe import observe
from isoscope.run.provenance import new_run
from isoscope.run.telling import SILENT, Telling

Array = npt.NDArray[np.float64]
ANISOTROPY, DRIFTS = "mean_cosine", ("drift", "relative_drift")
KINDS = ("spearman", "pearson")
ALL = "all models"
_COMPARED = ("layer", "output", "cloud")  # kinds of rows
LEAST = 3  # layers that make a correlation
FEW = 7  # layers up to which p is counted out: the usual formula gives 0 for any points in line

_SAYS = (
    "Whether layers that are more anisotropic are those that drift further. In Transformers they tend to be; "
    "where means are removed, as by batch norm, they need not."
)
EXPLANATIONS: dict[str, dict[str, object]] = {
    f"{kind}_{drift}": {
        "family": "comparison",
        "title": f"{kind.capitalize()} correlation of the mean cosine with the {drift.replace('_', ' ')}",
        "formula": f"{kind.capitalize()} r(A, {'‖x̄‖' if drift == 'drift' else '‖x̄‖/mean ‖x‖'}) over layers",
        "says": _SAYS,
        "misleads": "Layers of one model are not independent, so its p-value is nominal. When norms are "
        "equal, A is about the square of the relative drift: the two are not two findings.",
        "null": "0",
        "interval": "none: layers are not a sample",
        "range": "−1 to 1",
        "source": "Godey, de la Clergerie & Sagot 2024, arXiv 2401.12143",
    }
    for kind in KINDS
    for drift in DRIFTS
}


def compare(
    what: Sequence[str | PathLike[str]],
    *,
    limit: int = 64,
    out: str | PathLike[str] | None = None,
    telling: Telling = SILENT,
) -> RunFolder:
    """Put runs and models side by side in a run folder, with the correlations of anisotropy and drift.

    `what` are run folders, or addresses of models, which are measured on embedded data, at most `limit`
    sequences. Without `out` the folder is `runs/compare-ID`. What is there is not measured again.
    """
    names = [str(name) for name in what]
    if len(set(names)) < len(names):
        raise IsoscopeError("the same run or model is named twice; name each once.")
    runs = {name: read_run(name) for name in names if (Path(name) / "run.json").exists()}
    for name, there in runs.items():  # before a folder is made
        if not there.frame().kind.isin(_COMPARED).any():
            raise IsoscopeError(
                f"{name} is a run of `isoscope {there.run.kind}` and holds no layers to compare; "
                "give runs of `isoscope measure` or `isoscope cloud`, or models."
            )
    ids = {name: runs[name].run.id if name in runs else "" for name in names}
    run = new_run("compare", " · ".join(names), {"compared": ids, "limit": limit}, MEASURES, EXPLANATIONS)
    folder = open_run(out or default_out("compare", run.id), run)
    for name in names:
        if folder.has(name):
            continue
        if name in runs:
            table, facts = runs[name].frame(), dict[str, object](run=runs[name].run.id)
            table = table[table.step.isna() | (table.step == table.step.max())]
        else:
            model = load(name)
            with telling.bar(f"measuring {name}") as progress:
                data = open_data("embedded", model, limit=limit)
                seen = observe(model, data, layers="layer.*,output", progress=progress)
                table, facts = seen.frame(), seen.known()
        folder.write(name, table[table.kind.isin(_COMPARED)].assign(run=run.id, model=name), facts)
    together = folder.frame()
    folder.write("comparison", correlations(together[together.kind != "comparison"], run.id), {})
    return folder


def correlations(rows: pd.DataFrame, run: str = "") -> list[Row]:
    """The correlations of each model, and over all when there are several; n is the number of layers."""
    names = list(rows.model.drop_duplicates())
    found = [row for name in names for row in _of(rows[rows.model == name], name, run)]
    return [*found, *(_of(rows, ALL, run) if len(names) > 1 else [])]


def _of(rows: pd.DataFrame, name: str, run: str) -> Iterator[Row]:
    layers = rows[rows.kind.isin(["layer", "output"])]
    table = layers.pivot_table(
        index=["model", "step", "kind", "layer"], columns="measure", values="value", dropna=False
    ).dropna(how="all")
    for kind in KINDS:
        for drift in DRIFTS:
            reading = _correlate(kind, table, drift)
            yield Row.at(run, name, "", None, "comparison", None, None, f"{kind}_{drift}", reading)


def _correlate(kind: str, table: pd.DataFrame, drift: str) -> Reading:
    if ANISOTROPY not in table or drift not in table:
        return Reading(math.nan, 0, 0.0, note=f"needs {ANISOTROPY} and {drift}")
    both = table[[ANISOTROPY, drift]].dropna()
    if len(both) < LEAST or both.nunique().min() < 2:
        return Reading(math.nan, len(both), 0.0, note=f"needs {LEAST} layers that differ")
    x, y = both[ANISOTROPY].to_numpy(), both[drift].to_numpy()
    if kind == "spearman":
        x, y = stats.rankdata(x), stats.rankdata(y)
    found = stats.pearsonr(x, y)
    p = _exact(x, y) if len(x) <= FEW else float(found.pvalue)
    value = round(float(found.statistic), 12)  # 2e-18 is 0
    return Reading(value, len(both), 0.0, note=f"nominal p = {p:.2g}", p=p)


def _exact(x: Array, y: Array) -> float:
    """The share of all orders of y that correlate as strongly with x: of 3 points in line, 1/3 and not 0."""
    orders = np.array(list(permutations(y)))
    found = np.abs((orders - y.mean()) @ (x - x.mean()))
    return float((found >= abs((y - y.mean()) @ (x - x.mean())) * (1 - 1e-9)).mean())
