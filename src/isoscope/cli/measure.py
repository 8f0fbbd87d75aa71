"""`isoscope measure`: a model over data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from isoscope.cli.options import Bytes, Limit, Names, make_run, verb

HELP = {
    "data": "'embedded', a text or JSONL file (file.jsonl:column), a folder of images or sounds, "
    "a dataset of the hub or in a folder (id:split:column).",
    "special": "Count special tokens as data.",
    "first": "Count position 0 as data.",
    "covariance_rows": "The share of the vectors that covariances are made of.",
}


@verb(HELP)
def measure(
    model: str, data: str = "embedded", limit: Limit = 256, max_length: int | None = None,
    batch_size: int = 16, device: str | None = None, dtype: str = "float32",
    measures: Names = None, layers: str = "*", heads: bool = False, counterfactual: bool = True,
    config: str | None = None, revision: str | None = None, pack: bool = True, tokens: str = "auto",
    special: Annotated[bool, Option("--count-special")] = False,
    first: Annotated[bool, Option("--count-first")] = False,
    trust_remote_code: bool = False, seed: int = 0, memory: Bytes = "2GB",
    covariance_rows: Annotated[float, Option(min=1e-9, max=1.0)] = 1.0,
    out: Path | None = None, json: bool = False,
) -> object:  # fmt: skip
    """Measure the geometry of a model's representations and its attention, layer by layer, exactly."""
    return make_run("isoscope.run.measure:measure", locals())
