"""The trainings of this paper: how large at which scale, and with which LocAteR.

Shallow is the shape that a third party reports for the paper, with a post-norm; deep is the usual arm of all
papers. Both are by character: sub-words take longer to learn than a laptop has minutes.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from isoscope.lab.train.experiment import Experiment
from isoscope.papers.scales import Size
from isoscope.papers.workshop import Workshop

TASK = "characters"
STRENGTH, TARGET = 0.1, 1.0  # the setting that decides: the lab's own example, not chosen by what it gives
STRENGTHS = {"laptop": (0.1, 1.0)}
TARGETS = (0.5, 1.0, 2.0)
_CROSS = ((0.01, 1.0), (0.1, 0.5), (0.1, 1.0), (0.1, 2.0), (1.0, 1.0))
"""λ and τ at every other scale: each is varied while the other is as in the setting that decides."""

SHALLOW = "1 layer, 1 head"
DEEP, DEEP_LOCATER = "without LocAteR", "with LocAteR"

_SHALLOW = {
    "laptop": Size(1, 128, 1, 64, steps=400, batch_size=16, rate=1e-2, checkpoints="400"),
    "gpu": Size(1, 128, 1, 256, steps=1500, batch_size=32, rate=5e-3, checkpoints="1500"),
}
_SHALLOW["full"] = _SHALLOW["gpu"]

_SWEPT = {
    "laptop": Size(2, 64, 4, 64, steps=300, batch_size=16, rate=3e-3, checkpoints="300"),
    "gpu": Size(4, 256, 8, 256, steps=800, batch_size=32, rate=1e-3, checkpoints="800"),
}
_SWEPT["full"] = _SWEPT["gpu"]
_WIDTHS = {"laptop": (32, 64, 128), "gpu": (64, 128, 256), "full": (64, 128, 256)}
_HEADS = {"laptop": (1, 8), "gpu": (1, 16), "full": (1, 16)}


def locater(strength: float, target: float) -> str:
    """LocAteR as it is written for a training."""
    return f"locater={strength:g},target={target:g}"


def settings(workshop: Workshop) -> list[tuple[float, float]]:
    """Strengths and targets of LocAteR that are tried."""
    name = workshop.scale.name
    return list(product(STRENGTHS[name], TARGETS)) if name in STRENGTHS else list(_CROSS)


def deep(workshop: Workshop, seed: int, *, narrow: bool) -> Experiment:
    """The usual arm, with LocAteR or without."""
    return workshop.experiment(TASK, seed=seed, penalty=locater(STRENGTH, TARGET) if narrow else "")


def shallow(workshop: Workshop, seed: int, penalty: str) -> Experiment:
    """One layer and one head with a post-norm; at scales that the table has not, of the arm's width."""
    arm = workshop.scale.arm
    usual = replace(arm, layers=1, heads=1, checkpoints=str(arm.steps))
    size = _SHALLOW.get(workshop.scale.name, usual)
    return workshop.experiment(TASK, seed=seed, size=size, norm="post", penalty=penalty)


def swept(workshop: Workshop) -> list[Size]:
    """Models of several widths with so many heads, then of one width with several numbers of heads."""
    name, arm = workshop.scale.name, workshop.scale.arm
    base = _SWEPT.get(name, replace(arm, checkpoints=str(arm.steps)))
    widths = [replace(base, width=width) for width in _WIDTHS.get(name, (base.width, 2 * base.width))]
    return [*widths, *(replace(base, heads=heads) for heads in _HEADS.get(name, (1,)))]
