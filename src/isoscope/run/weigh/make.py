"""A model's weights as a run: what is asked, weighed once, and kept in a folder."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from isoscope.measures.on_data import EXPLANATIONS
from isoscope.models.inputs import open_data
from isoscope.models.source import load
from isoscope.models.weights import open_weights
from isoscope.results.place import default_out
from isoscope.results.store import RunFolder, open_run
from isoscope.run.provenance import new_run
from isoscope.run.telling import SILENT, Telling
from isoscope.run.weigh.weigh import weigh
from isoscope.run.weigh.weighed import fingerprint, weight_measures


def weights(
    model: str,
    *,
    revision: str | None = None,
    config: str | None = None,
    query: str | None = None,
    key: str | None = None,
    length: int = 512,
    data: str | None = None,
    limit: int | None = 256,
    max_length: int | None = None,
    batch_size: int = 16,
    device: str | None = None,
    pack: bool = True,
    tokens: str = "auto",
    trust_remote_code: bool = False,
    seed: int = 0,
    out: str | PathLike[str] | None = None,
    telling: Telling = SILENT,
) -> RunFolder:
    """Weigh a model into a run folder, with `data` also what its weights do on it.

    Options are those of `weigh`, `load` and `open_data`. Without `out` the folder is `runs/NAME-ID`. What is
    there is not weighed again.
    """
    with telling.bar(f"opening {model}") as progress:
        named = {"revision": revision, "config": config, "query": query, "key": key}
        opened = open_weights(model, revision=revision, config=config, query=query, key=key, whole=False)
        named["revision"] = opened.revision or revision  # a branch may move on before all is read
        running = batches = None
        if data is not None:
            running = load(
                model,
                revision=named["revision"],
                device=device,
                config=config,
                trust_remote_code=trust_remote_code,
            )
            batches = open_data(
                data,
                running,
                limit=limit,
                max_length=max_length,
                batch_size=batch_size,
                pack=pack,
                tokens=tokens,
                seed=seed,
            )
        question: dict[str, object] = {"model": opened.model, "revision": opened.revision, "length": length}
        question |= {"weights": fingerprint(opened, progress), "query": query, "key": key, "seed": seed}
    question |= {} if batches is None else batches.facts()
    told = {} if batches is None else EXPLANATIONS
    run = new_run("weights", opened.model, question, weight_measures(), told)
    there = Path(out or default_out(opened.model, run.id))
    if (there / "run.json").exists() and (folder := open_run(there, run)).has(opened.model):
        telling.note(f"{folder.path} has these rows already; nothing is measured again")
        return folder
    with telling.bar(f"weighing {opened.model}") as progress:
        found = weigh(
            model, **named, length=length, data=batches, running=running, seed=seed, progress=progress
        )
    folder = open_run(there, run)  # a model of which nothing can be read leaves no folder
    folder.write(opened.model, found.rows(run.id), found.known(), found.points())
    return folder
