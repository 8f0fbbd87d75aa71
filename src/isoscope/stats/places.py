"""Where the vectors of a batch come from: their sequences, a key for each, a place for every vector.

The key is a hash of the sequence's content and the seed; with the position it makes a vector's place, by
which samples are drawn. The unit of a sequence, such as its document, decides its jackknife group and its
half; a sequence without a unit is one by its key. So all of them are the same whatever the batch size or the
order of the data, and a place is the same in every layer. It is the same at every site a batch passes, so it
is worked out once a batch; how vectors lie in their sequences (`Layout`), once for all batches that are cut
alike. What is chosen by keys is chosen on the CPU, where they are, and sent: a GPU is never waited for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from isoscope.geometry.dimensions import SAMPLE, spread_over
from isoscope.kernels.cloud.chunks import Chunks, sent

GROUPS = 32
TYPES = 1024  # token types that are sampled


@dataclass(frozen=True, eq=False)
class Layout:
    """How n vectors lie in sequences: the sequence of each (None where every one stands alone), its position.

    `sequence` [n] and `position` [n] are on the CPU; what is made of them is on `device`.
    """

    sequence: Tensor | None
    position: Tensor
    sequences: int
    device: torch.device
    chunks: Chunks | None
    lengths: tuple[int, ...] | None  # of sequences whose vectors stand together

    @classmethod
    def of(
        cls, n: int, sequence: Tensor | None, sequences: int, position: Tensor | None, device: torch.device
    ) -> Layout:
        """Without positions, the vectors of a sequence are numbered as they come."""
        sequence = None if sequence is None else sequence.cpu()
        position = _numbered(sequence, n) if position is None else position.cpu()
        chunks = None if sequence is None else Chunks.of(sequence, sequences)
        lengths = None
        if chunks is not None and sequence is not None:
            lengths = tuple(torch.bincount(sequence, minlength=sequences).tolist())
            chunks = chunks.to(device)
        return cls(sequence, position, sequences, device, chunks, lengths)

    @cached_property
    def owner(self) -> Tensor | None:
        """The sequence of each vector, on the device."""
        return None if self.sequence is None else sent(self.sequence, self.device)

    @cached_property
    def hashed(self) -> Tensor:
        """A hash of each position, on the device."""
        return sent(mix(self.position), self.device)

    def sampled(self, width: int) -> tuple[Tensor, Tensor, Tensor] | None:
        """A sample of each sequence's coordinates: rows, columns, and whether there are so many, [s, m]."""
        if self.lengths is None:
            return None
        if width not in self._samples:
            size = [min(SAMPLE, length * width) for length in self.lengths]
            most, starts = max(size, default=0), torch.tensor((0, *self.lengths[:-1])).cumsum(0)
            chosen = torch.zeros(len(size), most, dtype=torch.long)
            there = torch.arange(most) < torch.tensor(size)[:, None]
            for number, (length, many) in enumerate(zip(self.lengths, size, strict=True)):
                chosen[number, :many] = spread_over(length * width, many)
            rows = torch.where(there, starts[:, None] + chosen // width, 0)
            self._samples[width] = (
                sent(rows, self.device),
                sent(chosen % width, self.device),
                sent(there, self.device),
            )
        return self._samples[width]

    @cached_property
    def _samples(self) -> dict[int, tuple[Tensor, Tensor, Tensor]]:
        return {}


@dataclass(frozen=True, eq=False)
class Places:
    """Where the n vectors of a batch come from.

    `keys` [s] are the hashes of the sequences, on the CPU; where every vector stands alone, one a vector.
    `token` [n] is the token each stands for, where it stands for one, on the CPU. `units` [s] are the hashes
    of what the sequences were cut from, on the CPU; None where every sequence stands alone.
    """

    layout: Layout
    keys: Tensor
    token: Tensor | None = None
    share: float = 1.0  # of the vectors, that covariances are made of
    units: Tensor | None = None

    @classmethod
    def of(
        cls,
        n: int,
        sequence: Tensor | None,
        key: Tensor,
        *,
        position: Tensor | None = None,
        token: Tensor | None = None,
        units: Tensor | None = None,
        device: torch.device | str = "cpu",
    ) -> Places:
        """`position` [n] tells the vectors of a sequence apart; without it they are numbered as they come."""
        device = torch.device(device)
        layout = Layout.of(n, sequence, len(key), position, device)
        token, units = (None if each is None else each.cpu() for each in (token, units))
        return cls(layout, key.cpu(), token, units=units)

    def __len__(self) -> int:
        return len(self.layout.position)

    @property
    def sequence(self) -> Tensor | None:
        """The number of each vector's sequence in this batch, [n]; None where every vector stands alone."""
        return self.layout.owner

    @property
    def chunks(self) -> Chunks | None:
        """The rows cut for a kernel."""
        return self.layout.chunks

    @cached_property
    def key(self) -> Tensor:
        """The hash of every sequence, [s]."""
        return sent(self.keys, self.layout.device)

    @cached_property
    def place(self) -> Tensor:
        """A hash of where each vector comes from, [n]."""
        return mix((self.key if self.sequence is None else self.key[self.sequence]) + self.layout.hashed)

    @cached_property
    def thinned(self) -> tuple[Tensor, Places]:
        """The rows whose hash is in the first `share` of all hashes, and their places."""
        sequence, device = self.layout.sequence, self.layout.device
        own = self.keys if sequence is None else self.keys[sequence]
        place = mix(own + mix(self.layout.position))
        rows = torch.nonzero(mix(place) < self.share * 2.0**63).flatten()
        places = Places.of(
            len(rows),
            None if sequence is None else sequence[rows],
            own[rows] if sequence is None else self.keys,
            position=place[rows],
            units=self.units if self.units is None or sequence is not None else self.units[rows],
            device=device,
        )
        return sent(rows, device), places

    @cached_property
    def unit(self) -> Tensor:
        """The hash of the unit of every sequence, [s]."""
        return self.key if self.units is None else sent(self.units, self.layout.device)

    @cached_property
    def joint(self) -> int:
        """How many sequences share their unit with others."""
        return 0 if self.units is None else int((self.units != self.keys).sum())

    @cached_property
    def group(self) -> Tensor:
        """The jackknife group of every sequence, [s]."""
        return self.unit % GROUPS

    @cached_property
    def member(self) -> Tensor:
        """Which group every sequence belongs to, [G, s] of 0 and 1."""
        return (torch.arange(GROUPS, device=self.key.device)[:, None] == self.group).double()

    def part(self, parts: int) -> Tensor:
        """Which of `parts` (1 or 2) each sequence falls into, [s]; chosen apart from the groups."""
        return (self.unit // GROUPS) % parts

    def part_of_chunks(self, parts: int) -> Tensor:
        """Which of `parts` every chunk of rows belongs to, [parts, c] of 0 and 1."""
        if parts not in self._parts_of_chunks:
            assert self.chunks is not None
            part = self.part(parts)[self.chunks.label]
            numbers = torch.arange(parts, device=part.device)[:, None]
            self._parts_of_chunks[parts] = (numbers == part).double()
        return self._parts_of_chunks[parts]

    @cached_property
    def _parts_of_chunks(self) -> dict[int, Tensor]:
        return {}

    @cached_property
    def by_half(self) -> tuple[Tensor, int]:
        """The rows of the first half of the sequences, then of the second, and how many the first has."""
        units, sequence = self.keys if self.units is None else self.units, self.layout.sequence
        part = (units // GROUPS) % 2
        part = part if sequence is None else part[sequence]
        return sent(part.argsort(stable=True), self.layout.device), int((part == 0).sum())

    def smallest(self, many: int) -> tuple[Tensor, Tensor]:
        """The rows with the smallest places, at most `many`, and these places, ascending."""
        place, rows = self._by_place
        return rows[:many], place[:many]

    @cached_property
    def _by_place(self) -> tuple[Tensor, Tensor]:
        place, rows = self.place.sort(stable=True)
        return place, rows

    @cached_property
    def contexts(self) -> Contexts:
        """The vectors that stand for a sampled type."""
        return Contexts.of(self)


@dataclass(frozen=True, eq=False)
class Contexts:
    """The rows [m] of a batch that stand for one of k sampled types, and the p pairs of type and sequence.

    The types with the smallest hashes are sampled, whether or not their vectors are kept at a layer.
    """

    token: Tensor  # [k] by ascending hash, on the CPU
    rows: Tensor  # [m]
    type: Tensor  # [m] which of the k
    pair: Tensor  # [m] which of the p
    type_of_pair: Tensor  # [p]

    @classmethod
    def of(cls, where: Places) -> Contexts:
        """Sample the types of a batch; none where its positions are not tokens."""
        given, layout = where.token, where.layout
        if given is None or not len(given):
            none = torch.zeros(0, dtype=torch.long)
            return cls(none, *(sent(none, layout.device) for _ in range(4)))
        token, label = torch.unique(given, return_inverse=True)
        kept = mix(token).argsort()[:TYPES]
        number = torch.full_like(token, -1).scatter(0, kept, torch.arange(len(kept)))
        rows = torch.nonzero(number[label] >= 0).flatten()
        mine = number[label[rows]]
        sequence = rows if layout.sequence is None else layout.sequence[rows]
        base = max(len(given), len(where.keys), 1)
        pair, place = torch.unique(mine * base + sequence, return_inverse=True)
        return cls(token[kept], *(sent(each, layout.device) for each in (rows, mine, place, pair // base)))


def mix(numbers: Tensor) -> Tensor:
    """A hash of each whole number, not negative: the finaliser of splitmix64, in numbers that wrap around.

    >>> len(set(mix(torch.arange(1000)).tolist()))
    1000
    """
    x = numbers.long() - 7046029254386353131
    x = (x ^ ((x >> 30) & 0x3FFFFFFFF)) * -4658895280553007687
    x = (x ^ ((x >> 27) & 0x1FFFFFFFFF)) * -7723592293110705685
    return (x ^ ((x >> 31) & 0x1FFFFFFFF)) & 0x7FFFFFFFFFFFFFFF


def _numbered(sequence: Tensor | None, n: int) -> Tensor:
    """The number of each vector within its sequence, in the order of the batch, [n]."""
    if sequence is None:
        return torch.zeros(n, dtype=torch.long)
    order = sequence.argsort(stable=True)
    ranked = sequence[order]
    within = torch.arange(n) - torch.searchsorted(ranked, ranked)
    return torch.empty_like(order).scatter(0, order, within)


def hash_of_inputs(keys: Tensor, units: Tensor | None) -> int:
    """A hash of sequences in any order: the sum of their hashed keys, and of their units where they have any.

    Readings are paired by groups of units, so the same sequences in other units are other inputs. A sequence
    that is its own unit has its own key for it.
    """
    if units is not None:
        units = units.to(keys.device)
        keys = torch.where(units == keys, keys, keys ^ mix(units))
    return int(mix(keys).sum()) % 2**63
