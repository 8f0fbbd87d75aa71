"""The page of advice: the cosines, what to do, what makes it so, and what each repair would change."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from isoscope.kinds.advise.figures import KEY, cosine_panel, ladder, numbers_panel
from isoscope.kinds.advise.findings import Findings, findings
from isoscope.kinds.advise.judged import Said, cosine, crowded, share
from isoscope.kinds.advise.sentences import PARTS, advice, headline
from isoscope.results.run import Run
from isoscope.results.store import RunFolder
from isoscope.show.figures.panels import Panel
from isoscope.show.measures import Family, Told
from isoscope.show.page.page import page
from isoscope.show.page.section import Section, explanations
from isoscope.show.readings import unique

ISOTROPIC = "grey: an isotropic cloud"
SHOWN_OF = "All numbers are of the half of the vectors that no repair was fitted on."


def page_of(folder: RunFolder) -> str:
    """The text of `report.html`, from the rows that are in the folder now."""
    rows = folder.frame()
    found = findings(rows, str(folder.run.question.get("pool", "")))
    return advise_page(folder.run, rows, folder.facts(), found, advice(found))


def advise_page(
    run: Run,
    rows: pd.DataFrame,
    facts: Mapping[str, Mapping[str, object]],
    found: Findings,
    said: Sequence[Said],
) -> str:
    """The text of `report.html`."""
    return page(run, rows, facts, sections=advise_sections(found, said, run.measures), said=headline(found))


def advise_sections(found: Findings, said: Sequence[Said], told: Told) -> list[Section]:
    """Cosines, what to do, the cause, the repairs."""
    texts = {part: _listed(one for one in said if one.part == part) for part in PARTS}
    texts["do"] = _listed(one for one in said if one.part in ("do", "unknown"))
    made: tuple[tuple[str, str, str, list[Panel]], ...] = (
        ("space", "Cosines", "Where do they lie, now and after each repair?", [cosine_panel(found)]),
        ("do", PARTS["do"], "", []),
        ("cause", PARTS["cause"], "Dimensions and tokens", _causes(found)),
        ("repair", PARTS["repair"], SHOWN_OF, _repairs(found)),
    )
    return [
        Section(
            name, Family(heading, asks, ()), panels, words=texts[name],
            key=dict(KEY) if name in ("space", "repair") else {},
            explained=explanations(unique(m for panel in panels for m in panel.measures), told),
        )
        for name, heading, asks, every in made
        if (panels := [panel for panel in every if panel.filled]) or texts[name]
    ]  # fmt: skip


def _listed(said: Iterable[Said]) -> str:
    """Sentences a line each, with what is to be typed in quotes."""
    lines = [re.sub(r"`([^`]+)`", r"“\1”", one.text) for one in said]
    return "\n".join(f"• {line}" for line in lines) if len(lines) > 1 else "".join(lines)


def _causes(found: Findings) -> list[Panel]:
    # a share of a mean cosine that may be 0 is any number
    few = found.dimensions if crowded(found) else ()
    shares = [(f"dimension {each.which}", each.alone) for each in few]
    of = found.tokens
    cosines = [
        ("rarer tokens", of.rarer),
        ("frequent tokens", of.frequent),
        ("content tokens", of.cosine),
        ("all tokens", of.with_special),
        ("these vectors", found.before.cosine),
    ]
    made = [
        numbers_panel(
            shares,
            ("dimension_share", "dimension_share_joined"),
            "Share of the mean cosine",
            "grey: a direction that prefers none",
            share,
        )
    ]
    if of.cosine.known:
        names = ("mean_cosine_rare", "mean_cosine_frequent", "mean_cosine_between")
        made.append(numbers_panel(cosines, names, "Mean cosine", "", cosine))
    return [panel for panel in made if panel is not None]


def _repairs(found: Findings) -> list[Panel]:
    made = (
        ladder(found, lambda s: s.cosine, "mean_cosine_between", "Mean cosine", ISOTROPIC, cosine),
        ladder(found, lambda s: s.kept, "neighbours_kept", "Nearest 10 kept", "grey: chance", share),
        ladder(found, lambda s: s.rank, "effective_rank", "Effective rank", ISOTROPIC),
        ladder(found, lambda s: s.drift, "relative_drift", "Relative drift", ISOTROPIC),
        ladder(found, lambda s: s.isoscore, "isoscore", "IsoScore", ISOTROPIC),
        ladder(found, lambda s: s.anti_hubs, "anti_hubs", "Nobody's neighbour", "grey: by chance", share),
    )
    return [panel for panel in made if panel is not None]
