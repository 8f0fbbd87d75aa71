"""The layers of docs/design.md, held on the import graph; and who may print, exit or touch modules."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "isoscope"
NAMED = re.compile(r"isoscope(\.\w+)+:\w+")  # as kinds/table.py names what it imports later
ABOVE = {  # room: the rooms it may import
    "errors": set(),
    "formatting": set(),
    "sites": {"errors"},
    "geometry": set(),
    "results": {"errors", "formatting", "sites"},
    "data": {"errors", "sites"},
    "kernels": {"geometry"},
    "stats": {"geometry", "kernels"},
    "measures": {"errors", "geometry", "kernels", "results", "stats"},
    "models": {"errors", "sites", "data"},
    "show": {"errors", "formatting", "results", "sites"},
}
ABOVE["run"] = {*ABOVE}
ABOVE["sweeps"] = ABOVE["lab"] = {*ABOVE["run"], "run"} - {"show"}
ABOVE["lab"] |= {"sweeps"}
ABOVE["repair"] = {*ABOVE["run"], "run"} - {"show", "measures"}
ABOVE["papers"] = {*ABOVE["run"], "run", "sweeps", "lab"}
ABOVE["plot"] = {"errors", "formatting", "results", "show", "kinds", "lab", "papers"}
ABOVE["kinds"] = {*ABOVE["run"], "run", "sweeps", "lab", "repair", "papers"}
ABOVE["integrations"] = {"errors", "results", "run"}
ABOVE["cli"] = {*ABOVE, "cli"}


def room(file: Path) -> str:
    return file.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_names(source: str) -> set[str]:
    """All that a piece of code imports, anywhere in it, and what it names as "module:object" to be imported.

    Imports for types alone are none.
    """
    tree = ast.parse(source)
    typed = [node for node in ast.walk(tree) if isinstance(node, ast.If) and _is_typing(node.test)]
    absent = {inner for node in typed for part in node.body for inner in ast.walk(part)}
    found: set[str] = set()
    for node in set(ast.walk(tree)) - absent:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and NAMED.fullmatch(node.value):
            found.add(node.value.replace(":", "."))
    return {name for name in found if name.startswith("isoscope.")}


def _is_typing(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def imported(source: str) -> set[str]:
    """The rooms that a piece of code imports, anywhere in it."""
    return {name.split(".")[1] for name in imported_names(source)}


def cycle(graph: Mapping[str, Iterable[str]]) -> list[str]:
    """A cycle of a graph, from one of its nodes back to it; empty where there is none."""
    done: set[str] = set()

    def walk(node: str, path: tuple[str, ...]) -> list[str]:
        if node in path:
            return [*path[path.index(node) :], node]
        if node in done:
            return []
        found = next((one for after in graph.get(node, ()) if (one := walk(after, (*path, node)))), [])
        done.add(node)
        return found

    return next((one for node in graph if (one := walk(node, ()))), [])


def modules() -> dict[str, list[str]]:
    """Every module of the package with the modules that it imports, at once or later.

    A module that only forwards names (`isoscope`, `isoscope.plot`) imports nothing itself.
    """
    sources = {
        ".".join(("isoscope", *file.relative_to(SOURCE).with_suffix("").parts)): file for file in FILES
    }
    sources = {name.removesuffix(".__init__"): file for name, file in sources.items()}
    graph = {}
    for name, file in sources.items():
        names = imported_names(file.read_text())
        found = {each if each in sources else each.rpartition(".")[0] for each in names}
        graph[name] = sorted(found & set(sources) - {name})
    return graph


FILES = sorted(file for file in SOURCE.rglob("*.py") if room(file) != "__init__")


def test_a_room_imports_only_those_below_it() -> None:
    assert FILES
    against = {
        str(file.relative_to(SOURCE)): wrong
        for file in FILES
        if (wrong := imported(file.read_text()) - ABOVE.get(room(file), set()) - {room(file), "__version__"})
    }
    assert against == {}, "imports against the layers of docs/design.md"


def test_every_room_has_its_place_in_the_layers() -> None:
    assert {room(file) for file in FILES} == set(ABOVE)


def test_an_import_against_the_layers_is_seen() -> None:
    assert imported("def f():\n    from isoscope.run import observe") - ABOVE["geometry"] == {"run"}


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert cycle(modules()) == []


def test_a_cycle_is_seen_also_one_of_late_imports() -> None:
    assert cycle({"a": ["b"], "b": ["c"], "c": ["b"]}) == ["b", "c", "b"]
    late = "def f():\n    from isoscope.kinds.report import report"
    graph = modules()
    graph["isoscope.run.page"] = [*graph["isoscope.run.page"], "isoscope.kinds.report"]
    assert imported_names(late) == {"isoscope.kinds.report.report"}
    assert {"isoscope.run.page", "isoscope.kinds.report", "isoscope.kinds.table"} <= set(cycle(graph))


DRAWERS = {"plotly", "matplotlib"}


def libraries(source: str) -> set[str]:
    """The top packages that a piece of code imports, anywhere in it but for types alone."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    nodes = list(ast.walk(tree))
    found = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    found |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    found |= {
        str(node.args[0].value)
        for node in nodes
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).endswith("import_module")
        and node.args
        and isinstance(node.args[0], ast.Constant)
    }
    return {name.split(".")[0] for name in found}


def test_only_renderers_import_what_draws() -> None:
    """A figure is data; deleting a renderer breaks rendering and nothing else."""
    renderers = SOURCE / "show" / "draw"
    others = [file for file in FILES if not file.is_relative_to(renderers)]
    wrong = {
        str(f.relative_to(SOURCE)): found for f in others if (found := libraries(f.read_text()) & DRAWERS)
    }
    assert wrong == {}
    for name in DRAWERS:
        own = [libraries(file.read_text()) & DRAWERS for file in (renderers / name).glob("*.py")]
        assert set().union(*own) == {name}


def test_an_import_of_what_draws_is_seen() -> None:
    assert libraries("def f():\n    import matplotlib.pyplot as plt") == {"matplotlib"}
    assert libraries("def f():\n    from plotly import offline") == {"plotly"}
    assert libraries("if TYPE_CHECKING:\n    from matplotlib.axes import Axes") == set()


def calls(source: str) -> set[str]:
    """The names of everything that a piece of code calls."""
    return {ast.unparse(node.func) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)}


def test_only_the_command_line_prints_or_exits() -> None:
    wrong = {"print", "sys.exit", "exit", "typer.echo"}
    others = [file for file in FILES if room(file) != "cli"]
    assert {str(file.relative_to(SOURCE)) for file in others if calls(file.read_text()) & wrong} == set()


def test_a_print_and_an_exit_are_seen() -> None:
    assert calls("def f():\n    print(1)\n    sys.exit(2)") == {"print", "sys.exit"}


def loaded_after(code: str) -> set[str]:
    told = subprocess.run(
        [sys.executable, "-c", f"{code}; import sys; print(*sys.modules)"],
        check=True,
        capture_output=True,
        text=True,
    )
    return set(told.stdout.split())


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import isoscope", {"torch", "pandas", "transformers"}),
        ("import isoscope.cli.main", {"torch", "pandas", "transformers", "numpy", "plotly"}),
        ("import isoscope.results.store, isoscope.show.say.words", {"torch", "plotly", "transformers"}),
        ("import isoscope.run.observe.observe, isoscope.lab.train.demo", {"plotly", "ray", "transformers"}),
        ("import isoscope.papers.table", {"plotly", "matplotlib", "ray"}),
        (
            "import isoscope.kinds.measure.shown, isoscope.kinds.sweep.page, isoscope.kinds.advise.page, "
            "isoscope.kinds.impact, isoscope.kinds.contrast, isoscope.lab.contrast.fit",
            {"torch", "plotly", "matplotlib"},
        ),
        ("import isoscope.run.measure", {"scipy.stats", "scipy.integrate", "sklearn", "transformers"}),
    ],
)
def test_nothing_heavy_is_imported_before_it_is_needed(code: str, absent: set[str]) -> None:
    assert not loaded_after(code) & absent


def test_figures_are_made_without_a_renderer() -> None:
    modules = "show.figures.panels, show.figures.clouds, show.page.section, kinds.block"
    modules += ", kinds.contrast, kinds.impact, kinds.advise.page, kinds.sweep.page"
    named = ", ".join(f"isoscope.{name}" for name in modules.split(", "))
    code = f"import sys; sys.modules['isoscope.show.draw'] = None; import {named}"
    assert not loaded_after(code) & DRAWERS


def test_what_is_imported_is_seen() -> None:
    assert "colorsys" in loaded_after("import colorsys")
