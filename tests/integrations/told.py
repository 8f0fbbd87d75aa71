"""What a sink is told by a Monitor, to hold what a tracker shows against."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import torch

from isoscope.run.monitor.monitor import Monitor, Sink
from tests.integrations.small import language_model, probe, sentences

Said = dict[int, dict[str, float]]


def watched(sink: Sink) -> Said:
    """Train a little with this sink; gives what it was told."""
    said: Said = {}

    def listen(step: int, summaries: Mapping[str, float]) -> None:
        said[step] = dict(summaries)

    model = language_model()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    with Monitor(model, probe(), every=2, budget=None, sinks=[sink, listen]) as monitor:
        for step, batch in enumerate(sentences(5, seed=2)):
            monitor.step(step)
            model(**{name: row[None] for name, row in batch.items()}).loss.backward()
            optimiser.step()
            optimiser.zero_grad()
    assert list(said) == [0, 2, 4]
    assert 10 <= len(said[0]) <= 20
    return said


def assert_shown(shown: Said, said: Said, *, rel: float = 1e-12) -> None:
    assert shown.keys() == said.keys()
    for step, numbers in said.items():
        assert shown[step] == pytest.approx(numbers, rel=rel, nan_ok=True)
