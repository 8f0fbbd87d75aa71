"""A hand-made run of `isoscope weights`: plausible rows and points of a small model, without one."""

from __future__ import annotations

import math
import random

import pandas as pd

from isoscope.results.points import Points, points_frame
from isoscope.results.row import Row
from isoscope.results.run import Run
from tests.show.made import EXPLAINED, row, site_rows

LENGTH = 512
MATRICES = {"": 0.31, "_centred": 0.0001, "_without_top": -0.0001}
STAGES = {
    "norm_before": 0.42,
    "norm_standardised": 0.4,
    "norm_scaled": 0.55,
    "norm_output": 0.2,
    "norm_without_bias": 0.55,
    "norm_without_weight": 0.25,
}


def regime(theta: float, scale: float) -> str:
    """The regime of a head whose tr W² is 0, by the inequalities, for a long sequence."""
    if scale >= 10 * math.sqrt(12):
        return "vanishing"
    if scale <= 0.1 and abs(theta) <= 0.1 * scale:
        return "uniform_half"
    if abs(theta) / 2 <= scale / math.sqrt(3):
        return "undecided"
    return ("late" if theta <= 2 else "middle") if theta > 0 else ("early" if theta >= -2 else "middle_early")


def head_rows(layer: int, head: int, theta: float, scale: float, **where: object) -> list[Row]:
    """What is read of the weights of one head."""
    place = {"kind": "query_key", "layer": layer, "head": head, "n": 384} | where
    return [
        row("trace", theta, **place | {"note": f"regime: {regime(theta, scale)}"}),
        row("trace_square", 0.2 * scale**2, **place),
        row("frobenius", scale, **place | {"null": scale}),
        row("spectrum_mean", theta / 384, **place),
        row("spectrum_variance", scale**2 / 500, **place | {"null": math.nan}),
        row("symmetric_share", 0.6, **place | {"null": 0.5}),
        row("spectral_norm", 0.4 * scale, **place | {"null": math.nan}),
        row("query_key_rank", 9.0 + layer, **place | {"null": 29.0}),
        row("key_bias_norm", 0.3, **place | {"null": math.nan}),
    ]


def heads(layers: int = 6, number: int = 12, seed: int = 0, **where: object) -> list[Row]:
    """Every head of so many layers, then each layer's mean."""
    made = random.Random(seed)
    rows = []
    for layer in range(1, layers + 1):
        mine = [
            head_rows(layer, head, made.gauss(0.6, 1.2), math.exp(made.gauss(0, 0.3)), **where)
            for head in range(number)
        ]
        if layer == layers:
            mine[-1] = head_rows(layer, number - 1, 7.7, 4.2, **where)
        rows += [one for group in mine for one in group]
        for same in zip(*mine, strict=True):
            mean = sum(one.value for one in same) / len(same)
            place = {"kind": "query_key", "layer": layer, "n": 384, "null": same[0].null} | where
            rows.append(row(same[0].measure, mean, **place))
    return rows


def vocabulary(kind: str = "input_vocabulary", cosine: float | None = None, **where: object) -> list[Row]:
    """A matrix in its three forms."""
    rows = []
    for form, value in MATRICES.items():
        own = cosine if cosine is not None and not form else value
        place = {"kind": kind + form, "n": 30_522} | where
        rows += [r for r in site_rows(own, 120, **place) if r.measure != "mean_cosine_between"]
        rows += [
            row(f"partition_isotropy{how}", 0.2 if form else 0.02, **place | {"null": 0.93})
            for how in ("", "_unit", "_one_sign", "_first", "_second")
        ]
        rows.append(row("singular_entropy", 0.4, **place | {"null": 0.02}))
    return rows


def norm(**where: object) -> list[Row]:
    """γ and β themselves."""
    values = {
        "norm_weight_size": (0.9, math.nan),
        "norm_weight_outliers": (3.0, 0.0),
        "norm_bias_size": (2.4, math.nan),
        "bias_vocabulary_cosine": (-0.43, 0.0),
        "weight_vocabulary_cosine": (0.1, 0.0),
    }
    return [row(m, v, kind="norm", n=384, null=null, **where) for m, (v, null) in values.items()]


def on_data(layers: int = 6, number: int = 12, **where: object) -> list[Row]:
    """What data adds: stages and edits of the norm, the walk, and whether predictions hold."""
    made = random.Random(1)
    rows = [
        r for kind, cosine in STAGES.items() for r in site_rows(cosine, 90 - 60 * cosine, kind=kind, **where)
    ]
    rows += [row("bias_cancels", 0.8, kind="norm", n=384, **where)]
    rows += [row("drift_removed_by_bias", 0.6, kind="norm", n=384, **where)]
    rows += [
        row("frequency_norm_correlation", -0.5, half=0.02, kind="input_vocabulary", n=2000, **where),
        row("frequency_drift_correlation", 0.2, half=0.02, kind="input_vocabulary", n=2000, **where),
    ]
    for layer in range(1, layers + 1):
        place = {"kind": "query_key", "layer": layer} | where
        rows.append(row("walk_slope", 0.05 * layer, half=0.01, **place))
        for head in range(number):
            theta, scale = made.gauss(4, 6), math.exp(made.gauss(1.5, 0.4))
            own = place | {"head": head}
            rows.append(row("trace_on_data", theta, **own | {"note": f"regime: {regime(theta, scale)}"}))
            rows.append(row("frobenius_on_data", scale, **own | {"null": scale}))
            note = f"closed form; {made.randrange(2 * number - 1)} of {2 * number - 2} others do as well"
            rows.append(
                row("propagation_agreement", made.uniform(-0.5, 0.9), **own | {"null": 0.2, "note": note})
            )
        note = f"other heads 0.150, mirrored 0.250; p = {made.random():.2g}"
        rows.append(row("propagation_agreement", 0.2, **place | {"null": 0.2, "note": note}))
    return rows


def pictures(
    layers: int = 6, number: int = 12, *, data: bool = False, unit: str = "m", kind: str = "query_key"
) -> pd.DataFrame:
    """The points of a run: eigenvalues and ρ of every head, with data its attention, and scatters."""
    made = random.Random(2)
    series = []
    places = [(i + 0.5) / 32 for i in range(32)]
    for layer in range(1, layers + 1):
        for head in range(number):
            near = [made.gauss(0.05 * head, 0.2) for _ in range(8)]
            far = [made.gauss(0, 0.2) for _ in near]
            at = ("spectrum", kind, layer, head, "eigenvalue")
            series.append(Points(*at, [*near, *near], [*far, *(-y for y in far)]))
            rho = [1 / (1 + math.exp(-(head - 4) * (u - 0.5))) for u in places]
            series.append(Points("propagation", kind, layer, head, "predicted", places, rho))
            if data:
                series.append(Points("propagation", kind, layer, head, "random", places, [0.5] * 32))
                seen = [0.6 + 0.8 * u + 0.3 * made.random() for u in places]
                series.append(Points("propagation", kind, layer, head, "measured", places, seen))
    for side, off in (("input_vocabulary", 1.2), ("output_vocabulary", 4.0)):
        x, y = ([made.gauss(0, 1) for _ in range(500)] for _ in "xy")
        series.append(Points("svd", side, None, None, "raw", [off + v for v in x], y))
        series.append(Points("svd", side, None, None, "centred", x, y))
    return points_frame(series).assign(unit=unit)


def weighed(*, data: bool = False) -> list[Row]:
    """All rows of a run."""
    rows = [*heads(), *vocabulary(), *vocabulary("output_vocabulary", 0.62), *norm()]
    return [*rows, *on_data()] if data else rows


def a_weights_run() -> Run:
    """Its provenance."""
    return Run(
        "weights", "The weights of m", {"model": "m", "length": LENGTH}, EXPLAINED, {"isoscope": "0.1.0"}
    )
