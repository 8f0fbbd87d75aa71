"""What an untrained block says: a table of bias norms × quantities per norm, and sentences."""

from __future__ import annotations

import math
from functools import partial

import pandas as pd

from isoscope.formatting import ABSENT, short, spread
from isoscope.kinds.screen import WIDTH, Screen, Table, headed
from isoscope.lab.block.seeds import LEAST, curve, fixed_points, over_seeds
from isoscope.results.paired import paired
from isoscope.results.reading import Reading
from isoscope.results.store import RunFolder

_SAME = 0.1  # of 1 − entropy: without an interval, a smaller change is called none
_COLUMNS = (  # heading, kind, layer, measure
    ("A in", "layer", 0, "mean_cosine"), ("A out", "layer", 1, "mean_cosine"),
    ("norm in", "layer", 0, "mean_norm"), ("norm out", "layer", 1, "mean_norm"),
    ("normalised\nentropy", "attention", 1, "normalised_entropy"),
    ("score std\nin rows", "attention", 1, "score_std"),
    ("score std\npooled", "attention", 1, "score_std_pooled"),
    ("largest\nweight", "attention", 1, "largest_weight"),
    ("smallest\nweight", "attention", 1, "smallest_weight"),
    ("drift\nshare", "attention", 1, "drift_share"),
)  # fmt: skip


def screen_of(folder: RunFolder, width: int = WIDTH) -> Screen:
    """A table per norm and the sentences."""
    rows = folder.frame()
    lines = over_seeds(rows)
    tables = [_table(lines, str(norm)) for norm in lines["norm"].drop_duplicates()]
    said = (finding(lines), f"norms of vectors\n{finding_of_norms(rows)}")
    return Screen((*tables, *said), json={"summary": lines})


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


def finding(lines: pd.DataFrame) -> str:
    """What the bias does to attention, under each norm."""
    told = []
    for norm in lines["norm"].drop_duplicates():
        entropy = curve(lines, norm, "attention", 1, "normalised_entropy")
        if len(entropy) > 1:
            first, last = (entropy.iloc[end] for end in (0, -1))
            biases = f"as the bias grows from {first['bias']:g} to {last['bias']:g}"
            values = f"normalised entropy {first['value']:.4f} to {last['value']:.4f}"
            values += "; too few seeds for an interval" if math.isnan(first["high"] + last["high"]) else ""
            told.append(f"{norm}: attention {_moves(first, last)} {biases} ({values}).")
    return "\n".join(told) or "One bias norm: nothing to compare; give several to --bias-norms."


def _moves(first: pd.Series, last: pd.Series) -> str:
    """Sharpens, evens out or neither; where there are intervals, that of the change must not contain 0."""
    one, other = (Reading(at["value"], at["n"], low=at["low"], high=at["high"]) for at in (first, last))
    change, apart = float(last["value"] - first["value"]), paired(one, other).excludes(0)
    if math.isnan(first["high"] + last["high"]):
        apart = abs(change) > _SAME * (1 - float(first["value"]))
    return "shows no clear change" if not apart else "sharpens" if change < 0 else "evens out"


def finding_of_norms(rows: pd.DataFrame) -> str:
    """What becomes of the norms of vectors, under each norm: which one pass keeps, and where many lead."""
    told = []
    for norm, points in fixed_points(rows).groupby("norm", sort=False):
        keeping, seeds = int(points["keeping"].iloc[0]), int(points["seeds"].iloc[0])
        kept = f"a norm of {short(float(points['kept'].iloc[0]))}" if keeping else "no norm among these"
        text = f"{norm}: one pass keeps {kept} ({keeping} of {seeds} seeds)"
        passed = points[points["last"].notna()]
        if len(passed):
            settled = passed["settles"].astype(bool).all()
            name, digits = ("last", 3) if settled else ("growth", 5)
            values = spread(list(map(float, passed[name])), partial(short, digits=digits))
            leads = "lead to" if settled else "leave norms that still change per pass by a factor of"
            text += f"; {int(passed['passes'].max())} passes {leads} {values}"
        told.append(f"{text}.")
    return "\n".join(told)
