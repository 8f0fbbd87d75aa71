"""`isoscope demo`: train a small model and see its geometry change."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isoscope.cli.options import Json


def demo(
    steps: Annotated[int, typer.Option(min=1, help="Steps of training.")] = 400,
    seed: Annotated[int, typer.Option(help="Decides weights, batches and groups.")] = 0,
    out: Annotated[Path, typer.Option(help="The run folder.")] = Path("runs/demo"),
    json: Json = False,
) -> None:
    """Train a small Transformer on text that ships with Python, and watch its geometry change."""
    from isoscope.cli import screen
    from isoscope.cli.finish import finish
    from isoscope.lab.demo import perform, prepare, question
    from isoscope.results.store import open_run

    plan = prepare(steps, seed)
    folder = open_run(out, question(plan))
    with screen.bar("training a small Transformer, measuring on the way") as progress:
        perform(plan, folder, progress)
    finish(folder, json=json)
