"""An impact as a run: what is asked, made ready, and judged layer by layer into a folder.

A unit is one layer, or the perplexity of a language model. Which layers are asked is no part of the question:
a folder grows by more of them. Everything is read and held apart before a folder is made, so that what is
refused leaves none behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike

import torch

from isoscope.errors import IsoscopeError, refuse_sizes
from isoscope.models.source import Model, fingerprint, load
from isoscope.repair.fit.kinds import parse_repairs
from isoscope.repair.fit.sample import SHOWN
from isoscope.repair.impact.files import read_texts
from isoscope.repair.impact.impact import REPAIRS, Judged, judge, known, refuse_too_many
from isoscope.repair.impact.overlap import Split, hold_apart
from isoscope.repair.impact.perplexity import Spoken, judge_spoken, open_spoken
from isoscope.repair.impact.states import ENDS, encode, open_inputs
from isoscope.repair.impact.tasks import Task, hashed, labelled, some, sought
from isoscope.repair.impact.tasks import pairs as paired
from isoscope.repair.impact.words import explanations
from isoscope.results.place import Several, default_out, several
from isoscope.results.run import Run
from isoscope.results.store import RunFolder, open_run
from isoscope.run.observe.observe import describe
from isoscope.run.provenance import new_run
from isoscope.run.telling import SILENT, Telling
from isoscope.sites import Site

SPOKEN = "perplexity"
_NOTHING = Split((), ())


def impact(
    model: str | PathLike[str],
    *, pairs: Several = (), labels: Several = (), retrieve: Several = (),
    text: str | None = None, fit: str | None = None, repairs: str = REPAIRS, layers: str = ENDS,
    pool: str = "mean", readers: Several = ("standardised",), limit: int | None = 10_000,
    sequences: int = 64, max_length: int | None = None, batch_size: int = 32, seed: int = 0,
    leave_out: bool = False, device: str | None = None, out: str | PathLike[str] | None = None,
    telling: Telling = SILENT,
) -> RunFolder:  # fmt: skip
    """Judge repairs by tasks, layer by layer, and keep the rows in a run folder.

    Tasks are files, one or several of a kind: sentence `pairs` with scores, labelled texts, queries with
    documents to `retrieve`, and `text` whose perplexity is judged. `repairs` are fitted on `fit`; with
    `leave_out`, texts that are judged are not fitted on. Without `out` the folder is `runs/impact-NAME-ID`.
    What is there is not judged again.
    """
    refuse_sizes(limit, max_length, batch_size)
    recipes, split, inputs, spoken = parse_repairs(repairs), _NOTHING, None, None
    tasks: list[Task] = [paired(file, limit, seed) for file in several(pairs)]
    tasks += [labelled(file, limit, seed, several(readers)) for file in several(labels)]
    tasks += [sought(file, limit, seed) for file in several(retrieve)]
    if not tasks and text is None:
        raise IsoscopeError("there is no task: give --pairs, --labels, --retrieve or --text.")
    if tasks:
        fitted = read_texts(fit) if fit else [text for task in tasks for text in task.fitted]
        if not fitted:
            raise IsoscopeError("repairs are fitted on other texts than they are judged on; give --fit.")
        fitted = some(list(dict.fromkeys(fitted)), limit, seed)
        split = hold_apart(Split(fitted, _apart(tasks)), leave_out=leave_out)
    loaded = load(str(model), device=device)
    if tasks:
        inputs = open_inputs(loaded, split.texts, layers, pool, max_length, batch_size)
        split = hold_apart(split, leave_out=leave_out, keys=inputs.keys)
        refuse_too_many(recipes, [inputs.found.width(site) for site in inputs.sites])
    if text is not None:
        spoken = open_spoken(loaded, text, fit, sequences, max_length, batch_size)
        refuse_too_many(recipes, [spoken.speaker.weight.shape[1]])
    question: dict[str, object] = {"repairs": list(recipes), "pool": pool, "seed": seed, "limit": limit}
    question |= {"readers": several(readers), "max_length": max_length}
    run = _run_of(loaded, split, spoken, fit, question)
    folder = open_run(out or default_out(f"impact {loaded.name}", run.id), run)
    left = [site for site in (inputs.sites if inputs else ()) if not folder.has(str(site))]
    speaks = spoken is not None and not folder.has(SPOKEN)
    if not left and not speaks:
        telling.note(f"{folder.path} has these rows already; nothing is judged again")
        return folder

    def write(unit: str, site: Site, found: list[Judged], split: Split) -> None:
        rows = [row for one in found for row in one.rows(run.id, loaded.revision, site, seed)]
        folder.write(unit, rows, known(found, split, site))

    vectors = None
    with telling.bar(f"reading {len(inputs.keys) if inputs else 0} texts") as progress:
        if inputs is not None and left:
            vectors = encode(replace(inputs, sites=tuple(left)), progress)
    each = len(recipes) + 1
    total = (len(left) + speaks) * each
    with telling.bar("judging repairs") as progress:
        for place, site in enumerate(left):
            progress(place * each, total)
            assert vectors is not None
            write(str(site), site, judge(split, vectors, site, recipes, seed=seed), split)
        progress(len(left) * each, total)
        if spoken is not None and speaks:
            write(SPOKEN, Site("head"), judge_spoken(spoken, recipes, seed), _NOTHING)
            progress(total, total)
    return folder


def _apart(tasks: Sequence[Task]) -> list[Task]:
    """The tasks, each under a name of its own."""
    names = [task.name for task in tasks]
    ends = [f"-{names[:at].count(name) + 1}" for at, name in enumerate(names)]
    again = zip(tasks, names, ends, strict=True)
    return [replace(task, name=name + end) if names.count(name) > 1 else task for task, name, end in again]


def _run_of(
    model: Model, split: Split, spoken: Spoken | None, fit: str | None, asked: dict[str, object]
) -> Run:
    facts = model.facts()
    question: dict[str, object] = {key: facts[key] for key in ("model", "revision", "dtype")}
    question["weights"] = fingerprint(model.module)
    question["tasks"] = {task.name: task.digest() for task in split.tasks}
    source = fit or "the fitting part of --labels"
    question |= {"fit": {"data": source, "texts": hashed(split.fitted)}, **asked}
    scores = [(score, task.name) for task in split.tasks for score in task.named]
    scores += [("hub_skewness", ""), ("anti_hubs", "")]
    if spoken is not None:
        question["text"] = {"judged": spoken.judged.facts(), "fitted": spoken.fitted.facts()}
        scores.append(("perplexity", spoken.name))
    measured = describe(torch.eye(3), measures=SHOWN).measures
    return new_run("impact", model.name, question, measured, explanations(scores))
