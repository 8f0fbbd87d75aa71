"""Every model along its training, weighed once for all claims and kept beside the models.

A training of the lab is weighed at some of its checkpoints, evenly; hidden states are what the Monitor saw at
the same steps. A public model whose checkpoints cannot be had is read as it is published.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import torch

from isoscope.errors import IsoscopeError
from isoscope.lab.tasks.base import Examples
from isoscope.lab.train.checkpoints import due
from isoscope.lab.train.experiment import lesson_of, probe_of
from isoscope.models.inputs import open_data
from isoscope.models.source import load
from isoscope.models.weights import Norm, open_weights
from isoscope.papers.claims import failed
from isoscope.papers.machina2024.arms import CONTRASTS, SIZES, STEPS, arms, plan_of
from isoscope.papers.machina2024.frequency import BY_BAND
from isoscope.papers.machina2024.weighing import weigh_checkpoint
from isoscope.papers.workshop import Trained, Workshop, is_kept
from isoscope.results.points import points_frame
from isoscope.results.row import frame
from isoscope.results.store import open_run, read_run
from isoscope.results.trajectory import thinned
from isoscope.run.observe.observe import observe
from isoscope.run.provenance import new_run

HIDDEN = ("mean_cosine", "mean_cosine_between", "relative_drift", "isoscore")
BY_FREQUENCY = (*BY_BAND, "frequency_correlation")
READ = 32  # batches of training text on which hidden states are told apart by token frequency
EARLIER = "earlier"  # the edit: γ and β of the checkpoint halfway


@dataclass(frozen=True)
class Asked:
    """A training that is to be weighed, from where to where, and at how many of its checkpoints."""

    training: Trained
    out: Path
    most: int
    device: str

    @property
    def steps(self) -> list[int]:
        """The steps that are weighed."""
        experiment = self.training.experiment
        return thinned(due(experiment.checkpoints, experiment.recipe.steps), self.most)


def along_training(workshop: Workshop) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows and points of every model at every checkpoint that is weighed."""
    if workshop.scale.public:
        return _public(workshop), pd.DataFrame()
    made, most = arms(workshop), plan_of(workshop).weighed
    ended, lost = workshop.train(made)
    folders = [workshop.models / f"weighed-{each.experiment.digest}" for each in ended]
    asked = [Asked(*each, most, workshop.device) for each in zip(ended, folders, strict=True)]
    workshop.side_by_side(weigh_training, [each for each in asked if not _whole(each)])
    parts = [_read(each) for each in asked]
    rows = pd.concat([*(rows for rows, _ in parts), lost], ignore_index=True)
    return rows, pd.concat([points_frame([]), *(points for _, points in parts)], ignore_index=True)


def weigh_training(asked: Asked) -> None:
    """Weigh the checkpoints of one training that are not weighed yet."""
    experiment = asked.training.experiment
    lesson, recipe = lesson_of(experiment), experiment.recipe

    def batch(step: int) -> Examples:
        return lesson.batch(recipe.seed, step, recipe.batch_size)

    counts = torch.zeros(lesson.vocabulary, dtype=torch.int64)  # of each token as an answer in training
    for step in range(recipe.steps):
        counts += torch.bincount(batch(step).targets.flatten(), minlength=lesson.vocabulary)
    question = {"weighed": experiment.fixed(), **lesson.facts}
    folder = open_run(asked.out, new_run("weights", experiment.name, question, ()))
    steps = asked.steps
    halfway = open_weights(asked.training.at(steps[len(steps) // 2], asked.device).module).final_norm()
    for step in steps:
        if folder.has(f"step {step}"):
            continue
        model = asked.training.at(step, asked.device)
        edits: dict[str, Norm] = {} if halfway is None else {EARLIER: halfway}
        weights = open_weights(model)
        found = weigh_checkpoint(model, weights, probe_of(lesson), counts=counts, edits=edits)
        rows = [found.rows]
        if step == steps[-1]:  # hidden states by frequency of their token, over text that was trained on
            text = [batch(number).inputs for number in range(READ)]
            seen = observe(model, text, measures=BY_FREQUENCY, layers="output", counterfactual=False)
            rows.append(frame(seen.rows()))
        folder.write(f"step {step}", pd.concat(rows, ignore_index=True).assign(step=step), {}, found.points)


def _read(asked: Asked) -> tuple[pd.DataFrame, pd.DataFrame]:
    arm, steps = asked.training, asked.steps
    kept = read_run(asked.out)
    own, hidden = arm.named(kept.frame()), arm.read((*HIDDEN, "loss"), steps=steps)
    points = kept.points(f"step {steps[-1]}") if arm.seed == 0 else kept.points("none")
    pictures = arm.name + ", " + points["kind"] + ", " + points["series"]
    drawn = points.drop(columns="unit").assign(picture=pictures)
    return pd.concat([own, hidden], ignore_index=True), drawn


def _public(workshop: Workshop) -> pd.DataFrame:
    asked = [*((name, STEPS) for name in SIZES), *((name, ()) for name in CONTRASTS)]
    parts: list[pd.DataFrame] = []
    for number, (name, steps) in enumerate(asked):
        workshop.progress(number, len(asked))
        found: list[pd.DataFrame] = []
        try:
            for step in steps or (None,):
                found.append(public_rows(workshop, name, step))
        except IsoscopeError as reason:
            with suppress(IsoscopeError):  # a folder of published weights has no checkpoints, but its end
                found += [public_rows(workshop, name, None)] if steps and not found else []
            found.append(failed(f"{name}, along training" if found else name, str(reason)))
        parts += found
    return pd.concat(parts, ignore_index=True)


def public_rows(workshop: Workshop, name: str, step: int | None) -> pd.DataFrame:
    """Rows of a public model at a step of its training, or as it is published."""
    revision = "" if step is None else f"step{step}"
    question: dict[str, object] = {"public": name, "checkpoint": revision, "text": workshop.address("text")}
    path = workshop.models / f"weighed-{name.replace('/', '-')}-{revision or 'end'}"
    if not (path / "run.json").exists() or not read_run(path).has(name):
        model = load(name, revision=revision or None, device=workshop.device)
        weights = open_weights(name, revision=revision or None)
        address = workshop.address("text")
        found = weigh_checkpoint(model, weights, open_data(address, model, seed=0))
        seen = observe(model, address, measures=(*HIDDEN, *BY_FREQUENCY), layers="layer.*,output")
        rows = pd.concat([found.rows, frame(seen.rows())], ignore_index=True)
        open_run(path, new_run("weights", name, question, ())).write(name, rows, {})
    return read_run(path).frame(name).assign(model=name, revision="", step=step).astype({"step": "Int64"})


def _whole(asked: Asked) -> bool:
    units = [f"step {step}" for step in asked.steps]
    return is_kept(asked.out) and all(map(read_run(asked.out).has, units))
