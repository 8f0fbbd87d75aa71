"""What an experiment of a paper may use: sizes, seeds, a device, data, models that are trained once.

A model of the lab is trained into MODELS/DIGEST, a run folder that every claim and paper finds, and goes on
where it was stopped. A training computes with one thread, so that rows do not say how many ran side by side;
one that goes wrong costs its own arm and seed, not the claim.
"""

from __future__ import annotations

import hashlib
import json
import math
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pandas as pd
import torch
from safetensors.torch import load_file

from isoscope.errors import IsoscopeError
from isoscope.lab.processes import Answer, Item, in_processes
from isoscope.lab.train.experiment import USUAL, Experiment, Underway, lesson_of
from isoscope.lab.train.training import Recipe
from isoscope.measures.table import choose
from isoscope.models.source import Model, load
from isoscope.papers.claims import failed, of_seed
from isoscope.papers.scales import Scale, Size
from isoscope.results.row import frame
from isoscope.results.store import open_run, read_run
from isoscope.results.trajectory import trajectory
from isoscope.run.observe.observe import observe
from isoscope.run.provenance import new_run
from isoscope.run.telling import Progress
from isoscope.sweeps.work.threads import so_many_threads
from isoscope.sweeps.work.worker import end_with_parent

KINDS = ("text", "images", "sound")
_DATA = {"images": "images", "frames": "sound"}  # of a task; the others learn from text
EMBEDDED = "embedded"
LONGEST = {"frames": 64}
"""Of a task, what a sequence may have at most: a spoken digit is .6 s, 64 frames, and a tone has 98."""


@dataclass(frozen=True)
class Trained:
    """A training that a claim asks for: its name and coordinates in rows, and its run folder."""

    name: str
    experiment: Experiment
    folder: Path
    arm: str
    about: str = ""
    setting: float = math.nan

    @property
    def seed(self) -> int:
        """The seed of its recipe."""
        return self.experiment.recipe.seed

    def named(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Rows with the name and the coordinates of this training."""
        found = of_seed(rows, self.name, self.seed)
        return found.assign(arm=self.arm, about=self.about, setting=self.setting)

    def read(
        self, measures: Collection[str] | None = None,
        *, heads: bool | None = False, steps: Literal["last", "all"] | Collection[int] = "last"
    ) -> pd.DataFrame:  # fmt: skip
        """Its rows at these steps; `heads` False is sites only, True heads only, None both."""
        of = trajectory(read_run(self.folder))
        only = of.steps[-1:] if steps == "last" else None if steps == "all" else steps
        return self.named(of.rows(measures, heads=heads, only=only).drop(columns="unit"))

    def at(self, step: int, device: str) -> Model:
        """Its model with the weights of a step."""
        module = self.experiment.build(lesson_of(self.experiment))
        module.load_state_dict(load_file(self.folder / "checkpoints" / f"step-{step:06d}.safetensors"))
        return Model(module.to(device).eval(), self.name, step=step)


@dataclass(frozen=True)
class Workshop:
    """Where and with what claims are tried. `data` are addresses by kind; those not given are embedded."""

    scale: Scale
    models: Path
    seeds: int
    device: str = "cpu"
    data: Mapping[str, str] = field(default_factory=dict)
    parallel: int = 1
    progress: Progress = lambda done, total: None

    def __post_init__(self) -> None:
        for kind in self.data:
            if kind not in KINDS:
                raise IsoscopeError(f"--data is by kind, {', '.join(KINDS)}; got '{kind}'.")

    def address(self, kind: str) -> str:
        """The data of a kind: text, images or sound."""
        return self.data.get(kind, EMBEDDED)

    def experiment(
        self, task: str,
        *, seed: int = 0, size: Literal["arm", "trajectory"] | Size = "arm", model: str = "transformer",
        norm: str | None = None, penalty: str = ""
    ) -> Experiment:  # fmt: skip
        """A training of the lab at this scale's size; change more of it with `dataclasses.replace`."""
        own = size if isinstance(size, Size) else getattr(self.scale, size)
        patches = task == "images" and model == "transformer"
        rate = min(own.rate, self.scale.image_rate) if patches else own.rate
        narrow = self.scale.bfloat16 and self.device.startswith("cuda")
        recipe = Recipe(own.steps, own.batch_size, rate, seed=seed, bfloat16=narrow)
        length, data = min(own.length, LONGEST.get(task, own.length)), self.address(_DATA.get(task, "text"))
        shape = (own.layers, own.width, own.heads, length, data, own.checkpoints, recipe)
        return Experiment(task, model, "softmax", norm or USUAL[model], penalty, *shape)

    def training(
        self, name: str, experiment: Experiment, *, arm: str = "", about: str = "", setting: float = math.nan
    ) -> Trained:
        """A training under this name; its rows have the name as their arm unless another is given."""
        return Trained(name, experiment, self.models / experiment.digest, arm or name, about, setting)

    def train(self, asked: Iterable[Trained]) -> tuple[list[Trained], pd.DataFrame]:
        """The trainings that came to their end, made side by side, and a row `failed` for each other."""
        wanted = list(asked)
        left = list({each.folder: each for each in wanted if not self._at_end(each.experiment)}.values())
        reasons = self.side_by_side(_train, [(each.experiment, each.folder, self.device) for each in left])
        lost = {each.folder: why for each, why in zip(left, reasons, strict=True) if why}
        ended = [each for each in wanted if each.folder not in lost]
        rows = [each.named(failed(each.name, lost[each.folder])) for each in wanted if each.folder in lost]
        return ended, pd.concat([frame([]), *rows], ignore_index=True)

    def side_by_side(self, function: Callable[[Item], Answer], items: Iterable[Item]) -> list[Answer]:
        """The answers of a function of a module to items, in their order, so many at once in processes."""
        asked, answers = list(items), dict[int, Answer]()
        self.progress(0, len(asked))
        with so_many_threads(1):
            for place, answer in in_processes(function, asked, self.parallel, _begin):
                answers[place] = answer
                self.progress(len(answers), len(asked))
        return [answers[place] for place in range(len(asked))]

    def observed(self, name: str, measures: Sequence[str]) -> pd.DataFrame:
        """Rows of a public model of the zoo, measured once; one that cannot be had is a row `failed`."""
        question = {"public": name, "checkpoint": "", "measured": list(measures), **dict(self.data)}
        folder = self.models / f"public-{digest_of(question)}"
        if not is_kept(folder):
            try:
                model = load(name, device=self.device)
                seen = observe(model, self.address(model.takes), measures=measures)
            except IsoscopeError as reason:
                return failed(name, str(reason))
            kept = open_run(folder, new_run("measure", name, question, choose(measures)))
            kept.write(name, seen.rows(kept.run.id), seen.known())
        return read_run(folder).frame().assign(model=name, revision="")

    def all_observed(self, names: Sequence[str], measures: Sequence[str]) -> pd.DataFrame:
        """Rows of several public models."""
        parts = []
        for number, name in enumerate(names):
            self.progress(number, len(names))
            parts.append(self.observed(name, measures))
        return pd.concat(parts, ignore_index=True)

    def along_training(self, name: str) -> list[Trained]:
        """A language model by character that is followed along its training, of every seed."""
        made = (self.experiment("characters", seed=seed, size="trajectory") for seed in range(self.seeds))
        return [self.training(name, each) for each in made]

    def _at_end(self, experiment: Experiment) -> bool:
        """Whether the last weights are kept: they are written after the rows of that step."""
        last = f"step-{experiment.recipe.steps:06d}.safetensors"
        return (self.models / experiment.digest / "checkpoints" / last).exists()


def digest_of(question: Mapping[str, object]) -> str:
    """Twelve hex digits of a question."""
    return hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()[:12]


def is_kept(folder: Path) -> bool:
    """Whether there is a run folder with something in it."""
    return (folder / "run.json").exists() and bool(read_run(folder).units())


def parse_data(written: str) -> dict[str, str]:
    """Addresses by kind.

    >>> parse_data("text=a.txt, images=pictures")
    {'text': 'a.txt', 'images': 'pictures'}
    """
    found = {}
    for part in filter(None, (each.strip() for each in written.split(","))):
        kind, equals, address = part.partition("=")
        if not equals or kind not in KINDS or not address:
            raise IsoscopeError(
                f"--data is text=FILE,images=FOLDER,sound=FOLDER, each where there is one; got '{part}'."
            )
        found[kind] = address
    return found


def _begin() -> None:
    """A process computes with one thread and ends with its parent: the next run may train the same models."""
    torch.set_num_threads(1)
    threading.Thread(target=end_with_parent, daemon=True).start()


def _train(asked: tuple[Experiment, Path, str]) -> str:
    """Train to the end; the reason where that cannot be, else nothing."""
    experiment, folder, device = asked
    try:
        # what an alarm is about is what the claim measures: nobody hears of it
        underway = Underway(experiment, folder, device=device, on_alarm=lambda alarm: None)
        with underway.monitor:
            underway.go_on()
    except IsoscopeError as reason:
        return str(reason)
    except (RuntimeError, OSError) as reason:  # a GPU without memory, a disk without room
        return f"{type(reason).__name__}: {str(reason).splitlines()[0] if str(reason) else 'no reason given'}"
    return ""
