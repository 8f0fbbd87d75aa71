"""`isoscope compare`: runs and models side by side."""

from __future__ import annotations

from pathlib import Path

from isoscope.cli.options import AtLeast1, make_run, verb

HELP = {
    "what": "Run folders, or models, which are measured on embedded data.",
    "limit": "For models: at most so many sequences.",
}


@verb(HELP)
def compare(what: list[str], limit: AtLeast1 = 64, out: Path | None = None, json: bool = False) -> object:
    """Put runs and models side by side, and see whether anisotropy follows drift in each and over all."""
    return make_run("isoscope.run.compare:compare", locals())
