"""A key for every sequence: a hash of its content and the seed, never of when it arrived.

Keys decide the jackknife group and the half a sequence falls into, so that results do not depend on
the batch size or on the order of the data.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

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
