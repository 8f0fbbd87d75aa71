"""The order of the page: its sections and what they ask, the measures of each, and which share a panel.

What a measure is called and which family it is of travels with the run; here is only how a page shows
those it knows. Decided here: sections that most readers need stand open, and first; the others are folded
to their heading and what they found. Of forms of one thing one is drawn, the others are in the table. A
section may show a measure of another family again, beside its own: attention as it is, and without a part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Told = Mapping[str, Mapping[str, object]]
"""What a run tells of its measures: `run.measures`."""


@dataclass(frozen=True)
class Family:
    """A section of the page: its heading, the question it answers, its measures in order."""

    heading: str
    asks: str
    measures: tuple[str, ...]
    folded: bool = False


FAMILIES: dict[str, Family] = {
    "comparison": Family(
        "Comparison",
        "Are the layers that drift further the more anisotropic ones?",
        ("spearman_relative_drift", "spearman_drift", "pearson_relative_drift", "pearson_drift"),
    ),
    "directions": Family(
        "Directions",
        "Do the vectors point the same way?",
        ("mean_cosine_between", "mean_cosine", "rogue_contribution", "cosine_variance"),
    ),
    "drift": Family("Drift", "Is the cloud centred on the origin?", ("relative_drift", "mean_norm", "drift")),
    "spectrum": Family(
        "Spectrum",
        "How many directions carry the variance?",
        (
            "participation_ratio_split",
            "participation_ratio",
            "effective_rank",
            "rankme",
            "isoscore",
            "isoscore_star",
            "top_share",
            "stable_rank",
        ),
    ),
    "attention": Family(
        "Attention",
        "How sharp is attention, and where does it look?",
        (
            "normalised_entropy",
            "sink_mass",
            "largest_weight",
            "effective_keys",
            "score_std",
            "attended_distance",
            "entropy",
            "largest_score",
        ),
    ),
    "drift in attention": Family(
        "The drift in attention",
        "How much of the sharpness is the mean query?",
        (
            "normalised_entropy",
            "normalised_entropy_without_drift",
            "normalised_entropy_without_random",
            "sink_mass",
            "sink_mass_without_drift",
            "sink_mass_without_random",
            "drift_share",
            "normalised_entropy_beside_first",
            "normalised_entropy_beside_first_without_drift",
            "largest_weight",
            "largest_weight_without_drift",
            "cross_term",
            "entropy_without_drift",
        ),
    ),
    "training": Family("Training", "How did the model learn meanwhile?", ("loss",)),
    "queries": Family(
        "Queries and keys",
        "Do they drift, and along one direction?",
        (
            "query_relative_drift",
            "key_relative_drift",
            "query_anisotropy",
            "key_anisotropy",
            "query_key_cosine",
            "joint_direction",
            "query_drift",
            "key_drift",
            "query_key_product",
        ),
        folded=True,
    ),
    "dimensions": Family(
        "Dimensions",
        "Do a few coordinates stand out?",
        ("outlier_dimensions", "massive_activations", "largest_activation"),
        folded=True,
    ),
    "tokens": Family(
        "Tokens",
        "Are rare tokens elsewhere than frequent ones, and does context move them?",
        (
            "mean_cosine_rare",
            "mean_cosine_middle",
            "mean_cosine_frequent",
            "relative_drift_rare",
            "relative_drift_middle",
            "relative_drift_frequent",
            "frequency_correlation",
            "self_similarity_adjusted",
            "self_similarity",
        ),
        folded=True,
    ),
    "sequences": Family(
        "Sequences",
        "How alike are the vectors of one sequence?",
        ("intra_similarity_adjusted", "intra_similarity", "rank_residual"),
        folded=True,
    ),
    "layers": Family(
        "Layers", "Where does the arrangement change?", ("cka_previous", "cka_first"), folded=True
    ),
    "sample": Family(
        "Neighbours",
        "What is the cloud like close up?",
        ("intrinsic_dimension", "local_dimension", "uniformity", "cluster_cosine"),
        folded=True,
    ),
    "partition": Family(
        "Partition function",
        "Would a softmax favour a direction?",
        (
            "partition_isotropy_unit",
            "partition_isotropy",
            "partition_isotropy_one_sign",
            "partition_isotropy_first",
            "partition_isotropy_second",
        ),
        folded=True,
    ),
    "health": Family(
        "Health",
        "What was left out?",
        ("not_finite", "zero_vectors", "not_finite_rows", "blind_rows"),
    ),
}

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
}
"""What the null of a panel is called that begins with this measure, where a cloud's would mislead."""

MAPS: dict[str, tuple[str, ...]] = {
    "attention": ("normalised_entropy", "sink_mass"),
    "drift in attention": ("drift_share", "sink_mass", "sink_mass_without_drift"),
    "queries": ("query_key_cosine",),
}
"""Measures drawn as a map of layers and heads where there are rows of heads, by section."""

TOLD_WHERE_ZERO = ("outlier_dimensions", "massive_activations")
"""Counts that are not drawn where they are 0 everywhere: the sentence says it."""

_KNOWN = {m: name for name, family in reversed(FAMILIES.items()) for m in family.measures}  # the first wins


def family_of(measure: str, told: Told) -> str:
    """The family the run tells of, else the section that has a place for the measure, else "other".

    >>> family_of("drift", {}), family_of("entropy", {"entropy": {"family": "attention"}})
    ('drift', 'attention')
    """
    return str(told.get(measure, {}).get("family") or _KNOWN.get(measure, "other"))


def shown_in(measure: str, family: str, told: Told) -> bool:
    """Whether a section shows the measure: it is of its family, or of another and shown there again.

    >>> [shown_in("sink_mass", name, {}) for name in ("attention", "drift in attention", "drift")]
    [True, True, False]
    """
    again = family in FAMILIES and measure in FAMILIES[family].measures
    return again or family_of(measure, told) == family


def in_order(measures: Iterable[str], family: str) -> list[str]:
    """These measures without repeats, those the section knows first and in its order.

    >>> in_order(["mean_norm", "new", "relative_drift"], "drift")
    ['relative_drift', 'mean_norm', 'new']
    """
    there = list(dict.fromkeys(measures))
    known = FAMILIES[family].measures if family in FAMILIES else ()
    return [m for m in known if m in there] + [m for m in there if m not in known]


def title_of(measure: str, told: Told) -> str:
    """The measure's title as the run tells it, else its name in words, with a capital."""
    title = name_of(measure, told)
    return title[:1].upper() + title[1:]


def name_of(measure: str, told: Told) -> str:
    """The same inside a sentence."""
    return str(told.get(measure, {}).get("title") or measure.replace("_", " "))
