"""`isoscope report`: the page of a run, made anew from its rows."""

from __future__ import annotations

from pathlib import Path

from isoscope.cli.options import verb


@verb({})
def report(run: Path) -> None:
    """Write the page of a run again, from its rows alone."""
    from isoscope.cli.screen.finish import finish
    from isoscope.results.store import read_run

    finish(read_run(run), json=False)
