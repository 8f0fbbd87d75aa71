"""Whether a model's anisotropy follows its drift from layer to layer, for one model and over many.

Spearman and Pearson correlation of the mean cosine with the drift and with the relative drift, over the
layers of each model and over the layers of all. The p-values are nominal: layers of one model are not
independent. And when norms are equal the mean cosine is about the square of the relative drift, so the
two are no independent evidence of each other; both are said beside the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import permutations, product
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
from isoscope.results.paired import paired
from isoscope.results.place import Several, default_out, several
from isoscope.results.reading import Reading
from isoscope.results.row import Row, frame
from isoscope.results.store import RunFolder, open_run, read_run
from isoscope.run.observe.observation import Observation
from isoscope.run.observe.observe import observe
from isoscope.run.provenance import new_run
from isoscope.run.telling import SILENT, Telling
from isoscope.show.readings import SiteReading, at_last, read

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
    what: Several,
    *,
    limit: int = 64,
    out: str | PathLike[str] | None = None,
    telling: Telling = SILENT,
) -> RunFolder:
    """Put runs and models side by side in a run folder, with the correlations of anisotropy and drift.

    `what` is one or several run folders or addresses of models, which are measured on embedded data, at most
    `limit` sequences. Without `out` the folder is `runs/compare-ID`. What is there is not measured again.
    """
    names = several(what)
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
            table, facts = runs[name].frame(influence=True), dict[str, object](run=runs[name].run.id)
            table = table[table.step.isna() | (table.step == table.step.max())]
        else:
            model = load(name)
            with telling.bar(f"measuring {name}") as progress:
                data = open_data("embedded", model, limit=limit)
                seen = observe(model, data, layers="layer.*,output", progress=progress)
                table, facts = frame(seen.rows(), influence=True), seen.known()
        folder.write(name, table[table.kind.isin(_COMPARED)].assign(run=run.id, model=name), facts)
    together = folder.frame()
    folder.write("comparison", correlations(together[together.kind != "comparison"], run.id), {})
    return folder


def changes(
    one: Observation | RunFolder | str | PathLike[str],
    other: Observation | RunFolder | str | PathLike[str],
    *,
    comparisons: int = 1,
) -> pd.DataFrame:
    """What changed from one observation or run folder to another: a row per site and measure that both have.

    `value` is the reading of `other` less that of `one`, `low` and `high` its 95 % interval. The `tag` is
    "paired" where both read the same inputs: then groups of sequences are left out of both at once. Else it
    is "unpaired", and both are taken for independent. `comparisons` widens every interval so that as many
    hold together (Bonferroni). Of several steps the last is read.
    """
    before, after = map(_readings, (one, other))
    return frame(
        Row.at("", r.model, "", r.step, r.kind, r.layer, r.head, f"change_in_{r.measure}",
               paired(before[place], r, comparisons), about=r.measure)
        for place, r in after.items() if place in before
    )  # fmt: skip


def _readings(of: Observation | RunFolder | str | PathLike[str]) -> dict[tuple[object, ...], SiteReading]:
    """The readings of one model by kind, layer, head and measure."""
    if isinstance(of, Observation):
        rows = frame(of.rows(), influence=True)
    else:
        folder = of if isinstance(of, RunFolder) else read_run(of)
        rows = folder.frame(influence=True)
        if rows.model.nunique() != 1:
            raise IsoscopeError(
                f"{folder.path} holds rows of {rows.model.nunique()} models; changes are between two runs of "
                "one model each."
            )
    return {(r.kind, r.layer, r.head, r.measure): r for r in at_last(read(rows))}


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
    for kind, drift in product(KINDS, DRIFTS):
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
