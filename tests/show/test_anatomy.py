"""The anatomy of attention: what is said of planted runs, what is drawn, and what old runs show."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from isoscope.kinds.measure.tables import tables
from isoscope.results.row import Row
from isoscope.results.run import Run
from isoscope.show.colours import PAPER, PARTS
from isoscope.show.draw.matplotlib.sheet import shown
from isoscope.show.figures.anatomy import panels
from isoscope.show.figures.panels import Panel
from isoscope.show.measures import ANATOMY as PARTED
from isoscope.show.page.page import page, sections_of
from isoscope.show.page.section import Section
from isoscope.show.page.training import training_of
from isoscope.show.say.attention import NEARLY_EVEN
from isoscope.show.say.words import headline
from tests.show.drawn import figure_of
from tests.show.made import attended, row, site_rows
from tests.show.said import HEADLINE, Case, Table, cases
from tests.typed import frame

NAN = math.nan
ANATOMY = {part: measure for part, (measure, _) in PARTED.items()}
SECTION, DRIFT = "anatomy of attention", "drift in attention"
EVEN = "attention is even: its scores deviate by less than 0.1 within rows"
KEY = {"position": 0.2, "key": 0.5, "query position": 0.05, "content": 0.2}
POSITION = {"position": 0.6, "key": 0.1, "query position": 0.05, "content": 0.2}
QUERY = {"position": 0.1, "key": 0.1, "query position": 0.6, "content": 0.2}
CONTENT = {"position": 0.1, "key": 0.2, "query position": 0.05, "content": 0.6}


def layer(
    shares: dict[str, float], at: int = 1, *, half: float | None = 0.02, entropy: float | None = 0.5,
    kind: str | None = None, head: int | None = None, cross: float | None = None, **where: object,
) -> list[Row]:  # fmt: skip
    """The anatomy of one layer or head; its kind is that of the largest share unless told."""
    place = {"kind": "attention", "layer": at, "head": head} | where
    rows = [row(ANATOMY[part], value, half=half, **place) for part, value in shares.items()]
    ordered = sorted(shares.values())
    lead = ordered[-1] - ordered[-2]
    clear = half is None or lead > half
    tag = kind or (max(shares, key=shares.__getitem__) if clear and half is not None else "mixed")
    ends = {} if half is None else {"low": max(0.0, lead - half), "high": lead + half}
    rows.append(row("attention_kind", lead, tag=tag if half is not None else "", **place, **ends))
    left = 1 - sum(shares.values()) if cross is None else cross
    rows.append(row("anatomy_cross_term", left, half=0.01, **place))
    if entropy is not None and head is None:
        rows.append(row("normalised_entropy", entropy, half=0.01, **place | {"null": 1.0}))
    return rows


def even(at: int = 1, **where: object) -> list[Row]:
    """A layer whose attention is even: no share has a value."""
    place = {"kind": "attention", "layer": at, "note": EVEN} | where
    names = (*ANATOMY.values(), "anatomy_cross_term", "attention_kind")
    rows = [row(name, NAN, null=NAN, **place) for name in names]
    return [*(replace(r, tag="mixed") if r.measure == "attention_kind" else r for r in rows),
            row("normalised_entropy", 0.999, half=0.0001, kind="attention", layer=at, null=1.0)]  # fmt: skip


def sink(without_key: float, without_both: float, random: float = 0.3) -> list[Row]:
    """A sink of .3 in layer 1, and what is left of it without parts of the scores and without the control."""
    ends = {"": 0.3, "_without_key": without_key, "_without_position_and_key": without_both}
    ends |= {"_without_random": random}
    place = {"kind": "attention", "layer": 1, "null": 0.01}
    return [row(f"sink_mass{end}", value, half=0.005, **place) for end, value in ends.items()]


def run(*layers: Sequence[Row]) -> list[Row]:
    """A model with these layers of attention."""
    return [*site_rows(0.3, 60, layer=0), *itertools.chain(*layers)]


CLOSE = {"position": 0.4, "key": 0.41, "query position": 0.05, "content": 0.1}
FOUND: Table = {
    SECTION: (
        ("keys that every query favours (key share 0.50); content makes 0.20.", layer(KEY), layer(CONTENT)),
        ("from preferred places and distances (position share 0.60);", layer(POSITION), layer(KEY)),
        ("from each query’s own preferred places (query position share 0.60)", layer(QUERY), layer(KEY)),
        ("the match of a query’s content with a key’s (content share 0.60).", layer(CONTENT), layer(KEY)),
        ("favours (key share 0.50)", layer(KEY), layer(CLOSE)),
        ("The largest part", layer(KEY), layer(CLOSE)),
        ("The largest part", layer(KEY), layer(CLOSE, kind="key")),  # whatever its tag
        ("The largest part", layer(KEY), layer(KEY, half=None)),  # nothing leads without an interval
        ("The largest part", layer(KEY), even()),
        ("The largest part", layer(KEY, entropy=NEARLY_EVEN - 0.02), layer(KEY, entropy=NEARLY_EVEN - 0.005)),
        ("In layer 1 the largest share is indistinguishable from the second.", layer(CLOSE), layer(KEY)),
        ("indistinguishable", layer(CLOSE), layer(CLOSE, half=None)),
        (
            "places and distances in layer 1 (position share 0.60) and keys that every query favours in",
            [*layer(POSITION), *layer(KEY, 2)],
            [*layer(KEY), *layer(POSITION, 2)],
        ),
        ("content makes", layer(KEY), [*layer(KEY), *layer(CONTENT, 2)]),
        ("favours in layer 1 (key", [*layer(KEY), *layer(CLOSE, 2)], layer(KEY)),
        ("; cross terms are large in layer 1, so no", layer(KEY, cross=-0.21), layer(KEY, cross=-0.2)),
        (f"No shares are reported in layer 2 ({EVEN}).", [*layer(KEY), *even(2)], layer(KEY)),
        ("nearly even in layer 1 (normalised entropy 0.99).", layer(KEY, entropy=0.99), layer(KEY)),
        (
            "Of 3 heads, key leads in 2 and no part leads in 1.",
            [*layer(KEY), *layer(KEY, head=0), *layer(KEY, head=1), *layer(CLOSE, head=2)],
            [*layer(KEY), *layer(KEY, head=0), *layer(KEY, head=1), *layer(CLOSE, head=2, half=None)],
        ),
        (
            "The sink of layer 1 is carried by keys that every query favours: the first token takes 0.30, "
            "without keys that every query favours 0.01 (chance 0.01), without a random vector 0.30.",
            [*layer(KEY), *sink(0.01, 0.01)],
            [*layer(KEY), *sink(0.2, 0.01)],
        ),
        ("carried by position and key:", [*layer(KEY), *sink(0.2, 0.01)], [*layer(KEY), *sink(0.01, 0.01)]),
        ("carried", [*layer(KEY), *sink(0.01, 0.01)], [*layer(KEY), *sink(0.01, 0.01, random=0.1)]),
        (
            "In layer 1 most of the sink stays without position and key (0.20 of 0.30).",
            [*layer(KEY), *sink(0.25, 0.2)],
            [*layer(KEY), *sink(0.25, 0.1)],
        ),
    ),
    HEADLINE: (
        ("The largest part of what sharpens attention comes from keys", layer(KEY), layer(CONTENT)),
        ("sharpens", layer(KEY), layer(CLOSE)),
        ("sharpens", layer(KEY), layer(KEY, half=None)),
        ("sharpens", layer(KEY), even()),  # an untrained model has no headline on attention
        ("sharpens", layer(KEY), layer(KEY, entropy=0.99)),
        ("sharpens", layer(KEY), layer(KEY, entropy=None)),
        ("is drift", attended(), [*attended(), *layer(KEY)]),  # never both
        ("sharpens", layer(KEY), [*layer(KEY), *layer(KEY, model="other")]),
    ),
}  # fmt: skip
CASES = cases(FOUND)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_part_is_said_to_lead_where_it_does_and_only_there(case: Case) -> None:
    assert case.words in case.there()
    assert case.words not in case.elsewhere()


def bars(rows: Sequence[Row]) -> Panel:
    return panels(frame(rows), {})[0]


def test_shares_stand_on_each_other_and_what_is_beyond_1_are_cross_terms() -> None:
    figure = figure_of(bars([*layer(KEY, cross=-0.05), *layer(CONTENT, 2)]))
    assert [trace.name for trace in figure.data] == list(ANATOMY)
    tops = np.zeros(2)
    for trace in figure.data:
        assert trace.type == "bar"
        np.testing.assert_allclose(trace.base, tops)
        tops += trace.y
    np.testing.assert_allclose(tops, [sum(KEY.values()), sum(CONTENT.values())])
    assert figure.layout.barmode == "overlay"
    assert [line.y0 for line in figure.layout.shapes] == [1.0]
    assert list(figure.data[0].error_y.array) == pytest.approx([0.02, 0.02])


def test_layers_without_shares_are_grey_and_say_why() -> None:
    figure = figure_of(bars([*layer(KEY), *even(2)]))
    (grey,) = [trace for trace in figure.data if trace.name == "no shares"]
    assert list(grey.x) == [2]
    assert EVEN in grey.hovertext[0]
    assert all(2 not in trace.x for trace in figure.data if trace.name != "no shares")


def test_where_no_layer_has_shares_nothing_is_stacked_and_the_reason_is_said() -> None:
    assert panels(frame(even()), {}) == []


def test_heads_are_coloured_by_kind_and_tell_their_shares() -> None:
    rows = [*layer(KEY), *layer(KEY, head=0), *layer(CONTENT, head=1), *layer(CLOSE, head=2)]
    rows += [replace(r, head=3) for r in even() if r.measure in ("attention_kind", "key_share")]
    whole, heads = panels(frame(rows), {})
    assert [name for name, _ in heads.key] == ["key", "content", "mixed", "no shares"]
    assert dict(heads.key) == {name: PARTS[name] for name in dict(heads.key)}
    (trace,) = figure_of(heads).data
    colours = [colour for _, colour in trace.colorscale]
    found = [colours[round(z / (trace.zmax - trace.zmin) * (len(colours) - 1))] for z in trace.z[0]]
    assert found == [PARTS[name][0] for name in ("key", "content", "mixed", "no shares")]
    assert "key_share 0.5 [0.48, 0.52]" in trace.hovertext[0][0]
    assert EVEN in trace.hovertext[0][3]
    assert whole.measures[0] == "position_share"


def test_heads_without_an_interval_are_of_no_kind() -> None:
    bare = [*layer(KEY), *layer(KEY, head=0, half=None)]
    assert len(panels(frame(bare), {})) == 1
    chart = panels(frame([*bare, *layer(CONTENT, head=1)]), {})[1].chart
    assert chart.map is not None
    assert list(chart.map.x) == [1]


@pytest.mark.parametrize("shares", [KEY, CONTENT])
def test_heads_of_one_kind_alone_have_its_colour(shares: dict[str, float]) -> None:
    chart = panels(frame([*layer(shares), *layer(shares, head=0)]), {})[1].chart
    assert chart.map is not None
    assert {pair for pair in chart.map.stops} == {PARTS[max(shares, key=shares.__getitem__)]}


def test_print_draws_both() -> None:
    rows = [*layer(KEY), *even(2), *layer(KEY, head=0), *layer(CONTENT, head=1)]
    stack, kinds = (shown(panel.chart) for panel in panels(frame(rows), {}))
    heights = [patch.get_height() for patch in stack.patches]
    assert heights == pytest.approx([*KEY.values(), 1.0])
    assert stack.patches[1].get_y() == pytest.approx(KEY["position"])
    assert [text.get_text() for text in kinds.get_legend().get_texts()] == ["key", "content"]


def test_every_model_has_bars_of_its_own_and_of_several_steps_the_last() -> None:
    rows = [r for step in (0, 5) for r in layer(KEY, step=step)]
    (panel,) = panels(frame(rows), {})
    assert panel.remark.endswith("step 5")
    found = panels(frame([*layer(KEY), *layer(KEY, model="b")]), {})
    assert [panel.heading.split(" · ")[-1] for panel in found] == ["m", "b"]


def sections(rows: Sequence[Row], kind: str = "observe") -> dict[str, Section]:
    made = Run(kind, "t", {}, {}, {}, "")
    table = frame(rows)
    return {one.family: one for one in sections_of(made, table, None, training_of(made, table, {}))}


def test_the_anatomy_comes_first_and_takes_the_place_of_the_drift() -> None:
    found = list(sections([*run(layer(KEY)), *attended()]))
    assert found.index(SECTION) + 1 == found.index("attention")
    assert DRIFT not in found


def test_old_runs_show_the_drift_as_they_did() -> None:
    old = sections([*run(), *attended(heads=2)])
    assert SECTION not in old
    drawn = [panel.measures for panel in old[DRIFT].panels]
    assert ("drift_share",) in drawn
    assert "is drift" in old[DRIFT].words
    assert "is drift" in headline(frame([*run(), *attended()]))


def test_runs_without_a_share_keep_their_section_with_the_reason() -> None:
    rows = [*run(even()), row("normalised_entropy_without_key", 0.999, kind="attention", layer=1, null=1.0)]
    assert EVEN in sections(rows)[SECTION].words


def test_nothing_is_drawn_twice() -> None:
    without = [
        row(f"{name}_{suffix}", 0.4, half=0.01, kind="attention", layer=1)
        for name in ("normalised_entropy", "sink_mass")
        for suffix in ("without_key", "without_position_and_key", "without_random")
    ]
    own = sections([*run(layer(KEY)), *without])[SECTION]
    measures = [measure for panel in own.panels for measure in panel.measures]
    assert len(measures) == len(set(measures))
    assert {"key_share", "normalised_entropy_without_key", "sink_mass_without_random"} <= set(measures)


def test_along_steps_each_share_is_drawn_once_in_their_order() -> None:
    rows = [r for step in (0, 5, 9) for r in run(layer(KEY), layer(CONTENT, 2))
            for r in [replace(r, step=step)]]  # fmt: skip
    found = sections([*rows, *(r for step in (0, 5, 9) for r in attended(step=step))], "training")
    assert DRIFT not in found
    own = found[SECTION]
    drawn = [panel.measures[0] for panel in own.panels]
    assert drawn[:4] == list(ANATOMY.values())
    assert len(drawn) == len(set(drawn))


def test_the_terminal_has_a_column_for_each_share_and_none_for_the_drift() -> None:
    table, *_ = tables(frame([*run(layer(KEY)), *attended(depth=1)]), 200)
    assert not isinstance(table, str)
    headings = [column.heading.replace("\n", " ") for column in table.columns]
    assert [name for name in headings if name.removesuffix(" share") in ANATOMY] == [
        f"{part} share" for part in ANATOMY
    ]
    assert "drift share" not in headings
    old, *_ = tables(frame([*run(), *attended(depth=1)]), 200)
    assert not isinstance(old, str)
    assert "drift share" in [column.heading.replace("\n", " ") for column in old.columns]


def test_the_terminal_names_the_kind_of_each_head() -> None:
    rows = [*run(layer(KEY)), *layer(POSITION, head=0), *layer(QUERY, head=1), *layer(CLOSE, head=2)]
    found = [one for one in tables(frame(rows), 200) if not isinstance(one, str) and "by head" in one.title]
    assert found[0].lines[0][1:] == ("pos", "query", "mix")


SIGHTS = {
    "full": np.eye(3),
    "protan": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deutan": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritan": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}  # Machado, Oliveira & Fernandes 2009, of linear red, green and blue


def linear(colour: str) -> np.ndarray:
    parts = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = np.cbrt(np.clip(to_xyz @ np.clip(rgb, 0, 1) / [0.9505, 1, 1.089], 1e-6, None))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("screen", [0, 1], ids=["paper", "dark"])
def test_every_kind_of_colour_vision_tells_the_parts_apart(sight: str, screen: int) -> None:
    seen = {name: lab(np.array(SIGHTS[sight]) @ linear(pair[screen])) for name, pair in PARTS.items()}
    far = {pair: np.linalg.norm(seen[pair[0]] - seen[pair[1]]) for pair in itertools.combinations(seen, 2)}
    assert min(far.values()) > 15, min(far, key=far.__getitem__)
    light = {name: float(linear(pair[screen]) @ [0.2126, 0.7152, 0.0722]) for name, pair in PARTS.items()}
    ground = float(linear(PAPER[screen]) @ [0.2126, 0.7152, 0.0722])
    for part in ANATOMY:
        dim, bright = sorted((light[part], ground))
        assert (bright + 0.05) / (dim + 0.05) > 3, part  # as WCAG asks of graphics


def test_the_page_holds_the_section() -> None:
    text = page(Run("observe", "t", {}, {}, {}, ""), frame(run(layer(KEY))), {})
    assert 'id="anatomy-of-attention"' in text
    assert "key: keys that every query favours" in text
