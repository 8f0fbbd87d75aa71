"""`isoscope weights`: a model's weights, without running it; with data, what they do on it."""

from __future__ import annotations

from typing import Annotated

import typer

from isoscope.cli.options import (
    BatchSize,
    Config,
    Device,
    Json,
    Limit,
    MaxLength,
    ModelOrWeights,
    Out,
    Pack,
    Revision,
    Seed,
    Tokens,
    TrustRemoteCode,
)


def weights(
    model: ModelOrWeights,
    revision: Revision = None,
    config: Config = None,
    query: Annotated[
        str | None,
        typer.Option(help="Names of the queries' weights, a regular expression with a group for the layer."),
    ] = None,
    key: Annotated[str | None, typer.Option(help="The same for the keys.")] = None,
    length: Annotated[int, typer.Option(min=2, help="Positions that regimes and ρ(t) are told for.")] = 512,
    data: Annotated[
        str | None,
        typer.Option(help="Run the model over this as well: 'embedded', a file, a folder, id:split:column."),
    ] = None,
    limit: Limit = 256,
    max_length: MaxLength = None,
    batch_size: BatchSize = 16,
    device: Device = None,
    pack: Pack = True,
    tokens: Tokens = "auto",
    trust_remote_code: TrustRemoteCode = False,
    seed: Seed = 0,
    out: Out = None,
    json: Json = False,
) -> None:
    """Measure a model's weights without running it: queries and keys, vocabularies, the final norm."""
    from isoscope.cli.screen import terminal

    with terminal.bar(f"opening {model}"):  # before torch, which takes seconds to import
        from isoscope.cli.screen.finish import finish, rescuing
        from isoscope.run.weigh.make import weights as weighed

    with rescuing(json=json):
        folder = weighed(
            model,
            revision=revision,
            config=config,
            query=query,
            key=key,
            length=length,
            data=data,
            limit=limit or None,
            max_length=max_length,
            batch_size=batch_size,
            device=device,
            pack=pack,
            tokens=tokens,
            trust_remote_code=trust_remote_code,
            seed=seed,
            out=out,
            telling=terminal.TELLING,
        )
    finish(folder, json=json)
