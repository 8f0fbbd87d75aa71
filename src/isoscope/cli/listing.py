"""`isoscope list`: what there is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from typer import Argument

from isoscope.cli.options import verb
from isoscope.errors import unknown_name

OF_THE_LAB = ("variants", "norms", "penalties", "tasks")
OF_PAPERS = ("papers", "claims")
WHAT = ("measures", "data", "models", *OF_THE_LAB, *OF_PAPERS)
Listed = tuple[Sequence[str], Sequence[tuple[str, ...]]]
"""The headings and the lines of a table."""


@verb({"what": ", ".join(WHAT)})
def list_(what: Annotated[str, Argument()] = "measures") -> None:
    """List measures (formula, what each says and how it misleads), data, models, the lab, the papers."""
    if what not in WHAT:
        raise unknown_name("list", what, WHAT)
    from isoscope.cli.screen import terminal
    from isoscope.kinds.screen import Table, headed

    if what in ("measures", "data"):
        for line in _measures() if what == "measures" else _data():
            terminal.say(line)
        return
    listed = _of_the_lab if what in OF_THE_LAB else _of_papers if what in OF_PAPERS else _models
    heads, lines = listed(what)
    terminal.show(Table(headed(heads, folds=True), tuple(lines)))
    if what == "models":
        from isoscope.models.zoo import CORPUS

        for modality, address in CORPUS.items():
            terminal.say(f"public {modality} for --data: {address}")


def _data() -> Iterator[str]:
    from isoscope.data.source import KINDS

    for address, takes, is_ in KINDS:
        yield f"{address:<20} for {takes:<7} {is_}"


def _measures() -> Iterator[str]:
    from isoscope.kinds.table import kind_of
    from isoscope.measures.table import MEASURES

    explained = {measure.name: measure.explanation() for measure in MEASURES} | dict(
        kind_of("weights").explains()
    )
    for name, told in explained.items():
        yield f"{name}: {told['title']}"
        for word in ("formula", "says", "misleads", "range", "null", "interval", "source"):
            yield f"    {word:<9} {told[word]}"
        yield ""


def _models(what: str) -> Listed:
    """The papers' models; without torch, which takes seconds to import."""
    from isoscope.models.zoo import ZOO

    heads = ("name", "modality", "tokens", "hub id", "a vector is", "data", "papers")
    return heads, [(m.name, m.modality, m.tokens, m.hub, m.vector, m.data, ", ".join(m.papers)) for m in ZOO]


def _of_papers(what: str) -> Listed:
    """The papers that `isoscope reproduce` tries, or every claim of theirs with what is expected."""
    from isoscope.papers.table import PAPERS

    if what == "papers":
        lines = [(paper.name, paper.title, paper.citation, str(len(paper.claims))) for paper in PAPERS]
        return ("paper", "title", "by", "claims"), lines
    claims = [(paper.name, claim.name, claim.expected) for paper in PAPERS for claim in paper.claims]
    return ("paper", "--claims", "expected"), claims


def _of_the_lab(what: str) -> Listed:
    """A part of the lab: name, formula and what each is for, and of penalties the parameters."""
    from isoscope.lab.model import cnn
    from isoscope.lab.model.norms import NORMS
    from isoscope.lab.penalties.table import PENALTIES
    from isoscope.lab.tasks.table import TASKS
    from isoscope.lab.variants.table import VARIANTS

    match what:
        case "variants":
            return ("--attention", "formula", "what it is for"), [
                (v.name, v.formula, v.says) for v in VARIANTS
            ]
        case "tasks":
            return ("task", "loss", "what is learnt"), [(t.name, t.formula, t.says) for t in TASKS]
        case "norms":
            lines = [(norm.name, norm.formula, "transformer") for norm in NORMS]
            return ("--norm", "formula", "of a"), [*lines, *((*line, "cnn") for line in cnn.NORMS.items())]
    told = ["\n".join(f"{name}: {is_}" for name, is_ in p.parameters.items()) for p in PENALTIES]
    heads = ("--penalty", "formula", "what it is for", "as in", "parameters")
    return heads, [(p.name, p.formula, p.says, p.example, t) for p, t in zip(PENALTIES, told, strict=True)]
