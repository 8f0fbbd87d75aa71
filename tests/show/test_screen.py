"""The tables of the terminal: short whatever was measured, and as wide as the terminal at most."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from isoscope.cli.screen import terminal
from isoscope.kinds.measure.tables import tables
from isoscope.results.row import Row
from tests.show.made import attended, compared, layered, row, site_rows, whole
from tests.typed import frame


def shown(rows: list[Row], width: int = 100) -> list[str]:
    """The lines of the terminal, with all its tables."""
    screen = Console(width=width, file=io.StringIO())
    for part in tables(frame(rows), width):
        screen.print(part if isinstance(part, str) else terminal.rendered(part))
    assert isinstance(screen.file, io.StringIO)
    lines = screen.file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert not any("…" in line for line in lines)
    return lines


def test_all_measures_make_a_short_table() -> None:
    rows = whole()
    lines = shown(rows)
    assert len(lines) == 8 + 4 + 1 + 2
    measures = len({r.measure for r in rows})
    assert f"the page shows all {measures} measures" in " ".join(" ".join(lines).split())


def test_measures_picked_by_hand_are_all_there() -> None:
    lines = shown([r for r in whole() if r.measure in ("mean_cosine", "cka_first")])
    assert "cka" in lines[1]
    assert not any("page" in line for line in lines)


def test_a_measure_without_a_column_of_its_own_has_its_name_as_heading() -> None:
    lines = shown([row("brand_new", 0.5, low=0.4, high=0.6, null=0.1)])
    assert "brand" in lines[1]
    assert "new" in lines[2]
    assert any("0.500 [0.400, 0.600]" in line for line in lines)


def test_models_compared_at_their_last_steps() -> None:
    rows = [r for m in "ab" for step in (0, 5) for r in site_rows(0.1 * step, 50, model=m, step=step)]
    lines = shown([*rows, *site_rows(0.3, 50, model="c", step=9)])
    assert sum("layer.0" in line for line in lines) == 3
    assert shown(compared())


def test_a_deep_model_over_steps_shows_some_layers_and_says_so() -> None:
    rows = [row("relative_drift", 0.01 * i, layer=i, step=step) for i in range(49) for step in (0, 10)]
    lines = shown(rows)
    assert "layer.0" in lines[2]
    assert "layer.48" in lines[2]
    assert lines[-1].startswith("7 of 49 sites; the page shows more")


def test_attention_stands_on_the_line_of_its_layer() -> None:
    rows = [*layered("m", depth=5), *attended(depth=4), *attended(depth=4, kind="cross_attention")[-29:]]
    lines = shown(rows)
    (first,) = [line for line in lines if "layer.0" in line]
    (last,) = [line for line in lines if "layer.4" in line]
    (cross,) = [line for line in lines if "cross_attention.4" in line]
    assert [cell.strip() for cell in first.split("│")[5:-1]] == ["", "", ""]
    assert [cell.strip() for cell in last.split("│")[4:-1]] == ["0.572", "0.483", "0.667", "0.900"]
    assert [cell.strip() for cell in cross.split("│")[2:-1]] == ["16384", "", "", "0.483", "0.667", "0.900"]
    assert not any(" attention." in line for line in lines)
    assert any("0.300 (chance 0.008)" in line for line in shown(rows, 130))


def test_attention_alone_is_called_so() -> None:
    lines = shown(attended())
    assert sum("attention.2" in line for line in lines) == 1


@pytest.mark.parametrize(("heads", "depth", "there"), [(12, 12, True), (12, 13, False), (32, 4, False)])
def test_heads_make_a_small_table_or_are_on_the_page(heads: int, depth: int, there: bool) -> None:
    whole_layers = shown(attended(depth=depth))
    lines = shown(attended(heads=heads, depth=depth))[len(whole_layers) :]
    assert lines[0].startswith("drift share by head" if there else "The page has maps of the heads.")
    assert len(lines) == (depth + 3 if there else 1) <= 16


def test_over_steps_attention_has_tables_and_heads_none() -> None:
    sites = [r for step in (0, 5) for i in range(4) for r in site_rows(0.1, 50, step=step, layer=i)]
    rows = sites + [r for step in (0, 5) for r in attended(heads=2, step=step)]
    lines = shown(rows)
    titles = [line.strip() for line in lines if line[0].isalpha()]
    assert titles == ["mean cosine between", "relative drift", "normalised entropy", "drift share"]
    assert sum("attention.1" in line for line in lines) == 2
