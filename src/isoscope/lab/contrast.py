"""Arms against each other at the same sharpness: attention × norm × penalty, entropies and seeds.

Every arm is trained towards several entropies of its attention, by a penalty, for the same number of steps
from every seed. A trial is a unit of a run folder, so that a contrast is taken up trial by trial, grows by
more arms and seeds, and may be spread over sittings and machines. What it says is in contrast_fit.py.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import torch

from isoscope.errors import IsoscopeError
from isoscope.lab.experiment import Experiment, probe_of
from isoscope.lab.tasks.base import Lesson
from isoscope.lab.training import Diverged, Training
from isoscope.measures.table import choose
from isoscope.models.source import Model
from isoscope.results.schema import Row, Run
from isoscope.results.store import RunFolder, open_run
from isoscope.run.observe import observe
from isoscope.run.own import OWN, explained, own_rows
from isoscope.run.provenance import new_run

MEASURES = (
    "mean_cosine_between",
    "mean_cosine",
    "relative_drift",
    "mean_norm",
    "isoscore",
    "participation_ratio_split",
    "effective_rank",
    "rank_residual",
    "normalised_entropy",
    "attention_mass",
    "largest_weight",
    "score_std",
    "largest_score",
    "sink_mass",
    "drift_share",
    "normalised_entropy_without_drift",
    "query_relative_drift",
    "key_relative_drift",
    "query_key_cosine",
)
WITHOUT_ATTENTION = ("convolution",)  # controls: there is no entropy to drive them to
ENTROPIES = (0.35, 0.75)  # where the least and the largest target is, unless they are listed
STRENGTH = 10.0
NO_PENALTY = "none"
_APART = ("attention", "norm", "penalty", "checkpoints", "seed")  # knobs of an arm, or of no trial

Answer = tuple[list[Row], dict[str, object]]


@dataclass(frozen=True)
class Trial:
    """One training: an arm, the entropy it is driven to (None: it has no attention) and a seed.

    `place` is the arm's among those asked for, so that a page shows them in that order.
    """

    arm: str
    experiment: Experiment
    entropy: float | None
    place: int

    @property
    def revision(self) -> str:
        """What its rows call it beside the arm."""
        aim = "" if self.entropy is None else f"entropy {self.entropy:g}, "
        return f"{aim}seed {self.experiment.recipe.seed}"

    @property
    def unit(self) -> str:
        """What a run folder calls it."""
        return f"{self.arm}, {self.revision}"


@dataclass(frozen=True)
class Contrast:
    """What is compared: arms by name (the first is the reference), at these entropies, from these seeds."""

    arms: dict[str, Experiment]
    entropies: tuple[float, ...]
    seeds: int
    strength: float = STRENGTH

    @property
    def reference(self) -> str:
        """The arm that the others are held against."""
        return next(iter(self.arms))

    def trials(self) -> list[Trial]:
        """All trials: seed by seed, so that what is done first can be compared first."""
        found = []
        for seed, (place, (name, arm)) in product(range(self.seeds), enumerate(self.arms.items())):
            own = replace(arm, recipe=replace(arm.recipe, seed=seed))
            if arm.attention in WITHOUT_ATTENTION:
                found.append(Trial(name, own, None, place))
            else:
                found += [Trial(name, self._driven(own, aim), aim, place) for aim in self.entropies]
        return found

    def _driven(self, arm: Experiment, aim: float) -> Experiment:
        driven = f"entropy={self.strength:g},target={aim:g}"
        return replace(arm, penalty="+".join(filter(None, [arm.penalty, driven])))


def contrast(
    base: Experiment,
    attention: Sequence[str],
    norm: Sequence[str],
    penalty: Sequence[str],
    entropies: Sequence[float],
    seeds: int,
    strength: float = STRENGTH,
) -> Contrast:
    """Every attention with every norm and every penalty ("none" is without), otherwise like `base`."""
    arms = {}
    for one, two, three in product(attention, norm, penalty):
        none = three in ("", NO_PENALTY)
        words = [one, two if len(norm) > 1 or two != "pre" else "", "" if none else three]
        arms[", ".join(filter(None, words))] = replace(
            base, attention=one, norm=two, penalty="" if none else three
        )
    if len(arms) < 2:
        raise IsoscopeError("a contrast has two arms or more; name them as in --attention softmax,qk-norm.")
    if len(set(entropies)) < 2 and set(attention) - set(WITHOUT_ATTENTION):
        raise IsoscopeError("a line needs two entropies or more; write --entropies 3, or a list as .4,.6.")
    return Contrast(arms, tuple(sorted(set(entropies))), seeds, strength)


def parse_entropies(written: str) -> tuple[float, ...]:
    """A number of targets, spread evenly, or a list of them.

    >>> parse_entropies("3"), parse_entropies(".4,.6")
    ((0.35, 0.55, 0.75), (0.4, 0.6))
    """
    words = [word.strip() for word in written.split(",") if word.strip()]
    low, high = ENTROPIES
    if len(words) == 1 and words[0].isdecimal() and int(words[0]) > 1:
        count = int(words[0])
        return tuple(round(low + (high - low) * i / (count - 1), 4) for i in range(count))
    try:
        found = tuple(map(float, words))
    except ValueError:
        found = ()
    if len(found) < 2 or not all(0 < each < 1 for each in found):
        raise IsoscopeError(
            "--entropies is how many, 2 or more, or a list of normalised entropies between 0 and 1 such as "
            f".4,.6; got '{written}'."
        )
    return found


def parse_share(written: str) -> tuple[int, int]:
    """The share of the trials that is made: i/n is every nth, from the ith on, the first being 0.

    >>> parse_share("2/3")
    (2, 3)
    """
    first, _, count = written.partition("/")
    if not (first.isdecimal() and count.isdecimal() and int(first) < int(count)):
        raise IsoscopeError(f"--only is i/n with i from 0 to n − 1, such as 0/4; got '{written}'.")
    return int(first), int(count)


def open_contrast(asked: Contrast, out: Path) -> RunFolder:
    """Its run folder. What fixes a trial must be the same there; arms, entropies and seeds may be others."""
    return open_run(out, run_of(asked))


def run_of(asked: Contrast) -> Run:
    """What is asked of every trial alike."""
    base = asked.arms[asked.reference]
    fixed = {name: value for name, value in base.fixed().items() if name not in _APART}
    question = {**fixed, **_lesson(base.task, base.data, base.length).facts}
    question |= {"reference": asked.reference, "strength": asked.strength, "measured": list(MEASURES)}
    run = new_run("contrast", f"arms of attention on {base.task}", question, choose(MEASURES))
    loss = {**explained({"loss": 0.0})["loss"], "says": "The loss on what is held out, after the last step."}
    return replace(run, measures={**run.measures, "loss": loss})


def make(
    asked: Contrast, folder: RunFolder, *, device: str, share: tuple[int, int] = (0, 1), parallel: int = 1
) -> Iterator[tuple[int, int]]:
    """Make the trials of this share that the folder has not; gives how many are done, and of how many."""
    first, count = share
    mine = [trial for number, trial in enumerate(asked.trials()) if number % count == first]
    left = [trial for trial in mine if not folder.has(trial.unit)]
    yield len(mine) - len(left), len(mine)
    for done, (trial, (rows, facts)) in enumerate(_answers(left, folder.run.id, device, parallel), start=1):
        folder.write(trial.unit, rows, facts)
        yield len(mine) - len(left) + done, len(mine)


def _answers(trials: Sequence[Trial], run: str, device: str, parallel: int) -> Iterable[tuple[Trial, Answer]]:
    if parallel == 1 or len(trials) < 2:
        yield from ((trial, try_(trial, run, device)) for trial in trials)
        return
    threads = max(1, torch.get_num_threads() // parallel)
    workers = ProcessPoolExecutor(
        parallel, get_context("spawn"), initializer=torch.set_num_threads, initargs=(threads,)
    )
    try:
        waited = {workers.submit(try_, trial, run, device): trial for trial in trials}
        yield from ((waited[each], each.result()) for each in as_completed(waited))
    except BrokenProcessPool as reason:
        raise IsoscopeError(
            "a process of --parallel ended by itself, perhaps for want of memory; what was finished is kept, "
            "take fewer and run the same command again."
        ) from reason
    finally:
        workers.shutdown(cancel_futures=True)


def try_(trial: Trial, run: str, device: str) -> Answer:
    """Train one arm and measure it after the last step; a training that went wrong is a row of NaN."""
    experiment = trial.experiment
    lesson = _lesson(experiment.task, experiment.data, experiment.length)
    model = experiment.build(lesson).to(device)
    training = Training(model, lesson, experiment.recipe, experiment.penalties())
    about: dict[str, object] = {"arm": trial.arm, "place": trial.place, "device": _called(device)}
    about["trained"] = asdict(experiment)
    started = time.perf_counter()
    try:
        for _ in training.steps():
            pass
    except Diverged as reason:
        steps = experiment.recipe.steps
        lost = Row(run, trial.arm, trial.revision, steps, OWN, None, None, "loss", float("nan"), 1)
        words = f"{trial.unit}: {reason}"
        return [replace(lost, note="the training went wrong")], {**about, "notes": [words]}
    about["seconds of training"] = round(time.perf_counter() - started, 2)
    about["parameters"] = sum(weight.numel() for weight in model.parameters())
    source = Model(model, trial.arm, trial.revision, step=experiment.recipe.steps)
    attends = experiment.attention not in WITHOUT_ATTENTION
    asked = [each.name for each in choose(MEASURES) if attends or each.at != "attention"]
    with training.precision():
        seen = observe(source, probe_of(lesson), measures=asked, counterfactual=attends)
        rows = [*seen.rows(run), *own_rows({"loss": training.held_loss()}, seen, run)]
    return rows, {**seen.known(), **about}


@lru_cache(maxsize=1)
def _lesson(task: str, data: str, length: int) -> Lesson:
    """Read once for all trials."""
    return Experiment(task=task, data=data, length=length).lesson()


def _called(device: str) -> str:
    return torch.cuda.get_device_name(device) if device.startswith("cuda") else device
