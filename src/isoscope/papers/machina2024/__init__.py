"""Machina & Mercer 2024: vocabulary matrices, the final norm, and whether anisotropy is inherent."""

from __future__ import annotations

from isoscope.papers.machina2024 import final_norm, sizes, theory, titles, vocabulary
from isoscope.papers.paper import Paper

PAPER = Paper(
    "machina2024", "Anisotropy is Not Inherent to Transformers",
    "Anemily Machina, Robert Mercer; NAACL 2024",
    claims=(vocabulary.FALL, vocabulary.SIDES_CLAIM, vocabulary.CENTRING, final_norm.CLAIM, sizes.SIZE,
        sizes.EXISTENCE, theory.MATRIX, theory.STATES, titles.CLAIM),
    absent={
        "Pythia, GPT-NeoX-20B, Falcon-7B, OPT-6.7B, CrystalCoder and Amber at laptop or gpu": "Their weights "
        "are public and large: `--scale full` reads them. At the other scales models of the lab stand in for "
        "them, of three widths and the same task.",
        "The published table of I(W), number by number": "It is in float32 with eigenvectors as one library "
        "signs them, so another machine may print another number; that form is measured and drawn, and no "
        "verdict hangs on it.",
        "Scatters of a vocabulary at every checkpoint": "The page has those of the last one of models of the "
        "lab, raw and centred; of public models `isoscope weights` draws them, and `isoscope sweep --what "
        "weights` over steps.",
        "γ and β of an earlier checkpoint in public models": "They are put in place of the last ones in "
        "models of the lab alone; the other edits, γ := 1 and β := 0, are made in public models too.",
    },
)  # fmt: skip
