"""Readings of the eigenvalues of the covariance: how many dimensions the cloud uses.

All but the split-half form are biased at small n, and a jackknife does not mend that; so they come
without an interval, and with the value that an isotropic cloud of the same n and d shows whose vectors are
as alike inside sequences.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from isoscope.geometry import spectrum
from isoscope.measures.base import Measure, undefined
from isoscope.measures.null import Dependence, expected_of_dependent
from isoscope.results.reading import Reading
from isoscope.stats.centre import Centre
from isoscope.stats.moments import Moments

_NO_INTERVAL = "none: biased at small n, which a jackknife does not mend; read it against its null"
_DRAWN = "simulated for an isotropic Gaussian cloud of the same n and d, whose vectors are as alike inside "
_OF_WHOLE = f"{_DRAWN}sequences: one mean correlation for all pairs of a sequence"
_OF_BLOCKS = f"{_DRAWN}sequences: the mean correlation, and the noise of the covariance between two halves"


def participation(values: Tensor) -> float:
    """Participation ratio of a spectrum: (Σλ)² / Σλ²."""
    return float(values.sum() ** 2 / (values**2).sum())


def entropic_rank(values: Tensor) -> float:
    """Exponential of the entropy of the normalised singular values √λ."""
    return spectrum.exp_entropy(values.sqrt())


def stable_rank(values: Tensor) -> float:
    """Sum of a spectrum over its largest value."""
    return float(values.sum() / values.max())


def top_share(values: Tensor) -> float:
    """Share of the largest value in the sum of a spectrum."""
    return float(values.max() / values.sum())


def exponent(values: Tensor) -> float:
    """Minus the slope of a spectrum on its ranks, both as logarithms; NaN for fewer than two in the range."""
    some = values.flip(0)[spectrum.FIRST_RANK - 1 : spectrum.LAST_RANK]
    some = some[some > spectrum.LEAST_SHARE * values[-1]].log()
    if len(some) < 2:
        return math.nan
    rank = torch.arange(len(some)).double() + spectrum.FIRST_RANK
    apart = rank.log() - (rank.log() / rank).sum() / (1 / rank).sum()
    return -float((apart * some / rank).sum() / (apart**2 / rank).sum())


def _exponent(record: Moments, centre: Centre) -> Reading:
    found = _of_spread(exponent)(record, centre)
    if found.known or found.note not in ("", _few(record)):
        return found
    return undefined(record.n, f"needs {spectrum.FIRST_RANK + 1} eigenvalues that are not zero")


def _of_spread(
    reading: Callable[[Tensor], float], *, whole: bool = False
) -> Callable[[Moments, Centre], Reading]:
    """Read the centred eigenvalues, against those of isotropic vectors about their mean."""

    def read(record: Moments, centre: Centre) -> Reading:
        if (why := _flat(record)) is not None:
            return undefined(record.n, why)
        null = _expected(reading, record, centre, centred=True, whole=whole)
        return Reading(reading(record.spread), record.n, null, note=_few(record))

    return read


def _of_extent(
    reading: Callable[[Tensor], float], *, whole: bool = False
) -> Callable[[Moments, Centre], Reading]:
    """Read the eigenvalues with the mean left in, against those of isotropic vectors."""

    def read(record: Moments, centre: Centre) -> Reading:
        if record.n < 1 or float(record.extent.sum()) == 0:
            return undefined(record.n, "no vector that is not zero")
        null = _expected(reading, record, centre, centred=False, whole=whole)
        return Reading(reading(record.extent), record.n, null, note=_few(record))

    return read


def _expected(
    reading: Callable[[Tensor], float], record: Moments, centre: Centre, *, centred: bool, whole: bool
) -> float:
    """The null of a reading that large eigenvalues decide, or that weighs all (`whole` sequences are blocks).

    A few heavy vectors make the covariance noisy. That noise lies in few directions, so it does not lower an
    entropy over all of them.
    """
    dependence = Dependence.of(centre.sums) if whole else Dependence.of_spread(centre.sums, record)
    return expected_of_dependent(reading, record.n, record.mean.shape[1], dependence, centred=centred)


def _flat(record: Moments) -> str | None:
    if record.n < 2:
        return "needs 2 vectors"
    return "all vectors are the same" if _still(record.whole) else None


def _still(record: Moments) -> bool:
    """Whether a part is one vector over and over: rounding leaves it a spread of about 1e-15 of its mean."""
    spread = record.scatter.diagonal(dim1=1, dim2=2).sum(1)
    return bool((spread <= 1e-26 * record.count * (record.mean**2).sum(1)).any())


def _few(record: Moments) -> str:
    return "fewer vectors than dimensions" if record.n <= record.mean.shape[1] else ""


def _null_ratio(free: float, width: int) -> float:
    """E(Σλ)²/E Σλ² of a Gaussian cloud whose covariance has `free` degrees of freedom."""
    return (width * free + 2) / (free + width + 1)


def _participation_ratio(record: Moments, centre: Centre) -> Reading:
    if (why := _flat(record)) is not None:
        return undefined(record.n, why)
    null = _null_ratio(Dependence.of_spread(centre.sums, record).free(record.n), len(record.spread))
    return Reading(participation(record.spread), record.n, null, note=_few(record))


def _of_ratio(score: Callable[[float, int], float]) -> Callable[[Moments, Centre], Reading]:
    """Read a number that the participation ratio and the width give."""

    def read(record: Moments, centre: Centre) -> Reading:
        ratio, width = _participation_ratio(record, centre), record.mean.shape[1]
        if width < 2:
            return undefined(record.n, "needs 2 dimensions")
        return Reading(score(ratio.value, width), ratio.n, score(ratio.null, width), note=ratio.note)

    return read


def shrunk_isoscore(ratio: float, width: int) -> float:
    """IsoScore* from the participation ratio: with λ' = (1−ζ)λ + ζλ̄, 1/PR' = (1−ζ)²/PR + (1−(1−ζ)²)/d."""
    kept = (1 - spectrum.SHRINKAGE) ** 2
    return (1 / (kept / ratio + (1 - kept) / width) - 1) / (width - 1)


def _participation_ratio_split(record: Moments) -> Reading:
    if len(record.count) < 2:
        return undefined(record.n, "two halves do not fit the memory allowed; raise --memory")
    if float(record.count.min()) < 2:
        return undefined(record.n, "needs 2 vectors in each half of the sequences")
    first, second = record.scatter
    overlap = float((first * second).sum())
    if overlap <= 0 or _still(record):
        return undefined(record.n, "the halves share no direction")
    value = float(first.trace() * second.trace()) / overlap
    return Reading(value, record.n, float(record.mean.shape[1]), note=_few(record))


_measure = partial(
    Measure,
    family="spectrum",
    stats=(Moments, Centre),
    interval=_NO_INTERVAL,
    bounds=(1.0, math.inf),
    unchanged_by=frozenset({"rotation", "scale", "shift"}),
)

MEASURES = (
    _measure(
        name="isoscore",
        read=_of_ratio(lambda ratio, width: (ratio - 1) / (width - 1)),
        definition=spectrum.isoscore,
        title="IsoScore",
        formula="(PR − 1) / (d − 1)",
        says="How evenly the variance fills the dimensions: 1 when it is the same in every direction, "
        "0 when it lies on one line.",
        misleads="It ignores the mean: a far-off, round cloud has IsoScore 1 and mean cosine 1. With few "
        "vectors, or vectors that are alike inside sequences, it reads too low; see the null.",
        null="(PR's null − 1) / (d − 1)",
        source="Rudman et al. 2022; its closed form by the participation ratio",
        bounds=(0.0, 1.0),
    ),
    _measure(
        name="isoscore_star",
        read=_of_ratio(shrunk_isoscore),
        definition=spectrum.isoscore_star,
        title="IsoScore*",
        formula="IsoScore of (1−ζ)Σ + ζ(tr Σ/d)I, ζ = .2",
        says="IsoScore of the covariance pulled a little towards a round one, which steadies it where "
        "vectors are few. It is the form that I-STAR trains with.",
        misleads="Not 0 even for vectors on a line, so compare it between layers of one width only. In "
        "training the pull is towards a covariance of more data, here towards a round one of the same size.",
        null="from PR's null, in closed form",
        source="Rudman & Eickhoff 2024, arXiv 2305.19358",
        bounds=(0.0, 1.0),
    ),
    _measure(
        name="participation_ratio",
        read=_participation_ratio,
        definition=spectrum.participation_ratio,
        title="participation ratio",
        formula="PR = (Σλ)² / Σλ²",
        says="The number of dimensions that carry the variance.",
        misleads="Biased low at small n, and where vectors are alike inside sequences: even an isotropic "
        "cloud does not show d. See the null.",
        null="(dν+2)/(ν+d+1), ν the effective degrees of freedom of the covariance: n−1 for independent "
        "vectors, fewer where those of a sequence are alike, from the noise between two halves",
        source="Gao & Ganguli 2015",
        ranklike=True,
    ),
    _measure(
        name="participation_ratio_split",
        read=_participation_ratio_split,
        definition=spectrum.participation_ratio_split,
        title="participation ratio, split-half",
        formula="tr S₁·tr S₂ / tr(S₁S₂)",
        says="The same number from two halves of the sequences whose noise is independent: almost free "
        "of the bias at small n.",
        misleads="It varies more than the plain form, and can exceed d.",
        null="d",
        interval="none: two halves give no spread",
        source="isoscope",
        stats=(Moments,),
    ),
    _measure(
        name="effective_rank",
        read=_of_spread(entropic_rank, whole=True),
        definition=spectrum.effective_rank,
        title="effective rank",
        formula="exp H(σ/Σσ), σ the singular values of the centred cloud",
        says="How many dimensions are in use, counted gently: small ones still count.",
        misleads="Noise in many small dimensions lifts it.",
        null=_OF_WHOLE,
        source="Roy & Vetterli 2007",
        ranklike=True,
    ),
    _measure(
        name="rankme",
        read=_of_extent(entropic_rank, whole=True),
        definition=spectrum.rankme,
        title="RankMe",
        formula="exp H(σ/Σσ), σ the singular values of the cloud as it lies",
        says="The effective rank with the mean left in: a drift takes dimensions away.",
        misleads="As the effective rank; and a large mean alone lowers it.",
        null=_OF_WHOLE,
        source="Garrido et al. 2023",
        unchanged_by=frozenset({"rotation", "scale"}),
        ranklike=True,
    ),
    _measure(
        name="stable_rank",
        read=_of_extent(stable_rank),
        definition=spectrum.stable_rank,
        title="stable rank",
        formula="‖X‖_F² / ‖X‖₂², mean left in",
        says="How much larger the whole cloud is than its largest direction.",
        misleads="One direction, often the mean, decides it.",
        null=_OF_BLOCKS,
        source="Rudelson & Vershynin 2007",
        unchanged_by=frozenset({"rotation", "scale"}),
        ranklike=True,
    ),
    _measure(
        name="top_share",
        read=_of_spread(top_share),
        definition=spectrum.top_share,
        title="share of the top component",
        formula="λ_max / Σλ",
        says="How much of the variance lies along one single direction.",
        misleads="Biased high at small n; see the null.",
        null=_OF_BLOCKS,
        source="Ethayarajh 2019 (MEV)",
        bounds=(0.0, 1.0),
    ),
    _measure(
        name="spectral_exponent",
        read=_exponent,
        definition=spectrum.spectral_exponent,
        title="spectral exponent α",
        formula="λ_k ∝ k^−α: minus the slope of log λ_k on log k, k from 4 to 100, weighted by 1/k",
        says="How fast the variance falls from one principal direction to the next: 0 for a round cloud. "
        "Above 1 the first directions hold most of the variance, however many there are.",
        misleads="A line is fitted whatever the shape of the spectrum, and the three largest eigenvalues "
        "do not enter. With few vectors it reads too high; see the null. Of fewer than 100 eigenvalues all "
        "from rank 4 on are used, so compare clouds of one width.",
        null=_OF_BLOCKS,
        source="Stringer et al. 2019; Agrawal et al. 2022 (α-ReQ)",
        bounds=(0.0, math.inf),
        extra=True,
    ),
)
