"""A step of training as one CUDA graph: recorded once, replayed from then on.

A small model waits for Python: a recorded step sends its hundreds of kernels at once. The first steps are
made one by one, while things are allocated, and so are those that cannot be recorded.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from isoscope.lab.tasks.base import Examples

ALONE = 3  # steps before one is recorded


class Replayed:
    """Calls `step` on batches of one shape; it must work on the GPU alone and end where it began."""

    def __init__(self, step: Callable[[Examples], None]) -> None:
        self._step = step
        self._made = 0
        self._aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self._graph: torch.cuda.CUDAGraph | None = None
        self._given: Examples | None = None  # what the recorded step reads: batches are copied there
        self.refused = ""

    def __call__(self, some: Examples) -> None:
        """Make the step on a batch that is on the GPU."""
        self._made += 1
        if self._made > ALONE and self._graph is None and not self.refused:
            self._record(some)
        if self._graph is None or self._given is None:
            self._alone(some)
            return
        self._given.inputs.copy_(some.inputs)
        self._given.targets.copy_(some.targets)
        self._graph.replay()

    def _alone(self, some: Examples) -> None:
        """On the stream that is recorded: gradients are added up on the stream of their first step."""
        self._aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._aside):
            self._step(some)
        torch.cuda.current_stream().wait_stream(self._aside)

    def _record(self, some: Examples) -> None:
        given, graph = Examples(some.inputs.clone(), some.targets.clone()), torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, stream=self._aside):
                self._step(given)
        except RuntimeError as reason:
            torch.cuda.synchronize()
            self.refused = str(reason).splitlines()[0]
            return
        self._given, self._graph = given, graph
