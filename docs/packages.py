"""Write the map of packages into docs/design.md: one line per package, from its docstring."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "isoscope"
PAGE = Path(__file__).parent / "design.md"
START, END = "<!-- packages: written by `make docs` -->\n", "<!-- end of packages -->\n"


def packages() -> str:
    """A Markdown table of all packages, each with the first line of its docstring."""
    lines = ["| package | contents |", "|---|---|"]
    for file in sorted(SOURCE.rglob("__init__.py"), key=lambda file: file.parent.parts):
        name = ".".join(file.parent.relative_to(SOURCE).parts)
        if name:
            told = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
            lines.append(f"| `{name}` | {told.splitlines()[0]} |")
    return "\n".join(lines) + "\n"


def page() -> str:
    """The text of the page, with the map as the packages are now."""
    text = PAGE.read_text(encoding="utf-8")
    before, after = text.split(START)[0], text.split(END)[1]
    return before + START + packages() + END + after


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
