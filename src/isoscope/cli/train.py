"""`isoscope train`: a small model learns a task while it is watched."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isoscope.cli.options import (
    Bfloat16,
    DataOf,
    Device,
    Heads,
    Json,
    Layers,
    Length,
    Out,
    PerUpdate,
    Rate,
    Steps,
    Task,
    Width,
)
from isoscope.results.place import default_out


def train(
    task: Task = "characters",
    model: Annotated[str, typer.Option(help="transformer, or cnn for the task images.")] = "transformer",
    attention: Annotated[str, typer.Option(help="How it attends; see `isoscope list variants`.")] = "softmax",
    norm: Annotated[
        str | None,
        typer.Option(
            help="Where it is normed; see `isoscope list norms`. Of a cnn: batch or none. [default: pre; "
            "batch]"
        ),
    ] = None,
    penalty: Annotated[
        str,
        typer.Option(help="As in locater=.1,target=1, several joined by +; see `isoscope list penalties`."),
    ] = "",
    layers: Layers = 4,
    width: Width = 128,
    heads: Heads = 4,
    length: Length = 128,
    steps: Steps = 400,
    batch_size: PerUpdate = 16,
    rate: Rate = 3e-3,
    seed: Annotated[int, typer.Option(min=0, help="Decides weights and batches.")] = 0,
    data: DataOf = "embedded",
    checkpoints: Annotated[
        str,
        typer.Option(
            help="'log' (1, 2, 4, 8, …), 'log:32' (so many on a log scale) or every so many steps; looks are "
            "taken there too."
        ),
    ] = "log",
    device: Device = None,
    bfloat16: Bfloat16 = False,
    compiled: Annotated[bool, typer.Option("--compile", help="Compile the model; for a GPU.")] = False,
    out: Out = None,
    json: Json = False,
) -> None:
    """Train a small model with any attention, norm or penalty, and watch its geometry; resumes by itself."""
    from isoscope.cli.screen.finish import finish
    from isoscope.cli.screen.live import LiveView
    from isoscope.lab.train.experiment import USUAL, Experiment, Underway, device_for
    from isoscope.lab.train.training import Recipe
    from isoscope.results.store import read_run

    experiment = Experiment(
        task=task,
        model=model,
        attention=attention,
        norm=norm or USUAL.get(model, ""),
        penalty=penalty,
        layers=layers,
        width=width,
        heads=heads,
        length=length,
        data=data,
        checkpoints=checkpoints,
        recipe=Recipe(
            steps=steps, batch_size=batch_size, rate=rate, seed=seed, bfloat16=bfloat16, compiled=compiled
        ),
    )
    where = device_for(device)
    folder: Path = out or default_out(experiment.name, experiment.digest)
    with LiveView(f"{experiment.name} in training", steps=steps) as view:
        underway = Underway(experiment, folder, device=where, on_alarm=view.alarm, sinks=(view,))
        with underway.monitor as monitor:
            view.watch(monitor)
            underway.go_on(view.progress)
    finish(read_run(folder), json=json)
