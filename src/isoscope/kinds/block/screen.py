"""The terminal output of an untrained block: a table of bias norms × quantities per norm, and sentences."""

from __future__ import annotations

import math

import pandas as pd

from isoscope.formatting import ABSENT, short
from isoscope.kinds.block.sentences import finding, finding_of_norms
from isoscope.kinds.screen import WIDTH, Screen, Table, headed, records
from isoscope.lab.block.seeds import LEAST, curve, over_seeds
from isoscope.results.store import RunFolder

_COLUMNS = (  # heading, kind, layer, measure
    ("A in", "layer", 0, "mean_cosine"),
    ("A out", "layer", 1, "mean_cosine"),
    ("norm in", "layer", 0, "mean_norm"),
    ("norm out", "layer", 1, "mean_norm"),
    ("normalised\nentropy", "attention", 1, "normalised_entropy"),
    ("score std\nin rows", "attention", 1, "score_std"),
    ("score std\npooled", "attention", 1, "score_std_pooled"),
    ("largest\nweight", "attention", 1, "largest_weight"),
    ("smallest\nweight", "attention", 1, "smallest_weight"),
    ("drift\nshare", "attention", 1, "drift_share"),
)


def screen_of(folder: RunFolder, width: int = WIDTH) -> Screen:
    """A table per norm and the sentences."""
    rows = folder.frame()
    lines = over_seeds(rows)
    tables = [_table(lines, str(norm)) for norm in lines["norm"].drop_duplicates()]
    said = (finding(lines), f"norms of vectors\n{finding_of_norms(rows)}")
    return Screen((*tables, *said), json={"summary": records(lines)})


def _table(lines: pd.DataFrame, norm: str) -> Table:
    seeds = int(lines[lines["norm"] == norm]["n"].max())
    spread = "mean ± half of the 95 % interval over seeds" if seeds >= LEAST else "an interval takes three"
    caption = f"norm: {norm}, {seeds} seed{'' if seeds == 1 else 's'}: {spread}; A is the mean cosine"
    found = [curve(lines, norm, kind, layer, measure) for _, kind, layer, measure in _COLUMNS]
    shown = [
        (f"{bias:g}", *(_cell(own[own["bias"] == bias]) for own in found))
        for bias in sorted(lines[lines["norm"] == norm]["bias"].unique())
    ]
    heads = ("bias norm", *(heading for heading, *_ in _COLUMNS))
    return Table(headed((), heads, folds=True), tuple(shown), caption=caption)


def _cell(own: pd.DataFrame) -> str:
    if own.empty:
        return ABSENT
    value, high = float(own["value"].iloc[0]), float(own["high"].iloc[0])
    fine = own["measure"].iloc[0] == "normalised_entropy"  # what matters of it is how far it is from 1
    told = f"{value:.4f}" if fine else short(value)
    return told if math.isnan(high) else f"{told}\n±{short(high - value, 1)}"
