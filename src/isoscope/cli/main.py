"""The command `isoscope`: gathers the verbs, and turns an IsoscopeError into one sentence and exit 2.

Nothing heavy is imported before a verb runs, so that `--help` answers at once.
"""

from __future__ import annotations

import gc
import sys

import typer

from isoscope.errors import IsoscopeError
from isoscope.kinds.table import named

app = typer.Typer(
    name="isoscope",
    help="A microscope for the geometry of neural representations.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
VERBS = (
    "measure", "weights", "cloud", "compare", "list", "report", "watch", "figure", "demo", "train",
    "contrast", "block", "sweep", "advise", "repair", "impact", "reproduce",
)  # fmt: skip
"""The verbs in the order of the help: each is the function of its name in the module of its name."""
ALLOCATIONS = 50_000
"""After how many new objects the garbage collector runs. By Python's own 700 it takes a quarter of the start:
importing torch, transformers and a model makes millions of objects, which all stay."""
for each in VERBS:
    app.command(name=each)(named(f"isoscope.cli.{each}:{each}"))


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
    gc.set_threshold(ALLOCATIONS)
    try:
        app()
    except IsoscopeError as error:
        typer.echo(f"isoscope: {error}", err=True)
        sys.exit(2)
