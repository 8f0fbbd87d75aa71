"""What advice shows: a table of spaces, the sentences under their headings, and the page."""

from __future__ import annotations

from dataclasses import asdict

from rich.table import Table

from isoscope.cli.pages import write_page
from isoscope.cli.screen import terminal as screen
from isoscope.errors import IsoscopeError
from isoscope.formatting import ABSENT, short, two
from isoscope.kinds.advise.findings import BEFORE, Findings, Space, findings
from isoscope.kinds.advise.judged import cosine, ends
from isoscope.kinds.advise.sentences import PARTS, advice, headline, of_part
from isoscope.results.reading import Reading
from isoscope.results.store import RunFolder

_HEADS = ("", "cosine between", "9 in 10\ncosines", "relative\ndrift", "effective\nrank", "IsoScore")
_KEPT, _NOBODY = "nearest 10\nkept", "nobody's\nneighbour"
_ON_SCREEN = ("space", "cause", "do", "unknown")  # the table says what each repair would change


def finish_advise(folder: RunFolder, *, json: bool = False) -> None:
    """Read what is in the folder, write the page and print all."""
    rows, facts = folder.frame(), folder.facts()
    if rows.empty:
        raise IsoscopeError(f"{folder.path} holds no advice yet; `isoscope advise` makes it.")
    found = findings(rows, str(folder.run.question.get("pool", "")))
    said = advice(found)
    with screen.bar("writing the page"):
        page = write_page(folder)
    told = [str(note) for known in facts.values() for note in _notes(known)]
    screen.warn(told)
    if json:
        sentences = [asdict(one) for one in said]
        beside = {"run": folder.run.id, "folder": str(folder.path), "page": page}
        screen.show_json(rows, headline=headline(found), sentences=sentences, notes=told, **beside)
        return
    screen.show_table(_table(found))
    for part in _ON_SCREEN:
        if text := of_part(said, part):
            screen.say(f"\n{PARTS[part]}\n{text}")
    if page:
        screen.say(f"\npage: {page}")


def _table(found: Findings) -> Table:
    n, null = found.before.rank.n, short(found.before.rank.null)
    caption = f"of {n} vectors that no repair was fitted on; value [95 % interval]; an isotropic cloud of as "
    caption += f"many has a cosine of 0 and an effective rank of {null}"
    table = Table(caption=caption, caption_justify="left")
    there = any(space.kept.known for space in found.after)
    for head in (*_HEADS, *([_KEPT, _NOBODY] if there else [])):
        table.add_column(head, justify="right" if head else "left", no_wrap=True)
    for space in (found.before, *found.after):
        table.add_row(*_cells(space), *([_share(space.kept), _share(space.anti_hubs)] if there else []))
        if space is found.before:
            table.add_section()
    return table


def _cells(space: Space) -> list[str]:
    low, high = two(space.quantiles[5].value, space.quantiles[95].value)
    name = "as it is" if space.name == BEFORE else space.name
    return [
        name,
        _bounded(space.cosine),
        f"{low} to {high}",
        short(space.drift.value),
        short(space.rank.value),
        short(space.isoscore.value),
    ]


def _bounded(number: Reading) -> str:
    if not number.bounded:
        return cosine(number.value)
    value, low, high = ends(number)
    return f"{value} [{low}, {high}]"


def _share(number: Reading) -> str:
    return f"{100 * number.value:.0f} %" if number.known else ABSENT


def _notes(known: dict[str, object]) -> list[object]:
    told = known.get("notes", [])
    return told if isinstance(told, list) else []
