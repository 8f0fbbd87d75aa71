"""A lesson: examples to learn from, others to be judged on, and what an answer costs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from isoscope.data.keys import content_hash
from isoscope.errors import IsoscopeError

HELD = 64  # sequences that are measured and judged on, and not trained on
NOTHING = -100  # a target that is not asked for


@dataclass(frozen=True, eq=False)
class Examples:
    """Inputs [n, t], or [n, t, c] of vectors, and what is to be answered."""

    inputs: Tensor
    targets: Tensor

    def __len__(self) -> int:
        return len(self.inputs)

    def to(self, device: torch.device | str) -> Examples:
        """The same on another device."""
        ours = (self.inputs, self.targets)
        if torch.device(device).type == "cuda":  # from memory that is not pinned, a copy waits for the GPU
            ours = (self.inputs.pin_memory(), self.targets.pin_memory())
        return Examples(*(x.to(device, non_blocking=True) for x in ours))


@dataclass(frozen=True, eq=False)
class Lesson:
    """How batches are drawn, what is held out, what an answer costs, and what a model of it must fit.

    `draw(random, n)` gives n examples by the random state; `chance` is the loss of one who knows nothing.
    """

    draw: Callable[[torch.Generator, int], Examples]
    held: Examples
    loss: Callable[[Tensor, Tensor], Tensor]
    chance: float
    unit: str
    vocabulary: int
    length: int
    causal: bool = True
    vectors: bool = False
    outputs: int | None = None
    pooled: bool = False
    facts: Mapping[str, object] = field(default_factory=dict)

    def batch(self, seed: int, step: int, size: int) -> Examples:
        """The batch of a step: it depends on nothing else, so that training can be taken up anywhere."""
        # by a hash: of a seed the generator heeds the lowest 32 bits only
        own = hashlib.blake2b(f"{seed} {step}".encode(), digest_size=4).digest()
        return self.draw(torch.Generator().manual_seed(int.from_bytes(own)), size)


def data_hash(*parts: Tensor) -> str:
    """Sixteen hex digits of what a lesson is made of: data that changed under its name is other data."""
    return content_hash(f"{tuple(part.shape)}".encode() + part.numpy().tobytes() for part in parts)


def token_loss(answers: Tensor, targets: Tensor) -> Tensor:
    """Mean of −log p(target) in nats, over the targets [b, t] that are asked for; answers [b, t, v]."""
    return F.cross_entropy(answers.flatten(0, -2).float(), targets.flatten(), ignore_index=NOTHING)


def class_loss(answers: Tensor, targets: Tensor) -> Tensor:
    """Mean of −log p(class) in nats; answers [b, v], targets [b]."""
    return F.cross_entropy(answers.float(), targets)


def frame_loss(answers: Tensor, targets: Tensor) -> Tensor:
    """Mean squared error; answers and targets [b, t, c]."""
    return F.mse_loss(answers.float(), targets)


def windows(line: Tensor, starts: Tensor, length: int) -> Tensor:
    """The `length` items of a line [n, ...] from each of `starts` [b] on, [b, length, ...]."""
    return line[starts[:, None] + torch.arange(length)]


def set_apart(line: Tensor, length: int, address: str) -> tuple[Tensor, Tensor]:
    """The beginning of a line, as sequences [n, length] to be judged on (64 or a tenth), and the rest."""
    if len(line) < 2 * (length + 1):
        raise IsoscopeError(
            f"data '{address}' holds {len(line)} items, and one sequence to learn from and one to be judged "
            f"on take {2 * (length + 1)}; give more data or a shorter --length."
        )
    count = max(1, min(HELD, len(line) // (10 * length)))
    held = line[: count * length + 1]
    return held, line[count * length :]
