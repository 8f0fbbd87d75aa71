"""`isoscope advise`: one page on a space of vectors: what it looks like, what makes it so, what to do."""

from __future__ import annotations

from typing import Annotated

import typer

from isoscope.cli.options import (
    Array,
    BatchSize,
    Device,
    Json,
    Layer,
    Limit,
    MaxLength,
    ModelOrVectors,
    Out,
    Pool,
)


def advise(
    model: ModelOrVectors,
    data: Annotated[
        str,
        typer.Option(
            "--data",
            "--fit",
            help="Of a model: 'embedded', a text or JSONL file, a folder, a dataset (id:split:column).",
        ),
    ] = "embedded",
    recipe: Annotated[
        str | None,
        typer.Option(
            "--with",
            help="Repairs to try, separated by semicolons, for example 'centre;abtt,whiten:64'. "
            "[default: each of `isoscope repair`]",
        ),
    ] = None,
    layer: Layer = "output",
    pool: Pool = "mean",
    limit: Limit = 4096,
    max_length: MaxLength = None,
    batch_size: BatchSize = 16,
    device: Device = None,
    array: Array = None,
    out: Out = None,
    json: Json = False,
) -> None:
    """Say what a space of vectors looks like, what makes it so, what repairs would change, and what to do."""
    from isoscope.cli.screen.finish import finish
    from isoscope.cli.screen.terminal import TELLING
    from isoscope.kinds.advise.make import advise as advised

    folder = advised(
        model,
        data=data,
        repairs=recipe,
        layer=layer,
        pool=pool,
        limit=limit or None,
        max_length=max_length,
        batch_size=batch_size,
        device=device,
        array=array,
        out=out,
        telling=TELLING,
    )
    finish(folder, json=json)
