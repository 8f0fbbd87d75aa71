"""The repairs by name, and how a recipe is read: ``abtt,whiten:128`` is one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from isoscope.errors import IsoscopeError, chosen

Reads = Literal["spread", "moments", "directions", "clusters"]


@dataclass(frozen=True)
class Kind:
    """A repair as it can be asked for: its name, the numbers that may follow, and the record it is read off.

    `spread` is mean and variance of every dimension, `moments` mean and covariance, `directions` sums of unit
    vectors, `clusters` the moments of every cluster.
    """

    name: str
    numbers: tuple[str, ...]
    reads: Reads
    says: str


KINDS = (
    Kind("centre", (), "spread", "the mean is taken away"),
    Kind("standardise", (), "spread", "every dimension has mean 0 and variance 1"),
    Kind("abtt", ("directions",), "moments", "all but the top: the mean and the widest directions are gone"),
    Kind("whiten", ("dimensions",), "moments", "the k widest directions, each with variance 1"),
    Kind("cluster-abtt", ("clusters", "directions"), "clusters", "all but the top, in every cluster"),
    Kind("rogue", ("dimensions",), "directions", "the dimensions that make most of the mean cosine are 0"),
)


@dataclass(frozen=True)
class Asked:
    """One step of a recipe: a kind, and the numbers that were given with it."""

    kind: Kind
    given: tuple[int, ...] = ()

    def __str__(self) -> str:
        return ":".join([self.kind.name, *map(str, self.given)])

    def number(self, place: int, default: int) -> int:
        """The number at this place, or what stands for it when it was not given."""
        return self.given[place] if place < len(self.given) else default


def parse(recipe: str) -> tuple[Asked, ...]:
    """Read a recipe: names separated by commas, each with its numbers after colons.

    >>> [str(step) for step in parse("abtt, whiten:128")]
    ['abtt', 'whiten:128']
    """
    steps = tuple(_step(part.strip()) for part in recipe.split(",") if part.strip())
    if not steps:
        raise IsoscopeError(f"the recipe names no repair; there are: {', '.join(_usage(k) for k in KINDS)}.")
    return steps


def parse_repairs(text: str) -> tuple[str, ...]:
    """Read several recipes, separated by semicolons, each once.

    >>> parse_repairs("centre; abtt, whiten:8;centre")
    ('centre', 'abtt,whiten:8')
    """
    named = [",".join(map(str, parse(part))) for part in text.split(";") if part.strip()]
    if not named:
        raise IsoscopeError("--with names no repair; write for example 'centre;abtt,whiten:128'.")
    return tuple(dict.fromkeys(named))


def _step(text: str) -> Asked:
    name, *numbers = (part.strip() for part in text.split(":"))
    kind = chosen("repair", name, KINDS)
    if len(numbers) > len(kind.numbers):
        raise IsoscopeError(f"'{text}' has more numbers than {name} takes; write {_usage(kind)}.")
    if not all(number.isdecimal() and int(number) > 0 for number in numbers):
        raise IsoscopeError(f"'{text}' needs whole numbers from 1 on; write {_usage(kind)}.")
    return Asked(kind, tuple(map(int, numbers)))


def _usage(kind: Kind) -> str:
    """How it is written: ``whiten[:DIMENSIONS]``."""
    return kind.name + "".join(f"[:{number.upper()}" for number in kind.numbers) + "]" * len(kind.numbers)
