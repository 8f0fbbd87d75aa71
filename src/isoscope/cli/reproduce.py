"""`isoscope reproduce`: a paper's claims, each tried and judged."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from typer import Option

from isoscope.cli.options import parse_names, verb
from isoscope.results.place import default_out

HELP = {
    "paper": "godey2024, machina2024 or bao2024.",
    "scale": "laptop (minutes, embedded data), gpu (larger models, real data) or full (public models).",
    "offline": "Ask no hub: what is not here is told.",
    "seeds": "How many seeds; an interval takes three. [default: the scale's]",
    "data": "text=FILE,images=FOLDER,sound=FOLDER; what is not given is embedded.",
    "claims": "Claims by name, separated by commas. [default: all]",
    "parallel": "Trainings that are made at once. [default: the scale's]",
    "models": "Where trained models are kept. [default: `models` beside the folder]",
}
Some = Annotated[int | None, Option(min=1)]


@verb(HELP)
def reproduce(
    paper: str, scale: str = "laptop", offline: bool = False, seeds: Some = None, data: str = "",
    claims: str | None = None, device: str | None = None, parallel: Some = None, models: Path | None = None,
    out: Path | None = None, json: bool = False,
) -> object:  # fmt: skip
    """Try every claim of a paper and judge it by intervals; goes on where it was stopped."""
    if offline:
        os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"  # read when they are imported
    from isoscope.cli.screen import terminal
    from isoscope.data.documents import refuse_missing
    from isoscope.models.source import place_for
    from isoscope.papers.paper import chosen, left, make, run_of
    from isoscope.papers.scales import scale_of
    from isoscope.papers.table import paper_of
    from isoscope.papers.workshop import Workshop, parse_data
    from isoscope.results.store import open_run

    asked, size, given = paper_of(paper), scale_of(scale), parse_data(data)
    wanted = chosen(asked, parse_names(claims))
    for address in given.values():
        refuse_missing(address)
    where = str(place_for(device if device or scale != "laptop" else "cpu"))
    room = Workshop(size, Path("models"), seeds or size.seeds, where, given, parallel or size.parallel)
    run = run_of(asked, room)
    path = out or default_out(f"{asked.name}-{scale}", run.id)
    folder = open_run(path, run)
    room = replace(room, models=models or path.parent / "models")
    for claim in left(asked, folder):
        if claim in wanted:
            with terminal.bar(claim.title) as progress:
                make([claim], replace(room, progress=progress), folder)
    return folder
