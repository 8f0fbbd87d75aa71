"""The models of this paper: three widths that the lab trains, one of them also tied, and the public ones.

They learn the next sub-word, as the paper's own. The rate goes with 1/width, as Pythia's does; with one rate
the widest learns least. A tied model starts from the same numbers in all else.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from torch import Tensor, nn

from isoscope.lab.tasks.base import Lesson
from isoscope.lab.train.experiment import Experiment
from isoscope.models.zoo import MACHINA_STEPS
from isoscope.papers.workshop import Trained, Workshop

TASK = "subwords"
SIZES = tuple(f"pythia-{size}" for size in ("70m", "160m", "410m", "1b", "1.4b", "2.8b", "6.9b", "12b"))
"""The public models of one recipe and several sizes, by name in the zoo."""
CONTRASTS = ("gpt-neox-20b", "falcon-7b", "opt-6.7b", "crystalcoder", "amber")
"""Public models of other recipes, read at their end alone."""
STEPS = MACHINA_STEPS  # the 21 checkpoints of every size


@dataclass(frozen=True)
class Plan:
    """Widths in units of a trajectory's, small to large; checkpoints of its own, and how many are weighed."""

    factors: tuple[float, float, float]
    checkpoints: str
    weighed: int


LAPTOP = Plan((0.5, 1.0, 2.0), "log:8", 9)
LARGER = Plan((0.1875, 0.375, 0.75), "log:12", 13)  # a trajectory's own width has 61 checkpoints: 6 GB a seed


def plan_of(workshop: Workshop) -> Plan:
    """The plan of a scale."""
    return LAPTOP if workshop.scale.name == "laptop" else LARGER


@dataclass(frozen=True)
class Tied(Experiment):
    """An experiment whose model has one vocabulary matrix for both ends."""

    @property
    def name(self) -> str:
        """What it is called."""
        return f"{super().name} tied"

    def build(self, lesson: Lesson) -> nn.Module:
        """A fresh model, its head replaced."""
        model = super().build(lesson)
        model.head = Head(model.tokens)  # type: ignore[arg-type]
        return model

    def fixed(self) -> dict[str, object]:
        """Every knob by its name, and that it is tied."""
        return {**super().fixed(), "tied": True}


class Head(nn.Module):
    """Answers by the table of tokens, which stays the model's own: nothing is stored twice."""

    def __init__(self, tokens: nn.Embedding) -> None:
        super().__init__()
        self._table = [tokens]  # in a list, so that it is no part of this module

    def forward(self, x: Tensor) -> Tensor:
        """[b, t, d] to [b, t, |V|]."""
        return nn.functional.linear(x, self._table[0].weight)


def arms(workshop: Workshop) -> list[Trained]:
    """Every training, small to large, then those that are tied, of the middle width."""
    own, plan = workshop.scale.trajectory, plan_of(workshop)
    fewer = replace(own, checkpoints=plan.checkpoints)
    asked = [replace(fewer, width=int(own.width * f), rate=own.rate / f) for f in plan.factors]
    middle = asked[1]
    plain: list[Experiment] = []
    both: list[Experiment] = []
    for seed in range(workshop.seeds):
        shared = [own if size.width == own.width else size for size in asked]  # with whoever has it too
        plain += [workshop.experiment(TASK, seed=seed, size=size) for size in shared]
        both.append(tied(workshop.experiment(TASK, seed=seed, size=middle)))
    plain.sort(key=lambda each: each.width)
    found = [workshop.training(f"width {each.width}", each) for each in plain]
    return [*found, *(workshop.training(f"width {each.width}, tied", each) for each in both)]


def tied(experiment: Experiment) -> Tied:
    """The same experiment with a tied model."""
    return Tied(**{each.name: getattr(experiment, each.name) for each in fields(Experiment)})
