"""Where rows come from: the question that was asked, and the versions that answered it."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version

from isoscope import __version__
from isoscope.measures.base import Measure
from isoscope.results.run import Run

_LIBRARIES = ("torch", "transformers", "numpy", "scipy")


Explained = Mapping[str, Mapping[str, object]]


def new_run(
    kind: str, title: str, question: Mapping[str, object], measures: Iterable[Measure],
    told: Explained | None = None,
) -> Run:  # fmt: skip
    """A run of this kind, with the measures' own explanations, those `told` besides, and today's versions."""
    return Run(
        kind=kind,
        title=title,
        question=question,
        measures={**{measure.name: measure.explanation() for measure in measures}, **(told or {})},
        versions={
            "isoscope": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in _LIBRARIES},
        },
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
