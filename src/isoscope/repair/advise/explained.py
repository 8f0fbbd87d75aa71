"""What the rows that only advice has mean, as a run keeps it beside the measures' own explanations."""

from __future__ import annotations

from isoscope.repair.advise.pairs import QUANTILES
from isoscope.repair.hubs import NEAREST

EXPLAINED: dict[str, dict[str, str]] = {
    **{
        f"cosine_quantile_{per_cent:02}": {
            "family": "directions",
            "title": f"cosine that {per_cent} % of pairs lie below",
            "formula": f"the {per_cent} % quantile of cos(x, y) over pairs of different units",
            "says": "Where the cosines of two vectors lie: what a threshold must be chosen against.",
            "misleads": "It is of pairs drawn at random; the pairs that a task asks about are not.",
            "interval": "t interval over 8 to 16 disjoint groups of vectors",
        }
        for per_cent in QUANTILES
    },
    "neighbours_kept": {
        "family": "directions", "title": f"share of the {NEAREST} nearest neighbours kept",
        "formula": f"mean over x of |near(x) ∩ near(repaired x)| / {NEAREST}, nearest by cosine",
        "says": "How much of a ranking by cosine a repair leaves as it was. It tells that neighbours "
        "change, not whether for better or worse.", "misleads": "Among more vectors more neighbours change.",
        "null": f"{NEAREST}/(n−1)",
        "interval": "jackknife over the vectors that ask, among the same neighbours",
    },
    "hub_skewness": {
        "family": "directions", "title": "hubness: skewness of being a neighbour",
        "formula": f"E(N − k)³/σ³, N how often a vector is among the {NEAREST} nearest of another",
        "says": "High where a few vectors are near to nearly all.",
        "misleads": "It grows with the number of dimensions, also of an isotropic cloud.",
        "null": "1/√k: neighbours chosen by lot",
        "interval": "jackknife over groups of vectors, neighbours as they are",
        "source": "Radovanović et al. 2010",
    },
    "anti_hubs": {
        "family": "directions", "title": "share of vectors that are nobody's neighbour",
        "formula": f"share of vectors that are among the {NEAREST} nearest of none",
        "says": "How many vectors a search for neighbours never finds.",
        "misleads": "Among more vectors it is another.", "null": "e^(−k): neighbours chosen by lot",
        "interval": "jackknife over groups of vectors, neighbours as they are",
    },
    "dimension_share": {
        "family": "dimensions", "title": "share of the mean cosine that one dimension makes",
        "formula": "((Σû_k)² − Σû_k²) / Σ_k ((Σû_k)² − Σû_k²)", "says": "Whether the anisotropy is a matter "
        "of a few coordinates. The dimensions are chosen on one half of the vectors and read on the other.",
        "misleads": "It depends on the axes. Others may be negative, so a share may exceed 1.",
        "null": "the largest shares of a common direction that prefers no dimension",
        "interval": "jackknife over groups of vectors",
    },
    "dimension_share_joined": {
        "family": "dimensions", "title": "share of the mean cosine, with the dimensions before it",
        "formula": "Σ of the shares of this dimension and of those before it",
        "says": "What share a few dimensions make together.", "interval": "jackknife over groups of vectors",
    },
    "norm_variation": {
        "family": "drift", "title": "variation of the norms", "formula": "sd ‖x‖ / mean ‖x‖",
        "says": "0 where all vectors are as long: then the dot product ranks as the cosine does.",
    },
    "copies": {
        "family": "health", "title": "share of vectors that are copies",
        "formula": "1 − different vectors / vectors", "says": "Copies are each other's nearest neighbours.",
    },
    "constant_dimensions": {
        "family": "dimensions", "title": "constant dimensions", "formula": "#{k : sd x_k ≤ 1e-9·|mean x_k|}",
        "says": "Coordinates that tell nothing.",
    },
    "dimensions": {
        "family": "dimensions", "title": "dimensions", "formula": "d", "says": "The width.",
    },
    "left_out": {
        "family": "health", "title": "vectors with NaN or Inf", "formula": "#{x : some x_k is NaN or Inf}",
        "says": "How many of those that were looked at could not be used.",
    },
    "no_direction": {
        "family": "health", "title": "vectors of norm zero", "formula": "#{x : ‖x‖ = 0}",
        "says": "They have no cosine, and are left out.",
    },
}  # fmt: skip
