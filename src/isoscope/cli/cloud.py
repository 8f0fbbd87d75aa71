"""`isoscope cloud`: a file of vectors, for people who have no model at hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from isoscope.cli.options import parse_bytes, parse_names, verb

HELP = {
    "file": "Vectors, one a row: .npy, .npz, .parquet, .safetensors or .csv.",
    "transpose": "Vectors are columns.",
    "out": "Keep rows and page in this run folder.",
}


@verb(HELP)
def cloud(
    file: Path, array: str | None = None, transpose: bool = False, measures: str | None = None, seed: int = 0,
    memory: str = "2GB", out: Path | None = None, json: bool = False,
) -> object:  # fmt: skip
    """Measure the geometry of a file of vectors."""
    allowed, names = parse_bytes(memory), parse_names(measures)
    from isoscope.cli.screen import terminal
    from isoscope.cli.screen.finish import show_rows
    from isoscope.data.vectors import read_vectors
    from isoscope.measures.table import choose
    from isoscope.results.store import open_run
    from isoscope.run.observe.observe import describe
    from isoscope.run.provenance import new_run

    chosen = choose(names)
    points, digest, notes = read_vectors(file, array)
    asked: dict[str, object] = {"file": str(file), "hash": digest, "array": array, "transpose": transpose}
    asked |= {"seed": seed, "measures": [measure.name for measure in chosen], "memory": allowed}
    run = new_run("cloud", file.name, asked, chosen)
    folder = open_run(out, run) if out else None
    if folder is not None and folder.has(file.name):
        terminal.warn([f"{folder.path} has these rows already; nothing is measured again"])
        return folder
    points = points.T if transpose else points
    seen = describe(points, measures=names, seed=seed, memory=allowed, name=file.name)
    seen = replace(seen, remarks=(*notes, *seen.remarks))
    if folder is None:
        show_rows(seen.frame(), seen.notes(), json=json, run=run.id)
        return None
    folder.write(file.name, seen.rows(run.id), seen.known())
    return folder
