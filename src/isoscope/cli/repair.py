"""`isoscope repair`: fit a repair on a model's vectors or on a file of them, and export it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from isoscope.cli.options import MODEL_OR_VECTORS, Limit, verb

HELP = {
    "model": MODEL_OR_VECTORS,
    "recipe": "Repairs, one after the other: centre, standardise, abtt:DIRECTIONS, whiten:DIMENSIONS, "
    "cluster-abtt:CLUSTERS:DIRECTIONS, rogue:DIMENSIONS; numbers may be left out.",
    "export": "The folder that the repair is written to.",
    "fit": "What it is fitted on: for a model a text or JSONL file, a folder, a dataset "
    "(id:split:column); else another file of vectors. [default: 'embedded', or the file itself]",
    "write": "Of a file of vectors: write them repaired to this .npy.",
}


@verb(HELP)
def repair(
    model: str, recipe: Annotated[str, Option("--with")], export: Annotated[Path, Option()],
    fit: str | None = None, layer: str = "output", pool: str = "mean", limit: Limit = 4096,
    max_length: int | None = None, batch_size: int = 16, device: str | None = None, array: str | None = None,
    write: Path | None = None, json: bool = False,
) -> None:  # fmt: skip
    """Change the geometry of vectors: fit a repair, show what it does, and export it."""
    from isoscope.cli.screen import terminal
    from isoscope.cli.screen.finish import show
    from isoscope.errors import IsoscopeError
    from isoscope.kinds.measure.tables import tables
    from isoscope.kinds.screen import Screen
    from isoscope.models.source import load
    from isoscope.repair.fit.kinds import parse
    from isoscope.repair.fit.sample import Watched, before_after
    from isoscope.repair.fit.transforms import fit as fit_repair
    from isoscope.repair.keep.export import save_repair
    from isoscope.repair.states import open_states
    from isoscope.repair.vectors import holds_vectors, open_vectors, refuse_unwritable, write_repaired

    parse(recipe)  # a name that does not exist is told before anything runs
    of_file = holds_vectors(model)
    if write is not None and not of_file:
        raise IsoscopeError(f"--write repairs a file of vectors; '{model}' is a model: use what is exported.")
    if write is not None:
        refuse_unwritable(write)
    given = fit or (model if of_file else "embedded")
    facts: dict[str, object] = {"vectors": given}
    with terminal.bar(f"fitting on {given}") as progress:
        if of_file:
            vectors, notes = open_vectors(Path(given), array)
            watched = Watched(vectors, lambda done: progress(done, len(vectors)))
        else:
            loaded = load(model, device=device)
            states = open_states(
                loaded, given, layer=layer, pool=pool, progress=progress, limit=limit, max_length=max_length,
                batch_size=batch_size,
            )  # fmt: skip
            notes, watched = [*loaded.notes, *states.data.notes], Watched(states)
            facts = {"model": loaded.name, "revision": loaded.revision, "layer": str(states.site)}
            facts |= {"pool": pool, "data": states.data.facts()}
        fitted = fit_repair(recipe, watched, precise=not of_file, facts=facts)
    assert watched.sample is not None
    if write is not None:  # before the export: where this fails, an older one is left as it is
        with terminal.bar(f"writing {write}") as progress:
            write_repaired(fitted, open_vectors(Path(model), array)[0], write, progress=progress)
    folder = save_repair(fitted, export)
    rows, notes = before_after(fitted, watched.sample), [*notes, *fitted.notes]
    kind = "affine" if fitted.is_affine else "not affine"
    undone = "can be undone" if fitted.is_invertible else "cannot be undone"
    sizes = f"{fitted.width} to {fitted.gives} dimensions"
    said = f"{fitted.name}: {sizes}, {kind}, {undone}; fitted on {fitted.n} vectors"
    places = [f"vectors: {write}"] * bool(write) + [f"repair: {folder}"]
    screen = Screen((*tables(rows, terminal.screen_width()), said, *places), tuple(notes))
    about = {"name": fitted.name, "affine": fitted.is_affine, "invertible": fitted.is_invertible}
    show(screen, lambda: rows, json=json, beside={"repair": about, "folder": str(folder)})
