"""`isoscope weights`: a model's weights, without running it; with data, what they do on it."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from isoscope.cli.options import (
    BatchSize,
    Config,
    Device,
    Json,
    Limit,
    MaxLength,
    ModelOrWeights,
    Out,
    Pack,
    Revision,
    Seed,
    Tokens,
    TrustRemoteCode,
)
from isoscope.results.place import default_out


def weights(
    model: ModelOrWeights,
    revision: Revision = None,
    config: Config = None,
    query: Annotated[
        str | None,
        typer.Option(help="Names of the queries' weights, a regular expression with a group for the layer."),
    ] = None,
    key: Annotated[str | None, typer.Option(help="The same for the keys.")] = None,
    length: Annotated[int, typer.Option(min=2, help="Positions that regimes and ρ(t) are told for.")] = 512,
    data: Annotated[
        str | None,
        typer.Option(help="Run the model over this as well: 'embedded', a file, a folder, id:split:column."),
    ] = None,
    limit: Limit = 256,
    max_length: MaxLength = None,
    batch_size: BatchSize = 16,
    device: Device = None,
    pack: Pack = True,
    tokens: Tokens = "auto",
    trust_remote_code: TrustRemoteCode = False,
    seed: Seed = 0,
    out: Out = None,
    json: Json = False,
) -> None:
    """Measure a model's weights without running it: queries and keys, vocabularies, the final norm."""
    from isoscope.cli.screen import terminal as screen

    with screen.bar(f"opening {model}") as progress:  # before torch, which takes seconds to import
        from isoscope.cli.screen.finish import finish
        from isoscope.measures.on_data import EXPLANATIONS
        from isoscope.models.inputs import open_data
        from isoscope.models.source import load
        from isoscope.models.weights import open_weights
        from isoscope.results.store import open_run
        from isoscope.run.provenance import new_run
        from isoscope.run.weigh.weigh import weigh
        from isoscope.run.weigh.weighed import fingerprint, weight_measures

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
                limit=None if limit == 0 else limit,
                max_length=max_length,
                batch_size=batch_size,
                pack=pack,
                tokens=tokens,
                seed=seed,
            )
        question: dict[str, object] = {"model": opened.model, "revision": opened.revision, "length": length}
        question |= {"weights": fingerprint(opened, progress), "query": query, "key": key, "seed": seed}
    question |= {} if batches is None else batches.facts()
    run = new_run("weights", opened.model, question, weight_measures())
    if batches is not None:
        run = replace(run, measures={**run.measures, **EXPLANATIONS})
    there = out or default_out(opened.model, run.id)
    unit = opened.model
    if (there / "run.json").exists() and (folder := open_run(there, run)).has(unit):
        screen.warn([f"{folder.path} has these rows already; nothing is measured again"])
        finish(folder, json=json)
        return
    with screen.bar(f"weighing {opened.model}") as progress:
        found = weigh(
            model, **named, length=length, data=batches, running=running, seed=seed, progress=progress
        )
    folder = open_run(there, run)  # a model of which nothing can be read leaves no folder
    finish(folder, json=json, unit=unit, rows=found.rows(run.id), facts=found.known(), points=found.points())
