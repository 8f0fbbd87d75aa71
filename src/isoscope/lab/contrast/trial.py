"""One trial of a contrast: a training, and what is read of the model after its last step.

Driven to no entropy it has, beside loss and geometry: the spectrum of W of its heads, where they look (ρ(t),
predicted and measured), how well it answers, and what a probe finds in its states.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import cast

import pandas as pd
import torch

from isoscope.errors import IsoscopeError
from isoscope.lab.tasks.base import Lesson, token_loss
from isoscope.lab.train import probes
from isoscope.lab.train.experiment import Experiment, lesson_of, probe_of
from isoscope.lab.train.training import AT_ONCE, Diverged, Training
from isoscope.lab.variants.table import WITHOUT_ATTENTION
from isoscope.measures.on_data import EXPLANATIONS
from isoscope.measures.table import choose, of_weights
from isoscope.models.source import Model
from isoscope.models.tap import at_rest
from isoscope.models.weights import open_weights
from isoscope.results.points import points_frame
from isoscope.results.reading import Reading
from isoscope.results.row import Row
from isoscope.run.monitor.own import OWN, explained, own_rows
from isoscope.run.observe.observe import observe
from isoscope.run.weigh.data import data_part
from isoscope.run.weigh.heads import HeadsWeighed, head_points, weigh_heads
from isoscope.run.weigh.localisation import KIND

MEASURES = (
    "mean_cosine_between", "mean_cosine", "relative_drift", "mean_norm", "isoscore",
    "participation_ratio_split", "effective_rank", "rank_residual", "normalised_entropy", "attention_mass",
    "largest_weight", "score_std", "largest_score", "sink_mass", "drift_share",
    "normalised_entropy_without_drift", "query_relative_drift", "key_relative_drift", "query_key_cosine",
)  # fmt: skip

Answer = tuple[list[Row], dict[str, object], pd.DataFrame]
Told = dict[str, Mapping[str, object]]


@dataclass(frozen=True)
class Trial:
    """One training: an arm, the entropy it is driven to (None: to none) and a seed.

    `place` orders arms on a page; `weighed` reads its weights too; `probe` is what its states are asked.
    """

    arm: str
    experiment: Experiment
    entropy: float | None
    place: int
    weighed: bool = False
    probe: str = ""

    def placed(self, row: Row, run: str) -> Row:
        """A row with the coordinates of this trial."""
        setting = math.nan if self.entropy is None else self.entropy
        return replace(row, run=run, arm=self.arm, setting=setting, seed=self.experiment.recipe.seed)

    @property
    def revision(self) -> str:
        """The `revision` column of its rows."""
        aim = "" if self.entropy is None else f"entropy {self.entropy:g}, "
        return f"{aim}seed {self.experiment.recipe.seed}"

    @property
    def unit(self) -> str:
        """The name of the unit in its run folder."""
        return f"{self.arm}, {self.revision}"


def try_(trial: Trial, run: str, device: str) -> Answer:
    """Train one arm and measure it after the last step; a training that went wrong is a row of NaN."""
    experiment = trial.experiment
    lesson = lesson_of(experiment)
    model = experiment.build(lesson).to(device)
    training = Training(model, lesson, experiment.recipe, experiment.penalties())
    called = torch.cuda.get_device_name(device) if device.startswith("cuda") else device
    about: dict[str, object] = {"arm": trial.arm, "place": trial.place, "device": called}
    about["trained"] = asdict(experiment)
    started = time.perf_counter()
    try:
        for _ in training.steps():
            pass
    except Diverged as reason:
        steps = experiment.recipe.steps
        nothing = Reading(math.nan, 1, note="the training went wrong")
        lost = Row.at(run, trial.arm, trial.revision, steps, OWN, None, None, "loss", nothing)
        return [trial.placed(lost, run)], {**about, "notes": [f"{trial.unit}: {reason}"]}, points_frame([])
    about["seconds of training"] = round(time.perf_counter() - started, 2)
    about["parameters"] = sum(weight.numel() for weight in model.parameters())
    source = Model(model, trial.arm, trial.revision, step=experiment.recipe.steps)
    attends = experiment.attention not in WITHOUT_ATTENTION
    asked = [each.name for each in choose(MEASURES) if attends or each.at != "attention"]
    rows: list[Row] = []
    points, notes = points_frame([]), list[str]()
    with training.precision():
        seen = observe(source, probe_of(lesson), measures=asked, counterfactual=attends)
        own = answers(training) if trial.weighed else {"loss": training.held_loss()}
        rows += [*seen.rows(run), *own_rows(own, seen, run)]
        if trial.weighed and attends:
            weighed, points, notes = weigh_trial(source, lesson)
            rows += weighed
        if trial.probe:
            found = probes.probe(model, questions_of(trial.probe, experiment))
            at = (run, source.name, source.revision, source.step, "layer")
            rows += [Row.at(*at, layer, None, probes.MEASURE, reading) for layer, reading in found.items()]
    about["notes"] = [*seen.notes(), *notes]
    return [trial.placed(row, run) for row in rows], {**seen.known(), **about}, points


def answers(training: Training) -> dict[str, float]:
    """The loss on what is held out; of tokens the perplexity with it, of classes the share that is right."""
    lesson, held = training.lesson, training.lesson.held
    loss = training.held_loss()
    if lesson.loss is token_loss:
        return {"loss": loss, "perplexity": math.exp(loss)}
    if not lesson.pooled:
        return {"loss": loss}
    right = 0
    with at_rest(training.model):
        for start in range(0, len(held), AT_ONCE):
            inputs, targets = (x[start : start + AT_ONCE] for x in (held.inputs, held.targets))
            given = training.model(inputs.to(training.device)).argmax(-1).cpu()
            right += int((given == targets).sum())
    return {"loss": loss, "accuracy": right / len(held)}


def weigh_trial(source: Model, lesson: Lesson) -> tuple[list[Row], pd.DataFrame, list[str]]:
    """Spectra of all heads and where they look on what is held out: rows, points of pictures, remarks."""
    length, said = lesson.length, list[str]()
    at = (source.name, source.revision, source.step)
    rows: list[Row] = []
    try:
        weights = open_weights(source)
        found = weigh_heads(weights, length, 0, lambda site, why: said.append(f"{site}: {why}"))
        heads = [each for each in found if each is not None]
        rows += rows_of_heads(source, heads)
        part = data_part(source, weights, probe_of(lesson), length=length)
    except IsoscopeError as reason:
        return rows, points_frame([]), [*said, str(reason)]
    rows += [row for row in part.rows if row.kind == KIND]
    for layer, name, reading in propagation_rows(part.points):
        rows.append(Row.at("", *at, KIND, layer, None, name, reading))
    drawn = points_frame(one for one in head_points(heads) if one.picture != "propagation")
    points = pd.concat([drawn, part.points], ignore_index=True).astype(drawn.dtypes)
    return rows, points, [*said, *part.localisation]


def rows_of_heads(source: Model, heads: Iterable[HeadsWeighed | None]) -> Iterator[Row]:
    """What the weights of queries and keys say alone, of every layer and head."""
    at = (source.name, source.revision, source.step)
    for each in filter(None, heads):
        for measure in of_weights(KIND):
            for head, reading in enumerate(cast(tuple[Reading, ...], measure.read(each.record)), start=-1):
                where = (each.site.kind, each.site.layer, None if head < 0 else head)
                yield Row.at("", *at, *where, measure.name, reading)


def propagation_rows(points: pd.DataFrame) -> Iterator[tuple[int, str, Reading]]:
    """Of every layer the mean of ρ(t), and how far it varies with t: means over heads."""
    mine = points[(points["picture"] == "propagation") & (points["series"] == "predicted")]
    for layer, own in mine.groupby("layer"):
        each = own.groupby("head")["y"]
        found = {"propagation_mean": each.mean(), "propagation_range": each.max() - each.min()}
        for name, values in found.items():
            yield int(str(layer)), name, Reading(float(values.mean()), len(values))


def told_besides() -> Told:
    """What a page tells of the readings that no measure of `MEASURES` has."""
    told: Told = {measure.name: measure.explanation() for measure in of_weights(KIND)}
    told |= {name: words for name, words in EXPLANATIONS.items() if words["family"] == "localisation"}
    plain = explained({"perplexity": 0.0, "accuracy": 0.0})
    shared = {**EXPLANATIONS["trace_on_data"], "null": "none", "range": "0 to 1"}
    told |= {
        "perplexity": {**plain["perplexity"], "formula": "exp(loss)", "says": "e to the power of the loss."},
        "accuracy": {
            **plain["accuracy"], "says": "The share of held-out examples that it answers rightly.",
        },
        "propagation_mean": {
            **shared, "title": "mean of ρ(t)", "formula": "mean over t of ρ(t), then over heads",
            "says": "From how many of all positions signal passes, as W and the data's increments predict.",
        },
        "propagation_range": {
            **shared, "title": "range of ρ(t)", "formula": "max ρ(t) − min ρ(t), mean over heads",
            "says": "How localised attention is predicted to be: 0 where signal passes from everywhere "
            "alike.",
        },
    }  # fmt: skip
    return {**told, probes.MEASURE: probes.EXPLANATION}


def questions_of(address: str, experiment: Experiment) -> probes.Questions:
    """What a probe asks of an experiment, read once for all trials."""
    return _questions(address, experiment.task, experiment.data, experiment.length)


@lru_cache(maxsize=1)
def _questions(address: str, task: str, data: str, length: int) -> probes.Questions:
    lesson = lesson_of(Experiment(task=task, data=data, length=length))
    return probes.questions(address, task, data, length, lesson)
