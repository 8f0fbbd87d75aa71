"""A batch: what a model is called with, which positions count, and a key for each sequence.

Anything a training loop calls a batch becomes one: a tensor, a mapping of tensors (its attention mask
says what is padding), or a Batch made by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from isoscope.data.keys import content_keys, unit_keys
from isoscope.errors import IsoscopeError

GROUPED = "groups"  # the entry of a mapping that is not the model's: a label per sequence
_BETWEEN_POSITIONS = ("mask", "src_mask", "tgt_mask", "attn_mask")  # [t, t], as torch.nn names them


@dataclass(frozen=True)
class Batch:
    """Inputs of one call, `counts` [b, t] (True where a position counts; None: all), `keys` [b].

    `units` [b] are hashes of what sequences were cut from (document, speaker): sequences of one unit are not
    independent. None: every sequence is a unit, as is one whose unit is its own key.
    `patches` is how many patches an image has, where what stands before them is not to count;
    `decoder_counts` [b, u] are the positions of a decoder that is fed something else than the encoder. `near`
    are the tokens as they are fed, on the CPU, so that a GPU need not be waited for.
    """

    inputs: Mapping[str, Tensor] | Tensor
    counts: Tensor | None
    keys: Tensor
    patches: int | None = None
    decoder_counts: Tensor | None = None
    near: Tensor | None = None
    units: Tensor | None = None

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def joint(self) -> int:
        """How many sequences share their unit with others."""
        return 0 if self.units is None else int((self.units != self.keys).sum())

    def call(self, module: torch.nn.Module) -> Any:
        """Call the module with the inputs: a tensor as its argument, a mapping as its keywords."""
        return module(self.inputs) if isinstance(self.inputs, Tensor) else module(**self.inputs)

    def counted(self, length: int, *, decoder: bool = False) -> Tensor | None:
        """What counts, [b, t]; of a decoder of this length that the model feeds itself, as in its encoder."""
        if not decoder:
            return self.counts
        same = self.counts is not None and self.counts.shape[1] == length
        return self.counts if self.decoder_counts is None and same else self.decoder_counts

    def tokens(self, *, decoder: bool = False, batch_axis: int = 0) -> Tensor | None:
        """The token at every position, [b, t], where the model (or its decoder) is fed tokens."""
        inputs = self.inputs
        if decoder:
            fed = None if isinstance(inputs, Tensor) else inputs.get("decoder_input_ids")
        else:
            fed = main_input(inputs)
        if not isinstance(fed, Tensor) or not _are_tokens(fed):
            return None
        return fed if decoder else fed.movedim(batch_axis, 0)

    def tokens_near(self, *, decoder: bool = False, batch_axis: int = 0) -> Tensor | None:
        """The same tokens on the CPU."""
        if self.near is not None and not decoder:
            return self.near.movedim(batch_axis, 0)
        found = self.tokens(decoder=decoder, batch_axis=batch_axis)
        return None if found is None else found.cpu()

    def first(self, batch_axis: int = 0) -> Batch:
        """The first sequence alone."""
        return self.take(torch.tensor([0]), batch_axis)

    def take(self, rows: Tensor, batch_axis: int = 0) -> Batch:
        """These sequences alone; what has no axis of that length is left as it is."""

        def some(x: Tensor, name: str) -> Tensor:
            for axis in (batch_axis, 0):  # masks number sequences first, also where the rest does not
                if name not in _BETWEEN_POSITIONS and x.dim() > axis and x.shape[axis] == len(self):
                    return x.index_select(axis, rows.to(x.device))
            return x

        left = self._each(some)
        counts = None if self.counts is None else self.counts[rows]
        spoken = None if self.decoder_counts is None else self.decoder_counts[rows]
        near = None if self.near is None else self.near.index_select(batch_axis, rows)
        kept = replace(self, inputs=left, counts=counts, keys=self.keys[rows])
        units = None if self.units is None else self.units[rows]
        return replace(kept, decoder_counts=spoken, near=near, units=units)

    def as_floats(self, dtype: torch.dtype) -> Batch:
        """The same with its numbers, not its tokens, as the model has its weights."""
        made = self._each(lambda x, _: x.to(dtype) if x.is_floating_point() else x)
        return replace(self, inputs=made)

    def to(self, device: torch.device) -> Batch:
        """The same on another device."""
        moved = replace(self, inputs=self._each(lambda x, _: x.to(device)))
        fed = main_input(self.inputs)
        return moved if fed is None or fed.is_cuda or not _are_tokens(fed) else replace(moved, near=fed)

    def _each(self, change: Callable[[Tensor, str], Tensor]) -> Mapping[str, Tensor] | Tensor:
        """The inputs with every tensor changed, given its name (none where there is one alone)."""
        if isinstance(self.inputs, Tensor):
            return change(self.inputs, "")
        return {name: change(x, name) if isinstance(x, Tensor) else x for name, x in self.inputs.items()}


def joined_batch(one: Batch, other: Batch) -> Batch | None:
    """The sequences of both, where all inputs are tensors on one GPU, of one shape but for their number."""
    parts = [({"": b.inputs} if isinstance(b.inputs, Tensor) else dict(b.inputs)) for b in (one, other)]
    if parts[0].keys() != parts[1].keys() or one.patches != other.patches:
        return None
    for name, mine in parts[0].items():
        its = parts[1][name]
        tensors = isinstance(mine, Tensor) and isinstance(its, Tensor) and name not in _BETWEEN_POSITIONS
        if not tensors or not mine.is_cuda or mine.dim() < 1 or mine.shape[1:] != its.shape[1:]:
            return None
        if (len(mine), len(its)) != (len(one), len(other)):
            return None
    rest = []
    for first, second in ((one.counts, other.counts), (one.decoder_counts, other.decoder_counts)):
        if (first is None) != (second is None):
            return None
        rest.append(None if first is None or second is None else torch.cat([first, second]))
    made = {name: torch.cat([mine, parts[1][name]]) for name, mine in parts[0].items()}
    inputs = made[""] if isinstance(one.inputs, Tensor) else made
    near = None if one.near is None or other.near is None else torch.cat([one.near, other.near])
    units = None
    if one.units is not None or other.units is not None:
        units = torch.cat([each.keys if each.units is None else each.units for each in (one, other)])
    return Batch(inputs, rest[0], torch.cat([one.keys, other.keys]), one.patches, rest[1], near, units)


def _are_tokens(fed: Tensor) -> bool:
    return fed.dim() == 2 and not fed.is_floating_point()


def main_input(inputs: object) -> Tensor | None:
    """The tensor that says what a sequence is: the tokens or their embeddings, else the first of floats."""
    if isinstance(inputs, Tensor):
        return inputs
    if not isinstance(inputs, Mapping):
        return None
    floats = [
        name for name, x in inputs.items() if isinstance(x, Tensor) and x.is_floating_point() and x.dim() > 1
    ]
    for name in ("input_ids", "inputs_embeds", *(name for name in floats if "mask" not in str(name))):
        if isinstance(inputs.get(name), Tensor):
            return inputs[name]
    return next((x for x in inputs.values() if isinstance(x, Tensor) and x.dim() > 1), None)


def as_batch(item: object, *, seed: int, batch_axis: int = 0) -> Batch:
    """Make a Batch of what a user's loop yields; a mapping's entry `groups` names its sequences' units."""
    if isinstance(item, Batch):
        return item
    if isinstance(item, Tensor):
        here = item.detach().cpu()
        keys = content_keys(here.movedim(batch_axis, 0), seed)
        return Batch(item, None, keys, near=here if _are_tokens(item) else None)
    if isinstance(item, Mapping) and all(isinstance(name, str) for name in item):
        inputs = dict(item)
        named = inputs.pop(GROUPED, None)
        main = main_input(inputs)
        if main is not None:
            counts, here = _not_padding(inputs), main.detach().cpu()
            keys = _keys(here.movedim(batch_axis, 0), counts, seed)
            near = here if _are_tokens(main) else None
            units = None if named is None else unit_keys(_one_each(named, len(keys)), keys)
            return Batch(inputs, counts, keys, decoder_counts=_decoder_counts(inputs), near=near, units=units)
    raise IsoscopeError(
        f"a batch is a tensor, a mapping of names to tensors, or a Batch; got {type(item).__name__}."
    )


def _one_each(labels: object, many: int) -> list[object]:
    given = list(labels) if isinstance(labels, Iterable) else []
    if len(given) != many:
        raise IsoscopeError(f"groups holds {len(given)} labels for {many} sequences; give one per sequence.")
    return given


def _not_padding(inputs: Mapping[str, object]) -> Tensor | None:
    """What is no padding, [b, t], as transformers or torch.nn says it; of [b, …, t, t], the diagonal."""
    mask, padding = inputs.get("attention_mask"), inputs.get("src_key_padding_mask")
    if isinstance(mask, Tensor) and mask.dim() >= 2:
        seen = (
            mask > torch.finfo(mask.dtype).min / 2
            if mask.is_floating_point() and mask.dim() > 2
            else mask > 0
        )
        while seen.dim() > 3:
            seen = seen[:, 0]
        if seen.dim() == 3:
            seen = seen[:, 0] if seen.shape[1] == 1 else seen.diagonal(dim1=1, dim2=2)
        return seen.cpu()
    if isinstance(padding, Tensor) and padding.dim() == 2 and padding.dtype == torch.bool:
        return ~padding.cpu()
    return None


def _decoder_counts(inputs: Mapping[str, object]) -> Tensor | None:
    mask, fed = inputs.get("decoder_attention_mask"), inputs.get("decoder_input_ids")
    if isinstance(mask, Tensor) and mask.dim() == 2:
        return mask.bool().cpu()
    return torch.ones(fed.shape, dtype=torch.bool) if isinstance(fed, Tensor) and fed.dim() == 2 else None


def _keys(main: Tensor, counts: Tensor | None, seed: int) -> Tensor:
    """Padding is left out of the hash, so a sequence keeps its key whatever it is batched with."""
    if counts is None or main.shape[:2] != counts.shape:
        return content_keys(main, seed)
    return torch.cat(
        [content_keys(row[mine][None], seed) for row, mine in zip(main.cpu(), counts, strict=True)]
    )
