"""The figure of an impact that is written beside its page."""

from __future__ import annotations

from isoscope.kinds.impact.effects import effects, ordered
from isoscope.kinds.impact.figures import printed_impact
from isoscope.results.store import RunFolder


def files_of(folder: RunFolder) -> dict[str, bytes]:
    """The figure for print in every format, by the name of its file."""
    rows = ordered(folder.frame(), folder.run.question)
    return {
        f"figure.{suffix}": body
        for suffix, body in printed_impact(effects(rows), folder.run.measures).items()
    }
