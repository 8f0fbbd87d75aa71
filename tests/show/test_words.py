"""What the page says: right for every shape of run, and silent where the numbers are."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest

from isoscope.results.row import Row, frame
from isoscope.show.measures import FAMILIES
from isoscope.show.readings import read
from isoscope.show.say.words import GRADES, STRONG, WEAK, grade, headline, sentences
from tests.show.made import clouds, compared, layered, part_rows, row, trained, whole

BETWEEN = "mean_cosine_between"


def said(rows: list[Row]) -> str:
    return headline(frame(rows))


def test_layers_are_grouped_by_the_word_they_earn() -> None:
    assert said(layered()) == (
        "Layers 10–11 of bert-base-uncased are strongly anisotropic: mean cosine between sequences "
        "0.56–0.68, where an isotropic cloud has 0; in layers 0–9, 12 and the output it is 0.10–0.48."
    )


def test_one_layer() -> None:
    assert said([row(BETWEEN, 0.3, half=0.01, layer=4)]) == (
        "Layer 4 of m is anisotropic: mean cosine between sequences 0.30, where an isotropic cloud has 0."
    )


def test_one_cloud_is_called_by_its_name() -> None:
    assert said(clouds()).startswith("vectors.npy is anisotropic: mean cosine between sequences 0.31,")


def test_one_step_is_named() -> None:
    assert said([row(BETWEEN, 0.02, half=0.01, step=1200)]).startswith("Layer 0 of m at step 1,200 is weakly")


def test_an_interval_with_the_null_in_it_claims_nothing() -> None:
    rows = [row(BETWEEN, value, half=0.02, layer=i) for i, value in enumerate((0.004, -0.003))]
    assert said(rows) == (
        "No anisotropy can be told from chance in layers 0–1 of m: the mean cosine between sequences is "
        "−0.003 to 0.004 and the 95 % intervals do not lie above 0."
    )
    assert said(rows[:1]).endswith("and the 95 % interval does not lie above 0.")


def test_what_cannot_be_told_is_said_beside_what_can() -> None:
    rows = [row(BETWEEN, 0.004, half=0.02, layer=0), row(BETWEEN, 0.6, half=0.02, layer=1)]
    assert said(rows).endswith("has 0; in layer 0 it cannot be told from chance.")


def test_without_an_interval_nothing_is_called_anisotropic() -> None:
    assert said([row(BETWEEN, 0.7)]) == (
        "The mean cosine between sequences of layer 0 of m is 0.70, where an isotropic cloud has 0; "
        "without an interval it cannot be told from chance."
    )


def test_below_the_null_nothing_is_claimed() -> None:
    assert said([row(BETWEEN, -0.2, half=0.05)]).startswith(
        "No anisotropy can be told from chance in layer 0"
    )


def test_a_missing_null_is_that_of_an_isotropic_cloud() -> None:
    assert said([row(BETWEEN, 0.3, half=0.01, null=math.nan)]).endswith("isotropic cloud has 0.")


@pytest.mark.parametrize("measure", [BETWEEN, "mean_cosine"])
def test_nothing_measured_is_said_so(measure: str) -> None:
    text = said([row(measure, math.nan, note="needs 2 sequences")])
    assert "undefined everywhere" in text if measure == BETWEEN else "was not measured" in text
    assert "nan" not in text.lower()


def test_the_bare_mean_cosine_carries_no_claim() -> None:
    text = said([row("mean_cosine", 0.9, half=0.01)])
    assert (
        text == "The mean cosine between sequences was not measured, so nothing is claimed about anisotropy."
    )
    assert "no claim hangs on it" in sentences(frame([row("mean_cosine", 0.9)]), "directions")


def test_words_follow_the_near_end_of_the_interval() -> None:
    strong, middle, weak = GRADES
    for value, word in (
        (STRONG + 0.02, strong),
        (STRONG + 0.005, middle),
        (WEAK + 0.005, weak),
        (0.005, "untold"),
    ):
        (reading,) = read(frame([row(BETWEEN, value, half=0.01)]))
        assert grade(reading) == word


def test_training_tells_what_rose_and_where_nothing_can_be_told() -> None:
    assert said(trained()) == (
        "Between step 0 and step 400 of small the mean cosine between sequences rose in layers 1–4 "
        "and the output, most in layer 4 (from 0.002 to 0.30), where an isotropic cloud has 0; "
        "in layer 0 no change can be told from chance."
    )


def along(*values: float, half: float | None = 0.01, layer: int = 0) -> list[Row]:
    return [row(BETWEEN, value, half=half, step=100 * i, layer=layer) for i, value in enumerate(values)]


def test_training_that_falls_and_turns() -> None:
    assert said(along(0.7, 0.9, 0.16)) == (
        "Between step 0 and step 200 of m the mean cosine between sequences fell in layer 0 "
        "from 0.70 to 0.16, where an isotropic cloud has 0; on the way it has a peak of 0.90 at step 100."
    )
    both = said(along(0.1, 0.3) + along(0.5, 0.2, layer=1))
    assert "rose in layer 0 from 0.10 to 0.30 and fell in layer 1 from 0.50 to 0.20" in both


def test_training_without_a_change() -> None:
    assert said(along(0.3, 0.305)) == (
        "Between step 0 and step 100 of m no change of the mean cosine between sequences can be told "
        "from chance at this n: it is 0.30, then 0.30."
    )
    assert "; on the way it has a low of 0.10 at step 100" in said(along(0.3, 0.1, 0.305))
    assert "can be told from chance without intervals" in said(along(0.3, 0.8, half=None))


def test_training_where_the_first_step_has_no_value() -> None:
    text = said(along(math.nan, 0.3, 0.5))
    assert text.startswith("Between step 100 and step 200 of m")
    apart = [row(BETWEEN, 0.3, half=0.01, step=0, layer=0), row(BETWEEN, 0.4, half=0.01, step=9, layer=1)]
    assert said(apart).startswith("Layer 1 of m at step 9 is anisotropic")


def test_several_models() -> None:
    rows = [row(BETWEEN, 0.6, half=0.01, model="a", layer=3), row(BETWEEN, 0.2, half=0.01, model="a")]
    rows += [row(BETWEEN, 0.01, half=0.02, model="b", kind="output")]
    assert said(rows) == (
        "The mean cosine between sequences reaches 0.60 in layer 3 of a and "
        "0.01 in the output of b (not to be told from chance), where an isotropic cloud has 0."
    )
    many = [row(BETWEEN, 0.1 * i, half=0.01, model=f"m{i}") for i in range(1, 7)]
    assert said(many).startswith(
        "The highest mean cosine between sequences of each of 6 models goes from 0.10 in"
    )
    assert said(trained("a") + trained("b")).startswith("At the last step, the mean cosine")


def test_revisions_tell_models_apart_only_where_they_must() -> None:
    two = [row(BETWEEN, 0.3, half=0.01, revision=revision) for revision in ("x", "y")]
    assert "of m@x and" in said(two)
    steps = [row(BETWEEN, 0.3, half=0.01, revision=f"step{i}", step=i) for i in (0, 1)]
    assert "m@" not in said(steps)


def test_drift_that_cannot_be_told_from_chance() -> None:
    rows = [row("relative_drift", 0.021, half=0.01, null=0.02, layer=i) for i in range(3)]
    assert sentences(frame(rows), "drift").startswith("No drift can be told from chance at this n: ")
    rows.append(row("relative_drift", 0.8, half=0.01, null=0.02, layer=3))
    assert sentences(frame(rows), "drift") == (
        "The length of the mean vector is up to 0.8 (95 % interval 0.79–0.81) of the mean length, "
        "in layer 3; a cloud centred on the origin shows 0.02 at this n; "
        "in layers 0–2 no drift can be told from chance."
    )
    bare = sentences(frame([row("relative_drift", 0.8, null=math.nan)]), "drift")
    assert bare.endswith("without an interval it cannot be told from chance.")


def test_spectrum_prefers_the_split_half() -> None:
    rows = [row("participation_ratio_split", 44, null=768), row("participation_ratio", 40, null=700)]
    assert sentences(frame(rows), "spectrum") == (
        "The variance spreads over 44 directions (split-half participation ratio), "
        "where an isotropic cloud shows 768."
    )
    assert "over 40 directions (participation ratio)" in sentences(frame(rows[1:]), "spectrum")


def test_training_and_health() -> None:
    assert sentences(frame(trained()), "training") == "The loss goes from 5.5 at step 0 to 1.39 at step 400."
    assert sentences(frame(layered()), "health") == ""
    sick = frame([row("not_finite", 2, layer=3), row("zero_vectors", 1, layer=4)])
    assert sentences(sick, "health") == (
        "In layer 3 of m, 2 vectors are not finite (NaN or infinite), and left out. "
        "In layer 4 of m, 1 vector is zero and so without direction, and left out."
    )


def test_several_models_get_a_line_each() -> None:
    rows = [r for name in "abcd" for r in layered(name)]
    lines = sentences(frame(rows), "directions").split("\n")
    assert [line[:2] for line in lines] == ["a:", "b:", "c:", "Th"]
    assert lines[-1] == "The figure shows one more."


def test_a_family_of_its_own_gets_the_range() -> None:
    rows = [row("curvature", value, layer=i) for i, value in enumerate((1.0, 2.0))]
    assert sentences(frame(rows), "bends") == "Curvature is 1 (layer 0) to 2 (layer 1)."


PARTS = {
    "dimensions": "In layers 0–6, up to 2 dimensions vary far more than the rest (layer 0: dimension 7, "
    "381). There are no massive activations; the largest single number is 9.5 (layer 0: dimension 7).",
    "tokens": "Rare tokens drift further than frequent tokens in layers 0–6, most in layer 6 (0.907 against "
    "0.518); in layers 0–6 rare tokens lie further along the mean (r = −0.3, 95 % interval −0.4 to −0.2, in "
    "layer 0). The vectors of one token in different sequences are more alike than any two by 0.48 in "
    "layer 6 to 0.795 in layer 0 (cosine, without an interval).",
    "sequences": "Vectors of one sequence are more alike than any two by 0.195 (95 % interval 0.185–0.205) "
    "in layer 6 to 0.274 (0.264–0.284) in layer 0; by chance by 0.09. Of a sequence, at least 0.74 (95 % "
    "interval 0.73–0.75) in layer 6 is left without its mean; 0 would be a collapse to one vector.",
    "layers": "The arrangement changes most on the way into layer 6: its CKA with the layer before is 0.895, "
    "without an interval. The last place, layer 6, has a CKA of 0.58 with the first layer.",
    "sample": "Among nearest neighbours the dimension (TwoNN) is 7.05 in layer 0 to 10.2 in layer 6; of an "
    "isotropic cloud of as many vectors 106. The uniformity of the directions is −3.69 in layer 0 "
    "to −3.06 in layer 6; it is −3.98 when they fill the sphere evenly and 0 when all are one.",
    "partition": "In units of the mean norm the partition isotropy is 0.28 in layer 6 to 0.595 in layer 0, "
    "where random directions give 0.99. With the norms as they are the partition isotropy is 0.001, where "
    "random directions give 0.99.",
}


@pytest.mark.parametrize("family", PARTS)
def test_a_folded_section_says_what_it_found(family: str) -> None:
    assert sentences(frame(whole()), family) == PARTS[family]


def test_one_site_is_not_named() -> None:
    assert sentences(frame(part_rows(0.2, kind="output")), "sample").startswith(
        "Among nearest neighbours the dimension (TwoNN) is 8; of an isotropic"
    )


def band(value: float, name: str, layer: int) -> Row:
    return row(f"relative_drift_{name}", value, half=0.05, layer=layer)


def test_bands_that_overlap_are_not_told_apart() -> None:
    near = [band(0.5, "rare", 0), band(0.45, "frequent", 0)]
    assert sentences(frame(near), "tokens") == (
        "Whether rare tokens or frequent tokens drift further cannot be told from chance at this n."
    )
    both = [
        *near,
        band(0.9, "rare", 1),
        band(0.2, "frequent", 1),
        band(0.2, "rare", 2),
        band(0.4, "frequent", 2),
    ]
    assert sentences(frame(both), "tokens") == (
        "Rare tokens drift further than frequent tokens in layer 1 (0.9 against 0.2), "
        "and frequent tokens drift further than rare tokens in layer 2 (0.4 against 0.2)."
    )
    assert sentences(frame([band(0.5, "rare", 0)]), "tokens") == ""


def test_massive_activations_are_placed() -> None:
    rows = [row("massive_activations", float(i), layer=i, note=f"dimension {i}") for i in range(3)]
    assert sentences(frame(rows), "dimensions") == (
        "2 massive activations stand in layer 2 (dimension 2), fewer in layer 1."
    )
    none = [row("outlier_dimensions", 0.0, layer=i) for i in range(3)]
    assert sentences(frame(none), "dimensions") == "No dimension varies far more than the rest."


def test_a_comparison_gives_every_correlation_with_what_it_is_worth() -> None:
    first, second, worth = sentences(frame(compared()), "comparison").split("\n")
    assert first == (
        "Mean cosine and relative drift, Spearman’s r over layers: 1.00 in a (8 layers), "
        "0.50 in b (8 layers, nominal p = 0.017) and 0.90 over all models (16 layers, nominal p = 0.017)."
    )
    assert second.startswith("Mean cosine and drift, ")
    assert "not independent" in worth
    many = [row("spearman_drift", i / 8 - 0.5, model=f"m{i}", kind="comparison") for i in range(6)]
    assert "layers: −0.50 (m0) to 0.12 (m5)." in sentences(frame(many), "comparison")


@pytest.mark.parametrize("family", [*FAMILIES, "other"])
def test_undefined_values_make_no_sentence(family: str) -> None:
    known = [*trained(), *compared()]
    rows = [row(r.measure, math.nan, step=r.step, kind=r.kind, layer=r.layer) for r in known]
    assert sentences(frame(rows), family) == ""
    assert sentences(frame([]), family) == ""


def test_words_load_neither_plotly_nor_torch() -> None:
    code = "import sys, isoscope.show.say.words; print({'plotly', 'torch'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
