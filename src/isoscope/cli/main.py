"""The command `isoscope`: gathers the verbs, and turns an IsoscopeError into one sentence and exit 2.

Nothing heavy is imported before a verb runs, so that `--help` answers at once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps

import typer

from isoscope.cli import (
    advise,
    block,
    cloud,
    compare,
    contrast,
    demo,
    figure,
    impact,
    listing,
    measure,
    repair,
    report,
    reproduce,
    sweep,
    train,
    watch,
    weights,
)
from isoscope.errors import IsoscopeError

app = typer.Typer(
    name="isoscope",
    help="A microscope for the geometry of neural representations.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _verb(name: str, function: Callable[..., None]) -> None:
    """Add a verb; Ctrl-C in it ends with a sentence and exit 130."""

    @wraps(function)
    def run(*args: object, **options: object) -> None:
        try:
            function(*args, **options)
        except KeyboardInterrupt:
            typer.echo(
                "isoscope: stopped; what was finished is kept, and the same command goes on.", err=True
            )
            raise typer.Exit(130) from None

    app.command(name=name)(run)


_verb("measure", measure.measure)
_verb("weights", weights.weights)
_verb("cloud", cloud.cloud)
_verb("compare", compare.compare)
_verb("list", listing.list_)
_verb("report", report.report)
_verb("watch", watch.watch)
_verb("figure", figure.figure)
_verb("demo", demo.demo)
_verb("train", train.train)
_verb("contrast", contrast.contrast)
_verb("block", block.block)
_verb("sweep", sweep.sweep)
_verb("advise", advise.advise)
_verb("repair", repair.repair)
_verb("impact", impact.impact)
_verb("reproduce", reproduce.reproduce)


def _version(asked: bool) -> None:
    if asked:
        from isoscope import __version__

        typer.echo(f"isoscope {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version."
    ),
) -> None:
    pass


def main() -> None:
    """Run the command line."""
    try:
        app()
    except IsoscopeError as error:
        typer.echo(f"isoscope: {error}", err=True)
        sys.exit(2)
