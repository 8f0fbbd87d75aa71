"""The figure of a contrast that is written beside its page."""

from __future__ import annotations

from isoscope.kinds.contrast.figures import printed_contrast
from isoscope.kinds.contrast.fitted import fitted
from isoscope.results.store import RunFolder


def files_of(folder: RunFolder) -> dict[str, bytes]:
    """The figure for print in every format, by the name of its file."""
    found = fitted(folder)
    drawn = printed_contrast(found.points, found.lines, found.differences, found.arms, folder.run.measures)
    return {f"figure.{suffix}": body for suffix, body in drawn.items()}
