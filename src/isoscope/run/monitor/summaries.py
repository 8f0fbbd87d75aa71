"""A handful of numbers of one step for dashboards, which choke on thousands of series.

Of each measure the mean over the layers and the worst: the end of its range that wants a look.
"""

from __future__ import annotations

import pandas as pd

MOST = 9  # measures, two numbers each
WORST = {  # in the order in which they are kept
    "mean_cosine_between": "max",
    "relative_drift": "max",
    "rank_residual": "min",
    "normalised_entropy": "min",
    "largest_score": "max",
    "score_std": "max",
    "sink_mass": "max",
    "drift_share": "max",
    "not_finite": "max",
}


def summaries(rows: pd.DataFrame) -> dict[str, float]:
    """Mean and worst over layers of each measure, by name; at most 18 of them.

    >>> rows = pd.DataFrame({"head": [None, None, 0], "measure": "sink_mass", "value": [0.2, 0.4, 0.9]})
    >>> {name: round(value, 6) for name, value in summaries(rows).items()}
    {'isoscope/sink_mass/mean': 0.3, 'isoscope/sink_mass/max': 0.4}
    """
    layers = rows.loc[rows["head"].isna(), ["measure", "value"]]
    values = {str(name): own for name, own in layers.groupby("measure", sort=False)["value"]}
    there = list(values)
    chosen = [*(name for name in WORST if name in there), *(name for name in there if name not in WORST)]
    found = {}
    for name in chosen[:MOST]:
        own, worst = values[name], WORST.get(name, "max")
        found[f"isoscope/{name}/mean"] = float(own.mean())
        found[f"isoscope/{name}/{worst}"] = float(own.max() if worst == "max" else own.min())
    return found
