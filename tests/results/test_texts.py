"""Texts are for people: no code outside the reader of schema 1 takes a note, a name or a label apart.

A text may be compared whole, looked up in a table, or joined to others. Three places make names and read them
again, and no others: `results/units.py` (units), `results/points.py` (pictures of all steps) and `sites.py`
(kinds of sites). What only sets a text for people may change its white space and underscores.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import isoscope

SOURCE = Path(isoscope.__file__).parent
ROWS = {"about", "heading", "measure", "model", "note", "picture", "remark", "revision", "series", "title"}
"""Texts of rows, points and figures, wherever they are handled."""

NAMES = {"against", "arm", "kind", "label", "name", "tag", "unit", "why", "words"}
"""Further texts where rows are made and shown; elsewhere names are of files, tensors and options."""

SEVERAL = {f"{one}s" for one in ROWS | NAMES}
SHOWING = ("kinds", "lab", "measures", "papers", "plot", "run", "show")
APART = {
    "contains", "endswith", "extract", "extractall", "find", "findall", "finditer", "fullmatch", "fnmatch",
    "fnmatchcase", "match", "partition", "removeprefix", "removesuffix", "replace", "rfind", "rpartition",
    "rsplit", "search", "split", "splitlines", "startswith", "sub", "subn",
}  # fmt: skip
"""Functions and methods that look into a text."""

PATTERNS = {"extract", "findall", "finditer", "fullmatch", "match", "search", "split", "sub", "subn"}
"""Those of them that a compiled pattern has, with the text as an argument."""

READERS = {"results/points.py", "results/schema1.py", "results/units.py", "sites.py"}
Texts = tuple[set[str], set[str]]
"""What one text is called, and what several are."""


def called(node: ast.AST) -> Iterator[str]:
    """The names by which an expression mentions anything: `row.note`, `rows["model"]`, `measure`."""
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute):
            yield part.attr
        elif isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Constant):
            yield str(part.slice.value)


def is_text(node: ast.AST, one: set[str]) -> bool:
    """Whether an expression is one text, and no more: `row.note`, `rows["model"]`, `measure`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str":
        return is_text(node.args[0], one) if node.args else False
    if isinstance(node, ast.Subscript):
        at = node.slice.value if isinstance(node.slice, ast.Constant) else None
        return at in one if isinstance(at, str) else at is not None and is_text(node.value, one | SEVERAL)
    return isinstance(node, ast.Attribute | ast.Name) and next(called(node)) in one


def aliases(tree: ast.AST, texts: Texts) -> set[str]:
    """The variables that are given one text, or go through several."""
    one, several = texts
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and is_text(node.value, one):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        loop = isinstance(node, ast.For | ast.comprehension) and isinstance(node.target, ast.Name)
        if loop and is_text(node.iter, one | several) and not listed(node.iter):
            found.add(node.target.id)
    return found


def listed(node: ast.AST) -> bool:
    """Whether this is the list of series or labels of a chart, which are no texts."""
    return isinstance(node, ast.Attribute) and node.attr in ("series", "labels")


def for_people(node: ast.Call) -> bool:
    """Whether a call only sets a text for people: words or a file's name of a name, lines, white space.

    Or whether it replaces whole values by a table.
    """
    given = [part.value if isinstance(part, ast.Constant) else None for part in node.args]
    if getattr(node.func, "attr", "") == "split":
        return given == ["\n"]
    spaced = (
        all(isinstance(one, str) for one in given) and len({"".join(str(one).split()) for one in given}) == 1
    )
    return (len(given) == 1 and not node.keywords) or given[:1] in (["_"], ["/"]) or spaced


def looks_inside(node: ast.AST, texts: Texts) -> bool:
    """Whether an expression looks into a text."""
    one, every = texts[0], texts[0] | texts[1]
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Slice) and is_text(node.value, one) and not listed(node.value)
    if isinstance(node, ast.Compare):
        literal = isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
        member = any(isinstance(op, ast.In | ast.NotIn) for op in node.ops)
        return literal and member and any(is_text(right, one) for right in node.comparators)
    return isinstance(node, ast.Call) and (passed_on(node, texts) or call_looks(node, every))


def call_looks(node: ast.Call, every: set[str]) -> bool:
    """Whether a call is of a function or method that looks into a text."""
    func = node.func
    attr = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
    if attr not in APART or (attr in ("replace", "split") and for_people(node)):
        return False
    if isinstance(func, ast.Name):
        over = [] if attr == "replace" else node.args  # that of dataclasses
    else:
        owner = func.value if isinstance(func, ast.Attribute) else func
        library = isinstance(owner, ast.Name) and owner.id in ("re", "fnmatch", "str")
        over = [*([] if library else [owner]), *(node.args if library or attr in PATTERNS else [])]
    return any(every.intersection(called(part)) for part in over)


def passed_on(node: ast.Call, texts: Texts) -> bool:
    """Whether a call gives texts to a function that looks into them: `map(str.split, notes)`, a lambda."""
    every = texts[0] | texts[1]
    lambdas = [arg for arg in node.args if isinstance(arg, ast.Lambda)]
    methods = [arg for arg in node.args if isinstance(arg, ast.Attribute) and arg.attr in APART]
    over = [part for part in (node.func, *node.args) if part not in (*lambdas, *methods)]
    if not any(every.intersection(called(part)) for part in over):
        return False
    return bool(methods) or any(
        looks_inside(part, ({arg.arg for arg in each.args.args}, set()))
        for each in lambdas
        for part in ast.walk(each.body)
    )


def taken_apart(source: str, *, shows: bool = True) -> list[str]:
    """The expressions of a piece of code that look into a text; `shows` where rows are made or shown."""
    tree = ast.parse(source)
    one = ROWS | NAMES if shows else ROWS
    texts = one | aliases(tree, (one, SEVERAL if shows else set())), {f"{name}s" for name in one}
    return [ast.unparse(node) for node in ast.walk(tree) if looks_inside(node, texts)]


def test_no_text_of_a_row_is_taken_apart() -> None:
    found = {
        name: calls
        for file in SOURCE.rglob("*.py")
        if (name := file.relative_to(SOURCE).as_posix()) not in READERS
        and (calls := taken_apart(file.read_text(), shows=name.split("/")[0] in SHOWING))
    }
    assert found == {}


@pytest.mark.parametrize(
    "code",
    [
        "row.note.startswith('p')",
        "rows['model'].str.extract('x')",
        "re.search('p = (.*)', reading.note)",
        "re.compile('p').search(row.note)",
        "_P.fullmatch(row['note'])",
        "str(measure).partition('.')",
        "names[0].startswith('step')",
        "name.split(', ')",
        "row.measure[:5]",
        "row.measure[5:] == 'drift'",
        "'drift' in row.measure",
        "'drift' not in rows['measure'][0]",
        "fnmatch(measure, '*_drift')",
        "fnmatch.fnmatch(row.measure, '*_drift')",
        "measure.replace('_drift', '')",
        "rows['measure'].str.replace('^cos', '', regex=True)",
        "measure.removesuffix('_drift')",
        "str.split(row.note)",
        "map(str.split, notes)",
        "rows['measure'].map(lambda m: m.split('_')[0])",
        "filter(lambda m: 'drift' in m, measures)",
        "[m.split('_') for m in rows['measure']]",
        "[m[:5] for m in measures]",
        "for m in measures:\n    m.endswith('drift')",
        "said = row.note\nsaid.find('p =')",
        "panel.heading.endswith('cross-attention')",
        "kind.startswith('norm_')",
        "points['picture'].str.removeprefix('steps ')",
        "unit.rpartition(' ')[2]",
        "remark.startswith('localisation')",
    ],
)
def test_a_text_taken_apart_is_seen(code: str) -> None:
    assert taken_apart(code)


@pytest.mark.parametrize(
    "code",
    [
        "path.split('/')",
        "re.sub('a', 'b', text)",
        "row.measure == 'drift'",
        "row.measure in ('drift', 'relative_drift')",
        "'drift' in measures",
        "TITLES[row.measure]",
        "measure.replace('_', ' ')",
        "replace(row, note='')",
        "rows.kind.replace({'attention': 'layer'})",
        "measures[:3]",
        "title.split('\\n')",
        "label.replace(' the ', '\\nthe ')",
    ],
)
def test_what_takes_nothing_apart_is_allowed(code: str) -> None:
    assert not taken_apart(code)
