"""The figures of a contrast, of an untrained block, and of the claims of a paper."""

from __future__ import annotations

from functools import partial

from isoscope.errors import IsoscopeError
from isoscope.kinds.block.figures import PASSED, SCORES, units_of
from isoscope.plot import experiments
from isoscope.plot.select import names_in
from isoscope.results.store import RunFolder
from isoscope.show.charts import Chart, prepared
from isoscope.show.draw.matplotlib.sheet import Offered, Panel, Shape
from isoscope.show.measures import title_of

_ARM = 0.19  # inches that an arm takes
_WIDE = Shape(1, 2, 2, 6, height=1.8)
_BLOCK = (
    "normalised_entropy", "mean_cosine", "mean_norm", "score_std", "drift_share", "largest_weight",
)  # fmt: skip


def of_contrast(folder: RunFolder) -> list[Offered]:
    """Differences, trials against their entropy, and the differences of each quantity."""
    rows, told = folder.frame(), folder.run.measures
    if rows.empty:
        return []
    asked = {
        (int(str(known["place"])), str(known["arm"])) for known in folder.facts().values() if "place" in known
    }
    arms = [arm for _, arm in sorted(asked)]
    fit = experiments.fitted(rows, str(folder.run.question["reference"]), arms)
    measures = experiments.quantities(fit)
    flat = Shape(1, 2, 4, 8, height=0.75 + _ARM * max(2, len(fit.arms) - 1), keyed=False, aligned=True)
    apart = {m: partial(experiments.differences, fit, m, told) for m in measures if len(fit.arms) > 1}
    offered = []
    if apart:
        says = f"how each arm differs from {fit.arms[0]}"
        offered.append(Offered("contrast", says, list(apart.values()), flat))
    if experiments.is_driven(fit) and fit.points["entropy"].notna().any():
        against = [m for m in measures if m != "normalised_entropy"]
        panels = [partial(experiments.against_entropy, fit, m, told) for m in against]
        offered.append(Offered("trials", "every trial against the entropy of its attention", panels))
    alone = [
        Offered(m, f"{title_of(m, told)} of each arm", [panel], flat, alone=True)
        for m, panel in apart.items()
    ]
    return [*offered, *alone]


def of_block(folder: RunFolder) -> list[Offered]:
    """What the bias does; stages and passes norm by norm; the scores; and each quantity alone."""
    rows, told, points = folder.frame(), folder.run.measures, folder.points()
    if rows.empty or not rows["value"].notna().any():
        return []
    lines = experiments.summed(rows)
    norms = names_in(lines, "norm")
    ends = lines[lines["kind"].isin(["layer", "attention"]) & (lines["layer"] == 1)]
    along = {m: partial(experiments.along_bias, lines, m, told) for m in names_in(ends, "measure")}
    staged = [
        partial(experiments.stages, lines, norm, m, told)
        for norm in norms
        for m in ("mean_cosine", "mean_norm")
    ]
    passed = lines[(lines["kind"] == PASSED) & (lines["measure"] == "mean_norm")]
    again = [partial(experiments.passes, lines, norm) for norm in names_in(passed, "norm")]
    scores: list[Panel] = []
    for norm in norms:  # of the first seed
        named = units_of(folder.facts(), norm)
        units = {unit: name for unit, name in named.items() if (points["unit"] == unit).any()}
        titled = partial(experiments.scores, title=f"norm: {norm}")
        scores += [partial(titled, points, units, series) for series in SCORES if units]
    first = [along[m] for m in _BLOCK if m in along]
    spread = "how scores are spread, as they are and less the mean of their row"
    offered = [
        Offered("block", "what a common bias makes of vectors and attention", first),
        Offered("stages", "where in the block it happens, stage by stage", staged, _WIDE),
        *([Offered("passes", "norms as a block is fed what it gave", again, _WIDE)] if again else []),
        *([Offered("scores", spread, scores, _WIDE)] if scores else []),
    ]
    alone = [
        Offered(m, f"{title_of(m, told)} along the bias", [panel], alone=True) for m, panel in along.items()
    ]
    return [*offered, *alone]


def of_claims(folder: RunFolder) -> list[Offered]:
    """A figure per claim that was tried and has something to draw."""
    from isoscope.papers.paper import judged
    from isoscope.papers.table import paper_of

    offered = []
    for each in judged(paper_of(str(folder.run.question["paper"])), folder):
        panels = [partial(Chart.named, chart) for chart in prepared(each.charts())]
        says = f"{each.claim.title}: {each.verdict.word}"
        offered += [Offered(each.claim.name, says, panels, Shape(1, 2, 3, 8, height=1.95))] if panels else []
    if not offered:
        raise IsoscopeError(f"{folder.path} holds no claim with something to draw; see its page for why.")
    return offered
