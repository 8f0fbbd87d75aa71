"""Advice as a run: a model's vectors or a file of them, read as they are and after each repair."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from pathlib import Path

from isoscope.errors import refuse_sizes
from isoscope.measures.table import choose
from isoscope.models.source import fingerprint, load
from isoscope.repair.advise.advise import BANDS, GEOMETRY, recipes, token_rows
from isoscope.repair.advise.advise import advise as try_repairs
from isoscope.repair.advise.pairs import EXPLAINED
from isoscope.repair.advise.sample import halves, rows_of
from isoscope.repair.states import open_states
from isoscope.repair.vectors import holds_vectors, open_vectors
from isoscope.results.place import default_out
from isoscope.results.row import Row
from isoscope.results.store import RunFolder, open_run
from isoscope.run.provenance import new_run
from isoscope.run.telling import SILENT, Telling
from isoscope.sites import Site

_UNIT = "advice"
_FIXED = ("model", "revision", "dtype")


def advise(
    model: str | PathLike[str],
    *,
    data: str = "embedded", repairs: str | None = None, layer: str = "output", pool: str = "mean",
    limit: int | None = 4096, max_length: int | None = None, batch_size: int = 16, device: str | None = None,
    array: str | None = None, out: str | PathLike[str] | None = None, telling: Telling = SILENT,
) -> RunFolder:  # fmt: skip
    """Read a space of vectors as it is and after each repair, and keep the rows in a run folder.

    `model` is the address of a model or a file of vectors; `repairs` are separated by semicolons, as in
    "centre;abtt,whiten:64", by default each of `isoscope repair`. Without `out` the folder is
    `runs/advise-NAME-ID`. `isoscope.report` writes its page, with the sentences on what to do.
    """
    refuse_sizes(limit, max_length, batch_size)
    tried, address = recipes(repairs), str(model)
    given = states = None
    if holds_vectors(address):
        file = Path(address)
        vectors, notes = open_vectors(file, array)
        with telling.bar(f"reading {file}") as progress:
            given = halves(rows_of(vectors, limit, progress=progress))
        if given.seen < len(vectors):
            notes = [*notes, f"advice is given on {given.seen} of {len(vectors)} vectors, drawn by lot"]
        name, site = file.name, Site("cloud")
        question: dict[str, object] = {"file": str(file), "array": array, "limit": limit}
        question["hash"] = given.digest
    else:
        loaded = load(address, device=device)
        states = open_states(
            loaded, data, layer=layer, pool=pool, limit=limit, max_length=max_length, batch_size=batch_size
        )
        name, site, notes = loaded.name, states.site, [*loaded.notes, *states.data.notes]
        question = {key: value for key, value in loaded.facts().items() if key in _FIXED}
        question |= {"weights": fingerprint(loaded.module), **states.data.facts()}
        question |= {"layer": str(states.site), "pool": pool}
    read = [*GEOMETRY, "mean_norm", *(BANDS if states else ())]
    run = new_run("advise", name, {**question, "repairs": list(tried)}, choose(read), EXPLAINED)
    folder = open_run(out or default_out(f"advise {name}", run.id), run)
    if folder.has(_UNIT):
        telling.note(f"{folder.path} has these rows already; nothing is measured again")
        return folder
    tokens: list[Row] = []
    if states is not None:
        with telling.bar(f"running {name}") as progress:
            given = halves(replace(states, progress=progress))
        with telling.bar("looking at tokens") as progress:
            tokens = token_rows(
                states.model, data, site, limit=limit, max_length=max_length, batch_size=batch_size,
                pack=pool == "token", run=run.id, progress=progress,
            )  # fmt: skip
    assert given is not None
    with telling.bar("trying repairs") as progress:
        found = try_repairs(given, tried, site=site, run=run.id, progress=progress)
    facts = {**given.facts(), "repairs": list(found.tried), "notes": [*notes, *found.notes]}
    folder.write(_UNIT, [*found.rows, *tokens], facts)
    return folder
