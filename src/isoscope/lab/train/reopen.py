"""A checkpoint of the lab becomes a model again, with what its training held out as its data.

What a training was is told by the `run.json` beside its checkpoints. Decided here: the model is looked at in
float32, also where it was trained in mixed precision, so that checkpoints of all trainings are read alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from isoscope.errors import IsoscopeError
from isoscope.lab.train.experiment import Experiment, lesson_of, probe_of
from isoscope.lab.train.training import Recipe, Training
from isoscope.models.source import Model
from isoscope.results.store import read_run
from isoscope.sweeps.find.checkpoints import BELOW, Checkpoint
from isoscope.sweeps.work.job import Opened

_OWN_VOCABULARY = ("characters", "words", "subwords", "masked")  # tasks whose tokens are those of their data


@dataclass(frozen=True)
class Reopen:
    """Opens checkpoints of one training of the lab; plain words only, so that it goes to any process."""

    training: str
    data: str | None = None

    def __call__(self, checkpoint: Checkpoint, device: str | None) -> Opened:
        """The model at this checkpoint, what it is looked at with, and its loss on what is held out."""
        experiment, facts = experiment_of(self.training)
        own = experiment.data
        if self.data not in (None, own) and experiment.task in _OWN_VOCABULARY:
            raise IsoscopeError(
                f"a model of the task '{experiment.task}' knows the tokens of its own data ('{own}') only; "
                "leave --data out."
            )
        lesson = lesson_of(replace(experiment, data=self.data or own))
        changed = sorted(name for name, value in lesson.facts.items() if facts.get(name, value) != value)
        if self.data is None and changed:
            raise IsoscopeError(
                f"the data of {self.training} is not what it was in training ({', '.join(changed)}); "
                "bring it back, or give other data with --data."
            )
        module = experiment.build(lesson)
        try:
            module.load_state_dict(load_file(checkpoint.address))
        except (OSError, RuntimeError, SafetensorError) as reason:
            why = str(reason).strip().splitlines()[0].rstrip(":. ")
            raise IsoscopeError(f"cannot read {checkpoint.address}: {why}.") from reason
        module.to(device or ("cuda" if torch.cuda.is_available() else "cpu")).eval()
        loss = {"loss": Training(module, lesson, replace(experiment.recipe, bfloat16=False)).held_loss()}
        return Opened(Model(module, experiment.name, step=checkpoint.step), probe_of(lesson), loss)


def training_of(folder: str | Path) -> Path | None:
    """The run of the lab that a folder is, or whose checkpoints it holds; None where it is none."""
    place = Path(folder).absolute()
    place = place.parent if place.name == BELOW else place
    if not (place / "run.json").exists() or not (place / BELOW).is_dir():
        return None
    question = read_run(place).run.question
    return place if all(name in question for name in ("task", "network", "attention", "rate")) else None


def experiment_of(folder: str | Path) -> tuple[Experiment, Mapping[str, Any]]:
    """The experiment that a run of the lab was, and all that its run says of it."""
    question: dict[str, Any] = dict(read_run(folder).run.question)
    question["model"] = question["network"]
    recipe = Recipe(**{each.name: question[each.name] for each in fields(Recipe)})
    own = {each.name: question[each.name] for each in fields(Experiment) if each.name != "recipe"}
    return Experiment(**own, recipe=recipe), question
