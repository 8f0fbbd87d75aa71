"""`isoscope impact`: does a repair matter? Tasks before it and after it, layer by layer."""

from __future__ import annotations

from typing import Annotated

import typer

from isoscope.cli.options import BatchSize, Device, Json, Limit, MaxLength, Out, parse_names


def impact(
    model: Annotated[
        str, typer.Argument(help="A hub id or a name of the zoo (@revision may follow), or a folder.")
    ],
    pairs: Annotated[
        list[str] | None,
        typer.Option(
            help="Sentence pairs with scores, .tsv or .csv: sentence1, sentence2, score. May be given again."
        ),
    ] = None,
    labels: Annotated[
        list[str] | None,
        typer.Option(
            help="Labelled texts, a line each: label, tab, text. A fifth is judged; or two files, "
            "FITTED,JUDGED. May be given again."
        ),
    ] = None,
    retrieve: Annotated[
        list[str] | None,
        typer.Option(help="A line each: query, tab, a document that answers it. May be given again."),
    ] = None,
    text: Annotated[
        str | None, typer.Option(help="Of a causal language model: text whose perplexity is judged.")
    ] = None,
    fit: Annotated[
        str | None,
        typer.Option(
            help="What repairs are fitted on: a text a line, JSONL (file:column), a dataset, or a table of "
            "pairs. [default: the fitting part of --labels]"
        ),
    ] = None,
    leave_out_overlap: Annotated[
        bool,
        typer.Option("--leave-out-overlap", help="Fit without the texts that are judged, not refuse them."),
    ] = False,
    recipes: Annotated[
        str,
        typer.Option(
            "--with",
            help="Repairs, separated by semicolons; steps of one by commas, as in `isoscope repair`.",
        ),
    ] = "centre;standardise;abtt;whiten;rogue;cluster-abtt",
    layers: Annotated[
        str, typer.Option(help="ends (first and last), all, numbers '0,6', or globs 'layer.*,output'.")
    ] = "ends",
    pool: Annotated[str, typer.Option(help="mean, cls or last: what the vector of a text is.")] = "mean",
    readers: Annotated[
        str,
        typer.Option(help="Of --labels: standardised, ridge (vectors as they are), unpenalised; or several."),
    ] = "standardised",
    limit: Limit = 10_000,
    sequences: Annotated[int, typer.Option(min=2, help="Of --text, at most so many sequences.")] = 64,
    max_length: MaxLength = None,
    batch_size: BatchSize = 32,
    device: Device = None,
    seed: Annotated[int, typer.Option(min=0, help="Decides draws, folds and samples.")] = 0,
    out: Out = None,
    json: Json = False,
) -> None:
    """Judge repairs by tasks: helped, hurt, no difference at this n, or cannot matter."""
    from isoscope.cli.screen.finish import finish
    from isoscope.cli.screen.terminal import TELLING
    from isoscope.repair.impact.run import impact as judged

    folder = judged(
        model,
        pairs=pairs or (),
        labels=labels or (),
        retrieve=retrieve or (),
        text=text,
        fit=fit,
        repairs=recipes,
        layers=layers,
        pool=pool,
        readers=parse_names(readers) or (),
        limit=limit or None,
        sequences=sequences,
        max_length=max_length,
        batch_size=batch_size,
        seed=seed,
        leave_out=leave_out_overlap,
        device=device,
        out=out,
        telling=TELLING,
    )
    finish(folder, json=json)
