"""The page of advice: the cosines, what to do, what makes it so, and what each repair would change."""

from __future__ import annotations

import re

from isoscope.formatting import short
from isoscope.kinds.advise.figures import AS_IS, KEY, cosine_panel, ladder, numbers_panel
from isoscope.kinds.advise.findings import Findings, findings
from isoscope.kinds.advise.sentences import PARTS, Said, advice, headline
from isoscope.results.store import RunFolder
from isoscope.show.figures.panels import Panel
from isoscope.show.measures import Family
from isoscope.show.page.page import page
from isoscope.show.page.section import Section, explanations
from isoscope.show.readings import unique
from isoscope.show.say.shapes import percent

_SHOWN_OF = "All numbers are of the half of the vectors that no repair was fitted on."
_ISOTROPIC = "grey: an isotropic cloud"
_REPAIRED = (  # what is shown of each space: reading, heading, remark, how it is written
    ("cosine", "Mean cosine", _ISOTROPIC, short),
    ("kept", "Nearest 10 kept", "grey: chance", percent),
    ("rank", "Effective rank", _ISOTROPIC, short),
    ("drift", "Relative drift", _ISOTROPIC, short),
    ("isoscore", "IsoScore", _ISOTROPIC, short),
    ("anti_hubs", "Nobody's neighbour", "grey: by chance", percent),
)


def page_of(folder: RunFolder) -> str:
    """The text of `report.html`, from the rows that are in the folder now."""
    found = _found(folder)
    return page(
        folder.run, folder.frame(), folder.facts(), sections=_sections(folder, found), said=headline(found)
    )


def sections_of(folder: RunFolder) -> list[Section]:
    """The sections of the page."""
    return _sections(folder, _found(folder))


def _found(folder: RunFolder) -> Findings:
    return findings(folder.frame(), str(folder.run.question.get("pool", "")))


def _sections(folder: RunFolder, found: Findings) -> list[Section]:
    told = folder.run.measures
    repaired = [panel for shown in _REPAIRED for panel in ladder(found, *shown)]
    said = advice(found)
    texts = {part: _listed(said, part) for part in PARTS} | {
        "do": _listed(said, "do", "unknown"),
        "repair": "",
    }
    shown: tuple[tuple[str, str, str, list[Panel]], ...] = (
        ("space", "Cosines", "Where do they lie, now and after each repair?", [cosine_panel(found)]),
        ("do", PARTS["do"], "", []),
        ("cause", PARTS["cause"], "Dimensions and tokens", _causes(found)),
        ("repair", "What each repair would change", _SHOWN_OF, repaired),
    )
    return [
        Section(
            name, Family(heading, asks, ()), panels, words=texts[name],
            key=dict(KEY) if name in ("space", "repair") else {},
            explained=explanations(unique(m for panel in panels for m in panel.measures), told),
        )
        for name, heading, asks, every in shown
        if (panels := [panel for panel in every if panel.filled]) or texts[name]
    ]  # fmt: skip


def _listed(said: list[Said], *parts: str) -> str:
    """Sentences a line each, with what is to be typed in quotes."""
    lines = [re.sub(r"`([^`]+)`", r"“\1”", one.text) for one in said if one.part in parts]
    return "\n".join(f"• {line}" for line in lines) if len(lines) > 1 else "".join(lines)


def _causes(found: Findings) -> list[Panel]:
    # a share of a mean cosine that may be 0 is any number
    few = found.dimensions if found.crowded else ()
    shares = [(f"dimension {each.which}", each.alone, AS_IS) for each in few]
    cosines = [
        ("rarer tokens", found.tokens.rarer, AS_IS),
        ("frequent tokens", found.tokens.frequent, AS_IS),
        ("content tokens", found.tokens.cosine, AS_IS),
        ("all tokens", found.all_tokens.cosine, AS_IS),
        ("these vectors", found.before.cosine, AS_IS),
    ]
    names, remark = ("dimension_share", "dimension_share_joined"), "grey: a direction that prefers none"
    made = numbers_panel(shares, names, "Share of the mean cosine", remark, percent)
    if found.tokens.cosine.known:
        bands = ("mean_cosine_rare", "mean_cosine_frequent", "mean_cosine_between")
        made += numbers_panel(cosines, bands, "Mean cosine", "", short)
    return made
