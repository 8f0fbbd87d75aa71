"""What an untrained block shows: a table of bias norms × quantities a norm, the words, and the page."""

from __future__ import annotations

import math

import pandas as pd
from rich.table import Table
from rich.text import Text

from isoscope.cli.pages import write_page
from isoscope.cli.screen import terminal as screen
from isoscope.errors import IsoscopeError
from isoscope.formatting import short
from isoscope.lab.block.seeds import LEAST, curve, fixed_points, over_seeds
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
_SAME = 0.1  # of 1 − entropy: without an interval, what changes by less is called the same


def finish_block(folder: RunFolder, *, json: bool = False) -> None:
    """Sum up what is in the folder, write the page and print all."""
    rows = folder.frame()
    if rows.empty:
        raise IsoscopeError(f"{folder.path} holds no block yet; `isoscope block` makes them.")
    lines = over_seeds(rows)
    said, of_norms = finding(lines), finding_of_norms(rows)
    with screen.bar("writing the page"):
        page = write_page(folder)
    if json:
        summary = screen_lines(lines)
        screen.show_json(rows, summary=summary, run=folder.run.id, folder=str(folder.path), page=page)
        return
    for norm in lines["norm"].drop_duplicates():
        screen.show_table(_table(lines, str(norm)))
    screen.say(said)
    screen.say(f"norms of vectors\n{of_norms}")
    if page:
        screen.say(f"page: {page}")


def _table(lines: pd.DataFrame, norm: str) -> Table:
    seeds = int(lines[lines["norm"] == norm]["n"].max())
    spread = "mean ± half of the 95 % interval over seeds" if seeds >= LEAST else "an interval takes three"
    caption = f"norm: {norm}, {seeds} seed{'' if seeds == 1 else 's'}: {spread}; A is the mean cosine"
    table = Table(caption=Text(caption), caption_justify="left")
    for heading in ("bias norm", *(heading for heading, *_ in _COLUMNS)):
        table.add_column(heading, justify="right")
    found = [curve(lines, norm, kind, layer, measure) for _, kind, layer, measure in _COLUMNS]
    for bias in sorted(lines[lines["norm"] == norm]["bias"].unique()):
        table.add_row(f"{bias:g}", *(_cell(own[own["bias"] == bias]) for own in found))
    return table


def _cell(own: pd.DataFrame) -> str:
    if own.empty:
        return "–"
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


def screen_lines(lines: pd.DataFrame) -> list[dict[str, object]]:
    """Lines as JSON has them: what is no number is null."""
    return [
        {str(name): None if pd.isna(value) else value for name, value in line.items()}
        for line in lines.astype({"layer": object}).to_dict("records")
    ]
