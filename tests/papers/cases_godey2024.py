"""Rows that agree with, contradict and leave open each claim of godey2024."""

from __future__ import annotations

import math

import pandas as pd

from isoscope.papers.godey2024.arms import ARMS
from isoscope.papers.godey2024.counterfactual import AS_IS, RANDOM, WITHOUT
from isoscope.papers.godey2024.drift import correlations
from isoscope.results.row import Row, frame
from tests.papers.cases import Case, row

SEEDS = (0, 1, 2)
TRANSFORMERS = [arm.name for arm in ARMS if arm.attends]
CONVOLUTIONAL = [arm.name for arm in ARMS if not arm.attends]


def noise(seed: int, size: float = 0.01) -> float:
    """A little that differs by seed, with mean 0 over three."""
    return size * (seed - 1)


def cosines(level: float, spread: float = 0.01) -> pd.DataFrame:
    """Every model with this mean cosine in its third layer, half of it elsewhere."""
    rows = []
    for arm in ARMS:
        for seed in SEEDS:
            for layer in range(5):
                at = level if layer == 3 else level / 2
                for measure, value in (("mean_cosine_between", at), ("relative_drift", math.sqrt(at))):
                    rows.append(row(arm.name, measure, value + noise(seed, spread), seed=seed, layer=layer))
    return frame(rows)


def drifting(transformers: float, convolutional: float, shaken: float = 0.0) -> pd.DataFrame:
    """A rises with the drift where the sign is above 0 and falls where it is below; `shaken` by the seed."""
    rows: list[Row] = []
    for arm in ARMS:
        sign = transformers if arm.attends else convolutional
        for seed in SEEDS:
            for layer in range(5):
                turn = sign if not shaken or seed % 2 else -sign
                a = 0.4 + 0.05 * turn * (layer - 2) + noise(seed)
                at = {"seed": seed, "layer": layer}
                rows.append(row(arm.name, "mean_cosine_between", a, **at))
                rows.append(row(arm.name, "drift", 1.0 + layer, **at))
                rows.append(row(arm.name, "relative_drift", 0.5 + 0.03 * layer, **at))
    made = frame(rows)
    return pd.concat([made, correlations(made)], ignore_index=True)


def block(norm: str, turn: float, spread: float = 0.01) -> pd.DataFrame:
    """What a bias changes: the sign turns all; a large spread hides it."""
    rows = []
    for seed in SEEDS:
        for place, bias in enumerate((0, 100)):
            own = {"seed": seed, "layer": 1}
            up = place * (0.2 * turn + noise(seed, spread))
            model = f"{norm}, bias {bias}"
            rows.append(row(model, "mean_cosine", 0.1 + up, **own))
            for measure in ("score_std", "largest_weight", "drift_share", "smallest_weight"):
                rows.append(row(model, measure, 0.5 + up, kind="attention", **own))
            falls = -up if norm == "post" else up
            rows.append(row(model, "normalised_entropy", 0.7 + falls, kind="attention", **own))
    return frame(rows)


def trained(turn: float, spread: float = 0.01) -> pd.DataFrame:
    """Queries, keys, scores and entropy at the first step and the last."""
    rows = []
    for seed in SEEDS:
        for step in (0, 10, 20):
            up = step / 20 * (0.3 * turn + noise(seed, spread))
            for layer in (1, 2):
                at = {"seed": seed, "step": step, "layer": layer, "kind": "attention"}
                rows.append(row("model", "score_std", 0.5 + up, **at))
                rows.append(row("model", "normalised_entropy", 0.9 - up, **at))
                for head in (0, 1):
                    sign = 1 if head else -1
                    cosine = sign * (0.5 + up if turn > 0 else 0.01)
                    rows.append(row("model", "query_key_cosine", cosine, head=head, null=0.2, **at))
                    for what in ("query", "key"):
                        rows.append(row("model", f"{what}_relative_drift", 0.4 + up, head=head, **at))
            own = {"seed": seed, "step": step}
            rows.append(row("model", "loss", 3.0 - up, kind="training", layer=None, **own))
            rows.append(row("model", "mean_cosine_between", 0.2 + up, layer=1, **own))
    return frame(rows)


def taken_out(rise: float, control: float, spread: float = 0.001) -> pd.DataFrame:
    """Entropy as it is, without the mean query, and without a random vector."""
    rows = []
    for name in TRANSFORMERS:
        for seed in SEEDS:
            at = {"seed": seed, "kind": "attention"}
            rows.append(row(name, AS_IS, 0.5, **at))
            rows.append(row(name, WITHOUT, 0.5 + rise + noise(seed, spread), **at))
            rows.append(row(name, RANDOM, 0.5 + control, **at))
            rows.append(row(name, "drift_share", 0.3 + noise(seed), **at))
            for end in ("", "_without_drift", "_without_random"):
                rows.append(row(name, f"sink_mass{end}", 0.2, **at))
    return frame(rows)


CASES = {
    "cosine-by-layer": Case(cosines(0.4), cosines(0.04), cosines(0.1, spread=0.2)),
    "drift-correlation": Case(drifting(1, -1), drifting(-1, -1), drifting(1, -1, shaken=1)),
    "convolutional-drift": Case(drifting(1, -1), drifting(-1, 1), drifting(1, -1, shaken=1)),
    "untrained-block": Case(block("post", 1), block("post", -1), block("post", 1, spread=0.5)),
    "pre-norm-reversal": Case(block("pre", 1), block("pre", -1), block("pre", 1, spread=0.5)),
    "queries-and-keys": Case(trained(1), trained(-1), trained(1, spread=0.9)),
    "scores-and-entropy": Case(trained(1), trained(-1), trained(1, spread=0.9)),
    "what-the-drift-does": Case(taken_out(0.1, 0.0), taken_out(0.02, 0.1), taken_out(0.01, 0.0, spread=0.1)),
}
