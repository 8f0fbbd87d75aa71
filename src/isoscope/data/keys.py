"""A key for every sequence: a hash of its content and the seed, never of when it arrived.

Keys decide which sequences and positions are sampled, so that results do not depend on the batch size or on
the order of the data. The jackknife group and the half a sequence falls into are decided by its unit: what it
was cut from, such as a document or a speaker. A sequence that shares its unit with no other is a unit itself.
"""

from __future__ import annotations

import hashlib
import heapq
import math
from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

GROUPS = 32  # of the jackknife, as `stats.places` has them
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def content_keys(rows: Tensor, seed: int) -> Tensor:
    """A 62-bit hash of each row of `rows` [n, m] and the seed, [n]; equal rows have equal keys."""
    flat = rows.detach().cpu().contiguous().reshape(len(rows), math.prod(rows.shape[1:]))
    bits = flat.view(_BITS[flat.element_size()]).numpy().astype(np.int64, copy=False).view(np.uint64)
    place = _mix(np.arange(1, bits.shape[1] + 1, dtype=np.uint64) + _mix(np.array([seed % 2**64], np.uint64)))
    at_once = max(1, 2**20 // max(1, bits.shape[1]))
    parts = (bits[start : start + at_once] for start in range(0, len(bits), at_once))
    sums = [_mix(part ^ place).sum(axis=1) for part in parts]
    total = np.concatenate(sums or [np.zeros(0, np.uint64)])
    return torch.from_numpy((_mix(total) >> np.uint64(2)).astype(np.int64))


def plain_labels(labels: Iterable[object]) -> list[object]:
    """Labels as Python's own numbers and strings, whatever they came as."""
    return [label.item() if isinstance(label, Tensor | np.generic) else label for label in labels]


def unit_keys(labels: Iterable[object], keys: Tensor, often: Mapping[object, int] | None = None) -> Tensor:
    """A hash of each label, [s]: the units of sequences with these keys [s].

    `often` is how often labels occur in all the data, where that is known. A sequence that is alone under its
    label stands for itself, by its own key, and the others are dealt out evenly over the jackknife groups: by
    chance, a few large documents would meet in one.
    """
    named, often = plain_labels(labels), often or {}
    hashed = {n: int(content_hash([repr(n).encode()]), 16) >> 2 for n in {*named, *often}}
    dealt = _dealt({hashed[n]: many for n, many in often.items() if many > 1})
    units = [
        key if often.get(n) == 1 else dealt.get(hashed[n], hashed[n])
        for n, key in zip(named, keys.tolist(), strict=True)
    ]
    return torch.tensor(units, dtype=torch.int64)


def _dealt(often: Mapping[int, int]) -> dict[int, int]:
    """Units by their hashes, with their group in the last bits: from the largest on, to the emptiest group."""
    loads = [(0, group) for group in range(GROUPS)]
    found: dict[int, int] = {}
    for hashed in sorted(often, key=lambda one: (-often[one], one)):
        load, group = loads[0]
        heapq.heapreplace(loads, (load + often[hashed], group))
        found[hashed] = hashed - hashed % GROUPS + group
    return found


def content_hash(parts: Iterable[bytes]) -> str:
    """Sixteen hex digits of what data is made of."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()[:16]


def _mix(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finaliser of splitmix64: spreads every bit over all 64."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
