"""An impact as a run: what is asked, made ready, and judged layer by layer into a folder.

A unit is one layer, or the perplexity of a language model. Which layers are asked is no part of the question:
a folder grows by more of them. Everything is read and held apart before a folder is made, so that what is
refused leaves none behind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike

import torch

from isoscope.errors import IsoscopeError, refuse_sizes
from isoscope.models.source import Model, fingerprint, load
from isoscope.repair.before_after import SHOWN
from isoscope.repair.fit.kinds import parse_repairs
from isoscope.repair.impact.files import read_texts
from isoscope.repair.impact.impact import REPAIRS, judge, known, refuse_too_many
from isoscope.repair.impact.overlap import Split, hold_apart
from isoscope.repair.impact.perplexity import Spoken, judge_spoken, open_spoken
from isoscope.repair.impact.states import ENDS, Encoded, Inputs, encode, open_inputs
from isoscope.repair.impact.tasks import Task, hashed, labelled, pairs, some, sought
from isoscope.repair.impact.words import explanations
from isoscope.results.place import default_out
from isoscope.results.run import Run
from isoscope.results.store import RunFolder, open_run
from isoscope.run.observe.observe import describe
from isoscope.run.provenance import new_run
from isoscope.run.telling import SILENT, Progress, Telling
from isoscope.sites import Site

SPOKEN = "perplexity"


@dataclass(frozen=True)
class Question:
    """What is asked: a model, tasks by their files, what repairs are fitted on, and which."""

    model: str
    pairs: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    retrieve: tuple[str, ...] = ()
    text: str | None = None
    fit: str | None = None
    recipes: str = "centre"
    layers: str = ENDS
    pool: str = "mean"
    readers: tuple[str, ...] = ("standardised",)
    limit: int | None = None
    sequences: int = 64
    max_length: int | None = None
    batch_size: int = 32
    seed: int = 0
    leave_out: bool = False

    def tasks(self) -> list[Task]:
        """The tasks, each under a name of its own."""
        options = (self.limit, self.seed)
        made: list[Task] = [pairs(file, *options) for file in self.pairs]
        made += [labelled(file, *options, self.readers) for file in self.labels]
        made += [sought(file, *options) for file in self.retrieve]
        if not made and self.text is None:
            raise IsoscopeError("there is no task: give --pairs, --labels, --retrieve or --text.")
        names = [task.name for task in made]
        numbers = [f"-{names[:at].count(name) + 1}" for at, name in enumerate(names)]
        ends = [number if names.count(name) > 1 else "" for name, number in zip(names, numbers, strict=True)]
        return [replace(task, name=task.name + end) for task, end in zip(made, ends, strict=True)]

    def fitted(self, tasks: Sequence[Task]) -> list[str]:
        """The texts that repairs are fitted on."""
        found = read_texts(self.fit) if self.fit else [text for task in tasks for text in task.fitted]
        if not found:
            raise IsoscopeError("repairs are fitted on other texts than they are judged on; give --fit.")
        return some(list(dict.fromkeys(found)), self.limit, self.seed)


@dataclass(frozen=True, eq=False)
class Ready:
    """What was asked, read: repairs by name, the split, the model and its inputs, where there are some."""

    question: Question
    repairs: tuple[str, ...]
    model: Model
    split: Split
    inputs: Inputs | None
    spoken: Spoken | None

    @property
    def texts(self) -> list[str]:
        """All texts that vectors are made of."""
        return list(self.inputs.keys) if self.inputs else []

    @property
    def sites(self) -> tuple[Site, ...]:
        """The layers that are asked for."""
        return self.inputs.sites if self.inputs else ()

    def left(self, folder: RunFolder) -> list[str]:
        """The units that are not in the folder yet."""
        units = [*map(str, self.sites), *([SPOKEN] if self.spoken else [])]
        return [unit for unit in units if not folder.has(unit)]


def prepare(question: Question, device: str | None = None) -> Ready:
    """Read files and model, and refuse what cannot be judged."""
    repairs, tasks = parse_repairs(question.recipes), question.tasks()
    split = Split(question.fitted(tasks), tasks) if tasks else Split((), ())
    if tasks:
        split = hold_apart(split, leave_out=question.leave_out)
    model = load(question.model, device=device)
    inputs = None
    if tasks:
        inputs = open_inputs(
            model, split.texts, layers=question.layers, pool=question.pool, max_length=question.max_length,
            batch_size=question.batch_size
        )  # fmt: skip
        split = hold_apart(split, leave_out=question.leave_out, keys=inputs.keys)
        refuse_too_many(repairs, inputs.widths())
    spoken = None
    if question.text is not None:
        options = (question.sequences, question.max_length, question.batch_size)
        spoken = open_spoken(model, question.text, question.fit, *options)
        refuse_too_many(repairs, [spoken.speaker.weight.shape[1]])
    return Ready(question, repairs, model, split, inputs, spoken)


def run_of(made: Ready) -> Run:
    """The run that this is."""
    facts, asked = made.model.facts(), made.question
    question: dict[str, object] = {key: facts[key] for key in ("model", "revision", "dtype")}
    question["weights"] = fingerprint(made.model.module)
    question["tasks"] = {task.name: task.digest() for task in made.split.tasks}
    source = asked.fit or "the fitting part of --labels"
    question["fit"] = {"data": source, "texts": hashed(made.split.fitted)}
    question |= {"repairs": list(made.repairs), "pool": asked.pool, "seed": asked.seed}
    question |= {"limit": asked.limit, "readers": list(asked.readers), "max_length": asked.max_length}
    if made.spoken is not None:
        question["text"] = {"judged": made.spoken.judged.facts(), "fitted": made.spoken.fitted.facts()}
    cloud = describe(torch.eye(3), measures=SHOWN)
    run = new_run("impact", made.model.name, question, cloud.measures)
    scores = [(score, task.name) for task in made.split.tasks for score in task.named]
    scores += [("hub_skewness", ""), ("anti_hubs", "")]
    scores += [("perplexity", made.spoken.name)] if made.spoken else []
    return replace(run, measures={**run.measures, **explanations(scores)})


def vectors_of(made: Ready, folder: RunFolder, progress: Progress | None = None) -> Encoded | None:
    """The vectors of all texts, where a layer is left to be judged."""
    left = [site for site in made.sites if not folder.has(str(site))]
    if made.inputs is None or not left:
        return None
    return encode(replace(made.inputs, sites=tuple(left)), progress)


def make(made: Ready, vectors: Encoded | None, folder: RunFolder) -> Iterator[tuple[int, int]]:
    """Judge what is left, a unit at a time; gives how many repairs are done, of how many."""
    left = made.left(folder)
    each, seed, revision = len(made.repairs) + 1, made.question.seed, made.model.revision
    for place, unit in enumerate(left):
        yield place * each, len(left) * each
        if unit == SPOKEN:
            assert made.spoken is not None
            site, found = Site("head"), judge_spoken(made.spoken, made.repairs, seed)
            split = Split((), ())
        else:
            assert vectors is not None
            site = next(site for site in made.sites if str(site) == unit)
            found, split = judge(made.split, vectors, site, made.repairs, seed=seed), made.split
        rows = [row for one in found for row in one.rows(folder.run.id, revision, site, seed)]
        folder.write(unit, rows, known(found, split, site))
    yield len(left) * each, len(left) * each


def impact(
    model: str | PathLike[str],
    *, pairs: Sequence[str] = (), labels: Sequence[str] = (), retrieve: Sequence[str] = (),
    text: str | None = None, fit: str | None = None, repairs: str = REPAIRS, layers: str = ENDS,
    pool: str = "mean", readers: Sequence[str] = ("standardised",), limit: int | None = 10_000,
    sequences: int = 64, max_length: int | None = None, batch_size: int = 32, seed: int = 0,
    leave_out: bool = False, device: str | None = None, out: str | PathLike[str] | None = None,
    telling: Telling = SILENT
) -> RunFolder:  # fmt: skip
    """Judge repairs by tasks, layer by layer, and keep the rows in a run folder.

    Tasks are files: sentence `pairs` with scores, labelled texts, queries with documents to `retrieve`, and
    `text` whose perplexity is judged. `repairs` are fitted on `fit`; with `leave_out`, texts that are judged
    are not fitted on. Without `out` the folder is `runs/impact-NAME-ID`. What is there is not judged again.
    """
    refuse_sizes(limit, max_length, batch_size)
    files = (tuple(pairs), tuple(labels), tuple(retrieve), text, fit)
    sizes = (limit, sequences, max_length, batch_size)
    question = Question(
        str(model), *files, repairs, layers, pool, tuple(readers), *sizes, seed=seed, leave_out=leave_out
    )
    made = prepare(question, device)
    run = run_of(made)
    folder = open_run(out or default_out(f"impact {made.model.name}", run.id), run)
    if not made.left(folder):
        telling.note(f"{folder.path} has these rows already; nothing is judged again")
        return folder
    with telling.bar(f"reading {len(made.texts)} texts") as progress:
        vectors = vectors_of(made, folder, progress)
    with telling.bar("judging repairs") as progress:
        for done, total in make(made, vectors, folder):
            progress(done, total)
    return folder
