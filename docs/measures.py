"""Write docs/measures.md, every measure in its own words, from the table of measures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from isoscope.measures.on_data import EXPLANATIONS
from isoscope.measures.table import MEASURES

PAGE = Path(__file__).parent / "measures.md"
INTRODUCTION = """# Every measure

What each says, how it misleads, and what it reads where there is nothing to see (its null): the words \
that stand on every page of a run and in `isoscope list measures`. Written by `make docs` from the table of \
measures.
"""
TOLD = ("says", "misleads", "range", "null", "interval", "source")
MARKS = {mark: f"&#{ord(mark)};" for mark in "<*_`[|"}  # what Markdown would take for its own


def measures() -> str:
    """The page: a section a family, in the order of the table."""
    families: dict[str, list[str]] = {}
    explained = {measure.name: measure.explanation() for measure in MEASURES} | dict(EXPLANATIONS)
    for name, told in explained.items():
        families.setdefault(str(told["family"]), []).append(_entry(name, told))
    extra = ", ".join(f"`{measure.name}`" for measure in MEASURES if measure.extra)
    left_out = f"The default leaves out what costs most; `--measures all` reads it as well: {extra}.\n"
    parts = [f"## {family.capitalize()}\n\n" + "\n".join(entries) for family, entries in families.items()]
    return "\n".join([INTRODUCTION, left_out, *parts])


def _entry(name: str, told: Mapping[str, Any]) -> str:
    lines = [f"### `{name}`", "", f"{_plain(told['title'])}: <code>{_plain(told['formula'])}</code>", ""]
    lines += [f"- **{word}:** {_plain(told[word])}" for word in TOLD]
    return "\n".join([*lines, ""])


def _plain(text: object) -> str:
    return "".join(MARKS.get(letter, letter) for letter in str(text).replace("&", "&amp;"))


if __name__ == "__main__":
    PAGE.write_text(measures())
