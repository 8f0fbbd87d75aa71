"""`isoscope impact`: does a repair matter? Tasks before it and after it, layer by layer."""

from __future__ import annotations

from typing import Annotated

import typer

from isoscope.cli.options import Json, Out, default_out, parse_names


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
    limit: Annotated[
        int, typer.Option(min=0, help="At most so many of each file, by a hash; 0 for all.")
    ] = 10_000,
    sequences: Annotated[int, typer.Option(min=2, help="Of --text, at most so many sequences.")] = 64,
    max_length: Annotated[
        int | None, typer.Option(help="Tokens a text. [default: the model's limit, at most 512]")
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Texts at a time.")] = 32,
    device: Annotated[
        str | None, typer.Option(help="cpu, cuda, cuda:1, mps. [default: the GPU if there is one]")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Decides draws, folds and samples.")] = 0,
    out: Out = None,
    json: Json = False,
) -> None:
    """Judge repairs by tasks: helped, hurt, no difference at this n, or cannot matter."""
    from isoscope.cli.screen import terminal as screen
    from isoscope.cli.screen.finish import finish
    from isoscope.repair.impact.run import Question, make, prepare, run_of, vectors_of
    from isoscope.results.store import open_run

    question = Question(
        model,
        pairs=tuple(pairs or ()),
        labels=tuple(labels or ()),
        retrieve=tuple(retrieve or ()),
        text=text,
        fit=fit,
        recipes=recipes,
        layers=layers,
        pool=pool,
        readers=tuple(parse_names(readers) or ()),
        limit=limit or None,
        sequences=sequences,
        max_length=max_length,
        batch_size=batch_size,
        seed=seed,
        leave_out=leave_out_overlap,
    )
    made = prepare(question, device)
    run = run_of(made)
    folder = open_run(out or default_out(f"impact {made.model.name}", run.id), run)
    if made.left(folder):
        with screen.bar(f"reading {len(made.texts)} texts") as progress:
            vectors = vectors_of(made, folder, progress)
        with screen.bar("judging repairs") as progress:
            for done, total in make(made, vectors, folder):
                progress(done, total)
    else:
        screen.warn([f"{folder.path} has these rows already; nothing is judged again"])
    finish(folder, json=json)
