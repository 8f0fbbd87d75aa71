"""`isoscope contrast`: arms against each other, at the same sharpness or as they come."""

from __future__ import annotations

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
    parse_names,
    parse_share,
)
from isoscope.results.place import default_out


def contrast(
    task: Task = "characters",
    attention: Annotated[
        str,
        typer.Option(
            help="Variants by name, separated by commas, the reference first; see `isoscope list variants`."
        ),
    ] = "softmax,qk-norm",
    norm: Annotated[
        str, typer.Option(help="Norms, separated by commas; every variant is tried with each.")
    ] = "pre",
    penalty: Annotated[
        list[str] | None,
        typer.Option(
            help="Penalties, separated by semicolons; 'none' is without. May be given again: every arm is "
            "tried with each."
        ),
    ] = None,
    entropies: Annotated[
        str,
        typer.Option(
            help="To how many entropies each is driven (from .35 to .75), or a list: .4,.6; 'none': arms as "
            "they come, weights and all."
        ),
    ] = "3",
    probe: Annotated[
        str,
        typer.Option(
            help="What a linear reader is to find in the states: 'order', a file of label, tab, text, or a "
            "folder with a folder a class."
        ),
    ] = "",
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds; an interval takes three.")] = 5,
    strength: Annotated[float, typer.Option(min=0.0, help="How strongly they are driven.")] = 10.0,
    layers: Layers = 4,
    width: Width = 128,
    heads: Heads = 4,
    length: Length = 128,
    steps: Steps = 400,
    batch_size: PerUpdate = 16,
    rate: Rate = 3e-3,
    data: DataOf = "embedded",
    device: Device = None,
    bfloat16: Bfloat16 = False,
    only: Annotated[
        str, typer.Option(help="A share of the trials: i/n is every nth, from the ith on, the first being 0.")
    ] = "0/1",
    parallel: Annotated[int, typer.Option(min=1, help="Trials that are made at once, in processes.")] = 1,
    out: Out = None,
    json: Json = False,
) -> None:
    """Train arms to the same entropies or as they come, and see what differs; goes on trial by trial."""
    from isoscope.cli.screen import terminal as screen
    from isoscope.cli.screen.finish import finish
    from isoscope.lab.contrast import contrast as lab
    from isoscope.lab.train.experiment import Experiment, device_for
    from isoscope.lab.train.training import Recipe

    recipe = Recipe(steps=steps, batch_size=batch_size, rate=rate, bfloat16=bfloat16)
    asked = lab.contrast(
        Experiment(
            task=task, layers=layers, width=width, heads=heads, length=length, data=data, recipe=recipe
        ),
        parse_names(attention) or [],
        parse_names(norm) or [],
        [each.strip() for given in penalty or [lab.NO_PENALTY] for each in given.split(";")],
        lab.parse_entropies(entropies),
        seeds,
        strength,
        probe,
    )
    share, where = parse_share(only, "--only"), device_for(device)
    folder = lab.open_contrast(asked, out or default_out(f"contrast {task}", lab.run_of(asked).id))
    with screen.bar(f"contrast of {len(asked.arms)} arms: trials") as progress:
        for done, total in lab.make(asked, folder, device=where, share=share, parallel=parallel):
            progress(done, total)
    finish(folder, json=json)
