"""The figures of a contrast, of an untrained block, and of the claims of a paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from isoscope.errors import IsoscopeError
from isoscope.kinds.block.figures import SCORES, units_of
from isoscope.kinds.contrast.figures import is_driven
from isoscope.plot.blocks import BLOCK, block_chart, passes_chart, scores_chart, stages_chart, summed
from isoscope.plot.contrasts import against_entropy, contrast_chart, drawable, fitted
from isoscope.results.store import RunFolder
from isoscope.show.charts import prepared
from isoscope.show.draw.matplotlib.sheet import Offered, Panel, Shape
from isoscope.show.measures import title_of

Facts = Mapping[str, Mapping[str, object]]
_ARM = 0.19  # inches that an arm takes


def of_contrast(folder: RunFolder) -> list[Offered]:
    """Differences, trials against their entropy, and both of each quantity."""
    rows, told = folder.frame(), folder.run.measures
    if rows.empty:
        return []
    found = fitted(rows, str(folder.run.question["reference"]), _arms(folder.facts()))
    measures = drawable(found)
    flat = Shape(1, 2, 4, 8, height=0.75 + _ARM * max(2, len(found.arms) - 1), keyed=False, aligned=True)
    apart: list[Panel] = [partial(contrast_chart, found, m, told) for m in measures]
    against: list[Panel] = [
        partial(against_entropy, found, m, told) for m in measures if m != "normalised_entropy"
    ]
    made = []
    if len(found.arms) > 1:
        made.append(Offered("contrast", f"how each arm differs from {found.arms[0]}", apart, flat))
    driven = is_driven(found.lines) and found.points["entropy"].notna().any()
    if driven:
        made.append(Offered("trials", "every trial against the entropy of its attention", against))
    for i, measure in enumerate(measures):
        if len(found.arms) > 1:
            made.append(
                Offered(measure, f"{title_of(measure, told)} of each arm", apart[i : i + 1], flat, alone=True)
            )
    return made


def _arms(facts: Facts) -> list[str]:
    """The arms in the order in which they were asked for."""
    places = {(int(str(known["place"])), str(known["arm"])) for known in facts.values() if "place" in known}
    return [arm for _, arm in sorted(places)]


def of_block(folder: RunFolder) -> list[Offered]:
    """What the bias does; stages and passes norm by norm; the scores; and each quantity alone."""
    rows, told = folder.frame(), folder.run.measures
    if rows.empty or not rows["value"].notna().any():
        return []
    lines = summed(rows)
    norms = [str(norm) for norm in lines["norm"].drop_duplicates()]
    ends = lines[lines["kind"].isin(["layer", "attention"]) & (lines["layer"] == 1)]
    there = [str(m) for m in ends["measure"].drop_duplicates()]
    along: dict[str, Panel] = {m: partial(block_chart, lines, m, told) for m in there}
    first = [along[m] for m in BLOCK if m in along]
    made = [Offered("block", "what a common bias makes of vectors and attention", first)]
    staged: list[Panel] = [
        partial(stages_chart, lines, n, m, told) for n in norms for m in ("mean_cosine", "mean_norm")
    ]
    wide = Shape(1, 2, 2, 6, height=1.8)
    made.append(Offered("stages", "where in the block it happens, stage by stage", staged, wide))
    passed = lines[(lines["kind"] == "iterated") & (lines["measure"] == "mean_norm")]
    again: list[Panel] = [partial(passes_chart, lines, n) for n in passed["norm"].drop_duplicates()]
    made += [Offered("passes", "norms as a block is fed what it gave", again, wide)] if again else []
    made += _scores(folder, norms)
    return [
        *made,
        *(Offered(m, f"{title_of(m, told)} along the bias", [along[m]], alone=True) for m in there),
    ]


def _scores(folder: RunFolder, norms: Sequence[str]) -> list[Offered]:
    """Histograms of the first seed, scores as they are and less the mean of their row."""
    points, facts = folder.points(), folder.facts()
    if points.empty:
        return []
    panels: list[Panel] = []
    for norm in norms:
        units = {unit: name for unit, name in units_of(facts, norm).items() if (points["unit"] == unit).any()}
        for series in SCORES if units else ():
            panels.append(partial(scores_chart, points, units, series, f"norm: {norm}"))
    says = "how scores are spread, as they are and less the mean of their row"
    return [Offered("scores", says, panels, Shape(1, 2, 2, 6, height=1.8))] if panels else []


def of_claims(folder: RunFolder) -> list[Offered]:
    """A figure a claim that was tried and has something to draw."""
    from isoscope.papers.paper import judged
    from isoscope.papers.table import paper_of

    made = []
    for each in judged(paper_of(str(folder.run.question["paper"])), folder):
        charts = prepared(each.charts())
        if charts:
            panels: list[Panel] = [partial(replace, chart) for chart in charts]
            says = f"{each.claim.title}: {each.verdict.word}"
            made.append(Offered(each.claim.name, says, panels, Shape(1, 2, 3, 8, height=1.95)))
    if not made:
        raise IsoscopeError(f"{folder.path} holds no claim with something to draw; see its page for why.")
    return made
