"""The figures of a sweep that are written beside its page: trajectories and clouds."""

from __future__ import annotations

from isoscope.kinds.sweep.printed import printed_sweep
from isoscope.kinds.sweep.rows import read_sweep
from isoscope.results.store import RunFolder


def files_of(folder: RunFolder) -> dict[str, bytes]:
    """The figures for print in every format, by the name of their file."""
    drawn = printed_sweep(read_sweep(folder), folder.run.measures)
    return {f"figures/{name}": body for name, body in drawn.items()}
