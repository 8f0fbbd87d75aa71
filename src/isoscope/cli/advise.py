"""`isoscope advise`: one page on a space of vectors: what it looks like, what makes it so, what to do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from isoscope.cli.options import Json, Out, default_out

_UNIT = "advice"


def advise(
    model: Annotated[
        str,
        typer.Argument(
            help="A hub id or a name of the zoo (@revision may follow), a folder, or a file of vectors "
            "(.npy, .npz, .parquet, .safetensors or .csv)."
        ),
    ],
    data: Annotated[
        str,
        typer.Option(
            "--data",
            "--fit",
            help="Of a model: 'embedded', a text or JSONL file, a folder, a dataset (id:split:column).",
        ),
    ] = "embedded",
    recipe: Annotated[
        str | None,
        typer.Option(
            "--with",
            help="Repairs to try, separated by semicolons, for example 'centre;abtt,whiten:64'. "
            "[default: each of `isoscope repair`]",
        ),
    ] = None,
    layer: Annotated[str, typer.Option(help="output, or the number of a layer.")] = "output",
    pool: Annotated[
        str, typer.Option(help="mean, cls or last: one vector a sequence; token: every one.")
    ] = "mean",
    limit: Annotated[
        int, typer.Option(min=0, help="At most so many sequences, or vectors of a file; 0 for all.")
    ] = 4096,
    max_length: Annotated[
        int | None, typer.Option(help="Tokens a sequence. [default: the model's limit, at most 512]")
    ] = None,
    batch_size: Annotated[int, typer.Option(help="Sequences at a time.")] = 16,
    device: Annotated[
        str | None, typer.Option(help="cpu, cuda, cuda:1, mps. [default: the GPU if there is one]")
    ] = None,
    array: Annotated[
        str | None, typer.Option(help="Which array or column, where a file of vectors has several.")
    ] = None,
    out: Out = None,
    json: Json = False,
) -> None:
    """Say what a space of vectors looks like, what makes it so, what repairs would change, and what to do."""
    from isoscope.cli.screen import terminal as screen
    from isoscope.cli.screen.advise import finish_advise
    from isoscope.measures.table import choose
    from isoscope.repair.advise.advise import GEOMETRY, recipes
    from isoscope.repair.advise.advise import advise as try_repairs
    from isoscope.repair.advise.explained import EXPLAINED
    from isoscope.repair.advise.sample import Halves, halves, rows_of
    from isoscope.repair.advise.tokens import BANDS, token_rows
    from isoscope.repair.states import open_states
    from isoscope.repair.vectors import holds_vectors, open_vectors
    from isoscope.results.row import Row
    from isoscope.results.store import open_run
    from isoscope.run.provenance import new_run
    from isoscope.sites import Site

    tried, most = recipes(recipe), None if limit == 0 else limit
    of_file = holds_vectors(model)
    given: Halves | None = None
    tokens: list[Row] = []
    if of_file:
        vectors, notes = open_vectors(Path(model), array)
        with screen.bar(f"reading {model}") as progress:
            given = halves(rows_of(vectors, most, progress=progress))
        if given.seen < len(vectors):
            notes = [*notes, f"advice is given on {given.seen} of {len(vectors)} vectors, drawn by lot"]
        name, site, read = Path(model).name, Site("cloud"), [*GEOMETRY, "mean_norm"]
        question: dict[str, object] = {"file": model, "array": array, "limit": most, "hash": given.digest}
    else:
        from isoscope.models.source import fingerprint, load

        loaded = load(model, device=device)
        states = open_states(
            loaded,
            data,
            layer=layer,
            pool=pool,
            limit=most,
            max_length=max_length,
            batch_size=batch_size,
        )
        name, site, notes = loaded.name, states.site, [*loaded.notes, *states.data.notes]
        read = [*GEOMETRY, "mean_norm", *BANDS]
        known = loaded.facts()
        question = {key: known[key] for key in ("model", "revision", "dtype")}
        question |= {"weights": fingerprint(loaded.module), **states.data.facts()}
        question |= {"layer": str(site), "pool": pool}
    run = new_run("advise", name, question | {"repairs": list(tried)}, choose(read))
    run = replace(run, measures={**run.measures, **EXPLAINED})
    folder = open_run(out or default_out(f"advise {name}", run.id), run)
    if folder.has(_UNIT):
        screen.warn([f"{folder.path} has these rows already; nothing is measured again"])
        finish_advise(folder, json=json)
        return
    if given is None:
        with screen.bar(f"running {name}") as progress:
            given = halves(replace(states, progress=progress))
        with screen.bar("looking at tokens") as progress:
            tokens = token_rows(
                loaded,
                data,
                site,
                limit=most,
                max_length=max_length,
                batch_size=batch_size,
                pack=pool == "token",
                run=run.id,
                progress=progress,
            )
    with screen.bar("trying repairs") as progress:
        found = try_repairs(given, tried, site=site, run=run.id, progress=progress)
    facts = {**given.facts(), "repairs": list(found.tried), "notes": [*notes, *found.notes]}
    folder.write(_UNIT, [*found.rows, *tokens], facts)
    finish_advise(folder, json=json)
