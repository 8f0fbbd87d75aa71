"""The command `isoscope`: gathers the verbs, and turns an IsoscopeError into one sentence and exit 2.

Nothing heavy is imported before a verb runs, so that `--help` answers at once.
"""

from __future__ import annotations

import sys

import typer

from isoscope.cli.advise import advise
from isoscope.cli.block import block
from isoscope.cli.cloud import cloud
from isoscope.cli.compare import compare
from isoscope.cli.contrast import contrast
from isoscope.cli.demo import demo
from isoscope.cli.figure import figure
from isoscope.cli.impact import impact
from isoscope.cli.listing import list_
from isoscope.cli.measure import measure
from isoscope.cli.repair import repair
from isoscope.cli.report import report
from isoscope.cli.reproduce import reproduce
from isoscope.cli.sweep import sweep
from isoscope.cli.train import train
from isoscope.cli.watch import watch
from isoscope.cli.weights import weights
from isoscope.errors import IsoscopeError

app = typer.Typer(
    name="isoscope",
    help="A microscope for the geometry of neural representations.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
VERBS = (
    measure, weights, cloud, compare, list_, report, watch, figure, demo, train, contrast, block, sweep,
    advise, repair, impact, reproduce,
)  # fmt: skip
for each in VERBS:
    app.command(name=each.__name__.rstrip("_"))(each)


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
