"""`isoscope measure`: a model over data."""

from __future__ import annotations

from typing import Annotated

import typer

from isoscope.cli.options import (
    BatchSize,
    Config,
    Counterfactual,
    Device,
    Dtype,
    Json,
    Limit,
    MaxLength,
    Measures,
    Memory,
    ModelOrWeights,
    Out,
    Pack,
    Revision,
    Seed,
    Sites,
    Tokens,
    TrustRemoteCode,
    WithHeads,
    parse_bytes,
    parse_names,
)


def measure(
    model: ModelOrWeights,
    data: Annotated[
        str,
        typer.Option(
            help="'embedded', a text or JSONL file (file.jsonl:column), a folder of images or sounds, "
            "a dataset of the hub or in a folder (id:split:column)."
        ),
    ] = "embedded",
    limit: Limit = 256,
    max_length: MaxLength = None,
    batch_size: BatchSize = 16,
    device: Device = None,
    dtype: Dtype = "float32",
    measures: Measures = None,
    layers: Sites = "*",
    heads: WithHeads = False,
    counterfactual: Counterfactual = True,
    config: Config = None,
    revision: Revision = None,
    pack: Pack = True,
    tokens: Tokens = "auto",
    count_special: Annotated[
        bool, typer.Option("--count-special", help="Count special tokens as data.")
    ] = False,
    count_first: Annotated[bool, typer.Option("--count-first", help="Count position 0 as data.")] = False,
    trust_remote_code: TrustRemoteCode = False,
    seed: Seed = 0,
    memory: Memory = "2GB",
    covariance_rows: Annotated[
        float, typer.Option(help="The share of the vectors that covariances are made of.", min=1e-9, max=1.0)
    ] = 1.0,
    out: Out = None,
    json: Json = False,
) -> None:
    """Measure the geometry of a model's representations and its attention, layer by layer, exactly."""
    allowed = parse_bytes(memory)
    from isoscope.cli.screen.finish import finish, rescuing
    from isoscope.cli.screen.terminal import TELLING
    from isoscope.run.measure import measure as measured

    with rescuing(json=json):
        folder = measured(
            model,
            data,
            limit=limit or None,
            max_length=max_length,
            batch_size=batch_size,
            device=device,
            dtype=dtype,
            measures=parse_names(measures),
            layers=layers,
            heads=heads,
            counterfactual=counterfactual,
            config=config,
            revision=revision,
            pack=pack,
            tokens=tokens,
            special=count_special,
            first=count_first,
            trust_remote_code=trust_remote_code,
            seed=seed,
            memory=allowed,
            covariance_rows=covariance_rows,
            out=out,
            telling=TELLING,
        )
    finish(folder, json=json)
