"""Which positions count. Padding never does; special tokens and the first position by policy.

Special tokens are not data, and the first position is where attention parks: its vector can be a thousand
times longer than the others and drown them. Both are left out unless asked for, of text and of batches of
token ids alike. A `Batch` made by hand says itself which positions count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from isoscope.data.batch import Batch, main_input
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


@dataclass(frozen=True)
class Counting:
    """The policy for batches that come as tensors, with the ids of special tokens that are known.

    `source` says where these are from: ``tokenizer``, ``config`` or nowhere. Where `asked`, position 0 of
    vectors [b, t, d] is left out too, which is not done of its own accord: what stands there is not known.
    """

    policy: Policy
    special_ids: frozenset[int] = frozenset()
    source: str = ""
    asked: bool = False

    @classmethod
    def of(
        cls, tokenizer: Any, config: Any, *, skip_first: bool | None = None, skip_special: bool | None = None
    ) -> Counting:
        """The tokenizer's ids, else those that the config names; None leaves out all that are known."""
        policy = Policy(special=skip_special is False, first=skip_first is False)
        known = special_ids(tokenizer)
        if known:
            return cls(policy, known, "tokenizer", skip_first is True)
        named: list[Any] = []
        for name in _NAMED:
            value = getattr(config, f"{name}_token_id", None)
            named += value if isinstance(value, list | tuple) else [value]
        known = frozenset(each for each in named if isinstance(each, int))
        return cls(policy, known, "config" if known else "", skip_first is True)

    def apply(self, batch: Batch, batch_axis: int = 0) -> Batch:
        """The batch, counted by the policy."""
        tokens = batch.tokens_near(batch_axis=batch_axis)
        counts, spoken = batch.counts, batch.decoder_counts
        if tokens is not None:
            counts = self._left(tokens, counts)
        elif self.asked and (fed := main_input(batch.inputs)) is not None and fed.dim() == 3:
            shape = fed.movedim(batch_axis, 0).shape[:2]
            counts = self._left(torch.zeros(shape, dtype=torch.long), counts, special=False)
        said = batch.tokens_near(decoder=True)
        if said is not None:
            spoken = self._left(said, spoken)
        return replace(batch, counts=counts, decoder_counts=spoken)

    def _left(self, tokens: Tensor, counts: Tensor | None, *, special: bool = True) -> Tensor | None:
        """What counts of these tokens [b, t], given what is no padding, which may stand before a sequence."""
        if counts is not None and counts.shape != tokens.shape:
            return counts
        left = torch.ones(tokens.shape, dtype=torch.bool) if counts is None else counts
        first = left & (left.cumsum(1) == 1)
        if special and not self.policy.special and self.special_ids:
            left = left & ~torch.isin(tokens, torch.tensor(sorted(self.special_ids)))
        left = left if self.policy.first else left & ~first
        return counts if bool(left.all()) else left

    def describe(self, batch: Batch, batch_axis: int = 0) -> tuple[dict[str, str], str]:
        """What a run records of a batch given as tensors, and a remark where something is not known."""
        said, fed = self.policy.describe(), main_input(batch.inputs)
        if batch.tokens(batch_axis=batch_axis) is None:
            said["special tokens"] = "not known"
            said["position 0"] = "left out" if self.asked else "counted"
            positions = fed is not None and fed.dim() > 2
            why = "the inputs are no token ids, so position 0 and special tokens are not known"
            return said, f"{why}: every position counts that is no padding" if positions else ""
        if self.policy.special:
            return said, ""
        if not self.special_ids:
            said["special tokens"] = "not known"
            return said, "the model has no tokenizer and its config names no special token: they count if any"
        said["special tokens"] = f"left out, as named by the {self.source}"
        alone = self.source == "config" and len(self.special_ids) == 1
        why = (
            f"of special tokens only {min(self.special_ids)} is known, from the model's config: others count"
        )
        return said, f"{why}; give what `isoscope.load` returned, which has a tokenizer" if alone else ""


_NAMED = ("bos", "eos", "pad", "cls", "sep")


def special_ids(tokenizer: Any) -> frozenset[int]:
    """The ids of a tokenizer's special tokens, but for the unknown one, which stands for text."""
    return frozenset(getattr(tokenizer, "all_special_ids", ())) - {getattr(tokenizer, "unk_token_id", None)}


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
