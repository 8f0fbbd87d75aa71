"""`isoscope contrast`: arms against each other, at the same sharpness or as they come."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from isoscope.cli.options import LAB, AtLeast1, AtLeast2, Rate, Task, filled, parse_names, parse_share, verb
from isoscope.results.place import default_out

HELP = LAB | {
    "attention": "Variants by name, separated by commas, the reference first; see `isoscope list variants`.",
    "norm": "Norms, separated by commas; every variant is tried with each.",
    "penalty": "Penalties, separated by semicolons; 'none' is without. May be given again: every arm is "
    "tried with each.",
    "entropies": "To how many entropies each is driven (from .35 to .75), or a list: .4,.6; 'none': arms as "
    "they come, weights and all.",
    "probe": "What a linear reader is to find in the states: 'order', a file of label, tab, text, or a "
    "folder with a folder a class.",
    "strength": "How strongly they are driven.",
    "only": "A share of the trials: i/n is every nth, from the ith on, the first being 0.",
    "parallel": "Trials that are made at once, in processes.",
}


@verb(HELP)
def contrast(
    task: Task = "characters", attention: str = "softmax,qk-norm", norm: str = "pre",
    penalty: list[str] | None = None, entropies: str = "3", probe: str = "", seeds: AtLeast1 = 5,
    strength: Annotated[float, Option(min=0.0)] = 10.0,
    layers: AtLeast1 = 4, width: AtLeast1 = 128, heads: AtLeast1 = 4, length: AtLeast2 = 128,
    steps: AtLeast1 = 400, batch_size: AtLeast1 = 16, rate: Rate = 3e-3, data: str = "embedded",
    device: str | None = None, bfloat16: bool = False, only: str = "0/1", parallel: AtLeast1 = 1,
    out: Path | None = None, json: bool = False,
) -> object:  # fmt: skip
    """Train arms to the same entropies or as they come, and see what differs; goes on trial by trial."""
    options = locals()
    from isoscope.cli.screen import terminal
    from isoscope.lab.contrast import contrast as lab
    from isoscope.lab.train.experiment import Experiment
    from isoscope.lab.train.training import Recipe
    from isoscope.models.source import place_for

    alike = {name: options[name] for name in ("task", "layers", "width", "heads", "length", "data")}
    variants, norms = parse_names(attention) or [], parse_names(norm) or []
    penalties = [each.strip() for given in penalty or [lab.NO_PENALTY] for each in given.split(";")]
    base = Experiment(**alike, recipe=filled(Recipe, options))
    driven = lab.parse_entropies(entropies)
    asked = lab.contrast(base, variants, norms, penalties, driven, seeds, strength, probe)
    share, where = parse_share(only, "--only"), str(place_for(device))
    folder = lab.open_contrast(asked, out or default_out(f"contrast {task}", lab.run_of(asked).id))
    with terminal.bar(f"contrast of {len(asked.arms)} arms: trials") as progress:
        for done, total in lab.make(asked, folder, device=where, share=share, parallel=parallel):
            progress(done, total)
    return folder
