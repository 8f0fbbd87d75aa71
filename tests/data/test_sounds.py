"""Recordings as data: rates, channels, what is left out and named, and batches without padding."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.io import wavfile

from isoscope.data.audio import sounds
from isoscope.errors import IsoscopeError


def extract(clips: list[np.ndarray], **_: Any) -> dict[str, torch.Tensor]:
    """Samples as they are; clips must be of one length, as batches promise."""
    return {"input_values": torch.tensor(np.stack(clips))}


def tone(seconds: float, rate: int, hertz: float = 440.0) -> np.ndarray:
    return 0.5 * np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate)


def write(file: Path, samples: np.ndarray, rate: int = 16_000) -> None:
    wavfile.write(file, rate, (samples * 32767).astype(np.int16))


@pytest.fixture(params=[True, False], ids=["soundfile", "scipy"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Recordings are read by soundfile, or by scipy where soundfile is not installed."""
    if request.param:
        pytest.importorskip("soundfile", reason="needs soundfile")
    else:
        monkeypatch.setitem(sys.modules, "soundfile", None)


@pytest.mark.usefixtures("reader")
def test_rates_and_channels_become_one(tmp_path: Path) -> None:
    write(tmp_path / "a.wav", tone(0.5, 16_000))
    write(tmp_path / "b.wav", np.stack([tone(0.5, 48_000)] * 2, axis=1), 48_000)
    data = sounds(str(tmp_path), extract)
    (batch,) = data
    a, b = batch.inputs["input_values"]
    assert a.shape == b.shape == (8000,)
    assert torch.allclose(a[100:-100], b[100:-100], atol=2e-3)


def test_only_recordings_of_one_length_share_a_batch(tmp_path: Path) -> None:
    for number, seconds in enumerate((0.2, 0.1, 0.2, 0.3, 0.2)):
        write(tmp_path / f"{number}.wav", tone(seconds, 16_000, 300 + number))
    data = sounds(str(tmp_path), extract, batch_size=2)
    shapes = [tuple(batch.inputs["input_values"].shape) for batch in data]
    assert shapes == [(1, 1600), (2, 3200), (1, 3200), (1, 4800)]
    assert len(data) == len(shapes)
    assert len({key for batch in data for key in batch.keys.tolist()}) == 5


@pytest.mark.usefixtures("reader")
def test_samples_of_eight_bits_are_unsigned(tmp_path: Path) -> None:
    wavfile.write(tmp_path / "a.wav", 16_000, (128 + 127 * tone(0.2, 16_000)).astype(np.uint8))
    (batch,) = sounds(str(tmp_path), extract)
    found = batch.inputs["input_values"][0]
    assert torch.allclose(found, torch.tensor(tone(0.2, 16_000), dtype=torch.float32), atol=0.02)


@pytest.mark.usefixtures("reader")
def test_silent_short_and_broken_recordings_are_left_out_and_named(tmp_path: Path) -> None:
    write(tmp_path / "good.wav", tone(0.2, 16_000))
    write(tmp_path / "silent.wav", np.zeros(4000))
    write(tmp_path / "short.wav", tone(0.01, 16_000))
    (tmp_path / "broken.wav").write_bytes(b"RIFF")
    data = sounds(str(tmp_path), extract, shortest=400)
    assert data.size == 1
    assert data.notes == (
        "recordings that cannot be read are left out: 1, first broken.wav",
        "recordings shorter than one frame are left out: 1, first short.wav",
        "recordings of silence are left out: 1, first silent.wav",
    )


def test_nothing_to_measure(tmp_path: Path) -> None:
    with pytest.raises(IsoscopeError, match=r"holds no recordings \(.wav"):
        sounds(str(tmp_path), extract)
    write(tmp_path / "silent.wav", np.zeros(4000))
    with pytest.raises(
        IsoscopeError, match=r"holds no recording that can be measured \(recordings of silence"
    ):
        sounds(str(tmp_path), extract)


def test_embedded_sound_is_the_same_every_time() -> None:
    first, second = (sounds("embedded", extract, limit=4).facts() for _ in range(2))
    assert first == second
    assert first["seconds"] == 4.0
