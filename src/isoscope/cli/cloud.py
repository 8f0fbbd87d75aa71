"""`isoscope cloud`: a file of vectors, for people who have no model at hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from isoscope.cli.options import Array, Json, Measures, Memory, Seed, parse_bytes, parse_names


def cloud(
    file: Annotated[
        Path, typer.Argument(help="Vectors, one a row: .npy, .npz, .parquet, .safetensors or .csv.")
    ],
    array: Array = None,
    transpose: Annotated[bool, typer.Option("--transpose", help="Vectors are columns.")] = False,
    measures: Measures = None,
    seed: Seed = 0,
    memory: Memory = "2GB",
    out: Annotated[Path | None, typer.Option(help="Keep rows and page in this run folder.")] = None,
    json: Json = False,
) -> None:
    """Measure the geometry of a file of vectors."""
    allowed = parse_bytes(memory)
    from isoscope.cli.screen import terminal as screen
    from isoscope.cli.screen.finish import finish, rescuing, show_rows
    from isoscope.data.vectors import read_vectors
    from isoscope.measures.table import choose
    from isoscope.results.store import open_run
    from isoscope.run.observe.observe import describe
    from isoscope.run.provenance import new_run

    chosen = choose(parse_names(measures))
    points, digest, notes = read_vectors(file, array)
    points = points.T if transpose else points
    asked: dict[str, object] = {
        "file": str(file),
        "hash": digest,
        "array": array,
        "transpose": transpose,
        "seed": seed,
    }
    asked |= {"measures": [measure.name for measure in chosen], "memory": allowed}
    run = new_run("cloud", file.name, asked, chosen)
    folder = open_run(out, run) if out else None
    if folder is not None and folder.has(file.name):
        screen.warn([f"{folder.path} has these rows already; nothing is measured again"])
        finish(folder, json=json)
        return
    seen = describe(points, measures=parse_names(measures), seed=seed, memory=allowed, name=file.name)
    seen = replace(seen, remarks=(*notes, *seen.remarks))
    if folder is not None:
        with rescuing(json=json):
            folder.write(file.name, seen.rows(run.id), seen.known())
        finish(folder, json=json)
    else:
        show_rows(seen.frame(), seen.notes(), json=json, run=run.id)
