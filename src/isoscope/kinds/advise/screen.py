"""The terminal output of advice: a table of spaces, and the sentences under their headings."""

from __future__ import annotations

from dataclasses import asdict

from isoscope.formatting import ABSENT, short, two
from isoscope.kinds.advise.findings import Findings, findings_of
from isoscope.kinds.advise.sentences import PARTS, advice, headline
from isoscope.kinds.screen import WIDTH, Screen, Table, headed, notes_of
from isoscope.results.reading import Reading
from isoscope.results.store import RunFolder

_HEADS = ("cosine between", "9 in 10\ncosines", "relative\ndrift", "effective\nrank", "IsoScore")
_NEIGHBOURS = ("nearest 10\nkept", "nobody's\nneighbour")


def screen_of(folder: RunFolder, width: int = WIDTH) -> Screen:
    """The table and the sentences of the advice in the folder."""
    found = findings_of(folder)
    said = advice(found)
    parts = {part: "\n".join(one.text for one in said if one.part == part) for part in PARTS}
    texts = [f"\n{PARTS[part]}\n{text}" for part, text in parts.items() if text]
    json = {"headline": headline(found), "sentences": [asdict(one) for one in said]}
    return Screen((_table(found), *texts, ""), notes_of(folder.facts()), json)


def _table(found: Findings) -> Table:
    n, null = found.before.rank.n, short(found.before.rank.null)
    caption = f"of {n} vectors that no repair was fitted on; value [95 % interval]; an isotropic cloud of as "
    caption += f"many has a cosine of 0 and an effective rank of {null}"
    there, lines = any(space.kept.known for space in found.after), []
    for space in (found.before, *found.after):
        lie = " to ".join(two(space.quantiles[5].value, space.quantiles[95].value))
        numbers = (short(reading.value) for reading in (space.drift, space.rank, space.isoscore))
        shares = (_share(space.kept), _share(space.anti_hubs)) if there else ()
        lines.append((space.label, space.cosine.said, lie, *numbers, *shares))
    columns = headed(("",), (*_HEADS, *(_NEIGHBOURS if there else ())))
    return Table(columns, tuple(lines), caption=caption, rules=frozenset({1}))


def _share(number: Reading) -> str:
    return f"{100 * number.value:.0f} %" if number.known else ABSENT
