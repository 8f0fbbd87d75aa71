"""What a reproduction shows: a table of claims with their verdicts, the page, and figures for print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from isoscope.cli.pages import write_page
from isoscope.cli.screen import terminal as screen
from isoscope.errors import IsoscopeError, unknown_name
from isoscope.papers.claims import Claim, called
from isoscope.papers.paper import Judged, Paper, headline, judged
from isoscope.papers.table import paper_of
from isoscope.results import store
from isoscope.results.store import RunFolder
from isoscope.results.trajectory import FAILED

if TYPE_CHECKING:
    from isoscope.kinds.reproduce.page import ClaimTold

_STYLES = {True: "green", False: "red", None: "yellow"}


def chosen(paper: Paper, names: Sequence[str] | None) -> list[Claim]:
    """The claims of these names, or all."""
    known = {claim.name: claim for claim in paper.claims}
    if names is not None and not names:
        raise IsoscopeError(f"--claims names none; leave it out for all, or take of: {', '.join(known)}.")
    for name in names or []:
        if name not in known:
            raise unknown_name(f"claim of {paper.name}", name, known)
    return [claim for claim in paper.claims if names is None or claim.name in names]


def finish_reproduce(folder: RunFolder, *, json: bool = False) -> None:
    """Judge what is in the folder, write page and figures where their libraries are there, and print."""
    paper = paper_of(str(folder.run.question["paper"]))
    found = judged(paper, folder)
    if not found:
        raise IsoscopeError(
            f"{folder.path} holds no claim yet; `isoscope reproduce {paper.name}` makes them."
        )
    with screen.bar("writing the page"):
        page, figures = write_page(folder), _write_figures(folder, found)
    if json:
        verdicts = [
            {"claim": each.claim.name, "expected": each.claim.expected, "verdict": each.verdict.word,
             "found": f"{each.verdict.said} {each.verdict.details}".strip()}
            for each in found
        ]  # fmt: skip
        beside = {"run": folder.run.id, "folder": str(folder.path), "page": page, "figures": figures}
        screen.show_json(folder.frame(), verdicts=verdicts, headline=headline(found), **beside)
        return
    screen.show_table(_table(found))
    screen.say(headline(found))
    if page:
        screen.say(f"page: {page}")


def _table(found: Sequence[Judged]) -> Table:
    table = Table(show_lines=True)
    for heading in ("claim", "expected", "found", "verdict"):
        table.add_column(heading)
    for each in found:
        verdict = Text(each.verdict.word, style=_STYLES[each.verdict.held])
        table.add_row(*map(Text, (each.claim.title, each.claim.expected, each.verdict.said)), verdict)
    return table


def told(found: Sequence[Judged], facts: Mapping[str, Mapping[str, object]]) -> list[ClaimTold]:
    """The claims as the page tells them."""
    from isoscope.kinds.reproduce.page import ClaimTold

    return [
        ClaimTold(
            name=each.claim.name,
            title=each.claim.title,
            expected=each.claim.expected,
            held=each.verdict.held,
            word=each.verdict.word,
            said=each.verdict.said,
            details=each.verdict.details,
            method=each.claim.method,
            reconstructed=each.claim.reconstructed,
            charts=tuple(each.charts()),
            measures=each.claim.measures,
            notes=_notes(each, facts.get(each.claim.name, {}).get("notes", [])),
        )
        for each in found
    ]


def _notes(each: Judged, noted: object) -> list[str]:
    """Remarks of the experiment, and the reasons of what could not be measured."""
    lost = each.rows[each.rows["measure"] == FAILED]
    places = zip(lost["model"], lost["revision"], lost["note"], strict=True)
    reasons = [f"{called(model, revision)}: {why}" for model, revision, why in places]
    return list(dict.fromkeys([*map(str, noted if isinstance(noted, list) else []), *reasons]))


def _write_figures(folder: RunFolder, found: Sequence[Judged]) -> list[str]:
    from isoscope.kinds.reproduce.page import printed_claim

    written = []
    for each in found:
        try:
            bodies = printed_claim(each.charts())
        except ImportError as missing:
            screen.warn([f"no figures were written: {missing.name} is not installed"])
            return []
        for kind, body in bodies.items():
            file = folder.path / "figures" / f"{each.claim.name}.{kind}"
            file.parent.mkdir(exist_ok=True)
            store.write_whole(file, body)
            written.append(str(file))
    return written
