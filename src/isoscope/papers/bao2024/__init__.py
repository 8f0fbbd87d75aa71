"""Bao, Hataya & Karakida 2024: attention localises when the query-key spectrum concentrates."""

from __future__ import annotations

from isoscope.papers.bao2024 import attention, collapse, heads, penalty, sweep, theory
from isoscope.papers.paper import Paper

PAPER = Paper(
    "bao2024", "Self-attention Networks Localize When QK-eigenspectrum Concentrates",
    "H. Bao, R. Hataya, R. Karakida, ICML 2024, arXiv 2402.02098",
    claims=(theory.CLAIM, heads.CLAIM, attention.WALK_CLAIM, attention.CLAIM, sweep.CLAIM, penalty.CLAIM,
        collapse.CLAIM),
    absent={
        "the published loss of LocAteR": "It is not available; a reconstruction that shrinks ‖W‖_F² and "
        "holds tr W stands for it.",
        "perplexities of WikiText-2 as printed in the paper": "Its tokens and recipe are not known here; "
        "give the text with --data text=FILE, and differences between arms are what can be read.",
        "the proofs of the theorems, and the analysis of gradients that rests on ρ(t)": "They are "
        "mathematics; their statements are tried by simulation, at finite T.",
        "rotary position": "It turns W by the distance of query and key, and the static form leaves it out: "
        "of public models that have it (pythia-160m) W is that at distance zero.",
        "shares of the symmetric and the skew part of W, and the terms of biases and β in the scores":
        "`isoscope weights` has them of every head of any model; no claim hangs on them.",
    },
)  # fmt: skip
