"""Attention on the page: what shares a panel, what is mapped, and what the numbers allow to be said."""

from __future__ import annotations

import math

import pytest

from isoscope.results.row import Row
from isoscope.show import colours
from isoscope.show.figures.maps import CELL, TALLEST, maps
from isoscope.show.figures.panels import Drawn, figures
from isoscope.show.say.words import headline, sentences
from tests.show.drawn import figure_of
from tests.show.made import attended, attention_rows, layered, row
from tests.typed import frame

DRIFT, CROSS = "drift in attention", "cross_attention"


def drawn(rows: list[Row], family: str = DRIFT) -> Drawn:
    return figures(frame(rows), family)


def curves(found: Drawn, panel: int) -> dict[str, list[float]]:
    return {t.name: list(t.y) for t in figure_of(found.panels[panel]).data if t.mode == "lines+markers"}


def said(rows: list[Row], family: str = DRIFT) -> str:
    return sentences(frame(rows), family)


def test_entropy_stands_beside_itself_without_the_mean_query_and_the_control() -> None:
    found = drawn(attended())
    first, second, third = found.panels[:3]
    labels = ["as it is", "without the mean query", "without a random vector"]
    assert (first.heading, [label for label, _ in first.key]) == ("Normalised entropy", labels)
    assert list(curves(found, 0)) == labels
    rows = {(r.layer, r.measure): r.value for r in attended()}
    for label, end in zip(labels, ("", "_without_drift", "_without_random"), strict=True):
        assert curves(found, 0)[label] == [rows[i, f"normalised_entropy{end}"] for i in range(1, 5)]
    assert (second.heading, second.remark) == ("Sink mass", "dashed: chance")
    (chance,) = [t for t in figure_of(second).data if t.line.dash == "dash"]
    assert list(chance.y) == [0.008] * 4
    assert third.measures == ("drift_share",)
    assert list(figure_of(first).layout.xaxis.tickvals) == [1, 2, 3, 4]


def test_curves_of_a_deep_model_do_not_seem_to_follow_each_other() -> None:
    for depth in (4, 64):
        found = figure_of(drawn(attended(depth=depth)).panels[0]).data
        shifts = [t.x[0] - 1 for t in found if t.mode == "lines+markers"]
        assert shifts[0] < shifts[1] == 0 < shifts[2] < 0.15


def test_what_is_shown_again_needs_something_beside_it() -> None:
    bare = [r for r in attended() if r.measure in ("normalised_entropy", "sink_mass", "drift_share")]
    assert [p.measures for p in drawn(bare).panels] == [("drift_share",)]
    assert [p.measures[0] for p in drawn(bare, "attention").panels] == ["normalised_entropy", "sink_mass"]
    assert drawn(bare[:2]).panels == ()


def test_each_measure_is_drawn_or_another_instead() -> None:
    for family, absent in (
        ("attention", {"entropy", "largest_score"}),
        (DRIFT, {"entropy_without_drift"}),
        ("queries", {"query_drift", "key_drift", "query_key_product"}),
    ):
        shown = {m for panel in drawn(attended(), family).panels for m in panel.measures}
        assert shown
        assert not shown & absent


def test_cross_attention_has_panels_of_its_own_on_the_same_axes() -> None:
    cross = [r for r in attended(kind=CROSS) if (r.layer or 0) > 2]
    found = drawn(attended() + cross)
    pairs = [p for p in found.panels if "-attention" in p.heading]
    assert (found.across, len(pairs)) == (2, 8)
    for own, other in zip(pairs[::2], pairs[1::2], strict=True):
        assert own.heading.removesuffix("self-attention") == other.heading.removesuffix("cross-attention")
        assert figure_of(own).layout.yaxis.range == figure_of(other).layout.yaxis.range
        assert figure_of(own).layout.xaxis.range == figure_of(other).layout.xaxis.range == (0.5, 4.5)
    (share,) = [p for p in found.panels if p.measures == ("drift_share",)]
    assert {t.name: len(t.x) for t in figure_of(share).data if t.mode == "lines+markers"} == {
        "self-attention": 4,
        "cross-attention": 2,
    }
    steps = [r for step in (0, 5) for r in (*attended(step=step), *attended(step=step, kind=CROSS))]
    assert [p.heading for p in drawn(steps, "attention").panels[:2]] == [
        "Normalised entropy · self-attention",
        "Normalised entropy · cross-attention",
    ]
    assert not any("self-attention" in p.heading for p in drawn(attended()).panels)


@pytest.mark.parametrize("count", [3, 20])
def test_over_steps_each_measure_has_a_panel(count: int) -> None:
    rows = [r for step in range(count) for r in attended(step=step)]
    found = drawn(rows)
    assert [p.measures for p in found.panels[:2]] == [
        ("normalised_entropy",),
        ("normalised_entropy_without_drift",),
    ]
    assert len(found.key) == (count if count <= 12 else 4)
    assert len({tuple(figure_of(p).layout.yaxis.range) for p in found.panels[:3]}) == 1


def test_one_layer_stands_as_dots() -> None:
    found = drawn(attention_rows(0.4))
    assert [t.mode for t in figure_of(found.panels[0]).data] == ["markers", "markers"]
    assert found.panels[0].measures[:2] == ("normalised_entropy", "normalised_entropy_without_drift")


def test_a_map_has_layers_down_and_heads_across() -> None:
    rows = [r for r in attended(heads=5, depth=3) if not (r.layer == 2 and r.head == 4)]
    rows += [row("drift_share", math.nan, kind="attention", layer=2, head=4, note="does not vary")]
    share, sink, without = maps(frame(rows), DRIFT)
    (cells,) = figure_of(share).data
    assert (list(cells.x), list(cells.y)) == ([0, 1, 2, 3, 4], [1, 2, 3])
    values = {(r.layer, r.head): r.value for r in rows if r.measure == "drift_share"}
    for i, line in enumerate(cells.z):
        for j, value in enumerate(line):
            assert value is None if (i, j) == (1, 4) else value == values[i + 1, j]
    assert "does not vary" in cells.hovertext[1][4]
    assert figure_of(share).layout.yaxis.autorange == "reversed"
    assert (cells.zmin, cells.zmax) == (0, 1)
    assert [figure_of(m).data[0].zmax for m in (sink, without)] == [0.3, 0.3]
    (cosine,) = maps(frame(rows), "queries")
    assert (figure_of(cosine).data[0].zmin, figure_of(cosine).data[0].zmax) == (-1, 1)
    assert len(figure_of(cosine).data[0].colorscale) % 2 == 1  # 0 has a colour of its own


def test_maps_of_steps_models_and_cross_attention_are_named() -> None:
    assert maps(frame(attended()), DRIFT) == ()
    assert maps(frame(attended(heads=2)), "spectrum") == ()
    rows = [r for step in (0, 5) for r in attended(heads=2, depth=2 + step, step=step)]
    first = maps(frame(rows), "attention")[0]
    assert first.remark == "by head, step 5"
    assert len(figure_of(first).data[0].y) == 7
    both = attended("a", heads=2) + attended("b", heads=2, kind=CROSS)
    assert [m.heading for m in maps(frame(both), "queries")] == [
        "Query key cosine · a · self-attention",
        "Query key cosine · b · cross-attention",
    ]


def test_a_large_map_is_not_taller_than_a_screen_and_its_ticks_are_few() -> None:
    (first, *_) = maps(frame(attended(heads=32, depth=64)), "attention")
    assert figure_of(first).layout.height < TALLEST + 60 < 64 * CELL
    assert len(figure_of(first).layout.xaxis.tickvals) == 8
    assert (figure_of(first).data[0].xgap, figure_of(first).data[0].ygap) == (0, 0)


def test_no_colour_has_two_pairs() -> None:
    pairs = [*colours.AMOUNT, *colours.SIGNED, *colours.MODELS]
    pairs += [pair for count in range(1, 60) for pair in colours.sequence(count)]
    mapped = {*colours.AMOUNT, *colours.SIGNED}
    assert not {light for light, _ in mapped} & {light for light, _ in pairs if (light, _) not in mapped}


def test_the_drift_is_told_with_what_it_does_and_its_control() -> None:
    assert said(attended()) == (
        "Up to 67 % of the variance of scores within rows is drift in layer 4 (chance 0.1 %). Without the "
        "mean query the normalised entropy there rises from 0.48 to 0.90; without a random vector of the "
        "same length it stays at 0.49. The sink of layers 1–4 is carried by the mean query: the first token "
        "takes 0.30, without the mean query 0.009 (chance 0.008), without a random vector 0.28."
    )


def changed(rows: list[Row], **values: float) -> list[Row]:
    return [
        row(r.measure, values[r.measure], half=0.001, kind=r.kind, layer=r.layer, null=r.null)
        if r.measure in values
        else r
        for r in rows
    ]


def test_a_control_that_moves_and_a_split_that_is_not_clean_are_told() -> None:
    text = said(changed(attended(), normalised_entropy_without_random=0.8, cross_term=-0.4))
    assert "(chance 0.1 %; cross term −0.4, so no clean split)" in text
    assert "of the same length it goes to 0.80." in text
    near = said(changed(attended(), normalised_entropy_without_drift=0.483))
    assert "the normalised entropy there is" in near
    assert "rises" not in near


@pytest.mark.parametrize(
    "values",
    [
        {"sink_mass": 0.04},  # hardly a sink
        {"sink_mass": 0.3, "sink_mass_without_drift": 0.1},  # a third stays
        {"sink_mass_without_random": 0.1},  # any vector takes it away
        {"sink_mass_without_drift": math.nan},
        {"sink_mass_without_random": math.nan},
    ],
)
def test_the_sink_is_carried_only_where_all_three_say_so(values: dict[str, float]) -> None:
    assert "carried" in headline(frame(attended()))
    rows = changed(attended(), **values)
    assert "carried" not in said(rows)
    assert "carried" not in headline(frame(rows))


def test_without_intervals_no_sink_is_called_carried() -> None:
    rows = [row(r.measure, r.value, kind=r.kind, layer=r.layer, null=r.null) for r in attended()]
    assert "carried" not in said(rows)


def test_a_sink_that_stays_is_told_beside_one_that_is_carried() -> None:
    stays = changed(attention_rows(0.2, layer=5), sink_mass_without_drift=0.29)
    text = said(attended() + stays)
    assert "The sink of layers 1–4 is carried" in text
    assert text.endswith(" In layer 5 most of the sink stays without the mean query (0.29 of 0.30).")


def test_the_headline_gains_a_sentence_on_the_attention_of_one_model() -> None:
    own = headline(frame(layered("m")))
    assert headline(frame([*layered("m"), *attended(heads=2)])) == (
        f"{own} Up to 67 % of the variance of scores within rows is drift in layer 4; "
        "the sink of layers 1–4 is carried by the mean query."
    )
    steps = [r for step in (0, 5) for r in attended(step=step, depth=1)]
    assert "At step 5, 33 % of the variance" in headline(frame(steps))
    two = layered("a") + layered("b") + attended("a")
    assert "drift" not in headline(frame(two))
    chance = changed(attended(), drift_share=0.0011, sink_mass=0.008)
    assert "drift" not in headline(frame(chance))


def test_cross_attention_is_told_after_self_attention() -> None:
    rows = attended() + attended(kind=CROSS, depth=2)
    own, cross = said(rows, "attention").split(" Cross-attention: ")
    assert own == said(attended(), "attention")
    assert own.startswith("The normalised entropy of attention is 0.483 (95 % interval 0.482–0.484)")
    assert "in layer 4 to 0.683 (0.682–0.684) in layer 1; even attention has 1." in own
    assert cross.startswith("the normalised entropy")
    alone = said(attended(kind=CROSS), "attention")
    assert alone == own


def test_queries_and_keys_are_counted_by_the_side_their_means_point_to() -> None:
    assert said(attended(), "queries").endswith(
        "averaged over heads, is −0.167 (95 % interval −0.168 to −0.166) in layer 4 to "
        "0.333 (0.332–0.334) in layer 1."
    )
    text = said(attended(heads=3), "queries")
    assert text.startswith(
        "In units of the mean length, the mean query is up to 0.767 in layer 4; chance gives 0.03."
    )
    cosines = [r.value for r in attended(heads=3) if r.measure == "query_key_cosine" and r.head is not None]
    along, against = sum(c > 0.001 for c in cosines), sum(c < -0.001 for c in cosines)
    assert f"the same side in {along} of 12 heads" in text
    assert text.endswith(f"to opposite sides in {against}.")


def test_rows_that_were_left_out_are_told_once() -> None:
    sick = [row("blind_rows", 3, kind="attention", layer=i, head=h) for i in (2, 3) for h in (None, 0, 1)]
    assert said(sick, "health") == (
        "Left out in the attention of layers 2–3 of m: queries without a visible key (3)."
    )
