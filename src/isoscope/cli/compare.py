"""`isoscope compare`: runs and models side by side."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from isoscope.cli.options import Json, Out, default_out

_COMPARED = ("layer", "output", "cloud")  # kinds of rows


def compare(
    what: Annotated[
        list[str], typer.Argument(help="Run folders, or models, which are measured on embedded data.")
    ],
    limit: Annotated[int, typer.Option(min=1, help="For models: at most so many sequences.")] = 64,
    out: Out = None,
    json: Json = False,
) -> None:
    """Put runs and models side by side, and see whether anisotropy follows drift in each and over all."""
    from isoscope.cli.screen import terminal as screen
    from isoscope.cli.screen.finish import finish
    from isoscope.errors import IsoscopeError
    from isoscope.measures.table import MEASURES
    from isoscope.models.inputs import open_data
    from isoscope.models.source import load
    from isoscope.results.store import open_run, read_run
    from isoscope.run.compare import EXPLANATIONS, correlations
    from isoscope.run.observe.observe import observe
    from isoscope.run.provenance import new_run

    if len(set(what)) < len(what):
        raise IsoscopeError("the same run or model is named twice; name each once.")
    runs = {name: read_run(name) for name in what if (Path(name) / "run.json").exists()}
    for name, there in runs.items():  # before a folder is made
        if not there.frame().kind.isin(_COMPARED).any():
            raise IsoscopeError(
                f"{name} is a run of `isoscope {there.run.kind}` and holds no layers to compare; "
                "give runs of `isoscope measure` or `isoscope cloud`, or models."
            )
    ids = {name: runs[name].run.id if name in runs else "" for name in what}
    run = new_run("compare", " · ".join(what), {"compared": ids, "limit": limit}, MEASURES)
    folder = open_run(
        out or default_out("compare", run.id), replace(run, measures={**run.measures, **EXPLANATIONS})
    )
    for name in what:
        if folder.has(name):
            continue
        if name in runs:
            table, facts = runs[name].frame(), dict[str, object](run=runs[name].run.id)
            table = table[table.step.isna() | (table.step == table.step.max())]
        else:
            model = load(name)
            with screen.bar(f"measuring {name}") as progress:
                data = open_data("embedded", model, limit=limit)
                seen = observe(model, data, layers="layer.*,output", progress=progress)
                table, facts = seen.frame(), seen.known()
        table = table[table.kind.isin(_COMPARED)]
        folder.write(name, table.assign(run=run.id, model=name), facts)
    together = folder.frame()
    rows = correlations(together[together.kind != "comparison"], run.id)
    finish(folder, json=json, unit="comparison", rows=rows, facts={})
