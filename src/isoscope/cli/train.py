"""`isoscope train`: a small model learns a task while it is watched."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from isoscope.cli.options import LAB, AtLeast0, AtLeast1, AtLeast2, Rate, Task, filled, verb
from isoscope.results.place import default_out

HELP = LAB | {
    "model": "transformer, or cnn for the task images.",
    "attention": "How it attends; see `isoscope list variants`.",
    "norm": "Where it is normed; see `isoscope list norms`. Of a cnn: batch or none. [default: pre; batch]",
    "penalty": "As in locater=.1,target=1, several joined by +; see `isoscope list penalties`.",
    "checkpoints": "'log' (1, 2, 4, 8, …), 'log:32' (so many on a log scale) or every so many steps; looks "
    "are taken there too.",
    "compiled": "Compile the model; for a GPU.",
}


@verb(HELP)
def train(
    task: Task = "characters", model: str = "transformer", attention: str = "softmax",
    norm: str | None = None, penalty: str = "",
    layers: AtLeast1 = 4, width: AtLeast1 = 128, heads: AtLeast1 = 4, length: AtLeast2 = 128,
    steps: AtLeast1 = 400, batch_size: AtLeast1 = 16, rate: Rate = 3e-3, seed: AtLeast0 = 0,
    data: str = "embedded", checkpoints: str = "log", device: str | None = None, bfloat16: bool = False,
    compiled: Annotated[bool, Option("--compile")] = False, out: Path | None = None, json: bool = False,
) -> object:  # fmt: skip
    """Train a small model with any attention, norm or penalty, and watch its geometry; resumes by itself."""
    options = locals()
    from isoscope.cli.screen.live import LiveView
    from isoscope.lab.train.experiment import USUAL, Experiment, Underway
    from isoscope.lab.train.training import Recipe
    from isoscope.models.source import place_for
    from isoscope.results.store import read_run

    options["norm"] = norm or USUAL.get(model, "")
    experiment = filled(Experiment, options, recipe=filled(Recipe, options))
    where = str(place_for(device))
    folder = out or default_out(experiment.name, experiment.digest)
    with LiveView(f"{experiment.name} in training", steps=steps) as view:
        underway = Underway(experiment, folder, device=where, on_alarm=view.alarm, sinks=(view,))
        with underway.monitor as monitor:
            view.watch(monitor)
            underway.go_on(view.progress)
    return read_run(folder)
