"""Whisper's frames against an independent float64 computation; real weights where the environment names them.

The counting is done here by hand: a recording has a spectrum for every 160 samples begun, a frame stands
for two of them, and counts when its own two and its neighbours' are all there.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch

import isoscope
from isoscope.data.audio import Sounds
from isoscope.models.inputs import open_data
from tests.models import modal
from tests.run.independent import ABSOLUTE, RELATIVE

FILE, DATA = os.environ.get("ISOSCOPE_REAL_WHISPER", ""), os.environ.get("ISOSCOPE_REAL_SPEECH", "embedded")


def check(address: str, data: str, limit: int) -> None:
    model = isoscope.load(address)
    names = ["mean_cosine", "mean_cosine_between", "relative_drift", "mean_norm"]
    tables = [
        isoscope.observe(model, open_data(data, model, limit=limit, batch_size=size), measures=names).frame()
        for size in (1, 7)
    ]
    opened = open_data(data, model, limit=limit)
    assert isinstance(opened, Sounds)
    vectors: dict[int, list[np.ndarray]] = {}
    for clip in opened.clips:
        features = model.processor(clip, sampling_rate=16_000, return_tensors="pt")["input_features"]
        with torch.no_grad():
            states = model.module.get_encoder()(features, output_hidden_states=True).hidden_states
        spectra = -(-len(clip) // 160)
        frames = [frame for frame in range(states[0].shape[1]) if 2 * (frame + 2) <= spectra]
        for layer, state in enumerate(states[:-1]):  # the last is after the final norm
            vectors.setdefault(layer, []).append(state[0, frames].double().numpy())
    for layer, clips in vectors.items():
        points, label = np.concatenate(clips), np.repeat(np.arange(len(clips)), [len(clip) for clip in clips])
        unit = points / np.linalg.norm(points, axis=1, keepdims=True)
        cosines, apart = unit @ unit.T, label[:, None] != label[None]
        expected = {
            "mean_cosine": cosines[~np.eye(len(unit), dtype=bool)].mean(),
            "mean_cosine_between": cosines[apart].mean(),
            "relative_drift": np.linalg.norm(points.mean(0)) / np.linalg.norm(points, axis=1).mean(),
            "mean_norm": np.linalg.norm(points, axis=1).mean(),
        }
        for table in tables:
            mine = table[(table.kind == "layer") & (table.layer == layer)].set_index("measure")
            assert (mine.n == len(points)).all()
            for name, value in expected.items():
                assert mine.value[name] == pytest.approx(value, rel=RELATIVE, abs=ABSOLUTE), (layer, name)


def test_a_tiny_whisper(tmp_path: Path) -> None:
    check(str(modal.save("whisper", tmp_path)), "embedded", 9)


@pytest.mark.skipif(not FILE, reason="ISOSCOPE_REAL_WHISPER names no file of weights")
def test_real_weights() -> None:
    check(FILE, DATA, 12)
