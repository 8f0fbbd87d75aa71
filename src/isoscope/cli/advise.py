"""`isoscope advise`: one page on a space of vectors: what it looks like, what makes it so, what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from isoscope.cli.options import MODEL_OR_VECTORS, Limit, make_run, verb

HELP = {
    "model": MODEL_OR_VECTORS,
    "data": "Of a model: 'embedded', a text or JSONL file, a folder, a dataset (id:split:column).",
    "repairs": "Repairs to try, separated by semicolons, for example 'centre;abtt,whiten:64'. "
    "[default: each of `isoscope repair`]",
}


@verb(HELP)
def advise(
    model: str, data: Annotated[str, Option("--data", "--fit")] = "embedded",
    repairs: Annotated[str | None, Option("--with")] = None, layer: str = "output", pool: str = "mean",
    limit: Limit = 4096, max_length: int | None = None, batch_size: int = 16, device: str | None = None,
    array: str | None = None, out: Path | None = None, json: bool = False,
) -> object:  # fmt: skip
    """Say what a space of vectors looks like, what makes it so, what repairs would change, and what to do."""
    return make_run("isoscope.kinds.advise.make:advise", locals())
