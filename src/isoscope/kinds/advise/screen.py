"""The terminal output of advice: a table of spaces, and the sentences under their headings."""

from __future__ import annotations

from dataclasses import asdict

from isoscope.formatting import ABSENT, short, two
from isoscope.kinds.advise.findings import BEFORE, Findings, Space, findings
from isoscope.kinds.advise.judged import cosine, ends
from isoscope.kinds.advise.sentences import PARTS, advice, headline, of_part
from isoscope.kinds.screen import WIDTH, Screen, Table, headed, notes_of, rows_of
from isoscope.results.reading import Reading
from isoscope.results.store import RunFolder

_HEADS = ("cosine between", "9 in 10\ncosines", "relative\ndrift", "effective\nrank", "IsoScore")
_KEPT, _NOBODY = "nearest 10\nkept", "nobody's\nneighbour"
_ON_SCREEN = ("space", "cause", "do", "unknown")  # the table says what each repair would change


def screen_of(folder: RunFolder, width: int = WIDTH) -> Screen:
    """The table and the sentences of the advice in the folder."""
    rows = rows_of(folder, "no advice yet; `isoscope advise` makes it.")
    found = findings(rows, str(folder.run.question.get("pool", "")))
    said, notes = advice(found), notes_of(folder.facts())
    texts = [f"\n{PARTS[part]}\n{text}" for part in _ON_SCREEN if (text := of_part(said, part))]

    def json() -> dict[str, object]:
        sentences = [asdict(one) for one in said]
        return {"headline": headline(found), "sentences": sentences, "notes": list(notes), "rows": rows}

    return Screen((_table(found), *texts, ""), json, notes)


def _table(found: Findings) -> Table:
    n, null = found.before.rank.n, short(found.before.rank.null)
    caption = f"of {n} vectors that no repair was fitted on; value [95 % interval]; an isotropic cloud of as "
    caption += f"many has a cosine of 0 and an effective rank of {null}"
    there = any(space.kept.known for space in found.after)
    lines = [
        (*_cells(space), *([_share(space.kept), _share(space.anti_hubs)] if there else []))
        for space in (found.before, *found.after)
    ]
    columns = headed(("",), (*_HEADS, *([_KEPT, _NOBODY] if there else [])))
    return Table(columns, tuple(lines), caption=caption, rules=frozenset({1}))


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
