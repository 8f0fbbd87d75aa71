"""Sentences on an untrained block: what the bias does to attention, and to the norms of vectors."""

from __future__ import annotations

import math
from functools import partial

import pandas as pd

from isoscope.formatting import short, spread
from isoscope.lab.block.seeds import curve, fixed_points

_SAME = 0.1  # of 1 − entropy: without an interval, a smaller change is called none


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
    """Sharpens, evens out or neither; where there are intervals, they must not overlap."""
    change = float(last["value"] - first["value"])
    apart = bool(last["low"] > first["high"] or last["high"] < first["low"])
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
