"""Sentences on an untrained block: what the bias does to attention, and to the norms of vectors."""

from __future__ import annotations

import math

import pandas as pd

from isoscope.formatting import short
from isoscope.lab.block.seeds import curve, fixed_points

_SAME = 0.1  # of 1 − entropy: without an interval, what changes by less is called the same


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


def finding_of_norms(rows: pd.DataFrame) -> str:
    """What becomes of the norms of vectors, under each norm."""
    points = fixed_points(rows)
    return "\n".join(
        f"{norm}: {_norms(points[points['norm'] == norm])}." for norm in points["norm"].drop_duplicates()
    )


def _moves(first: pd.Series, last: pd.Series) -> str:
    """Sharpens, evens out or neither; where there are intervals, they must not meet."""
    change = float(last["value"] - first["value"])
    apart, still = abs(change) > _SAME * (1 - float(first["value"])), "stays about as it is"
    if not math.isnan(first["high"] + last["high"]):
        apart = bool(last["low"] > first["high"] or last["high"] < first["low"])
        still = "shows no change that can be told from chance"
    return still if not apart else "sharpens" if change < 0 else "evens out"


def _norms(points: pd.DataFrame) -> str:
    """Which norm one pass keeps, and where many lead."""
    kept = float(points["kept"].iloc[0])
    keeping, seeds = int(points["keeping"].iloc[0]), int(points["seeds"].iloc[0])
    chance = f" in {keeping} of {seeds} seeds" if keeping < seeds else ""
    none = "one pass keeps no norm among these"
    parts = [f"one pass keeps a norm of {short(kept)}{chance}" if keeping else none]
    passed = points[points["last"].notna()]
    if len(passed) and passed["settles"].astype(bool).all():
        low, high = short(float(passed["last"].min())), short(float(passed["last"].max()))
        parts.append(
            f"{int(passed['passes'].max())} passes lead to {low if low == high else f'{low} to {high}'}"
        )
    elif len(passed):
        growth = sorted(map(float, passed["growth"]))
        passes = f"after {int(passed['passes'].max())} passes norms still change"
        parts.append(f"{passes}, by a factor of {growth[0]:.4f} to {growth[-1]:.4f} a pass")
    return "; ".join(parts)
