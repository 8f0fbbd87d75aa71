"""Bring the records of all sites from an accelerator to the CPU, in one copy for each dtype.

A look has several hundred small tensors, and a copy of each would wait for the device each time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import torch
from torch import Tensor

from isoscope.stats.base import field_names

T = TypeVar("T")
SMALL = 2**20  # numbers of a tensor


def near(records: T) -> T:
    """The same records, nested as they are, with every tensor on the CPU.

    >>> near({"here": {"there": torch.ones(2)}})
    {'here': {'there': tensor([1., 1.])}}
    """
    far = {id(tensor): tensor for tensor in _tensors(records) if tensor.device.type != "cpu"}
    together: dict[tuple[torch.device, torch.dtype], list[Tensor]] = {}
    for tensor in far.values():
        together.setdefault((tensor.device, tensor.dtype), []).append(tensor)
    copies: dict[int, Tensor] = {}
    for alike in together.values():
        copies |= _copied(alike)
    brought: T = _rebuilt(records, copies) if copies else records
    return brought


def near_where_small(records: Mapping[Any, Mapping[Any, Any]]) -> dict[Any, dict[Any, Any]]:
    """Records by site and kind, those that hold no large tensor on the CPU: there readings take numbers."""
    found = {site: dict(kinds) for site, kinds in records.items()}
    every = {(site, kind): record for site, kinds in found.items() for kind, record in kinds.items()}
    small = {at: held for at, held in every.items() if all(x.numel() <= SMALL for x in _tensors(held))}
    for (site, kind), record in near(small).items():
        found[site][kind] = record
    return found


def _copied(alike: list[Tensor]) -> dict[int, Tensor]:
    """Copies of tensors of one dtype by the `id` of each: views of one flat tensor that is brought over."""
    flat = torch.cat([tensor.flatten() for tensor in alike]).cpu()
    parts = torch.split_with_sizes(flat, [tensor.numel() for tensor in alike])
    return {id(tensor): part.view(tensor.shape) for tensor, part in zip(alike, parts, strict=True)}


def _tensors(held: Any) -> Iterator[Tensor]:
    if isinstance(held, Tensor):
        yield held
    elif isinstance(held, Mapping):
        for part in held.values():
            yield from _tensors(part)
    else:
        for name in field_names(held.__class__):
            yield from _tensors(getattr(held, name))


def _rebuilt(held: Any, copies: Mapping[int, Tensor]) -> Any:
    if isinstance(held, Tensor):
        return copies.get(id(held), held)
    if isinstance(held, Mapping):
        return {key: _rebuilt(part, copies) for key, part in held.items()}
    if not (names := field_names(held.__class__)):
        return held
    return held.__class__(**{name: _rebuilt(getattr(held, name), copies) for name in names})
