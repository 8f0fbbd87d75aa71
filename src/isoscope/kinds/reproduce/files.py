"""The figures of a reproduction that are written beside its page: one per claim."""

from __future__ import annotations

from isoscope.kinds.reproduce.judged import claims_of
from isoscope.kinds.reproduce.page import printed_claim
from isoscope.results.store import RunFolder


def files_of(folder: RunFolder) -> dict[str, bytes]:
    """The figures for print in every format, by the name of their file."""
    return {
        f"figures/{each.claim.name}.{suffix}": body
        for each in claims_of(folder)[1]
        for suffix, body in printed_claim(each.charts()).items()
    }
