"""Which positions count. Padding never does; special tokens and the first position by policy.

Special tokens are not data, and the first position is where attention parks: its vector can be a
thousand times longer than the others and drown them. Both are left out unless asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from isoscope.data.batch import Batch
from isoscope.errors import IsoscopeError


@dataclass(frozen=True)
class Policy:
    """Whether special tokens count, and whether the first position of a sequence does."""

    special: bool = False
    first: bool = False

    def counts(self, special: Tensor) -> Tensor:
        """Which positions of one sequence count, given which are special tokens, [t]."""
        counts = torch.ones_like(special) if self.special else ~special
        if not self.first:
            counts[:1] = False
        return counts

    def describe(self) -> dict[str, str]:
        """As a run records it."""
        said = {True: "counted", False: "left out"}
        return {"padding": "left out", "special tokens": said[self.special], "position 0": said[self.first]}


@dataclass(frozen=True, eq=False)
class Counted:
    """Which vectors of a site count, and the sequence, position and token of each, [n]; a remark.

    `rows` [n] numbers them among all sequences × positions; None where every one counts. `token` is None
    where positions are not tokens: those of pictures and sound, and pooled ones.
    """

    rows: Tensor | None
    sequence: Tensor
    position: Tensor
    token: Tensor | None = None
    remark: str = ""

    def of(self, seen: Tensor) -> Tensor:
        """The vectors that count, [n, d], of what flows at the site."""
        flat = seen.reshape(-1, seen.shape[-1])
        return flat if self.rows is None else flat.index_select(0, self.rows)

    def to(self, device: torch.device) -> Counted:
        """The same, to take from what flows on another device."""
        return self if self.rows is None else replace(self, rows=self.rows.to(device))


def select_counted(
    shape: Sequence[int], batch: Batch, *, decoder: bool = False, tokens: Tensor | None = None
) -> Counted:
    """Which vectors count of a site of this shape. `tokens` [b, t] are what the model is fed.

    The shape is [b, t, d], flat [b·t, d], or [b, d] where a sequence is one vector. Where a site is shorter
    than the data by a whole factor (characters pooled to molecules, samples to frames), a position
    counts when all it and its neighbours stand for does: CANINE's molecules lie one further on than
    their characters. Tokens before the patches of an image do not count. Where lengths do not fit, every
    position counts and the remark says so.
    """
    size, counts = len(batch), batch.counted(shape[1] if len(shape) == 3 else 0, decoder=decoder)
    if len(shape) == 2 and shape[0] == size:
        alone = torch.arange(size)
        return Counted(None, alone, torch.zeros_like(alone))
    if len(shape) == 2 and counts is not None and shape[0] == counts.numel():
        shape = (*counts.shape, shape[1])
    if len(shape) != 3 or shape[0] != size:
        raise IsoscopeError(
            f"a block passes on a tensor of shape {tuple(shape)} for {size} sequences; "
            "what can be measured is [sequences, positions, dimensions]."
        )
    length = shape[1]
    mine, remark = _fit(counts, size, length)
    if batch.patches is not None:
        mine = mine & (torch.arange(length) >= tokens_before(length, batch.patches))
    mine = mine.cpu()
    sequence = torch.arange(size)[:, None].expand(size, length)
    position = mine.cumsum(1) + _grid(counts, tokens, length, decoder)  # padding before it moves nothing
    fed = tokens is not None and tokens.shape == (size, length)
    token = tokens.cpu()[mine] if tokens is not None and fed else None
    rows = None if bool(mine.all()) else torch.nonzero(mine.flatten()).flatten()
    return Counted(rows, sequence[mine], position[mine], token, remark)


def _grid(counts: Tensor | None, tokens: Tensor | None, length: int, decoder: bool) -> int:
    """Keeps the positions of one grid apart from another's, whatever the length of the batch."""
    given = counts if counts is not None else tokens
    pooled = length if given is None else given.shape[1] // max(length, 1)
    return (2 * pooled + decoder) << 32


def tokens_before(length: int, patches: int) -> int:
    """How many of `length` positions are no patches, given that the grid may have been halved n times."""
    for extra in range(min(length, 33)):
        factor, rest = divmod(patches, length - extra)
        if rest == 0 and factor in (1, 4, 16, 64, 256):
            return extra
    return 0


def pooled(counts: Tensor, length: int) -> tuple[Tensor, str] | None:
    """Which of `length` positions count, each for a whole factor of those of `counts` [b, t]; else None."""
    factor = counts.shape[1] // max(length, 1)
    if factor < 2 or counts.shape[1] - factor * length >= factor:
        return None
    whole = counts[:, : factor * length].reshape(len(counts), length, factor).all(2)
    beside = F.pad(whole, (1, 1), value=True)
    told = f"pooled {factor} to 1: counts where all around it do"
    return whole & beside[:, :-2] & beside[:, 2:], told


def _fit(counts: Tensor | None, size: int, length: int) -> tuple[Tensor, str]:
    if counts is None:
        return torch.ones(size, length, dtype=torch.bool), ""
    if counts.shape == (size, length):
        return counts, ""
    if len(counts) == size and (fitted := pooled(counts, length)) is not None:
        return fitted
    everything = torch.ones(size, length, dtype=torch.bool)
    return everything, f"{length} positions where the data has {counts.shape[1]}: all of them counted"
