"""`isoscope measure`: a model over data."""

from __future__ import annotations

from typing import Annotated

import typer

from isoscope.cli.options import (
    BatchSize,
    Config,
    Counterfactual,
    Device,
    Dtype,
    Json,
    Limit,
    MaxLength,
    Measures,
    Memory,
    ModelOrWeights,
    Out,
    Pack,
    Revision,
    Seed,
    Sites,
    Tokens,
    TrustRemoteCode,
    WithHeads,
    parse_bytes,
    parse_names,
)
from isoscope.results.place import default_out


def measure(
    model: ModelOrWeights,
    data: Annotated[
        str,
        typer.Option(
            help="'embedded', a text or JSONL file (file.jsonl:column), a folder of images or sounds, "
            "a dataset of the hub or in a folder (id:split:column)."
        ),
    ] = "embedded",
    limit: Limit = 256,
    max_length: MaxLength = None,
    batch_size: BatchSize = 16,
    device: Device = None,
    dtype: Dtype = "float32",
    measures: Measures = None,
    layers: Sites = "*",
    heads: WithHeads = False,
    counterfactual: Counterfactual = True,
    config: Config = None,
    revision: Revision = None,
    pack: Pack = True,
    tokens: Tokens = "auto",
    count_special: Annotated[
        bool, typer.Option("--count-special", help="Count special tokens as data.")
    ] = False,
    count_first: Annotated[bool, typer.Option("--count-first", help="Count position 0 as data.")] = False,
    trust_remote_code: TrustRemoteCode = False,
    seed: Seed = 0,
    memory: Memory = "2GB",
    covariance_rows: Annotated[
        float, typer.Option(help="The share of the vectors that covariances are made of.", min=1e-9, max=1.0)
    ] = 1.0,
    out: Out = None,
    json: Json = False,
) -> None:
    """Measure the geometry of a model's representations and its attention, layer by layer, exactly."""
    allowed = parse_bytes(memory)
    from isoscope.cli.screen import terminal as screen
    from isoscope.cli.screen.finish import finish
    from isoscope.measures.table import choose
    from isoscope.models.inputs import open_data
    from isoscope.models.source import fingerprint, load
    from isoscope.results.store import open_run
    from isoscope.run.observe.observe import look, observe
    from isoscope.run.provenance import new_run
    from isoscope.sites import select

    asked = parse_names(measures)
    chosen = choose(asked)
    loaded = load(
        model,
        revision=revision,
        device=device,
        dtype=dtype,
        config=config,
        trust_remote_code=trust_remote_code,
    )
    batches = open_data(
        data,
        loaded,
        limit=None if limit == 0 else limit,
        max_length=max_length,
        batch_size=batch_size,
        pack=pack,
        special=count_special,
        first=count_first,
        tokens=tokens,
        seed=seed,
    )
    found = look(loaded, next(iter(batches)))
    select((*found.shapes, *found.attention), layers)  # before a folder is made for it
    known = loaded.facts()
    question = {key: known[key] for key in ("model", "revision", "dtype")}
    question["weights"] = fingerprint(loaded.module)
    question |= batches.facts() | {"layers": layers, "measures": [m.name for m in chosen], "memory": allowed}
    question |= {"heads": heads, "counterfactual": counterfactual, "covariance rows": covariance_rows}
    run = new_run("measure", loaded.name, question, chosen)
    folder = open_run(out or default_out(loaded.name, run.id), run)
    unit = loaded.name
    if folder.has(unit):
        screen.warn([f"{folder.path} has these rows already; nothing is measured again"])
        finish(folder, json=json)
        return
    with screen.bar(f"measuring {loaded.name}") as progress:
        seen = observe(
            loaded,
            batches,
            measures=asked,
            layers=layers,
            heads=heads,
            counterfactual=counterfactual,
            memory=allowed,
            covariance_rows=covariance_rows,
            progress=progress,
        )
        rows, points = seen.rows(run.id), seen.points()
    finish(folder, json=json, unit=unit, rows=rows, facts=seen.known(), points=points)
