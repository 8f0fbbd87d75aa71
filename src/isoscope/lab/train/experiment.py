"""One experiment of the lab: a task, a model of some shape, a recipe and a penalty, in one run folder.

A Monitor looks at it when a checkpoint is due. Rows are written first, then
`checkpoints/step-000064.safetensors`, then `state.pt`, from which training goes on: what is there is whole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path

import torch
from torch import nn

from isoscope.data.batch import Batch, as_batch
from isoscope.errors import IsoscopeError, chosen, unknown_name
from isoscope.lab.model import cnn, transformer
from isoscope.lab.penalties.table import Penalty, parse
from isoscope.lab.tasks.base import HELD, Lesson
from isoscope.lab.tasks.table import TASKS
from isoscope.lab.train.checkpoints import Checkpoints, due
from isoscope.lab.train.training import Recipe, Training
from isoscope.measures.table import choose
from isoscope.models.source import Model
from isoscope.run.monitor.monitor import Monitor, OnAlarm, Sink
from isoscope.run.monitor.probe import MEASURES
from isoscope.run.observe.observe import look
from isoscope.run.observe.pictures import MOST

WATCHED = (
    *MEASURES, "attention_mass", "isoscore", "participation_ratio_split", "effective_rank",
    "intra_similarity",
)  # fmt: skip
BATCH = 16  # held-out sequences that are looked at together
USUAL = {"transformer": "pre", "cnn": "batch"}  # the models, and the norm that each has unless told


@dataclass(frozen=True)
class Experiment:
    """Every knob, each one word or one number; what is no word is refused before any data is read."""

    task: str = "characters"
    model: str = "transformer"
    attention: str = "softmax"
    norm: str = "pre"
    penalty: str = ""
    layers: int = 4
    width: int = 128
    heads: int = 4
    length: int = 128
    data: str = "embedded"
    checkpoints: str = "log"
    recipe: Recipe = field(default_factory=Recipe)

    def __post_init__(self) -> None:
        chosen("task", self.task, TASKS)
        if self.model not in USUAL:
            raise unknown_name("model", self.model, USUAL)
        if self.model == "cnn" and self.task != "images":
            raise IsoscopeError(f"a CNN learns the task images; for '{self.task}' take --model transformer.")
        if self.model == "cnn" and self.attention != "softmax":
            raise IsoscopeError(
                f"a CNN has no attention to be '{self.attention}'; leave --attention out, or take --model "
                "transformer."
            )
        if self.model == "transformer":
            self._shape()
        else:
            cnn.Grid(1, 1, 1, norm=self.norm)
        self.penalties()
        due(self.checkpoints, self.recipe.steps)

    @property
    def name(self) -> str:
        """What it is called: the task and what is not as usual."""
        knobs = {"model": "transformer", "attention": "softmax", "norm": USUAL[self.model], "penalty": ""}
        own = [getattr(self, name) for name, usual in knobs.items() if getattr(self, name) != usual]
        return " ".join([self.task, *own])

    @property
    def digest(self) -> str:
        """Twelve hex digits of all its knobs."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:12]

    def lesson(self) -> Lesson:
        """The lesson of its task, from its data."""
        return chosen("task", self.task, TASKS).open(self.data, self.length)

    def build(self, lesson: Lesson) -> nn.Module:
        """A fresh model that fits the lesson."""
        seed = self.recipe.seed
        if self.model == "cnn":
            answers = lesson.outputs or lesson.vocabulary
            grid = cnn.Grid(lesson.vocabulary, lesson.length, answers, self.width, self.layers, self.norm)
            return cnn.build(grid, seed)
        return transformer.build(self._shape(lesson), seed)

    def penalties(self) -> tuple[Penalty, ...]:
        """Its penalties: several are joined by +, as in locater=.1,target=1+entropy=5,target=.5."""
        return tuple(parse(each) for each in self.penalty.split("+")) if self.penalty else ()

    def fixed(self) -> dict[str, object]:
        """Every knob by its name, as a run's question has it."""
        own = asdict(self)
        model, recipe = own.pop("model"), own.pop("recipe")
        return {**own, "network": model, **recipe}

    def _shape(self, lesson: Lesson | None = None) -> transformer.Shape:
        """The shape of its model; without a lesson, all of it that can be refused already."""
        shape = transformer.Shape(1, self.width, self.layers, self.heads, 1, self.attention, self.norm)
        names = ("vocabulary", "length", "causal", "vectors", "outputs", "pooled")
        return replace(shape, **{name: getattr(lesson, name) for name in names}) if lesson else shape


class Underway:
    """An experiment that is being made: its model in training, and the Monitor that watches it."""

    def __init__(
        self, experiment: Experiment, out: Path,
        *, device: str = "cpu", on_alarm: OnAlarm = "warn", sinks: tuple[Sink, ...] = (), resume: bool = True
    ) -> None:  # fmt: skip
        lesson = experiment.lesson()
        recipe = experiment.recipe
        moments = due(experiment.checkpoints, recipe.steps)
        self.model = experiment.build(lesson).to(device)
        self.training = Training(self.model, lesson, recipe, experiment.penalties())
        probe = probe_of(lesson)
        self.monitor = Monitor(
            self.model, probe, every=lambda step: step in moments, out=out,
            measures=watched(self.model, probe), counterfactual=True, budget=None, on_alarm=on_alarm,
            sinks=sinks, name=experiment.name, points=MOST // len(moments),
            about={**experiment.fixed(), **lesson.facts}, resume=resume
        )  # fmt: skip
        self.moments = moments
        self.kept = Checkpoints(out)

    def go_on(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Train to the end, from the last state that was kept."""
        there = self.kept.restore(self.training)
        for step in self.training.steps():
            if step in self.moments:
                self.training.check()
                with self.training.precision():
                    self.monitor.step(step, lambda: {"loss": self.training.held_loss()})
                if step != there:
                    self.kept.keep(self.training)
            if progress is not None:
                progress(step, self.training.recipe.steps)


def lesson_of(experiment: Experiment) -> Lesson:
    """The lesson of an experiment, read once for all that learn it one after the other."""
    return _lesson(experiment.task, experiment.data, experiment.length)


@lru_cache(maxsize=1)
def _lesson(task: str, data: str, length: int) -> Lesson:
    return Experiment(task=task, data=data, length=length).lesson()


def probe_of(lesson: Lesson, most: int = HELD, size: int = BATCH) -> list[Batch]:
    """What a model is looked at with: batches of what is held out, of which every position counts.

    The tasks have no special token, and what stands at position 0 is learnt like the rest.
    """
    return [as_batch(some, seed=0) for some in torch.split(lesson.held.inputs[:most], size)]


def watched(model: nn.Module, probe: list[Batch]) -> list[str]:
    """The measures that can be read of a model: those of attention where it attends."""
    attends = bool(look(Model(model, "model"), probe[0]).attention)
    return [measure.name for measure in choose(WATCHED) if attends or measure.at != "attention"]
