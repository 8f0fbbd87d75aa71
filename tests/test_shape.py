"""The shape of the package: small folders, packages in place of prefixes, private names that stay private."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import isoscope

SOURCE = Path(isoscope.__file__).parent
MOST_MODULES = 24
MOST_PREFIXED = 2
MOST_PUBLIC = 25
COUNTED = (".py", ".js", ".css", ".html")
SHOWING = ("show", "plot", "kinds", "cli")
MOST_SHOWING = 11_600
"""The most lines that all packages which show results may have together; 11,500 before the anatomy."""
MOST = 52_700
"""The most lines that the whole package may have: 51,000 before documents, pairs and the anatomy came."""
FOLDERS = sorted({file.parent for file in SOURCE.rglob("*.py")})


def prefixes(names: list[str]) -> Counter[str]:
    """How many names begin with each first word."""
    return Counter(name.split("_")[0] for name in names)


def private_imports(source: str) -> set[str]:
    """The private names that a piece of code takes from other modules of the package."""
    tree = ast.parse(source)
    taken = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    taken = [node for node in taken if node.module and node.module.split(".")[0] == "isoscope"]
    names = {alias.name for node in taken for alias in node.names}
    modules = {alias.asname or alias.name for node in taken for alias in node.names}
    reached = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules
    }
    return {name for name in names | reached if name.startswith("_") and not name.startswith("__")}


def test_no_folder_has_too_many_modules() -> None:
    counts = {str(folder.relative_to(SOURCE)): len(list(folder.glob("*.py"))) for folder in FOLDERS}
    assert {folder: count for folder, count in counts.items() if count > MOST_MODULES} == {}


def test_no_prefix_stands_for_a_package() -> None:
    crowded = {}
    for folder in FOLDERS:
        found = prefixes([file.stem for file in folder.glob("[!_]*.py")])
        crowded |= {f"{folder.name}/{word}": n for word, n in found.items() if n > MOST_PREFIXED}
    assert crowded == {}


def test_private_names_stay_in_their_module() -> None:
    found = {
        str(file.relative_to(SOURCE)): private_imports(file.read_text()) for file in SOURCE.rglob("*.py")
    }
    assert {file: names for file, names in found.items() if names} == {}


def lines(folder: Path) -> int:
    """How many lines of code a folder has, with its templates, styles and scripts."""
    files = [file for file in folder.rglob("*") if file.suffix in COUNTED]
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


def test_the_package_and_what_shows_results_stay_small() -> None:
    assert lines(SOURCE) <= MOST
    assert sum(lines(SOURCE / package) for package in SHOWING) <= MOST_SHOWING


def test_few_names_are_public() -> None:
    assert len(isoscope.__all__) <= MOST_PUBLIC


def test_a_prefix_and_a_private_name_are_seen() -> None:
    assert prefixes(["sweep_a", "sweep_b", "sweep"])["sweep"] == 3
    assert private_imports("from isoscope.geometry.drift import _mean, drift") == {"_mean"}
    assert private_imports("from isoscope.geometry import drift\ndrift._mean(1)") == {"_mean"}
