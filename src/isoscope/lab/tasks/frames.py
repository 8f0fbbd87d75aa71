"""A lesson from sound: what the next frame of its spectrum will be."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from isoscope.data.audio import RATE, Samples, recordings
from isoscope.errors import IsoscopeError
from isoscope.lab.tasks.base import HELD, Examples, Lesson, data_hash, frame_loss

STEP, WINDOW, BANDS = 160, 400, 40  # samples from frame to frame, and in one; bands of a frame


def frames(data: str, length: int) -> Lesson:
    """The next frame. `data` is a folder of recordings, or the embedded tones.

    Frames are 40 log energies every 10 ms, standardised over what is learnt from: the mean has a loss of 1.
    Recordings shorter than `length` + 1 frames are left out; a tenth of the others is held out.
    """
    clips, *_ = recordings(data, shortest=WINDOW)
    spectra = [spectrum for clip in clips if len(spectrum := _spectrum(clip)) > length]
    if len(spectra) < 2:
        longest = max((len(_spectrum(clip)) for clip in clips), default=0)
        raise IsoscopeError(
            f"data '{data}' holds {len(spectra)} recordings of more than {length} frames (the longest has "
            f"{longest}), and two are needed; give a shorter --length or more data."
        )
    count = max(1, min(HELD, len(spectra) // 10))
    learnt = torch.cat(spectra[count:])
    mean, spread = learnt.mean(0), learnt.std(0).clamp_min(1e-6)
    spectra = [(spectrum - mean) / spread for spectrum in spectra]
    rest = spectra[count:]

    def draw(random: torch.Generator, size: int) -> Examples:
        which = torch.randint(len(rest), (size,), generator=random).tolist()
        room = torch.rand(size, generator=random)
        cut = [
            rest[i][(start := int(share * (len(rest[i]) - length))) : start + length + 1]
            for i, share in zip(which, room.tolist(), strict=True)
        ]
        return _apart(torch.stack(cut))

    judged = _apart(torch.stack([spectrum[: length + 1] for spectrum in spectra[:count]]))
    facts = {"data": data, "data_hash": data_hash(*spectra), "items": len(learnt), "recordings": len(spectra)}
    told = (frame_loss, 1.0, "mean squared error", BANDS, length)
    return Lesson(draw, judged, *told, vectors=True, outputs=BANDS, facts=facts)


def _apart(found: Tensor) -> Examples:
    return Examples(found[:, :-1], found[:, 1:])


def _spectrum(clip: Samples) -> Tensor:
    """Log energies [frames, bands] of a recording: bands of equal width up to 1 kHz, then wider ones."""
    framed = np.lib.stride_tricks.sliding_window_view(clip, WINDOW)[::STEP]
    power = np.abs(np.fft.rfft(framed * np.hanning(WINDOW))) ** 2
    edges = _edges(power.shape[1])
    bands = np.stack([power[:, low:high].sum(1) for low, high in pairwise(edges)], 1)
    return torch.from_numpy(np.log(bands + 1e-6)).float()


def _edges(bins: int) -> list[int]:
    """Where bands begin and end among the bins of a spectrum: even on the mel scale, one bin or more each."""
    mel = np.linspace(0, 2595 * np.log10(1 + RATE / 2 / 700), BANDS + 1)
    wanted = np.round((700 * (10 ** (mel / 2595) - 1)) / (RATE / 2) * (bins - 1)).astype(int)
    edges = [0]
    for number, edge in enumerate(wanted[1:], start=1):
        edges.append(min(max(int(edge), edges[-1] + 1), bins - (BANDS - number)))
    return edges
