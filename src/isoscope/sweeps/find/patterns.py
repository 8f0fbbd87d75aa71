"""Patterns of names: `step{0,1000..143000:7000}` stands for step0, step1000, step8000, … step141000.

A brace holds a list, and a part of the list is a text, or a range with both ends and perhaps a stride after
a colon. Several braces give every combination. Numbers keep the width in which they are written.
"""

from __future__ import annotations

import re
from itertools import product

from isoscope.errors import IsoscopeError

PYTHIA_SCHEDULE = "step{0,1,2,4,8,16,32,64,128,256,512,1000..143000:1000}"  # the 154 of every size
MOST = 100_000  # names: more is a slip of the pen
_RANGE = re.compile(r"(\d+)\.\.(\d+)(?::(\d+))?", re.ASCII)


def expand(pattern: str) -> list[str]:
    """The names that a pattern stands for, each once, in the order in which they are written.

    >>> expand("step{0,1000..3000:1000}"), expand("main"), expand("{a,b}{08..10}")[:4]
    (['step0', 'step1000', 'step2000', 'step3000'], ['main'], ['a08', 'a09', 'a10', 'b08'])
    """
    parts = re.split(r"\{([^{}]*)\}", pattern)
    if any(mark in text for text in parts[::2] for mark in "{}"):
        raise _wrong(pattern, "its braces do not match")
    choices = [_list(pattern, part) if place % 2 else [part] for place, part in enumerate(parts)]
    count = 1
    for choice in choices:
        count *= len(choice)
    if count > MOST:
        raise _wrong(pattern, f"it stands for {count:,} names, more than {MOST:,}")
    names = ["".join(each) for each in product(*choices)]
    if not all(names):
        raise _wrong(pattern, "a name would be empty")
    return list(dict.fromkeys(names))


def _list(pattern: str, inside: str) -> list[str]:
    found: list[str] = []
    for part in inside.split(","):
        text = part.strip()
        if not text:
            raise _wrong(pattern, "a part between commas is empty")
        if ".." not in text:
            found.append(text)
            continue
        asked = _RANGE.fullmatch(text)
        if asked is None:
            raise _wrong(pattern, f"'{text}' is no range")
        first, last, stride = int(asked[1]), int(asked[2]), int(asked[3] or 1)
        if stride == 0 or last < first:
            raise _wrong(pattern, f"'{text}' is empty")
        if (last - first) // stride >= MOST:
            raise _wrong(pattern, f"'{text}' stands for more than {MOST:,} names")
        width = max(len(end) if end[0] == "0" and len(end) > 1 else 0 for end in asked.group(1, 2))
        found += [f"{number:0{width}d}" for number in range(first, last + 1, stride)]
    return found


def _wrong(pattern: str, why: str) -> IsoscopeError:
    return IsoscopeError(
        f"cannot read the pattern '{pattern}': {why}. Write revisions as step{{0,1000..143000:7000}}."
    )
