"""Checkpoints of a training: weights at chosen steps, and the last state, each file whole or not there."""

from __future__ import annotations

import io
from pathlib import Path

import torch
from safetensors.torch import save

from isoscope.errors import IsoscopeError, first_line
from isoscope.lab.train.training import Training
from isoscope.results import store


def due(asked: str, steps: int) -> tuple[int, ...]:
    """The steps with a checkpoint: first and last, and between them the powers of 2 (`log`), n or every nth.

    `log:n` is n steps from 1 to the last, spread as evenly on a log scale as whole numbers can be.

    >>> due("log", 10), due("4", 10), due("log:6", 100)
    ((0, 1, 2, 4, 8, 10), (0, 4, 8, 10), (0, 1, 3, 7, 17, 41, 100))
    """
    log, _, count = asked.partition(":")
    if asked == "log":
        between = [2**power for power in range(steps.bit_length())]
    elif log == "log" and _is_count(count):
        between = _spread(int(count), steps)
    elif _is_count(asked):
        between = list(range(0, steps, int(asked)))
    else:
        raise IsoscopeError(
            f"--checkpoints is 'log' or a number of steps, 1 or more; got '{asked}'. 'log:32' is 32 of them "
            "on a log scale."
        )
    return tuple(sorted({0, *(step for step in between if step < steps), steps}))


def _is_count(written: str) -> bool:
    return written.isdecimal() and written.isascii() and int(written) > 0


def _spread(count: int, steps: int) -> list[int]:
    """So many numbers from 1 to `steps`, each as many times the last as is needed to arrive: no two alike."""
    found = [1]
    while len(found) < min(count, steps):
        left = count - len(found)
        found.append(max(found[-1] + 1, round(found[-1] * (steps / found[-1]) ** (1 / left))))
    return found


class Checkpoints:
    """The checkpoints in a run folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "checkpoints"
        self.last = folder / "state.pt"

    def keep(self, training: Training) -> None:
        """Keep the weights of this step, then the state to go on from."""
        self.folder.mkdir(parents=True, exist_ok=True)
        weights = training.model.state_dict().items()
        near = {name: weight.detach().cpu().contiguous() for name, weight in weights}
        store.write_whole(self.folder / f"step-{training.done:06d}.safetensors", save(near))
        body = io.BytesIO()
        torch.save(training.state(), body)
        store.write_whole(self.last, body.getvalue())

    def restore(self, training: Training) -> int | None:
        """Go on from the last state; gives its step, or None where there is none."""
        # what was half written when an earlier training was killed
        for aside in [*self.folder.glob(".step-*"), *self.last.parent.glob(f".{self.last.name}.*")]:
            aside.unlink(missing_ok=True)
        if not self.last.exists():
            return None
        try:
            training.restore(torch.load(self.last, map_location=training.device, weights_only=True))
        except Exception as reason:  # whatever a damaged file makes of unpickling
            why = f"{first_line(reason)}. Remove it to train from the beginning."
            raise IsoscopeError(f"cannot go on from {self.last}: {why}") from reason
        return training.done
