"""How a measure is shown: the sections of the page, and a line per measure that needs more than the defaults.

A measure that is not named here is shown after the others of its family. A section may show a measure of
another family again, beside its own. Of several forms of one thing one is drawn; the others are in the
table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from isoscope.formatting import capital

Told = Mapping[str, Mapping[str, object]]  # what a run tells of its measures: `run.measures`
Colours = Literal["share", "to the largest", "signed", "unbounded", "unbounded, signed"]


@dataclass(frozen=True)
class Family:
    """A section of the page: heading, question, measures in order, and those drawn as `maps` of heads.

    `others` are measures of other families that it shows as well. Along steps other maps are drawn where they
    are named in `over_steps`, and of the `others` those in `along`; `first` stands first there, and as many
    measures as `wide` says are drawn large. It is left out where the family
    that is shown `instead` has a value.
    """

    heading: str
    asks: str
    measures: Mapping[str, Shown] | tuple[()] = ()
    folded: bool = False
    maps: tuple[str, ...] = ()
    over_steps: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    along: tuple[str, ...] = ()
    first: str = ""
    wide: int = 2
    instead: str = ""


@dataclass(frozen=True)
class Shown:
    """How one measure is shown; the defaults are for a measure that needs nothing special."""

    instead: str = ""  # not drawn where this measure is, which says the same or says it better
    beside: str = ""  # drawn dotted in the panel of this measure, where that has one curve only
    panel: str = ""  # which it shares with measures to compare it with
    curve: str = ""  # its name in that panel
    scale: str = ""  # with which measures it shares an axis as dots, where there is one site
    null: str = ""  # the name of its null, where "an isotropic cloud" would mislead
    colours: Colours = "share"  # of a map of heads; a share goes from 0 to 1
    says_zero: bool = False  # a count that is not drawn where it is 0 everywhere: the sentence says it
    note_is_value: bool = False  # its note is part of the value (a dimension, a regime, a p), no remark on it
    heading: str = ""  # of its column in the terminal
    interval: bool = True  # the terminal shows it
    bare: bool = False  # in the terminal without the null, which is 1 or near 0
    count: bool = False  # the terminal writes it as a whole number
    least: float = 0.0  # a smaller value is what rounding left of 0
    alarm: str = ""  # what reads it while a model trains; along steps it is drawn in any case
    worst: Literal["max", "min"] = "max"  # the end that wants a look


ANATOMY = {
    "position": ("position_share", "preferred places and distances"),
    "key": ("key_share", "keys that every query favours"),
    "query position": ("query_position_share", "each query’s own preferred places"),
    "content": ("content_share", "the match of a query’s content with a key’s"),
}
"""The measure of each part of attention scores, and what it is, in the order in which they are drawn."""

AS_IT_IS, WITHOUT_DRIFT, WITHOUT_RANDOM = "as it is", "without the mean query", "without a random vector"
_USED, _ENTROPY = "Directions used", "Normalised entropy"
_BUT_FIRST = "Normalised entropy over the keys but the first"
COSINE_BY_FREQUENCY = "Mean cosine by frequency of the token"
DRIFT_BY_FREQUENCY = "Relative drift by frequency of the token"
AGAIN = Shown()  # a measure of another section that is shown here again


def _plain(*measures: str) -> dict[str, Shown]:
    return {measure: Shown() for measure in measures}


def _shared(panel: str, **curves: str) -> dict[str, Shown]:
    return {measure: Shown(panel=panel, curve=curve) for measure, curve in curves.items()}


FAMILIES: dict[str, Family] = {
    "comparison": Family("Comparison", "Are the layers that drift further the more anisotropic ones?", {
        **_plain("spearman_relative_drift", "spearman_drift", "pearson_relative_drift", "pearson_drift"),
    }),
    "directions": Family("Directions", "Do the vectors point the same way?", {
        "mean_cosine_between": Shown(scale="Cosines", heading="cosine between\nsequences", bare=True),
        "mean_cosine": Shown(beside="mean_cosine_between", scale="Cosines", heading="cosine\nall pairs",
                             interval=False),
        "rogue_contribution": Shown(scale="Cosines", note_is_value=True),
        "cosine_variance": Shown(scale="Cosines"),
    }, wide=1),
    "drift": Family("Drift", "Is the cloud centred on the origin?", {
        "relative_drift": Shown(heading="relative\ndrift", bare=True, least=1e-5),
        "mean_norm": Shown(heading="mean\nnorm", interval=False),
        "drift": Shown(instead="relative_drift", heading="drift", bare=True, least=1e-5),
    }),
    "spectrum": Family("Spectrum", "How many directions carry the variance?", {
        "participation_ratio_split": Shown(scale=_USED, heading="dimensions\n(PR split)", interval=False),
        "participation_ratio": Shown(beside="participation_ratio_split", scale=_USED),
        "effective_rank": Shown(scale=_USED, heading="effective\nrank", interval=False),
        "rankme": Shown(beside="effective_rank", scale=_USED),
        "isoscore": Shown(scale="Shares", heading="IsoScore", interval=False),
        "isoscore_star": Shown(instead="isoscore"),
        "top_share": Shown(scale="Shares"), "stable_rank": Shown(instead="top_share"),
        "singular_entropy": Shown(),
    }),
    "anatomy of attention": Family("What sharpens attention", "Position, keys that every query favours, or "
                                   "this query with this key?", {
        **{measure: Shown(heading=f"{part}\nshare".replace(" ", "\n"), interval=False, bare=True)
           for part, (measure, _) in ANATOMY.items()},
        "anatomy_cross_term": Shown(), "attention_kind": Shown(instead="key_share"),
        "normalised_entropy": AGAIN, "sink_mass": AGAIN,
        **{f"{measure}_{suffix}": Shown(panel=panel, curve=suffix.replace("_", " "))
           for measure, panel in (("normalised_entropy", _ENTROPY), ("sink_mass", "Sink mass"))
           for suffix in ("without_key", "without_position_and_key", "without_position", "of_content")},
        "normalised_entropy_without_random": AGAIN, "sink_mass_without_random": AGAIN,
    }, over_steps=("position_share", "key_share", "content_share"), wide=0),
    "attention": Family("Attention", "How sharp is attention, and where does it look?", {
        "normalised_entropy": Shown(panel=_ENTROPY, curve=AS_IT_IS, null="even", heading="attention\nentropy",
                                    interval=False, bare=True, alarm="entropy_collapse", worst="min"),
        "sink_mass": Shown(panel="Sink mass", curve=AS_IT_IS, null="chance", colours="to the largest",
                           heading="sink mass", interval=False),
        "largest_weight": Shown(panel="Largest weight", curve=AS_IT_IS), "effective_keys": Shown(),
        "score_std": Shown(), "attended_distance": Shown(), "entropy": Shown(instead="normalised_entropy"),
        "largest_score": Shown(instead="score_std", alarm="score_growth"), "attention_mass": Shown(),
    }, maps=("normalised_entropy", "sink_mass")),
    "drift in attention": Family("The drift in attention", "How much of the sharpness is the mean query?", {
        "normalised_entropy": AGAIN,
        "normalised_entropy_without_drift": Shown(panel=_ENTROPY, curve=WITHOUT_DRIFT, interval=False,
                                                  instead="normalised_entropy_without_position_and_key",
                                                  heading="entropy\nwithout drift", bare=True),
        "normalised_entropy_without_random": Shown(panel=_ENTROPY, curve=WITHOUT_RANDOM), "sink_mass": AGAIN,
        "sink_mass_without_drift": Shown(panel="Sink mass", curve=WITHOUT_DRIFT, colours="to the largest"),
        "sink_mass_without_random": Shown(panel="Sink mass", curve=WITHOUT_RANDOM),
        "drift_share": Shown(instead="key_share", null="chance", heading="drift\nshare", interval=False,
                             bare=True, alarm="drift_takes_over"),
        "normalised_entropy_beside_first": Shown(panel=_BUT_FIRST, curve=AS_IT_IS, null="even"),
        "normalised_entropy_beside_first_without_drift": Shown(panel=_BUT_FIRST, curve=WITHOUT_DRIFT),
        "largest_weight": AGAIN,
        "largest_weight_without_drift": Shown(panel="Largest weight", curve=WITHOUT_DRIFT),
        "cross_term": Shown(), "entropy_without_drift": Shown(instead="normalised_entropy_without_drift"),
    }, instead="anatomy of attention", maps=("drift_share", "sink_mass", "sink_mass_without_drift"),
       over_steps=("drift_share", "sink_mass_without_drift"), first="drift_share"),
    "training": Family("Training", "How did the model learn meanwhile?", {"loss": Shown()}, wide=0),
    "queries": Family("Queries and keys", "Do they drift, and along one direction?", {
        **_shared("Relative drift of queries and keys", query_relative_drift="queries",
                  key_relative_drift="keys"),
        **_shared("Anisotropy of queries and keys", query_anisotropy="queries", key_anisotropy="keys"),
        "query_key_cosine": Shown(colours="signed"), "joint_direction": Shown(),
        "query_drift": Shown(instead="query_relative_drift"),
        "key_drift": Shown(instead="key_relative_drift"),
        "query_key_product": Shown(instead="query_key_cosine"),
    }, folded=True, maps=("query_key_cosine",),
       over_steps=("query_key_cosine", "query_relative_drift", "key_relative_drift")),
    "dimensions": Family("Dimensions", "Do a few coordinates stand out?", {
        "outlier_dimensions": Shown(scale="Numbers that stand out", says_zero=True, note_is_value=True),
        "massive_activations": Shown(scale="Numbers that stand out", says_zero=True, note_is_value=True),
        "largest_activation": Shown(note_is_value=True),
    }, folded=True),
    "tokens": Family("Tokens", "Are rare tokens elsewhere than frequent ones, and does context move them?", {
        **_shared(COSINE_BY_FREQUENCY, mean_cosine_rare="rare", mean_cosine_middle="in between",
                  mean_cosine_frequent="frequent"),
        **_shared(DRIFT_BY_FREQUENCY, relative_drift_rare="rare", relative_drift_middle="in between",
                  relative_drift_frequent="frequent"),
        "frequency_correlation": Shown(), "self_similarity_adjusted": Shown(),
        "self_similarity": Shown(instead="self_similarity_adjusted"),
    }, folded=True),
    "sequences": Family("Sequences", "How alike are the vectors of one sequence?", {
        "intra_similarity_adjusted": Shown(), "intra_similarity": Shown(instead="intra_similarity_adjusted"),
        "rank_residual": Shown(alarm="rank_collapse", worst="min"),
    }, folded=True),
    "layers": Family("Layers", "Where does the arrangement change?", {
        **_shared("CKA with another layer", cka_previous="the previous layer", cka_first="the first layer"),
    }, folded=True),
    "sample": Family("Neighbours", "What is the cloud like close up?", {
        **_shared("Dimensions among neighbours", intrinsic_dimension="from 2 (TwoNN)",
                  local_dimension="from 20"),
        "uniformity": Shown(), "cluster_cosine": Shown(),
    }, folded=True),
    "partition": Family("Partition function", "Would a softmax favour a direction?", {
        "partition_isotropy_unit": Shown(panel="Partition isotropy", curve="in units of the mean norm",
                                         heading="isotropy\nat unit norm"),
        "partition_isotropy": Shown(panel="Partition isotropy", curve="as the vectors are"),
        "partition_isotropy_one_sign": Shown(instead="partition_isotropy"),
        "partition_isotropy_first": Shown(instead="partition_isotropy"),
        "partition_isotropy_second": Shown(instead="partition_isotropy"),
        "partition_isotropy_float32": Shown(heading="isotropy\nas published"),
    }, folded=True),
    "query_key": Family("Localisation", "Where would each head look, by its weights alone?", {
        "trace": Shown(colours="unbounded, signed", note_is_value=True, heading="tr W"),
        "frobenius": Shown(colours="unbounded", heading="‖W‖"), "symmetric_share": Shown(),
        "propagation_agreement": Shown(colours="signed", note_is_value=True,
                                       heading="ρ(t) and attention\n(Spearman)"),
        "softmax_agreement": Shown(null="other heads", note_is_value=True),
        "regime_density": Shown(null="even", note_is_value=True), "walk_slope": Shown(null="standing still"),
        "spectrum_mean": Shown(instead="trace", heading="mean\neigenvalue"),
        "spectrum_variance": Shown(null="random W", heading="variance of\neigenvalues"),
        "spectral_norm": Shown(null="random W"), "query_key_rank": Shown(null="random W"),
        "key_bias_norm": Shown(),
        "trace_on_data": Shown(instead="trace", note_is_value=True, heading="tr W"),
        "frobenius_on_data": Shown(instead="frobenius", heading="‖W‖"),
        "trace_square": Shown(instead="trace"),
        "spectrum_variance_inside": Shown(instead="spectrum_variance"),
    }, maps=("trace", "frobenius", "symmetric_share", "propagation_agreement")),
    "vocabulary": Family("Vocabulary", "Do the rows of the matrices point the same way?", {
        **_plain("frequency_norm_correlation", "frequency_drift_correlation"),
    }, wide=0, others=(
        "mean_cosine", "mean_cosine_between", "relative_drift", "drift", "mean_norm", "isoscore",
        "participation_ratio", "effective_rank", "top_share", "partition_isotropy_unit", "partition_isotropy",
        "partition_isotropy_one_sign", "partition_isotropy_first", "partition_isotropy_second",
        "partition_isotropy_float32", "singular_entropy",
    ), along=(
        "mean_cosine_between", "relative_drift", "partition_isotropy_unit", "isoscore",
        "participation_ratio_split", "mean_norm", "effective_rank", "singular_entropy",
    )),
    "norm": Family("The final norm", "What do its weights do to the cloud?", {
        "norm_weight_size": Shown(heading="‖γ‖/√d"),
        "norm_weight_outliers": Shown(heading="outliers\nof γ", count=True),
        "norm_bias_size": Shown(heading="‖β‖"),
        "bias_vocabulary_cosine": Shown(heading="cos(β, mean\nof vocabulary)"),
        "weight_vocabulary_cosine": Shown(heading="cos(γ, mean\nof vocabulary)"),
        "bias_cancels": Shown(heading="cos(β,\n−E[γ⊙x̂])"),
        "drift_removed_by_bias": Shown(heading="drift\nβ removes"),
    }, wide=0, others=("mean_cosine_between", "relative_drift", "isoscore", "mean_cosine",
                       "partition_isotropy_unit", "mean_norm")),
    "live": Family("Batches that trained", "What do they show, dropout and all, and where do their gradients "
                   "pull?", _plain("query_gradient_share", "key_gradient_share"), folded=True,
                   others=("normalised_entropy", "mean_cosine_between")),
    "health": Family("Health", "What was left out?", {
        "not_finite": Shown(alarm="not_a_number"), "zero_vectors": Shown(),
        "not_finite_rows": Shown(alarm="not_a_number"), "blind_rows": Shown(),
    }),
}  # fmt: skip
"""The sections in the order of the page, and how their measures are shown, in the order of the section."""

_OWN = {
    measure: (name, how)
    for name, family in FAMILIES.items()
    for measure, how in dict(family.measures).items()
    if how is not AGAIN
}
SHOWN = {m: how for m, (_, how) in sorted(_OWN.items(), key=lambda own: own[1][1].curve != AS_IT_IS)}
"""How measures are shown, by measure; what is compared with others stands before them."""

MAIN = (
    "mean_cosine_between", "relative_drift", "participation_ratio_split", "normalised_entropy", "drift_share",
    "sink_mass", "mean_cosine", "mean_norm", "isoscore", "trace", "frobenius", "symmetric_share",
)  # fmt: skip
"""Measures in order of importance: a figure that is asked for nothing draws the first that has a value."""

OVER_STEPS = (
    "mean_cosine_between", "relative_drift", "normalised_entropy", "drift_share", "participation_ratio_split",
)  # fmt: skip
"""Measures that the terminal shows of several steps, a table each; the first matter most."""

WHILE_TRAINING = (
    "mean_cosine_between", "relative_drift", "normalised_entropy", "largest_score", "drift_share",
    "rank_residual",
)  # fmt: skip
"""Columns of the terminal while a model trains; the first matter most."""

BY_HEAD = ("attention_kind", "drift_share", "normalised_entropy")
"""The terminal shows the first of these by head that is there, where its table is short."""

COLUMNS = (
    "mean_cosine_between", "relative_drift", "participation_ratio_split", "mean_norm", "mean_cosine",
    "effective_rank", "isoscore",
)  # fmt: skip
"""Columns of the terminal's table of sites; the first matter most."""

COLUMNS_WITH_ATTENTION = (
    "mean_cosine_between", "relative_drift", "normalised_entropy", *(share for share, _ in ANATOMY.values()),
    "drift_share", "normalised_entropy_without_drift", "sink_mass", "participation_ratio_split", "mean_norm",
)  # fmt: skip
"""Columns of the terminal's table of sites where there is attention; only the first has its interval."""

COLUMNS_OF_WEIGHTS = {
    "queries and keys, the mean over heads": (
        "trace", "frobenius", "spectrum_mean", "spectrum_variance", "symmetric_share",
    ),
    "the same on data": ("trace_on_data", "frobenius_on_data", "propagation_agreement", "walk_slope"),
    "vocabulary": (
        "mean_cosine", "relative_drift", "isoscore", "partition_isotropy", "partition_isotropy_float32",
        "partition_isotropy_unit", "singular_entropy",
    ),
    "final norm": tuple(FAMILIES["norm"].measures),
    "stages of the final norm": (
        "mean_cosine_between", "drift", "relative_drift", "isoscore", "partition_isotropy", "effective_rank",
    ),
}  # fmt: skip
"""Columns of the terminal's tables of weights, by title; the first matter most."""

SUMMARISED = (
    "mean_cosine_between", "relative_drift", "rank_residual", "normalised_entropy", "largest_score",
    "score_std", "sink_mass", "drift_share", "not_finite",
)  # fmt: skip
"""Measures that trackers are told of a step, before any others."""

MAPS = {name: family.maps for name, family in FAMILIES.items() if family.maps}
"""Measures that are drawn as maps of layers and heads, by section."""

MAPS_OVER_STEPS = {name: family.over_steps or family.maps for name, family in FAMILIES.items()}
"""Measures that are drawn as maps of heads and steps, by section."""

ALARMED: dict[str, tuple[str, ...]] = {
    alarm: tuple(measure for measure, how in SHOWN.items() if how.alarm == alarm)
    for alarm in dict.fromkeys(how.alarm for how in SHOWN.values() if how.alarm)
}
"""The measures that an alarm reads, by the name of its function; any of them will do."""


def how_shown(measure: str) -> Shown:
    """How a measure is shown: its line of the table, or the defaults."""
    return SHOWN.get(measure, Shown())


def heading_of(measure: str) -> str:
    """The heading of a measure's column in the terminal, by default its name, a word per line."""
    return how_shown(measure).heading or measure.replace("_", "\n")


TOGETHER = {
    panel: {measure: how.curve for measure, how in SHOWN.items() if how.panel == panel}
    for panel in dict.fromkeys(how.panel for how in SHOWN.values() if how.panel)
}
"""Measures made to be compared: they share a panel where each is one curve of a model, else a scale."""

SCALES = {
    heading: tuple(measure for measure, how in SHOWN.items() if how.scale == heading)
    for heading in dict.fromkeys(how.scale for how in SHOWN.values() if how.scale)
}
"""More measures that share an axis where there is one site, and they stand as dots."""


def family_of(measure: str, told: Told) -> str:
    """The family the run tells of, else the section that has a place for the measure, else "other"."""
    return str(told.get(measure, {}).get("family") or _OWN.get(measure, ("other",))[0])


def shown_in(measure: str, family: str, told: Told) -> bool:
    """Whether a section shows the measure: it is of its family, or of another and shown there again."""
    again = family in FAMILIES and measure in FAMILIES[family].measures
    return again or family_of(measure, told) == family


def in_order(measures: Iterable[str], family: str) -> list[str]:
    """These measures without repeats, those the section knows first and in its order."""
    there = list(dict.fromkeys(measures))
    known = FAMILIES[family].measures if family in FAMILIES else ()
    return [m for m in known if m in there] + [m for m in there if m not in known]


def title_of(measure: str, told: Told) -> str:
    """The measure's title as the run tells it, else its name in words, with a capital; β keeps its case."""
    return capital(name_of(measure, told))


def name_of(measure: str, told: Told) -> str:
    """The measure's title as it stands inside a sentence."""
    return str(told.get(measure, {}).get("title") or measure.replace("_", " "))
