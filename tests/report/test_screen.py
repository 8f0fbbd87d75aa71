"""The tables of the terminal: short whatever was measured, and as wide as the terminal at most."""

from __future__ import annotations

import pytest

from isoscope.cli import screen
from isoscope.results.schema import Row, frame
from tests.report.made import compared, row, site_rows, whole


def shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], rows: list[Row]) -> list[str]:
    monkeypatch.setattr(screen, "_width", lambda: 100)
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
