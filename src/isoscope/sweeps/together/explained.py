"""What a page tells of the numbers that checkpoints have together, as a run keeps it."""

from __future__ import annotations

from isoscope.sweeps.together import alike, changes, together

DISTANCE, LENGTH = "distance_to_last", "distance_from_previous"

_DRIFT = {
    "query": "drift of the queries",
    "key": "drift of the keys",
    "layer": "drift of what enters the block",
}


def _cka(title: str, says: str) -> dict[str, object]:
    return {
        "family": "checkpoints",
        "title": title,
        "formula": "⟨K, L⟩/√(⟨K, K⟩⟨L, L⟩), K and L the U-centred XXᵀ and YYᵀ of the same positions",
        "says": says,
        "misleads": "A few dominant dimensions decide it, and it does not see rotations: two checkpoints at "
        "1 may have different weights.",
        "null": "0: the bias of the plain form is taken away",
        "interval": "none: a ratio over one sample",
        "range": "−1 to 1",
        "source": "Kornblith et al. 2019; Murphy, Zylberberg & Fyshe 2024",
    }


def _correlation(drift: str, *, by_changes: bool) -> dict[str, object]:
    pair = f"the normalised entropy with the relative {_DRIFT[drift]}"
    next_ = " Of changes: whether it does so from one checkpoint to the next." if by_changes else ""
    return {
        "family": "entropy and drift",
        "title": f"entropy with the {_DRIFT[drift]}{', changes' if by_changes else ''}",
        "formula": f"Spearman r over checkpoints of {'changes of ' if by_changes else ''}{pair}",
        "says": "Whether attention sharpens while the drift grows: −1 where every step that drifts further "
        f"is sharper.{next_}",
        "misleads": "Two slow series correlate whatever they are: a trend in both is enough. So p is told "
        "for as many independent checkpoints as these are worth, and the correlation of the changes, which "
        "no straight trend can make, stands beside. Curves can make both: two unrelated relaxations with "
        "noise of 5 % of their size reach p < .05 in 31 %, their changes in 7 to 24 %; with noise of .5 % in "
        "87 to 97 %, and in 38 to 53 % (16 to 64 checkpoints). Neither tells what causes what.",
        "null": "0",
        "interval": "none: the number of independent checkpoints is itself an estimate",
        "range": "−1 to 1",
        "source": "Godey, de la Clergerie & Sagot 2024, arXiv 2401.12143; Bayley & Hammersley 1946",
    }


def _change(kind: str, says: str) -> dict[str, object]:
    return {
        "family": "changes",
        "title": kind,
        "formula": "the place that adds most to the likelihood of a line that may wander, bend and relax",
        "says": says,
        "misleads": f"Chance marks about {changes.CHANCE:.0%} of the series that have none, 0 to 5 % where "
        "noise falls or grows exponentially along training, but 5 to 9 % of random walks whose shocks drop "
        "tenfold at once (strays: in up to 11 % of such noise), and 4 to 25 % of those whose shocks are of "
        "very different sizes (Student's t with 3 degrees, 16 to 64 checkpoints). A change that is small "
        "against how the series wanders is not seen, nor one near the ends.",
        "null": "no change: simulated from noise that wanders and bends as the series does",
        "interval": "the places of highest weight, 95 % of it, with the gaps between checkpoints",
        "range": "a step",
        "source": "de Jong & Penzer 1998",
    }


def _distance(title: str, to: str) -> dict[str, object]:
    return {
        "family": "checkpoints",
        "title": title,
        "formula": f"‖w − v‖/‖v‖ over a fixed sample of weights, v {to}",
        "says": "How far the weights are from there.",
        "misleads": "A distance in weights is no distance in what the model does.",
        "null": "none: a distance has no isotropic value",
        "interval": "none: a fixed sample of coordinates",
        "range": "0 to any size",
    }


EXPLANATIONS: dict[str, dict[str, object]] = {
    alike.PAIRS: _cka(
        "CKA of two checkpoints",
        "How alike two checkpoints arrange the same positions: 1 when they differ by a rotation, a scale and "
        "a shift, 0 when they have nothing to do with each other.",
    ),
    alike.PREVIOUS: _cka(
        "CKA with the checkpoint before", "How much of the arrangement was kept since the checkpoint before."
    ),
    alike.LAST: _cka("CKA with the last checkpoint", "How much of the final arrangement was there already."),
    **{
        together.name(drift, changes=by_changes): _correlation(drift, by_changes=by_changes)
        for drift in together.DRIFTS
        for by_changes in (False, True)
    },
    "jump": _change("jump", "From one checkpoint to the next the level changes, by more than it wanders."),
    "turn": _change("turn", "The slope changes at once, by more than the curve bends."),
    "stray": _change(
        "stray",
        "One checkpoint lies apart from those before and after it: is it the one that it claims to be?",
    ),
    DISTANCE: _distance("distance to the last weights", "those of the last checkpoint"),
    LENGTH: _distance("distance from the weights before", "those of the checkpoint before"),
}
"""By measure; `jump`, `turn` and `stray` explain all measures that are called `jump_in_…` and so on."""
