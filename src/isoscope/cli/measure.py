"""`isoscope measure`: a model over data."""

from __future__ import annotations

from typing import Annotated

import typer

from isoscope.cli.options import Json, Measures, Memory, Out, Seed, parse_bytes, parse_names
from isoscope.results.place import default_out


def measure(
    model: Annotated[
        str,
        typer.Argument(
            help="A hub id or a name of the zoo (@revision may follow), a folder, or a file of weights."
        ),
    ],
    data: Annotated[
        str,
        typer.Option(
            help="'embedded', a text or JSONL file (file.jsonl:column), a folder of images or sounds, "
            "a dataset of the hub or in a folder (id:split:column)."
        ),
    ] = "embedded",
    limit: Annotated[int, typer.Option(help="At most so many sequences; 0 for all.")] = 256,
    max_length: Annotated[
        int | None, typer.Option(help="Tokens a sequence. [default: the model's limit, at most 512]")
    ] = None,
    batch_size: Annotated[int, typer.Option(help="Sequences at a time.")] = 16,
    device: Annotated[
        str | None, typer.Option(help="cpu, cuda, cuda:1, mps. [default: the GPU if there is one]")
    ] = None,
    dtype: Annotated[str, typer.Option(help="float32, bfloat16, float16 or float64.")] = "float32",
    measures: Measures = None,
    layers: Annotated[
        str, typer.Option(help="Sites by glob: 'layer.*', '0,6,12', 'output', 'attention.*'.")
    ] = "*",
    heads: Annotated[bool, typer.Option("--heads", help="Add rows for every head of attention.")] = False,
    counterfactual: Annotated[
        bool, typer.Option(help="Read attention again without each head's mean query, on 64 sequences.")
    ] = True,
    config: Annotated[
        str | None, typer.Option(help="The config of a model that is one file of weights.")
    ] = None,
    revision: Annotated[str | None, typer.Option(help="A branch, tag or commit of the hub.")] = None,
    pack: Annotated[
        bool, typer.Option(help="Join texts and cut full chunks, or one text a sequence.")
    ] = True,
    tokens: Annotated[
        str, typer.Option(help="auto (the model's tokenizer), bytes or characters: their values as ids.")
    ] = "auto",
    count_special: Annotated[
        bool, typer.Option("--count-special", help="Count special tokens as data.")
    ] = False,
    count_first: Annotated[bool, typer.Option("--count-first", help="Count position 0 as data.")] = False,
    trust_remote_code: Annotated[
        bool, typer.Option("--trust-remote-code", help="Run code that comes with the model.")
    ] = False,
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
