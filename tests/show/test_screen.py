"""The tables of the terminal: short whatever was measured, and as wide as the terminal at most."""

from __future__ import annotations

import pytest

from isoscope.cli.screen import terminal as screen
from isoscope.results.row import Row, frame
from tests.show.made import attended, compared, layered, row, site_rows, whole


def shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], rows: list[Row]) -> list[str]:
    monkeypatch.setattr(screen, "screen_width", lambda: 100)
    screen.show(frame(rows))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 100
    assert not any("…" in line for line in lines)
    return lines


def test_all_measures_make_a_short_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = whole()
    lines = shown(monkeypatch, capsys, rows)
    assert len(lines) == 8 + 4 + 1 + 2
    measures = len({r.measure for r in rows})
    assert f"the page shows all {measures} measures" in " ".join(" ".join(lines).split())


def test_measures_picked_by_hand_are_all_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = shown(monkeypatch, capsys, [r for r in whole() if r.measure in ("mean_cosine", "cka_first")])
    assert "cka" in lines[1]
    assert not any("page" in line for line in lines)


def test_models_compared_at_their_last_steps(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [r for m in "ab" for step in (0, 5) for r in site_rows(0.1 * step, 50, model=m, step=step)]
    lines = shown(monkeypatch, capsys, [*rows, *site_rows(0.3, 50, model="c", step=9)])
    assert sum("layer.0" in line for line in lines) == 3
    assert shown(monkeypatch, capsys, compared())


def test_a_deep_model_over_steps_shows_some_layers_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [row("relative_drift", 0.01 * i, layer=i, step=step) for i in range(49) for step in (0, 10)]
    lines = shown(monkeypatch, capsys, rows)
    assert "layer.0" in lines[2]
    assert "layer.48" in lines[2]
    assert lines[-1].startswith("7 of 49 sites; the page shows all")


def test_attention_stands_on_the_line_of_its_layer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [*layered("m", depth=5), *attended(depth=4), *attended(depth=4, kind="cross_attention")[-29:]]
    lines = shown(monkeypatch, capsys, rows)
    (first,) = [line for line in lines if "layer.0" in line]
    (last,) = [line for line in lines if "layer.4" in line]
    (cross,) = [line for line in lines if "cross_attention.4" in line]
    assert [cell.strip() for cell in first.split("│")[5:-1]] == ["", "", ""]
    assert [cell.strip() for cell in last.split("│")[4:-1]] == ["0.572", "0.483", "0.667", "0.900"]
    assert [cell.strip() for cell in cross.split("│")[2:-1]] == ["16384", "", "", "0.483", "0.667", "0.900"]
    assert not any(" attention." in line for line in lines)
    monkeypatch.setattr(screen, "screen_width", lambda: 130)
    screen.show(frame(rows))
    assert "0.300 (chance 0.008)" in capsys.readouterr().out


def test_attention_alone_is_called_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = shown(monkeypatch, capsys, attended())
    assert sum("attention.2" in line for line in lines) == 1


@pytest.mark.parametrize(("heads", "depth", "there"), [(12, 12, True), (12, 13, False), (32, 4, False)])
def test_heads_make_a_small_table_or_are_on_the_page(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], heads: int, depth: int, there: bool
) -> None:
    whole_layers = shown(monkeypatch, capsys, attended(depth=depth))
    lines = shown(monkeypatch, capsys, attended(heads=heads, depth=depth))[len(whole_layers) :]
    assert lines[0].startswith("drift share by head" if there else "The page has maps of the heads.")
    assert len(lines) == (depth + 3 if there else 1) <= 16


def test_over_steps_attention_has_tables_and_heads_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sites = [r for step in (0, 5) for i in range(4) for r in site_rows(0.1, 50, step=step, layer=i)]
    rows = sites + [r for step in (0, 5) for r in attended(heads=2, step=step)]
    lines = shown(monkeypatch, capsys, rows)
    titles = [line.strip() for line in lines if line[0].isalpha()]
    assert titles == ["mean cosine between", "relative drift", "normalised entropy", "drift share"]
    assert sum("attention.1" in line for line in lines) == 2
