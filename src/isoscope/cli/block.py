"""`isoscope block`: a fresh Transformer block whose inputs have a common bias."""

from __future__ import annotations

from typing import Annotated

import typer

from isoscope.cli.options import Json, Out, parse_names
from isoscope.results.place import default_out


def block(
    norm: Annotated[
        str, typer.Option(help="post, pre, none, or another of `isoscope list norms`; several with commas.")
    ] = "post",
    bias_norms: Annotated[
        str, typer.Option(help="Norms of the bias that is added to every input, separated by commas.")
    ] = "0,1,5,10,20,50,100,200",
    width: Annotated[int, typer.Option(min=1, help="Dimensions of a vector.")] = 768,
    heads: Annotated[int, typer.Option(min=1, help="Heads of attention.")] = 12,
    length: Annotated[int, typer.Option(help="Vectors a sequence.")] = 512,
    sequences: Annotated[int, typer.Option(help="How many sequences.")] = 16,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds; an interval takes three.")] = 1,
    inputs: Annotated[
        str, typer.Option(help="normalised (every vector of norm √d) or raw (as BERT's table starts).")
    ] = "normalised",
    passes: Annotated[
        int, typer.Option(min=0, help="How often two of the sequences pass through; 0: not again.")
    ] = 12,
    out: Out = None,
    json: Json = False,
) -> None:
    """Add a common bias to what enters an untrained block, and see what becomes of it; grows by seeds."""
    from isoscope.cli.screen import terminal as screen
    from isoscope.cli.screen.finish import finish
    from isoscope.lab.block import block as lab
    from isoscope.results.store import open_run

    setting = lab.Setting(width, heads, length, sequences, inputs, passes)
    norms = list(dict.fromkeys(parse_names(norm) or ["post"]))
    for each in norms:
        setting.shape(each)  # a norm that does not exist is told before a folder is made
    asked = lab.units(norms, lab.parse_bias_norms(bias_norms), seeds)
    run = lab.run_of(setting)
    folder = open_run(out or default_out("block", run.id), run)
    with screen.bar("untrained blocks") as progress:
        for done, total in lab.make(setting, asked, folder):
            progress(done, total)
    finish(folder, json=json)
