"""The one exception a user meets, and the sentence for a name that does not exist.

Every message says what was asked, what was given or exists, and what to do. The command line
prints it as it stands and exits with 2; a traceback is always a defect of isoscope's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, TypeVar

Line = TypeVar("Line", bound=Any)  # whatever has a name


class IsoscopeError(Exception):
    """Something the user asked for cannot be had; the message is meant for them."""


def unknown_name(kind: str, asked: str, known: Iterable[str]) -> IsoscopeError:
    """Say that `asked` is no `kind`, what is nearest, and what there is.

    >>> print(unknown_name("measure", "mean_cosin", ["drift", "mean_cosine"]))
    no measure is called 'mean_cosin'; did you mean 'mean_cosine'? There are: drift, mean_cosine.
    """
    names = sorted(known)
    near = get_close_matches(asked, names, n=1)
    guess = f"; did you mean '{near[0]}'?" if near else "."
    return IsoscopeError(f"no {kind} is called '{asked}'{guess} There are: {', '.join(names)}.")


def chosen(kind: str, name: str, table: Sequence[Line]) -> Line:
    """The line of a table that has this name, or an error that says which there are."""
    lines = {line.name: line for line in table}
    if name not in lines:
        raise unknown_name(kind, name, lines)
    return lines[name]


def first_line(reason: BaseException) -> str:
    """The first line of what went wrong, without its full stop; the kind of error where it says nothing.

    >>> first_line(ValueError("no room.")), first_line(KeyError())
    ('no room', 'KeyError')
    """
    return (str(reason).strip().splitlines() or [type(reason).__name__])[0].strip().rstrip(".")


def refuse_sizes(limit: int | None, max_length: int | None, batch_size: int) -> None:
    """Refuse numbers of sequences and tokens below 1; None is no limit."""
    for name, number in (("limit", limit), ("max_length", max_length), ("batch_size", batch_size)):
        if number is not None and number < 1:
            raise IsoscopeError(f"{name} is {number}; it must be at least 1.")
