"""Godey, de la Clergerie & Sagot 2024: anisotropy across modalities, and its relation to attention."""

from __future__ import annotations

from isoscope.papers.godey2024 import cosine, counterfactual, drift, training, untrained
from isoscope.papers.paper import Paper

PAPER = Paper(
    "godey2024", "Anisotropy Is Inherent to Self-Attention in Transformers",
    "Nathan Godey, Éric de la Clergerie, Benoît Sagot; EACL 2024; arXiv 2401.12143",
    claims=(cosine.CLAIM, drift.CLAIM, drift.CONVOLUTIONAL_CLAIM, untrained.CLAIM, untrained.PRE_CLAIM,
        training.DRIFT_CLAIM, training.SCORES_CLAIM, counterfactual.CLAIM),
    absent={
        "MultiBERTs along their own training": "The checkpoints are public and large; `isoscope sweep "
        "multiberts` reads them. Here training is followed in models of the lab, from the first step on.",
        "Anisotropy within queries and within keys along training": "It is not watched in training; "
        "`isoscope sweep` with a folder of `models` and `--measures query_anisotropy,key_anisotropy` reads "
        "it off the checkpoints.",
        "The untrained block without norms, its sub-layers, and where norms have their fixed point":
        "`isoscope block --norm none` has them; the claims here are what they come to.",
        "Histograms of the scores of an untrained block": "They are on the page of `isoscope block`, which "
        "has every quantity of this experiment; inputs that are not normalised are its `--inputs raw`.",
        "The largest weight and the cross term in trained models": "`isoscope measure --measures "
        "largest_weight_without_drift,cross_term` has both of any model.",
        "Which mean is taken out under rotary position, and the sink of a large language model": "Models of "
        "the lab have neither rotary position nor, at this size, a sink to speak of; of any model `isoscope "
        "measure` takes out the mean before rotary position and shows the sink.",
    },
)  # fmt: skip
