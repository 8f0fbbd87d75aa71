"""The order of the page: its sections, what they ask, and the measures of each.

What a measure is called and which family it is of travels with the run; here is only how a page shows
those it knows. Decided here: sections that most readers need stand open, and first; the others are folded
to their heading and what they found. A section may show a measure of another family again, beside its own:
attention as it is, and without a part. Which measures share a panel is in `panels`.
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
            "singular_entropy",
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
            "attention_mass",
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
            "partition_isotropy_float32",
        ),
        folded=True,
    ),
    "query_key": Family(
        "Localisation",
        "Where would each head look, by its weights alone?",
        (
            "trace",
            "frobenius",
            "symmetric_share",
            "propagation_agreement",
            "softmax_agreement",
            "regime_density",
            "walk_slope",
            "spectrum_mean",
            "spectrum_variance",
            "spectral_norm",
            "query_key_rank",
            "key_bias_norm",
            "trace_on_data",
            "frobenius_on_data",
            "trace_square",
            "spectrum_variance_inside",
        ),
    ),
    "vocabulary": Family(
        "Vocabulary",
        "Do the rows of the matrices point the same way?",
        ("frequency_norm_correlation", "frequency_drift_correlation"),
    ),
    "norm": Family(
        "The final norm",
        "What do its weights do to the cloud?",
        (
            "norm_weight_size",
            "norm_weight_outliers",
            "norm_bias_size",
            "bias_vocabulary_cosine",
            "weight_vocabulary_cosine",
            "bias_cancels",
            "drift_removed_by_bias",
        ),
    ),
    "live": Family(
        "Batches that trained",
        "What do they show, dropout and all, and where do their gradients pull?",
        (),
        folded=True,
    ),
    "health": Family(
        "Health",
        "What was left out?",
        ("not_finite", "zero_vectors", "not_finite_rows", "blind_rows"),
    ),
}

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
    """The measure's title as the run tells it, else its name in words, with a capital.

    A letter that stands for something keeps its case: β has no capital that a reader would know.
    """
    title = name_of(measure, told)
    return title[:1].upper() + title[1:] if title[:1].isascii() else title


def name_of(measure: str, told: Told) -> str:
    """The same inside a sentence."""
    return str(told.get(measure, {}).get("title") or measure.replace("_", " "))
