"""The tables of weights in the terminal: a line per layer of heads, per vocabulary, per stage of the norm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, islice

import pandas as pd

from isoscope.formatting import ABSENT, number
from isoscope.kinds.screen import Column, Table

HEADS = ("query_key", "cross_query_key")
_RULES = (  # the tables: which kinds stand in each, and its columns, a measure and its heading
    (
        "queries and keys, the mean over heads",
        lambda kind: kind in HEADS,
        (
            ("trace", "tr W"),
            ("frobenius", "‖W‖"),
            ("spectrum_mean", "mean\neigenvalue"),
            ("spectrum_variance", "variance of\neigenvalues"),
            ("symmetric_share", "symmetric\nshare"),
        ),
    ),
    (
        "the same on data",
        lambda kind: kind in HEADS,
        (
            ("trace_on_data", "tr W"),
            ("frobenius_on_data", "‖W‖"),
            ("propagation_agreement", "ρ(t) and attention\n(Spearman)"),
            ("walk_slope", "walk\nslope"),
        ),
    ),
    (
        "vocabulary",
        lambda kind: "_vocabulary" in kind,
        (
            ("mean_cosine", "cosine\nall pairs"),
            ("relative_drift", "relative\ndrift"),
            ("isoscore", "IsoScore"),
            ("partition_isotropy", "I(W)"),
            ("partition_isotropy_float32", "I(W), as\npublished"),
            ("partition_isotropy_unit", "I(W),\nunit norm"),
            ("singular_entropy", "singular\nentropy"),
        ),
    ),
    (
        "final norm",
        lambda kind: kind == "norm",
        (
            ("norm_weight_size", "‖γ‖/√d"),
            ("norm_weight_outliers", "outliers\nof γ"),
            ("norm_bias_size", "‖β‖"),
            ("bias_vocabulary_cosine", "cos(β, mean\nof vocabulary)"),
            ("weight_vocabulary_cosine", "cos(γ, mean\nof vocabulary)"),
            ("bias_cancels", "cos(β,\n−E[γ⊙x̂])"),
            ("drift_removed_by_bias", "drift\nβ removes"),
        ),
    ),
    (
        "stages of the final norm",
        lambda kind: kind.startswith("norm_"),
        (
            ("mean_cosine_between", "cosine between\nsequences"),
            ("drift", "drift"),
            ("relative_drift", "relative\ndrift"),
            ("isoscore", "IsoScore"),
            ("partition_isotropy", "partition\nisotropy"),
            ("effective_rank", "effective\nrank"),
        ),
    ),
)
_CAPTION = (
    "value (null: random W of the same size, of ρ(t) the other heads' predictions; rows that point anywhere; "
    "a norm before training)"
)
_ROUNDED = 1e-5  # a smaller drift is what rounding leaves of a mean that was taken away
_DRIFTS = ("relative_drift", "drift")
_COUNTS = ("norm_weight_outliers",)
_BARE = ("relative_drift", "drift", "mean_cosine_between")  # shown without their null, which is near 0
_REGIMES = 26  # columns the least that regimes are told in


def weight_tables(rows: pd.DataFrame, width: int) -> tuple[list[Table | str], pd.DataFrame]:
    """The tables of weights, of several steps those of the last; and the rows of something else."""
    kinds = rows.kind.astype(str)
    last = rows.step.isna() | (rows.step == rows.step.max())
    mine = pd.Series(data=False, index=rows.index)
    made: list[Table | str] = []
    for title, has, columns in _RULES:
        chosen = kinds.map(has).astype(bool)
        mine |= chosen
        whole = rows[chosen & last & rows["head"].isna()]
        present = [column for column in columns if (whole.measure == column[0]).any()]
        if present:
            made.append(_table(title, whole, present, width))
    if mine.any():
        several = rows.step.nunique() > 1
        made.append(f"{_CAPTION}; of step {rows.step.max()}, the page has all steps" if several else _CAPTION)
    return made, rows[~mine]


def _table(title: str, rows: pd.DataFrame, columns: Sequence[tuple[str, str]], width: int) -> Table:
    """A table with one line per site and as many columns as fit, the most important first."""
    heads = columns[0][0].startswith("trace")
    lines = []
    for (kind, layer), part in rows.groupby(["kind", "layer"], dropna=False, sort=False):
        cells = part.set_index("measure")
        name = _name(str(kind)) if layer is pd.NA or layer != layer else f"{kind}.{layer}"
        shown = [_cell(cells, measure) if measure in cells.index else "" for measure, _ in columns]
        own = cells[cells.index == columns[0][0]]
        regimes = " ".join(own.tag) if heads else ""
        lines.append((name, " ".join(map(str, own.n)), *shown, regimes.replace("_", " ")))
    headings = ("site", "heads" if columns[0][0] == "trace" else "n", *(head for _, head in columns))
    widths = [
        3 + max(len(word) for text in (head, *(line[at] for line in lines)) for word in text.split("\n"))
        for at, head in enumerate(headings)
    ]
    room = accumulate(widths, initial=1 + heads * (3 + _REGIMES))
    fitting = sum(taken <= width for taken in islice(room, 1, None))
    made = [Column(heading, right=at > 0) for at, heading in enumerate(headings[:fitting])]
    made += [Column("regimes", right=False, folds=True)] if heads else []
    shown_lines = (line[:fitting] + (line[-1:] if heads else ()) for line in lines)
    return Table(tuple(made), tuple(shown_lines), title)


def _name(kind: str) -> str:
    """A vocabulary's form, or the norm's stage, without the word that the title says.

    >>> _name("input_vocabulary_without_top"), _name("norm_before"), _name("norm")
    ('input, without top', 'before', 'norm')
    """
    side, _, form = kind.partition("_vocabulary")
    return f"{side}, {form[1:]}".replace("_", " ") if form else side.removeprefix("norm_").replace("_", " ")


def _cell(cells: pd.DataFrame, measure: str) -> str:
    value, null = float(cells.value[measure]), float(cells.null[measure])
    if math.isnan(value):
        return ABSENT
    if measure in _DRIFTS and value < _ROUNDED:
        return "0"
    if measure in _COUNTS:
        return f"{value:.0f}"
    bare = measure in _BARE or math.isnan(null) or null == 0
    return number(value) if bare else f"{number(value)} ({number(null)})"
