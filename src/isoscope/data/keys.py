"""A key for every sequence: a hash of its content and the seed, never of when it arrived.

Keys decide which sequences and positions are sampled, so that results do not depend on the batch size or on
the order of the data. The jackknife group and the half a sequence falls into are decided by its unit: what it
was cut from, such as a document or a speaker. A sequence that shares its unit with no other is a unit itself.
"""

from __future__ import annotations

import hashlib
import heapq
import math
from collections import Counter
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


def unit_keys(labels: Iterable[object], keys: Tensor, dealt: Mapping[object, int] | None = None) -> Tensor:
    """The unit of each of the sequences with these labels [s] and keys [s]: a hash of its label.

    Where all data is known beforehand, `dealt` has the units of labels that several sequences have. Any other
    sequence is alone under its label and stands for itself, by its own key.
    """
    named = plain_labels(labels)
    if dealt is None:
        return torch.tensor([_hashed(label) for label in named], dtype=torch.int64)
    both = zip(named, keys.tolist(), strict=True)
    return torch.tensor([dealt.get(label, key) for label, key in both], dtype=torch.int64)


def dealt_units(labels: Iterable[object]) -> dict[object, int]:
    """The units of labels that several sequences have, dealt out evenly over the jackknife groups.

    The largest goes first, each to the emptiest group. By chance, a few large ones would meet in one.
    """
    often = Counter(plain_labels(labels))
    hashed = {label: _hashed(label) for label, many in often.items() if many > 1}
    loads = [(0, group) for group in range(GROUPS)]
    for label in sorted(hashed, key=lambda one: (-often[one], hashed[one])):
        load, group = loads[0]
        heapq.heapreplace(loads, (load + often[label], group))
        hashed[label] += group - hashed[label] % GROUPS
    return hashed


def _hashed(label: object) -> int:
    return int(content_hash([repr(label).encode()]), 16) >> 2


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
