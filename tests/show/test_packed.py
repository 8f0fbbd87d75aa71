"""Cells of maps as letters: what is unpacked is what was packed, to a level, and gaps stay gaps."""

from __future__ import annotations

import math

import numpy as np
import pytest

from isoscope.show.packed import LEAST, LETTERS, MANY, line, packed, written


def unpacked(held: dict[str, object]) -> np.ndarray:
    """As `page.js` does it."""
    text, low, high = str(held["letters"]), float(str(held["low"])), float(str(held["high"]))
    levels = [64 * LETTERS.index(a) + LETTERS.index(b) for a, b in zip(text[::2], text[1::2], strict=True)]
    values = [math.nan if level == 4095 else low + (high - low) * level / 4094 for level in levels]
    return np.array(values).reshape(-1, int(str(held["across"])))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e4])
def test_cells_come_back_to_half_a_level(seed: int, size: float) -> None:
    random = np.random.default_rng(seed)
    cells = size * random.standard_normal((7, 13))
    cells[random.random(cells.shape) < 0.2] = math.nan
    held = packed([[None if math.isnan(x) else x for x in row] for row in cells])
    level = np.ptp(cells[~np.isnan(cells)]) / 4094
    assert held is not None
    np.testing.assert_allclose(unpacked(held), cells, rtol=0, atol=0.501 * level)
    assert len(held["letters"]) == 2 * cells.size


def test_one_value_everywhere_and_none_at_all() -> None:
    held = packed([[0.3, None, 0.3]])
    assert held is not None
    np.testing.assert_array_equal(unpacked(held), [[0.3, math.nan, 0.3]])
    assert packed([[None, None]]) is None


def test_a_cell_far_beyond_the_colours_leaves_numbers_as_they_are() -> None:
    """Of levels up to 1,000 too few would lie between 0 and 1, where colours differ."""
    assert packed([[0.1, 0.7, 1000.0]], 0.0, 1.0) is None
    assert packed([[0.1, 0.7, 5.0]], 0.0, 1.0) is not None


def test_of_a_figure_the_large_maps_are_packed() -> None:
    across = 2 * LEAST
    cells = np.linspace(0, 1, across).reshape(2, -1).tolist()
    traces = [{"z": cells, "zmin": 0, "zmax": 1}, {"z": [[1.0, 2.0]]}, {"x": [0.0, 1.0], "y": [0.0, 1.0]}]
    large, small, dots = written({"data": traces, "layout": {}})["data"]
    np.testing.assert_allclose(unpacked(large["z"]).ravel(), np.linspace(0, 1, across), atol=2e-4)
    assert small["z"] == [[1.0, 2.0]] and dots["x"] == [0.0, 1.0]


def test_few_points_stay_numbers() -> None:
    assert line([0.5, None]) == [0.5, None]
    held = line([float(i) for i in range(MANY)])
    assert isinstance(held, dict)
    np.testing.assert_allclose(unpacked(held)[0], np.arange(MANY), atol=0.01)
