"""Rows that agree with, contradict and leave open each claim of bao2024."""

from __future__ import annotations

from itertools import product

import pandas as pd

from isoscope.papers.bao2024.attention import DEEP, DEEP_LOCATER
from isoscope.papers.bao2024.collapse import ALONG
from isoscope.papers.bao2024.heads import MODEL
from isoscope.papers.bao2024.penalty import MAIN, SHALLOW
from isoscope.papers.bao2024.walks import GROWING, LOCALISED, MADE, SPREADS, TRACED, TRACELESS, WALKED
from isoscope.results.row import Row
from tests.papers.cases import Case, row
from tests.typed import frame

SEEDS = (0, 1, 2)
DEEPER = "4 layers, 4 heads"
NONE = "none"


def noise(seed: int, size: float) -> float:
    """What differs by seed, with mean 0 over three."""
    return size * (seed - 1)


def walks(
    *, inside: float = 0.95, wide: float = 0.01, error: float = 0.01, spread: float = 0.001
) -> pd.DataFrame:
    """Regimes with this ρ inside, a wide spectrum with this localisation left, a closed form so far off."""
    even = {"uniform": 1.0, "uniform_half": 0.5, "vanishing": 0.01}
    rows: list[Row] = []
    for seed in SEEDS:
        own = {"seed": seed, "kind": "walk", "layer": None}
        for made in MADE:
            for length in GROWING:
                level = even.get(made.regime, inside)
                rows.append(
                    row(made.regime, "propagation_inside", level + noise(seed, spread), n=length, **own)
                )
                rows.append(
                    row(made.regime, "propagation_error", error + noise(seed, 0.0001), n=length, **own)
                )
                if made.regime in LOCALISED:
                    rows.append(row(made.regime, "propagation_outside", 0.05, n=length, **own))
                    rows.append(row(made.regime, "softmax_likeness", 0.9, n=length, **own))
        for place, width in enumerate(SPREADS):
            left = 0.9 + (wide - 0.9) * place / (len(SPREADS) - 1) + noise(seed, 0.001)
            rows.append(row(f"spread {width:g}", "localisation", left, n=GROWING[-1], **own))
            rows.append(row(f"spread {width:g}", "spectrum_variance", width**2, n=GROWING[-1], **own))
        for name in (TRACED, TRACELESS):
            for rank in (1, 2, 256):
                called = f"{name}, rank {rank}"
                far = 0.2 if rank < 3 else error
                rows.append(row(called, "propagation_error", far + noise(seed, 0.0001), n=WALKED, **own))
                rows.append(row(called, "query_key_rank", rank, n=WALKED, **own))
                rows.append(row(called, "closed_form", float(rank > 3), n=WALKED, **own))
    return frame(rows)


def heads(share: float, spread: float = 0.02) -> pd.DataFrame:
    """Heads of which this share is localised at the end of training, none at its start."""
    rows: list[Row] = []
    for seed in SEEDS:
        for step in (0, 8, 16):
            own = {"seed": seed, "step": step, "kind": "query_key"}
            here = share * step / 16 + noise(seed, spread) * (step > 0)
            for name in ("localised_share", "localised_share_on_data"):
                rows.append(row(MODEL, name, here, layer=None, **own))
            rows.append(row(MODEL, "lean", 0.1 + here, layer=None, **own))
            for head in range(2):
                note = f"regime: {'late' if head else 'undecided'}"
                for name in ("trace", "trace_on_data"):
                    rows.append(row(MODEL, name, 1.0 + head, head=head, note=note, **own))
                for name in ("frobenius", "frobenius_on_data"):
                    rows.append(row(MODEL, name, 0.5, head=head, **own))
    return frame(rows)


def agreements(more: float, slope: float, spread: float = 0.02) -> pd.DataFrame:
    """Heads whose own prediction agrees by so much more than others’; inputs that walk with this slope."""
    rows: list[Row] = []
    for seed in SEEDS:
        for name in (DEEP, DEEP_LOCATER):
            for layer in (1, 2):
                own = {"seed": seed, "kind": "query_key", "layer": layer, "step": 16}
                rows.append(row(name, "walk_slope", slope + noise(seed, spread), **own))
                for head in range(2):
                    value = 0.2 + more + noise(seed, spread)
                    rows.append(row(name, "propagation_agreement", value, head=head, null=0.2, **own))
                    rows.append(row(name, "softmax_agreement", value - 0.1, head=head, null=0.2, **own))
    return frame(rows)


def sizes(power: float, grown: float, spread: float = 0.005) -> pd.DataFrame:
    """|tr W|/2σ that goes with this power of the width at the start, and grows by so much in training."""
    rows: list[Row] = []
    for width, count in ((32, 4), (64, 4), (128, 4), (64, 1)):
        name = f"width {width}, heads {count}"
        for seed in range(5):
            for step in (0, 16) if seed in SEEDS else (0,):
                own = {"seed": seed, "kind": "query_key", "step": step}
                started = 0.5 * (width / 32) ** power
                lean = started + (step > 0) * (grown + noise(seed % 3, spread))
                rows.append(row(name, "lean", lean + noise(seed % 3, 0.001), layer=None, **own))
                for measure, head in product(("trace", "frobenius", "spectrum_variance"), range(count)):
                    rows.append(row(name, measure, width / 32, head=head, **own))
    return frame(rows)


def penalised(perplexity: float, spread: float = 0.02) -> pd.DataFrame:
    """LocAteR that narrows and evens, and changes perplexity by so much."""
    rows: list[Row] = []
    for seed in SEEDS:
        for shape in (SHALLOW, DEEPER):
            for setting in (NONE, MAIN, "λ 1, τ 1"):
                own, there = {"seed": seed, "layer": 1, "kind": "query_key"}, setting != NONE
                name = f"{shape}: {setting}"
                worse = there * (perplexity + noise(seed, spread))
                rows.append(row(name, "perplexity", 8 + worse, seed=seed, layer=None, kind="training"))
                rows.append(
                    row(name, "normalised_entropy", 0.6 + 0.1 * there + noise(seed, 0.001) * there, **own)
                )
                rows.append(
                    row(name, "spectrum_variance", 0.1**there * (1 + noise(seed, 0.01) * there), **own)
                )
                for measure in ("trace", "frobenius", "propagation_range"):
                    rows.append(row(name, measure, 1.0, **own))
    return frame(rows)


def collapsing(sharper: float, residual: float, spread: float = 0.002) -> pd.DataFrame:
    """Entropy that goes with the spectral norm in this direction; LocAteR that changes the rank residual."""
    rows: list[Row] = []
    for seed in SEEDS:
        for step in (0, 1, 4, 16):
            for layer in (1, 2):
                own = {"seed": seed, "step": step, "layer": layer}
                rows.append(row(ALONG, "spectral_norm", 0.1 + step + 0.1 * layer, kind="query_key", **own))
                rows.append(row(ALONG, "rank_residual", 0.9, **own))
                entropy = 0.8 - sharper * (0.02 * step + 0.001 * layer)
                rows.append(row(ALONG, "normalised_entropy", entropy, kind="attention", **own))
        for shape in (SHALLOW, DEEPER):
            for setting in (NONE, MAIN):
                own, there, name = {"seed": seed, "layer": 1}, setting != NONE, f"{shape}: {setting}"
                moved = there * (residual + noise(seed, spread))
                rows.append(row(name, "rank_residual", 0.8 + moved, **own))
                entropy = 0.6 + there * (0.1 + noise(seed, 0.001))
                rows.append(row(name, "normalised_entropy", entropy, kind="attention", **own))
    return frame(rows)


CASES = {
    "regimes": Case(walks(), walks(error=0.1), walks(inside=0.56, spread=0.05)),
    "trained-heads": Case(heads(0.8), heads(0.1), heads(0.5, spread=0.2)),
    "inputs-walk": Case(agreements(0.3, 0.9), agreements(0.3, 0.05), agreements(0.3, 0.5, spread=0.3)),
    "prediction-and-attention": Case(
        agreements(0.3, 0.05), agreements(-0.2, 0.05), agreements(0.1, 0.05, spread=0.3)
    ),
    "width-and-heads": Case(sizes(-0.5, 0.2), sizes(-0.5, -0.2), sizes(-0.5, 0.05, spread=0.2)),
    "locater": Case(penalised(-1.0), penalised(1.0), penalised(-0.1, spread=0.5)),
    "collapse": Case(collapsing(1.0, 0.01), collapsing(-1.0, 0.01), collapsing(1.0, -0.02, spread=0.02)),
}
