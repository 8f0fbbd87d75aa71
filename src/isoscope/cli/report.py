"""`isoscope report`: the page of a run, made anew from its rows."""

from __future__ import annotations

from pathlib import Path

from isoscope.cli.options import verb


@verb({})
def report(run: Path) -> object:
    """Write the page of a run again, from its rows alone."""
    from isoscope.results.store import read_run

    return read_run(run)
