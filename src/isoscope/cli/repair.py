"""`isoscope repair`: fit a repair on a model's vectors or on a file of them, and export it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from isoscope.cli.options import MODEL_OR_VECTORS, Limit, verb

if TYPE_CHECKING:
    import pandas as pd

    from isoscope.repair.keep.repair import Repair

_NUMBERS = ["value", "null", "low", "high"]
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
    model: str,
    recipe: Annotated[str, Option("--with")],
    export: Annotated[Path, Option()],
    fit: str | None = None,
    layer: str = "output",
    pool: str = "mean",
    limit: Limit = 4096,
    max_length: int | None = None,
    batch_size: int = 16,
    device: str | None = None,
    array: str | None = None,
    write: Path | None = None,
    json: bool = False,
) -> None:
    """Change the geometry of vectors: fit a repair, show what it does, and export it."""
    from isoscope.cli.screen import terminal as screen
    from isoscope.errors import IsoscopeError
    from isoscope.repair.before_after import before_after
    from isoscope.repair.fit.kinds import parse
    from isoscope.repair.fit.sample import Watched
    from isoscope.repair.fit.transforms import fit as fit_repair
    from isoscope.repair.keep.export import save_repair
    from isoscope.repair.vectors import holds_vectors, open_vectors, refuse_unwritable, write_repaired

    parse(recipe)  # a name that does not exist is told before anything runs
    of_file = holds_vectors(model)
    if write is not None and not of_file:
        raise IsoscopeError(f"--write repairs a file of vectors; '{model}' is a model: use what is exported.")
    if write is not None:
        refuse_unwritable(write)
    with screen.bar(f"fitting on {fit or (model if of_file else 'embedded')}") as progress:
        facts: dict[str, object]
        if of_file:
            vectors, notes = open_vectors(Path(fit or model), array)
            facts = {"vectors": fit or model}
            watched = Watched(vectors, lambda done: progress(done, len(vectors)))
        else:
            from isoscope.models.source import load
            from isoscope.repair.states import open_states

            loaded = load(model, device=device)
            sizes: dict[str, Any] = {"limit": limit, "max_length": max_length, "batch_size": batch_size}
            states = open_states(
                loaded, fit or "embedded", layer=layer, pool=pool, progress=progress, **sizes
            )
            notes = [*loaded.notes, *states.data.notes]
            facts = {"model": loaded.name, "revision": loaded.revision, "layer": str(states.site)}
            facts |= {"pool": pool, "data": states.data.facts()}
            watched = Watched(states)
        fitted = fit_repair(recipe, watched, precise=not of_file, facts=facts)
    assert watched.sample is not None
    if write is not None:  # before the export: where this fails, an older one is left as it is
        with screen.bar(f"writing {write}") as progress:
            mine = open_vectors(Path(model), array)[0]
            write_repaired(fitted, mine, write, progress=progress)
    folder = save_repair(fitted, export)
    rows = before_after(fitted, watched.sample)
    told = [*notes, *fitted.notes]
    screen.warn(told)
    if json:
        about = {"name": fitted.name, "affine": fitted.is_affine, "invertible": fitted.is_invertible}
        screen.show_json({"repair": about, "folder": str(folder), "notes": told, "rows": rows})
        return
    _show(fitted, rows)
    if write is not None:
        screen.say(f"vectors: {write}")
    screen.say(f"repair: {folder}")


def _show(fitted: Repair, rows: pd.DataFrame) -> None:
    """Print the geometry before and after, and what the repair is."""
    from isoscope.cli.screen import terminal as screen
    from isoscope.kinds.measure.tables import bounded
    from isoscope.kinds.screen import Column, Table, headed
    from isoscope.show.measures import heading_of

    n = int(rows.n.max())
    some = f"; measured on {n} of {fitted.n} vectors" if n < fitted.n else ""
    names = list(rows.measure.drop_duplicates())
    lines = []
    for when, part in rows.groupby("model", sort=False):
        cells = part.set_index("measure")
        lines.append((str(when), *(bounded(*cells.loc[name, _NUMBERS]) for name in names)))
    columns = (Column("", right=False, folds=True), *headed((), map(heading_of, names)))
    caption = f"value [95 % interval] (value of an isotropic cloud){some}"
    screen.show(Table(columns, tuple(lines), caption=caption))
    kind = "affine" if fitted.is_affine else "not affine"
    undone = "can be undone" if fitted.is_invertible else "cannot be undone"
    screen.say(
        f"{fitted.name}: {fitted.width} to {fitted.gives} dimensions, {kind}, {undone}; "
        f"fitted on {fitted.n} vectors"
    )
