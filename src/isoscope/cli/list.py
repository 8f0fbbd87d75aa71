"""`isoscope list`: what there is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from isoscope.cli.options import verb
from isoscope.errors import unknown_name
from isoscope.kinds.table import kind_of, named

if TYPE_CHECKING:
    from isoscope.kinds.screen import Table

_PAPERS = "isoscope.papers.table:PAPERS"
_TABLES = {  # where the items are that a table has, and its columns: a heading and an attribute each
    "models": (
        "isoscope.models.zoo:ZOO",
        {"name": "name", "modality": "modality", "tokens": "tokens", "hub id": "hub", "a vector is": "vector",
         "data": "data", "papers": "papers"},
    ),
    "variants": (
        "isoscope.lab.variants.table:VARIANTS",
        {"--attention": "name", "formula": "formula", "what it is for": "says"},
    ),
    "norms": ("isoscope.lab.model.norms:NORMS", {"--norm": "name", "formula": "formula"}),
    "penalties": (
        "isoscope.lab.penalties.table:PENALTIES",
        {"--penalty": "name", "formula": "formula", "what it is for": "says", "as in": "example",
         "parameters": "parameters"},
    ),
    "tasks": (
        "isoscope.lab.tasks.table:TASKS", {"task": "name", "loss": "formula", "what is learnt": "says"},
    ),
    "papers": (_PAPERS, {"paper": "name", "title": "title", "by": "citation", "--claims": "claims"}),
}  # fmt: skip
WHAT = ("measures", "data", *_TABLES, "claims")


@verb({"what": ", ".join(WHAT)})
def list(what: Annotated[str, Argument()] = "measures") -> None:
    """List measures (formula, what each says and how it misleads), data, models, the lab, the papers."""
    if what not in WHAT:
        raise unknown_name("list", what, WHAT)
    from isoscope.cli.screen import terminal

    for part in _listed(what):
        terminal.show(part)


def _listed(what: str) -> Iterator[Table | str]:
    from isoscope.kinds.screen import Table, headed

    if what in _TABLES:
        items, columns = _TABLES[what]
        lines = [tuple(_text(getattr(one, name)) for name in columns.values()) for one in named(items)]
        yield Table(headed(columns, folds=True), tuple(lines))
    match what:
        case "measures":
            known = {one.name: one for one in named("isoscope.measures.table:MEASURES")}
            explained = {name: one.explanation() for name, one in known.items()}
            for name, told in {**explained, **kind_of("weights").explains()}.items():
                asked = " (by name, or with --measures all)" if name in known and known[name].extra else ""
                yield f"{name}: {told['title']}{asked}"
                for word in ("formula", "says", "misleads", "range", "null", "interval", "source"):
                    yield f"    {word:<9} {told[word]}"
                yield ""
        case "data":
            for address, takes, is_ in named("isoscope.data.source:KINDS"):
                yield f"{address:<20} for {takes:<7} {is_}"
        case "models":
            for modality, address in named("isoscope.models.zoo:CORPUS").items():
                yield f"public {modality} for --data: {address}"
        case "norms":
            for name, formula in named("isoscope.lab.model.cnn:NORMS").items():
                yield f"of a cnn: {name}, {formula}"
        case "claims":
            claims = [(paper.name, claim) for paper in named(_PAPERS) for claim in paper.claims]
            lines = [(paper, claim.name, claim.expected) for paper, claim in claims]
            yield Table(headed(("paper", "--claims", "expected"), folds=True), tuple(lines))


def _text(value: str | Mapping[str, str] | tuple[object, ...]) -> str:
    """An attribute as text: names with what they mean a line each, a list by its names."""
    if isinstance(value, Mapping):
        return "\n".join(f"{name}: {is_}" for name, is_ in value.items())
    return value if isinstance(value, str) else ", ".join(str(getattr(one, "name", one)) for one in value)
