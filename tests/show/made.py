"""Hand-made runs for the report's tests: plausible numbers, no model and no torch."""

from __future__ import annotations

import math

from isoscope.results.row import Row
from isoscope.results.run import Run

EXPLAINED = {
    "mean_cosine_between": {
        "family": "directions",
        "title": "Mean cosine between sequences",
        "formula": "(‖ΣS‖² − Σ‖S‖²) / (n² − Σn²), S the sum of x/‖x‖ over one sequence",
        "says": "How alike two vectors from different sequences point: 0 is isotropic, 1 all the same.",
        "misleads": "One dimension of large variance can make most of it.",
        "null": "0",
        "range": "−1 to 1",
        "interval": "jackknife over 32 groups of sequences",
        "source": "Ethayarajh 2019; Godey et al. 2024",
    },
    "mean_cosine": {
        "title": "Mean cosine, all pairs",
        "formula": "(‖Σû‖² − n) / (n(n−1))",
        "says": "The papers' number.",
    },
    "relative_drift": {"formula": "‖x̄‖ / mean ‖x‖", "says": "How far the cloud's centre is from the origin."},
    "participation_ratio": {"formula": "(Σλ)² / Σλ²", "says": "How many directions carry the variance."},
}


def row(measure: str, value: float, **given: object) -> Row:
    """A row of layer 0 of "m" unless told otherwise; `half` is half the width of its interval."""
    half = given.pop("half", None)
    fields: dict[str, object] = {
        "run": "0", "model": "m", "revision": "main", "step": None, "kind": "layer", "layer": 0, "head": None,
        "n": 16_384, "null": 0.0,
    } | given  # fmt: skip
    if half is not None:
        fields |= {"low": value - float(str(half)), "high": value + float(str(half))}
    if fields["kind"] != "layer" and "layer" not in given:
        fields["layer"] = None
    return Row(measure=measure, value=value, **fields)  # type: ignore[arg-type]


def site_rows(cosine: float, ratio: float, **where: object) -> list[Row]:
    """All measures of one site with this mean cosine and participation ratio, in 768 dimensions."""
    drift = math.sqrt(max(cosine, 4e-4))
    return [
        row("mean_cosine_between", cosine, half=0.004 + 0.04 * abs(cosine), **where),
        row("mean_cosine", cosine + 0.02, **where),
        row("cosine_variance", 0.004 + 0.02 * cosine, **where | {"null": 1 / 768}),
        row(
            "rogue_contribution", 0.6 * (cosine + 0.02), **where | {"null": math.nan, "note": "dimension 447"}
        ),
        row("relative_drift", drift, half=0.01, **where | {"null": 0.02}),
        row("drift", 40 * drift, **where | {"null": math.nan}),
        row("mean_norm", 40 * (1 + cosine), half=0.5, **where | {"null": math.nan}),
        row("participation_ratio_split", ratio, half=0.08 * ratio, **where | {"null": 768.0}),
        row("participation_ratio", 0.95 * ratio, **where | {"null": 733.0}),
        row("effective_rank", min(700.0, 6 * ratio), **where | {"null": 759.0}),
        row("rankme", min(690.0, 5 * ratio), **where | {"null": 759.0}),
        row("stable_rank", 1 + 0.2 * ratio, **where | {"null": 700.0}),
        row("isoscore", ratio / 768, **where | {"null": 0.955}),
        row("top_share", min(0.9, 6 / ratio), **where | {"null": 0.0019}),
        row("not_finite", 0.0, **where | {"null": math.nan}),
        row("zero_vectors", 0.0, **where | {"null": math.nan}),
    ]


def part_rows(cosine: float, **where: object) -> list[Row]:
    """The measures of the folded sections at one site, with this mean cosine."""
    random = {"null": 0.99}
    bands = {"rare": 1.4, "middle": 1.0, "frequent": 0.8}
    return [
        row("outlier_dimensions", 2.0, **where | {"note": "dimension 7, 381"}),
        row("massive_activations", 0.0, **where),
        row("largest_activation", 9.5, **where | {"null": math.nan, "note": "dimension 7"}),
        row("intra_similarity", 0.3 + cosine, half=0.01, **where | {"null": 0.09}),
        row("intra_similarity_adjusted", 0.3 - cosine / 4, half=0.01, **where | {"null": 0.09}),
        row("rank_residual", 0.95 - cosine / 2, half=0.01, **where | {"null": 0.996}),
        row("self_similarity", 0.9, **where),
        row("self_similarity_adjusted", 0.9 - cosine, **where),
        *(row(f"mean_cosine_{band}", size * cosine, half=0.01, **where) for band, size in bands.items()),
        *(
            row(f"relative_drift_{band}", size * math.sqrt(cosine), half=0.01, **where | {"null": 0.04})
            for band, size in bands.items()
        ),
        row("frequency_correlation", -0.3, half=0.1, **where),
        row("uniformity", -3.9 + 2 * cosine, **where | {"null": -3.98}),
        row("intrinsic_dimension", 6 + 10 * cosine, **where | {"null": 106.0}),
        row("local_dimension", 12 + 10 * cosine, **where | {"null": 98.0}),
        row("cluster_cosine", 0.01 * cosine, **where | {"null": -0.003}),
        row("cka_previous", 1 - cosine / 4, **where),
        row("cka_first", 1 - cosine, **where),
        *(row(f"partition_isotropy{form}", 0.001, **where | random) for form in ("", "_one_sign", "_first")),
        row("partition_isotropy_second", -0.2, **where | random),
        row("partition_isotropy_unit", 0.7 - cosine, **where | random),
        row("isoscore_star", 0.2, **where | random),
    ]


def attention_rows(share: float, sink: float = 0.3, **where: object) -> list[Row]:
    """All measures of the attention of one layer or head; the mean query has this share and the sink."""
    place = {"kind": "attention", "layer": 1} | where
    sharp = 0.9 - 0.4 * share - 0.5 * sink
    values = {
        "entropy": (4.8 * sharp, 4.8),
        "normalised_entropy": (sharp, 1.0),
        "largest_weight": (0.8 - sharp / 2, math.nan),
        "effective_keys": (40 * sharp, math.nan),
        "score_std": (2.0, math.nan),
        "sink_mass": (sink, 0.008),
        "attended_distance": (30.0, math.nan),
        "cross_term": (-0.01, 0.0),
        "entropy_without_drift": (4.3, 4.8),
        "normalised_entropy_without_drift": (0.9, 1.0),
        "largest_weight_without_drift": (0.2, math.nan),
        "sink_mass_without_drift": (0.009, 0.008),
        "normalised_entropy_without_random": (sharp + 0.01, 1.0),
        "sink_mass_without_random": (0.95 * sink, 0.008),
        "normalised_entropy_beside_first": (sharp + 0.1, 1.0),
        "normalised_entropy_beside_first_without_drift": (0.9, 1.0),
        "query_key_cosine": (0.5 - share, 0.0),
        "query_key_product": (12 * (0.5 - share), 0.0),
    }
    unbounded = {
        "largest_score": (12.0, math.nan),
        "blind_rows": (0.0, 0.0),
        "not_finite_rows": (0.0, 0.0),
        "drift_share": (share, 0.001),
        "joint_direction": (0.4 - share, 0.0),
        **{f"{side}_drift": (3.0, 0.2) for side in ("query", "key")},
        **{f"{side}_relative_drift": (share + 0.1, 0.03) for side in ("query", "key")},
        **{f"{side}_anisotropy": (share, 0.0) for side in ("query", "key")},
    }
    return [
        *(row(m, value, half=0.001, **place | {"null": null}) for m, (value, null) in values.items()),
        *(row(m, value, **place | {"null": null}) for m, (value, null) in unbounded.items()),
    ]


def attended(model: str = "m", heads: int = 0, depth: int = 4, **where: object) -> list[Row]:
    """The attention of so many layers, the drift growing with depth, and the same a head where asked."""
    rows = []
    for layer in range(1, depth + 1):
        for head in (None, *range(heads)):
            share = layer / (depth + 2) + 0.01 * (head or 0)
            rows += attention_rows(share, **{"model": model, "layer": layer, "head": head} | where)
    return rows


def whole(model: str = "bert-base-uncased", scale: float = 1.0) -> list[Row]:
    """All measures of seven layers."""
    parts = [part_rows(scale * cosine, model=model, layer=i) for i, cosine in enumerate(BERT[:7])]
    return [*layered(model, scale, depth=7), *(row for part in parts for row in part)]


def compared() -> list[Row]:
    """Two models side by side, with the correlations of `isoscope compare`."""
    rows = whole("a") + whole("b", 0.5)
    for model, n, r in (("a", 8, 1.0), ("b", 8, 0.5), ("all models", 16, 0.9)):
        for measure in (f"{kind}_{drift}" for kind in KINDS for drift in ("drift", "relative_drift")):
            note = "nominal p = 0" if r == 1 else "nominal p = 0.017"
            rows.append(row(measure, r, model=model, kind="comparison", n=n, note=note))
    return rows


KINDS = ("spearman", "pearson")
BERT = (0.105, 0.168, 0.219, 0.245, 0.327, 0.377, 0.42, 0.398, 0.399, 0.484, 0.561, 0.675, 0.477)


def layered(model: str = "bert-base-uncased", scale: float = 1.0, depth: int = 13) -> list[Row]:
    rows = []
    for layer, cosine in enumerate(BERT[:depth]):
        rows += site_rows(scale * cosine, 150 - 9 * layer, model=model, layer=layer)
    return rows + site_rows(0.48 * scale, 60, model=model, kind="output")


def trained(model: str = "small") -> list[Row]:
    rows = []
    for at, step in enumerate((0, 25, 50, 100, 200, 400)):
        for layer in range(5):
            cosine = 0.002 + 0.02 * at * layer * (1 - 0.05 * at)
            rows += site_rows(cosine, 90 - 8 * at - 5 * layer, model=model, step=step, layer=layer)
        rows += site_rows(0.002 + 0.05 * at, 60 - 6 * at, model=model, step=step, kind="output")
    for step in range(0, 401, 20):
        loss = 1.4 + 4.1 * math.exp(-step / 70) + 0.03 * math.sin(step)
        rows.append(row("loss", loss, model=model, step=step, kind="training", null=math.nan, n=4096))
    return rows


def clouds() -> list[Row]:
    rows = site_rows(0.31, 44, model="vectors.npy", kind="cloud", n=900)
    return [*rows, row("zero_vectors", 3, model="vectors.npy", kind="cloud")]


def a_run(title: str = "bert-base-uncased on embedded text") -> Run:
    question = {"model": "bert-base-uncased", "data": {"address": "embedded", "tokens": 16384}, "seed": 0}
    versions = {"isoscope": "0.1.0", "torch": "2.13.0", "python": "3.11.7"}
    return Run("observe", title, question, EXPLAINED, versions, "2026-01-01T00:00:00Z")
