"""The page as text: one file, everything escaped, the policy true to the scripts."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import math
import re
from html.parser import HTMLParser

import pytest

from isoscope.results.row import Row
from isoscope.results.run import Run
from isoscope.show.draw.plotly.charts import carried, library
from isoscope.show.page.page import page
from isoscope.show.page.tables import MOST_ROWS
from tests.show.made import a_run, attended, clouds, compared, layered, row, trained, whole
from tests.typed import frame

EVIL = "<script>alert(1)</script>"


class Reader(HTMLParser):
    """Collects scripts and tags the way a browser would."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[tuple[str | None, str]] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._open = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append((dict(attrs).get("type"), ""))
            self._open = True

    def handle_endtag(self, tag: str) -> None:
        self._open = self._open and tag != "script"

    def handle_data(self, data: str) -> None:
        if self._open:
            kind, text = self.scripts[-1]
            self.scripts[-1] = (kind, text + data)


@pytest.fixture(scope="module")
def evil() -> str:
    notes = [f"{EVIL}<!--", "</script>", "<!--<script>"]
    rows = [
        row(r.measure, r.value, half=0.01, model=EVIL, layer=r.layer, kind=r.kind, note=notes[1])
        for r in layered()
    ]
    told = {"mean_cosine": {"title": EVIL, "formula": "a < b && c", "says": "</details>"}}
    told["made_up"] = {"family": EVIL, "title": EVIL}
    rows += [row("made_up", 0.1 * i, model=EVIL, layer=i) for i in range(3)]
    run = Run("observe", EVIL, {"model": EVIL, EVIL: {"x": EVIL}}, told, {EVIL: EVIL})
    return page(run, frame(rows), {EVIL: {"unit": EVIL, "notes": notes, "weights": EVIL}})


def test_names_and_notes_make_no_element(evil: str) -> None:
    reader = Reader(evil)
    code = [text for kind, text in reader.scripts if kind is None]
    assert len(code) == 1
    assert "alert(1)" not in "".join(code)
    assert "<script>alert" not in evil
    assert sum(tag == "script" for tag, _ in reader.tags) == len(reader.scripts)
    assert {kind for kind, _ in reader.scripts} == {None, "application/json", "application/gzip"}


def test_figures_survive_what_they_are_called(evil: str) -> None:
    blocks = [text for kind, text in Reader(evil).scripts if kind == "application/json"]
    assert len(blocks) > 5
    for text in blocks:
        assert not set("<>&") & set(text)
        json.loads(text)


def test_the_escaping_test_can_fail() -> None:
    assert "alert(1)" in Reader(f"<p>{EVIL}</p>").scripts[0][1]


def test_the_policy_allows_the_two_scripts_and_no_more(evil: str) -> None:
    reader = Reader(evil)
    (policy,) = [a["content"] for tag, a in reader.tags if tag == "meta" and a.get("http-equiv")]
    scripts = [library(), *(text for kind, text in reader.scripts if kind is None)]
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts]
    assert policy is not None
    assert re.findall(r"sha256-([^']+)'", policy) == digests
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe-eval" not in policy


def test_nothing_is_asked_of_the_network(evil: str) -> None:
    for tag, given in Reader(evil).tags:
        assert not {"src", "srcset", "action", "data"} & set(given), tag
        assert (given.get("href") or "#").startswith("#")


def test_plotly_is_there_once() -> None:
    text = page(a_run(), frame(trained()), {})
    found = re.findall(r'<script type="application/gzip" id="library">([\w+/=]*)</script>', text)
    (script,) = (gzip.decompress(base64.b64decode(each)).decode() for each in found)
    assert len(re.findall(r"plotly\.js v\d", script)) == 1
    assert base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() in text  # the policy has it
    assert len(text) < 3e6


def test_the_page_is_the_same_every_time() -> None:
    assert page(a_run(), frame(trained()), {}) == page(a_run(), frame(trained()), {})


def without_plotly(rows: list[Row], facts: dict[str, dict[str, object]] | None = None) -> str:
    text = page(a_run(), frame(rows), facts or {})
    return re.sub(r"<script>.*?</script>", "", text.replace(carried(), ""), flags=re.DOTALL)


def test_notes_are_collapsed_with_what_they_are_on() -> None:
    rows = [row("isoscore", 0.1, layer=i, note="fewer vectors than dimensions") for i in range(4)]
    rows += [row("rogue_contribution", 0.1, note="dimension 7")]
    facts: dict[str, dict[str, object]] = {"u": {"notes": ["packed into chunks"]}}
    text = without_plotly(rows, facts)
    (section,) = re.findall(r'<section id="notes">.*?</section>', text, flags=re.DOTALL)
    assert section.count("fewer vectors than dimensions") == 1
    assert "isoscore in layers 0–3 of m" in section
    assert "packed into chunks" in section
    assert "dimension 7" not in section


def test_each_measure_is_explained_and_words_of_size_too() -> None:
    text = without_plotly(layered())
    assert "What is <q>Mean cosine between sequences</q>?" in text
    assert "One dimension of large variance can make most of it." in text
    assert "lies above 0.5" in text


def test_each_figure_is_described_by_its_sentence() -> None:
    labels = [
        given["aria-label"] or ""
        for _, given in Reader(without_plotly(clouds())).tags
        if given.get("role") == "figure"
    ]
    assert len(labels) == 5
    assert labels[0].startswith("Cosines. The mean cosine between sequences is 0.31 (95\u00a0% interval")


def test_a_table_too_long_says_what_it_leaves_out() -> None:
    text = without_plotly([row("drift", 1.0, layer=i) for i in range(MOST_ROWS + 1)])
    assert text.count("data-key=") == 3 * MOST_ROWS  # value, null and n
    assert f"The first {MOST_ROWS:,} rows are here; all are in <code>rows/*.parquet</code>." in text


@pytest.mark.parametrize(
    "rows", [[], [row("mean_cosine_between", math.nan, note="why")], [row("loss", 1.0, kind="training")]]
)
def test_a_run_with_little_in_it_still_has_a_page(rows: list[Row]) -> None:
    assert "</html>" in without_plotly(rows)


def test_provenance_is_readable() -> None:
    text = without_plotly(clouds(), {"unit-1": {"dtype": "float32", "shape": [3, 4], "none": None}})
    for name, value in (("data.address", "embedded"), ("torch", "2.13.0"), ("shape", "3, 4"), ("none", "–")):
        assert f'<th scope="row">{name}</th><td>{value}</td>' in text


def test_what_matters_most_stands_first_and_open() -> None:
    sections = re.findall(
        r'<(section|details class="section") id="([\w-]+)">', without_plotly([*compared(), *attended("a")])
    )
    named = {name: tag for tag, name in sections}
    assert list(named)[:4] == ["comparison", "directions", "drift", "spectrum"]
    assert list(named)[4:6] == ["attention", "drift-in-attention"]
    folded = [name for name, tag in named.items() if tag.startswith("details")]
    assert folded == ["queries", "dimensions", "tokens", "sequences", "layers", "sample", "partition"]


def test_notes_that_are_part_of_a_value_are_no_remarks() -> None:
    text = without_plotly(compared())
    assert 'id="notes"' not in text
    undefined = [*whole(), row("spearman_drift", math.nan, kind="comparison", note="needs 3 layers")]
    assert "needs 3 layers" in without_plotly(undefined).partition('id="notes"')[2].partition("</section>")[0]


def test_a_deep_model_with_many_heads_keeps_its_layers_in_the_table() -> None:
    rows = attended(heads=16, depth=16)
    assert len(rows) > 2 * MOST_ROWS
    text = without_plotly(rows)
    for layer in range(1, 17):
        assert f">attention {layer}</td>" in text
    assert "attention 1 head 0" in text


def test_a_note_on_many_heads_names_layers_only() -> None:
    rows = [
        row("drift_share", math.nan, kind="attention", layer=i, head=h, note="why")
        for i in (1, 2, 4)
        for h in range(9)
    ]
    text = without_plotly(rows)
    assert "drift_share in the attention of layers 1–2 and 4 of m" in text
