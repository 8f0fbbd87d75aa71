"""Which measures share a panel or a scale, which stand instead of others, and which are drawn as maps.

Decided here: of forms of one thing one is drawn, the others are in the table. What the sections are and which
measures they hold is in `families`.
"""

from __future__ import annotations

INSTEAD = {
    "drift": "relative_drift",
    "stable_rank": "top_share",
    "isoscore_star": "isoscore",
    "self_similarity": "self_similarity_adjusted",
    "intra_similarity": "intra_similarity_adjusted",
    "partition_isotropy_one_sign": "partition_isotropy",
    "partition_isotropy_first": "partition_isotropy",
    "partition_isotropy_second": "partition_isotropy",
    "entropy": "normalised_entropy",
    "largest_score": "score_std",
    "entropy_without_drift": "normalised_entropy_without_drift",
    "query_drift": "query_relative_drift",
    "key_drift": "key_relative_drift",
    "query_key_product": "query_key_cosine",
    "trace_square": "trace",
    "spectrum_mean": "trace",
    "spectrum_variance_inside": "spectrum_variance",
    "trace_on_data": "trace",
    "frobenius_on_data": "frobenius",
}
"""Not drawn where the other is, which tells the same or tells it better; both are in the table."""

BESIDE = {
    "mean_cosine": "mean_cosine_between",
    "participation_ratio": "participation_ratio_split",
    "rankme": "effective_rank",
}
"""Drawn dotted in the panel of the other where that has one curve only."""

AS_IT_IS, WITHOUT_DRIFT = "as it is", "without the mean query"

TOGETHER: dict[str, dict[str, str]] = {
    "Mean cosine by frequency of the token": {
        "mean_cosine_rare": "rare",
        "mean_cosine_middle": "in between",
        "mean_cosine_frequent": "frequent",
    },
    "Relative drift by frequency of the token": {
        "relative_drift_rare": "rare",
        "relative_drift_middle": "in between",
        "relative_drift_frequent": "frequent",
    },
    "CKA with another layer": {"cka_previous": "the previous layer", "cka_first": "the first layer"},
    "Dimensions among neighbours": {
        "intrinsic_dimension": "from 2 (TwoNN)",
        "local_dimension": "from 20",
    },
    "Partition isotropy": {
        "partition_isotropy_unit": "in units of the mean norm",
        "partition_isotropy": "as the vectors are",
    },
    "Normalised entropy": {
        "normalised_entropy": AS_IT_IS,
        "normalised_entropy_without_drift": WITHOUT_DRIFT,
        "normalised_entropy_without_random": "without a random vector",
    },
    "Sink mass": {
        "sink_mass": AS_IT_IS,
        "sink_mass_without_drift": WITHOUT_DRIFT,
        "sink_mass_without_random": "without a random vector",
    },
    "Normalised entropy over the keys but the first": {
        "normalised_entropy_beside_first": AS_IT_IS,
        "normalised_entropy_beside_first_without_drift": WITHOUT_DRIFT,
    },
    "Largest weight": {
        "largest_weight": AS_IT_IS,
        "largest_weight_without_drift": WITHOUT_DRIFT,
    },
    "Relative drift of queries and keys": {
        "query_relative_drift": "queries",
        "key_relative_drift": "keys",
    },
    "Anisotropy of queries and keys": {"query_anisotropy": "queries", "key_anisotropy": "keys"},
}
"""Measures made to be compared: they share a panel where each is one curve of a model, else a scale."""

SCALES: dict[str, tuple[str, ...]] = {
    "Cosines": ("mean_cosine_between", "mean_cosine", "rogue_contribution", "cosine_variance"),
    "Directions used": ("participation_ratio_split", "participation_ratio", "effective_rank", "rankme"),
    "Shares": ("isoscore", "top_share"),
    "Numbers that stand out": ("outlier_dimensions", "massive_activations"),
}
"""More measures that share an axis where there is one site, and they stand as dots."""

DASHED = {
    "normalised_entropy": "even",
    "normalised_entropy_beside_first": "even",
    "sink_mass": "chance",
    "drift_share": "chance",
    "walk_slope": "standing still",
    "spectrum_variance": "random weights",
    "spectral_norm": "random weights",
    "query_key_rank": "random weights",
    "softmax_agreement": "random weights",
    "regime_density": "even",
}
"""What the null of a panel is called that begins with this measure, where a cloud's would mislead."""

MAPS: dict[str, tuple[str, ...]] = {
    "attention": ("normalised_entropy", "sink_mass"),
    "drift in attention": ("drift_share", "sink_mass", "sink_mass_without_drift"),
    "queries": ("query_key_cosine",),
    "query_key": ("trace", "frobenius", "symmetric_share", "propagation_agreement"),
}
"""Measures drawn as a map of layers and heads where there are rows of heads, by section."""

TOLD_WHERE_ZERO = ("outlier_dimensions", "massive_activations")
"""Counts that are not drawn where they are 0 everywhere: the sentence says it."""
