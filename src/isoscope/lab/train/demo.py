"""The demonstration: a character-level Transformer learns the embedded text while a Monitor watches it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from isoscope.lab.tasks.base import Lesson
from isoscope.lab.train.experiment import Experiment, probe_of
from isoscope.lab.train.training import Recipe, Training
from isoscope.measures.table import choose
from isoscope.run.monitor.monitor import Monitor, OnAlarm, Sink
from isoscope.run.observe.pictures import MOST

NAME = "character Transformer"
BATCH = 32  # held-out sequences that are looked at together


@dataclass(frozen=True)
class Demo:
    """What is trained, on what, and when it is looked at."""

    experiment: Experiment
    lesson: Lesson
    steps: tuple[int, ...]


def prepare(steps: int, seed: int) -> Demo:
    """The task `characters` on the embedded text, and the moments at which the model is looked at."""
    experiment = Experiment(recipe=Recipe(steps=steps, seed=seed))
    moments = sorted({0, *(round(steps * share) for share in (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1))})
    return Demo(experiment, experiment.lesson(), tuple(moments))


def watch(
    demo: Demo, model: nn.Module, out: Path, *, on_alarm: OnAlarm = "warn", sink: Sink | None = None
) -> Monitor:
    """The Monitor of this demonstration: at its steps, whatever that takes."""
    about = {**demo.experiment.fixed(), **demo.lesson.facts, "looks": list(demo.steps)}
    return Monitor(
        model, probe_of(demo.lesson, len(demo.lesson.held.inputs), BATCH),
        every=lambda step: step in demo.steps, out=out,
        measures=[measure.name for measure in choose()], counterfactual=True, budget=None, on_alarm=on_alarm,
        sinks=() if sink is None else (sink,), name=NAME, points=MOST // len(demo.steps), about=about
    )  # fmt: skip


def perform(
    demo: Demo, model: nn.Module, monitor: Monitor, progress: Callable[[int, int], None] | None = None
) -> None:
    """Train and measure; what the folder has already is not measured again."""
    if all(map(monitor.has, demo.steps)):
        return
    training = Training(model, demo.lesson, demo.experiment.recipe)
    for step in training.steps():
        monitor.step(step, lambda: {"loss": training.held_loss()})
        if progress is not None:
            progress(step, training.recipe.steps)
