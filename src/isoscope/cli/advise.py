"""`isoscope advise`: one page on a space of vectors: what it looks like, what makes it so, what to do."""

from __future__ import annotations

from typing import Annotated

import typer

from isoscope.cli.options import Json, Out


def advise(
    model: Annotated[
        str,
        typer.Argument(
            help="A hub id or a name of the zoo (@revision may follow), a folder, or a file of vectors "
            "(.npy, .npz, .parquet, .safetensors or .csv)."
        ),
    ],
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
    layer: Annotated[str, typer.Option(help="output, or the number of a layer.")] = "output",
    pool: Annotated[
        str, typer.Option(help="mean, cls or last: one vector a sequence; token: every one.")
    ] = "mean",
    limit: Annotated[
        int, typer.Option(min=0, help="At most so many sequences, or vectors of a file; 0 for all.")
    ] = 4096,
    max_length: Annotated[
        int | None, typer.Option(help="Tokens a sequence. [default: the model's limit, at most 512]")
    ] = None,
    batch_size: Annotated[int, typer.Option(help="Sequences at a time.")] = 16,
    device: Annotated[
        str | None, typer.Option(help="cpu, cuda, cuda:1, mps. [default: the GPU if there is one]")
    ] = None,
    array: Annotated[
        str | None, typer.Option(help="Which array or column, where a file of vectors has several.")
    ] = None,
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
