"""Checkpoints of a training: weights at chosen steps, and the last state, each file whole or not there."""

from __future__ import annotations

import io
from pathlib import Path

import torch
from safetensors.torch import save

from isoscope.errors import IsoscopeError
from isoscope.lab.training import Training
from isoscope.results import store


def due(asked: str, steps: int) -> tuple[int, ...]:
    """The steps with a checkpoint: first and last, and between them the powers of 2 (`log`) or every nth.

    >>> due("log", 10), due("4", 10)
    ((0, 1, 2, 4, 8, 10), (0, 4, 8, 10))
    """
    if asked == "log":
        between = [2**power for power in range(steps.bit_length())]
    elif asked.isdecimal() and asked.isascii() and int(asked) > 0:
        between = list(range(0, steps, int(asked)))
    else:
        raise IsoscopeError(f"--checkpoints is 'log' or a number of steps, 1 or more; got '{asked}'.")
    return tuple(sorted({0, *(step for step in between if step < steps), steps}))


class Checkpoints:
    """The checkpoints in a run folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "checkpoints"
        self.last = folder / "state.pt"

    def keep(self, training: Training) -> None:
        """Keep the weights of this step, then the state to go on from."""
        self.folder.mkdir(parents=True, exist_ok=True)
        near = {
            name: weight.detach().cpu().contiguous() for name, weight in training.model.state_dict().items()
        }
        store.write_whole(self.folder / f"step-{training.done:06d}.safetensors", save(near))
        body = io.BytesIO()
        torch.save(training.state(), body)
        store.write_whole(self.last, body.getvalue())

    def restore(self, training: Training) -> int | None:
        """Go on from the last state; gives its step, or None where there is none."""
        self._clear()
        if not self.last.exists():
            return None
        try:
            training.restore(torch.load(self.last, map_location=training.device, weights_only=True))
        except Exception as reason:
            # whatever a damaged file makes of unpickling
            why = (str(reason).strip().splitlines() or [type(reason).__name__])[0].rstrip(".")
            raise IsoscopeError(
                f"cannot go on from {self.last}: {why}. Remove it to train from the beginning."
            ) from reason
        return training.done

    def _clear(self) -> None:
        """Take away what was half written when an earlier training was killed."""
        for aside in [*self.folder.glob(".step-*"), *self.last.parent.glob(f".{self.last.name}.*")]:
            aside.unlink(missing_ok=True)
