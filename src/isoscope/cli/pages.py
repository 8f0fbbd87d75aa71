"""The page of a run of any kind, made from its folder alone.

It stands here and not in `report`: what a contrast shows is fitted by the lab, and claims are judged by
their papers.
"""

from __future__ import annotations

from collections.abc import Callable

from isoscope.cli.screen import terminal as screen
from isoscope.errors import IsoscopeError
from isoscope.results.store import RunFolder


def write_page(folder: RunFolder) -> str:
    """Write the page and give its path; without what draws it, say so and give nothing."""
    try:
        if folder.run.kind == "sweep":
            from isoscope.kinds.sweep.page import write_sweep

            return str(write_sweep(folder)[0])
        return str(folder.write_page(page_of(folder)))
    except ImportError as missing:
        screen.warn([f"no page was written: {missing.name} is not installed"])
        return ""


def page_of(folder: RunFolder) -> str:
    """The text of `report.html`, from the rows that are in the folder now."""
    return _MADE.get(folder.run.kind, _measured)(folder)


def _measured(folder: RunFolder) -> str:
    from isoscope.show.page.page import page

    return page(folder.run, folder.frame(), folder.facts(), folder.points())


def _swept(folder: RunFolder) -> str:
    from isoscope.kinds.sweep.page import sweep_page

    return sweep_page(folder)


def _contrast(folder: RunFolder) -> str:
    from isoscope.cli.screen.contrast import fitted
    from isoscope.kinds.contrast.page import contrast_page

    rows, known = folder.frame(), folder.facts()
    found = fitted(folder, rows)
    return contrast_page(folder.run, rows, known, found.points, found.lines, found.differences, found.arms)


def _block(folder: RunFolder) -> str:
    from isoscope.cli.screen.block import finding, finding_of_norms
    from isoscope.kinds.block.page import block_page
    from isoscope.lab.block.seeds import over_seeds

    rows = folder.frame()
    lines = over_seeds(rows)
    said = (finding(lines), finding_of_norms(rows))
    return block_page(folder.run, rows, folder.facts(), folder.points(), lines, *said)


def _advise(folder: RunFolder) -> str:
    from isoscope.kinds.advise.findings import findings
    from isoscope.kinds.advise.page import advise_page
    from isoscope.kinds.advise.sentences import advice

    rows = folder.frame()
    found = findings(rows, str(folder.run.question.get("pool", "")))
    return advise_page(folder.run, rows, folder.facts(), found, advice(found))


def _impact(folder: RunFolder) -> str:
    from isoscope.cli.screen.impact import ordered
    from isoscope.kinds.impact.page import impact_page

    return impact_page(folder.run, ordered(folder.frame(), folder), folder.facts())


def _reproduce(folder: RunFolder) -> str:
    from isoscope.cli.screen.reproduce import told
    from isoscope.kinds.reproduce.page import paper_page
    from isoscope.papers.paper import headline, judged
    from isoscope.papers.table import paper_of

    paper, facts = paper_of(str(folder.run.question["paper"])), folder.facts()
    found = judged(paper, folder)
    if not found:
        raise IsoscopeError(f"{folder.path} holds no claim of {paper.name} yet.")
    return paper_page(folder.run, paper.citation, headline(found), told(found, facts), paper.absent, facts)


_MADE: dict[str, Callable[[RunFolder], str]] = {
    "sweep": _swept,
    "contrast": _contrast,
    "block": _block,
    "advise": _advise,
    "impact": _impact,
    "reproduce": _reproduce,
}
