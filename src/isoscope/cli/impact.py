"""`isoscope impact`: does a repair matter? Tasks before it and after it, layer by layer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from isoscope.cli.options import AtLeast0, AtLeast2, Limit, Names, make_run, verb

HELP = {
    "model": "A hub id or a name of the zoo (@revision may follow), or a folder.",
    "pairs": "Sentence pairs with scores, .tsv or .csv: sentence1, sentence2, score. May be given again.",
    "labels": "Labelled texts, a line each: label, tab, text. A fifth is judged; or two files, "
    "FITTED,JUDGED. May be given again.",
    "retrieve": "A line each: query, tab, a document that answers it. May be given again.",
    "text": "Of a causal language model: text whose perplexity is judged.",
    "fit": "What repairs are fitted on: a text a line, JSONL (file:column), a dataset, or a table of "
    "pairs. [default: the fitting part of --labels]",
    "leave_out": "Fit without the texts that are judged, not refuse them.",
    "repairs": "Repairs, separated by semicolons; steps of one by commas, as in `isoscope repair`.",
    "layers": "ends (first and last), all, numbers '0,6', or globs 'layer.*,output'.",
    "pool": "mean, cls or last: what the vector of a text is.",
    "readers": "Of --labels: standardised, ridge (vectors as they are), unpenalised; or several.",
    "sequences": "Of --text, at most so many sequences.",
    "seed": "Decides draws, folds and samples.",
}


@verb(HELP)
def impact(
    model: str, pairs: list[str] | None = None, labels: list[str] | None = None,
    retrieve: list[str] | None = None, text: str | None = None, fit: str | None = None,
    leave_out: Annotated[bool, Option("--leave-out-overlap")] = False,
    repairs: Annotated[str, Option("--with")] = "centre;standardise;abtt;whiten;rogue;cluster-abtt",
    layers: str = "ends", pool: str = "mean", readers: Names = "standardised",
    limit: Limit = 10_000, sequences: AtLeast2 = 64, max_length: int | None = None, batch_size: int = 32,
    device: str | None = None, seed: AtLeast0 = 0, out: Path | None = None, json: bool = False,
) -> object:  # fmt: skip
    """Judge repairs by tasks: helped, hurt, no difference at this n, or cannot matter."""
    options = dict(locals(), pairs=pairs or (), labels=labels or (), retrieve=retrieve or ())
    return make_run("isoscope.repair.impact.run:impact", options)
