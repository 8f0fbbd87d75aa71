"""`isoscope block`: a fresh Transformer block whose inputs have a common bias."""

from __future__ import annotations

from pathlib import Path

from isoscope.cli.options import LAB, AtLeast0, AtLeast1, filled, parse_names, verb
from isoscope.results.place import default_out

HELP = LAB | {
    "norm": "post, pre, none, or another of `isoscope list norms`; several with commas.",
    "bias_norms": "Norms of the bias that is added to every input, separated by commas.",
    "sequences": "How many sequences.",
    "inputs": "normalised (every vector of norm √d) or raw (as BERT's table starts).",
    "passes": "How often two of the sequences pass through; 0: not again.",
}


@verb(HELP)
def block(
    norm: str = "post", bias_norms: str = "0,1,5,10,20,50,100,200",
    width: AtLeast1 = 768, heads: AtLeast1 = 12, length: int = 512, sequences: int = 16, seeds: AtLeast1 = 1,
    inputs: str = "normalised", passes: AtLeast0 = 12, out: Path | None = None, json: bool = False,
) -> object:  # fmt: skip
    """Add a common bias to what enters an untrained block, and see what becomes of it; grows by seeds."""
    options = locals()
    from isoscope.cli.screen import terminal
    from isoscope.lab.block import block as lab
    from isoscope.results.store import open_run

    setting = filled(lab.Setting, options)
    norms = list(dict.fromkeys(parse_names(norm) or ["post"]))
    for each in norms:
        setting.shape(each)  # a norm that does not exist is told before a folder is made
    asked = lab.units(norms, lab.parse_bias_norms(bias_norms), seeds)
    run = lab.run_of(setting)
    folder = open_run(out or default_out("block", run.id), run)
    with terminal.bar("untrained blocks") as progress:
        for done, total in lab.make(setting, asked, folder):
            progress(done, total)
    return folder
