"""Texts are for people: no code outside the reader of schema 1 takes a note, a name or a label apart."""

from __future__ import annotations

import ast
from pathlib import Path

import isoscope

SOURCE = Path(isoscope.__file__).parent
TEXTS = {"note", "model", "revision", "measure"}
APART = {
    "contains", "endswith", "extract", "findall", "fullmatch", "match", "partition", "removeprefix",
    "removesuffix", "rpartition", "rsplit", "search", "split", "startswith",
}  # fmt: skip
READER = "results/schema1.py"


def texts_in(node: ast.AST) -> set[str]:
    """The texts of rows that an expression mentions: `row.note`, `rows["model"]`, `measure`."""
    found = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute):
            found.add(part.attr)
        elif isinstance(part, ast.Name):
            found.add(part.id)
        elif isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Constant):
            found.add(str(part.slice.value))
    return found & TEXTS


def taken_apart(source: str) -> list[str]:
    """The calls of a piece of code that take a text of a row apart."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in APART:
            pattern = isinstance(node.func.value, ast.Name) and node.func.value.id == "re"
            over = node.args[1:] if pattern else [node.func.value]
            if any(map(texts_in, over)):
                found.append(ast.unparse(node))
    return found


def test_no_text_of_a_row_is_taken_apart() -> None:
    found = {
        name: calls
        for file in SOURCE.rglob("*.py")
        if (name := str(file.relative_to(SOURCE))) != READER and (calls := taken_apart(file.read_text()))
    }
    assert found == {}


def test_a_text_taken_apart_is_seen() -> None:
    assert taken_apart("row.note.startswith('p')") and taken_apart("rows['model'].str.extract('x')")
    assert taken_apart("re.search('p = (.*)', reading.note)") and taken_apart("str(measure).partition('.')")
    assert not taken_apart("path.split('/')") and not taken_apart("re.sub('a', 'b', text)")
