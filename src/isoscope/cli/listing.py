"""`isoscope list`: what there is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

import typer

OF_THE_LAB = ("variants", "norms", "penalties", "tasks")
OF_PAPERS = ("papers", "claims")
WHAT = ("measures", "data", "models", *OF_THE_LAB, *OF_PAPERS)


def list_(what: Annotated[str, typer.Argument(help=", ".join(WHAT))] = "measures") -> None:
    """List measures (formula, what each says and how it misleads), data, models, the lab, the papers."""
    from isoscope.errors import unknown_name

    if what not in WHAT:
        raise unknown_name("list", what, WHAT)
    if what == "models":  # before torch, which takes seconds to import
        _show_models()
        return
    if what in OF_THE_LAB:
        _show_lab(what)
        return
    if what in OF_PAPERS:
        _show_papers(what)
        return
    from isoscope.cli.screen import terminal as screen
    from isoscope.data.source import KINDS
    from isoscope.kinds.table import kind_of
    from isoscope.measures.table import MEASURES

    if what == "data":
        for address, takes, is_ in KINDS:
            screen.say(f"{address:<20} for {takes:<7} {is_}")
        return
    explained = {measure.name: measure.explanation() for measure in MEASURES} | dict(
        kind_of("weights").explains()
    )
    for name, told in explained.items():
        screen.say(f"{name}: {told['title']}")
        for word in ("formula", "says", "misleads", "range", "null", "interval", "source"):
            screen.say(f"    {word:<9} {told[word]}")
        screen.say("")


def _show_models() -> None:
    """The papers' models, one line each; then public data of every modality."""
    from isoscope.cli.screen import terminal as screen
    from isoscope.models.zoo import CORPUS, ZOO

    lines = [
        (each.name, each.modality, each.tokens, each.hub, each.vector, each.data, ", ".join(each.papers))
        for each in ZOO
    ]
    _show(("name", "modality", "tokens", "hub id", "a vector is", "data", "papers"), lines)
    for modality, address in CORPUS.items():
        screen.say(f"public {modality} for --data: {address}")


def _show_papers(what: str) -> None:
    """The papers that `isoscope reproduce` tries, or every claim of theirs with what is expected."""
    from isoscope.papers.table import PAPERS

    if what == "papers":
        lines = [(paper.name, paper.title, paper.citation, str(len(paper.claims))) for paper in PAPERS]
        _show(("paper", "title", "by", "claims"), lines)
    else:
        claims = [(paper.name, claim.name, claim.expected) for paper in PAPERS for claim in paper.claims]
        _show(("paper", "--claims", "expected"), claims)


def _show_lab(what: str) -> None:
    """A part of the lab: name, formula and what each is for, and of penalties the parameters."""
    from isoscope.lab.model import cnn
    from isoscope.lab.model.norms import NORMS
    from isoscope.lab.penalties.table import PENALTIES
    from isoscope.lab.tasks.table import TASKS
    from isoscope.lab.variants.table import VARIANTS

    match what:
        case "variants":
            _show(
                ("--attention", "formula", "what it is for"), [(v.name, v.formula, v.says) for v in VARIANTS]
            )
        case "tasks":
            _show(("task", "loss", "what is learnt"), [(t.name, t.formula, t.says) for t in TASKS])
        case "norms":
            own = [(norm.name, norm.formula, "transformer") for norm in NORMS]
            _show(("--norm", "formula", "of a"), [*own, *((*line, "cnn") for line in cnn.NORMS.items())])
        case _:
            lines = [(p.name, p.formula, p.says, p.example, _told(p.parameters)) for p in PENALTIES]
            _show(("--penalty", "formula", "what it is for", "as in", "parameters"), lines)


def _told(parameters: Mapping[str, str]) -> str:
    return "\n".join(f"{name}: {is_}" for name, is_ in parameters.items())


def _show(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> None:
    from isoscope.cli.screen import terminal as screen
    from isoscope.kinds.screen import Table, headed

    screen.show(Table(headed(heads, folds=True), tuple(map(tuple, lines))))
