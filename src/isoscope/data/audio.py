"""Sound as data: `embedded`, a folder or a dataset's column becomes batches of samples or of spectra.

A sequence is one recording, its vectors are frames. Recordings of the same length go together and are never
padded, because some models do not look at the mask; a model that takes spectra of a fixed length (Whisper's
30 seconds) pads by itself, and frames beyond the true length do not count. A decoder is fed what the model
itself says, word by word the likeliest. Recordings of one speaker are a unit where folders name speakers, as
LibriSpeech's and VCTK's do: by a name with a digit that is part of the file's name too. A folder named for a
class (``yes``, ``dog``) is none: a class is no sample of classes.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from itertools import groupby, islice
from math import gcd
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from isoscope.data.batch import Batch
from isoscope.data.files import files_at
from isoscope.data.keys import content_hash, content_keys, dealt_units, unit_keys
from isoscope.errors import IsoscopeError

SUFFIXES = (".wav", ".flac", ".ogg", ".mp3", ".aiff", ".aif")
RATE = 16_000
CLIPS = 64
_UNREAD, _SHORT, _SILENT = "that cannot be read", "shorter than one frame", "of silence"
Samples = npt.NDArray[np.float32]
Extractor = Callable[..., Any]
Speak = Callable[[Mapping[str, Tensor]], tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Sounds:
    """Recordings at the model's rate; iterate over it for batches."""

    address: str
    clips: tuple[Samples, ...]
    extract: Extractor
    rate: int
    padded: bool
    speak: Speak | None
    batch_size: int
    seed: int
    notes: tuple[str, ...]
    speakers: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """How many recordings."""
        return len(self.clips)

    def __len__(self) -> int:
        return len(list(self._groups()))

    def __iter__(self) -> Iterator[Batch]:
        units = None
        if any(self.speakers):
            named = [speaker or number for number, speaker in enumerate(self.speakers)]
            units = unit_keys(named, self._keys, dealt_units(named))
        for numbers in self._groups():
            some = [self.clips[number] for number in numbers]
            how = {"sampling_rate": self.rate, "return_tensors": "pt", "return_attention_mask": True}
            made = dict(self.extract(some, **how))
            mask = made.pop("attention_mask", None)
            counts = None if mask is None or mask.all() else mask.bool()
            spoken = None
            if self.speak is not None:
                made["decoder_input_ids"], spoken = self.speak(made)
            own = None if units is None else units[numbers]
            yield Batch(made, counts, self._keys[numbers], decoder_counts=spoken, units=own)

    @cached_property
    def _keys(self) -> Tensor:
        return torch.cat([content_keys(torch.from_numpy(clip)[None], self.seed) for clip in self.clips])

    def _groups(self) -> Iterator[list[int]]:
        length = [len(clip) for clip in self.clips]
        by_length = sorted(range(self.size), key=length.__getitem__)
        for _, alike in groupby(by_length, key=lambda number: 0 if self.padded else length[number]):
            while some := list(islice(alike, self.batch_size)):
                yield some

    def facts(self) -> dict[str, object]:
        """What a run records of its data."""
        return {
            "data": self.address,
            "data_hash": content_hash(clip.tobytes() + b"|" for clip in self.clips),
            "sequences": self.size,
            "seconds": round(sum(map(len, self.clips)) / self.rate, 3),
            "counting": {"frames beyond the recording": "left out"}
            | ({"start token of the decoder": "left out"} if self.speak else {}),
            **({"units": self._told_units} if any(self.speakers) else {}),
            "seed": self.seed,
        }

    @property
    def _told_units(self) -> dict[str, object]:
        alone = self.speakers.count("")
        return {"unit": "speaker", "number": len({*self.speakers} - {""}) + alone}


def sounds(
    address: str, extract: Extractor,
    *, rate: int = RATE, shortest: int = 1, padded: bool = False, speak: Speak | None = None,
    limit: int | None = 256, batch_size: int = 16, seed: int = 0
) -> Sounds:  # fmt: skip
    """The recordings at `address`, as a model takes them.

    `extract` is a feature extractor, `rate` its sampling rate, `shortest` the fewest samples that make
    a frame; `padded` says that it pads to a fixed length itself. `speak` gives what a decoder is fed for
    extracted features, [b, u], and what of it counts, [b, u].
    """
    clips, notes, speakers = recordings(address, rate=rate, shortest=shortest, limit=limit)
    return Sounds(address, clips, extract, rate, padded, speak, batch_size, seed, notes, speakers)


def recordings(
    address: str, *, rate: int = RATE, shortest: int = 1, limit: int | None = None
) -> tuple[tuple[Samples, ...], tuple[str, ...], tuple[str, ...]]:
    """Recordings at `address` (``embedded``, a folder, ``id:split:column``), notes, and the speaker of each.

    Notes name what is left out; the speaker is empty where the layout names none.
    """
    left_out: dict[str, list[str]] = {why: [] for why in (_UNREAD, _SHORT, _SILENT)}
    found = _synthesised(rate) if address == "embedded" else _read(address, rate, left_out)
    clips: list[Samples] = []
    speakers: list[str] = []
    for name, clip, speaker in found:
        if limit is not None and len(clips) == limit:
            break
        if len(clip) < shortest:
            left_out[_SHORT].append(name)
        elif not np.any(clip):
            left_out[_SILENT].append(name)
        else:
            clips.append(clip)
            speakers.append(speaker)
    notes = tuple(
        f"recordings {why} are left out: {len(names)}, first {names[0]}"
        for why, names in left_out.items()
        if names
    )
    if not clips:
        why = f" ({'; '.join(notes)})" if notes else ""
        raise IsoscopeError(f"data '{address}' holds no recording that can be measured{why}.")
    return tuple(clips), notes, tuple(speakers)


def _speaker(file: Path | BytesIO, top: Path) -> str:
    """The folder below `top` that names the speaker of a recording; empty where none does."""
    if not isinstance(file, Path) or not top.is_dir():
        return ""
    parts, folders = re.split(r"[^0-9A-Za-z]+", file.stem), file.relative_to(top).parts[:-1]
    named = [folder for folder in folders if folder in parts and re.search(r"\d", folder)]
    return named[0] if named else ""


def _read(address: str, rate: int, left_out: dict[str, list[str]]) -> Iterator[tuple[str, Samples, str]]:
    for name, file in files_at(address, SUFFIXES, "recordings"):
        try:
            samples, own_rate = _samples(file)
        except (OSError, ValueError, RuntimeError):
            left_out[_UNREAD].append(name)
            continue
        yield name, _resampled(samples.mean(axis=1), own_rate, rate), _speaker(file, Path(address))


def _samples(file: Path | BytesIO) -> tuple[npt.NDArray[np.floating], int]:
    """Samples [n, channels] in −1 … 1, by soundfile, or by scipy for WAV where that is not installed."""
    try:
        import soundfile
    except ImportError:
        plain = file.suffix.lower() == ".wav" if isinstance(file, Path) else file.getvalue()[:4] == b"RIFF"
        if not plain:
            what = file if isinstance(file, Path) else "recordings other than WAV"
            raise IsoscopeError(f"reading {what} needs soundfile: install isoscope[audio].") from None
        from scipy.io import wavfile

        try:
            rate, samples = wavfile.read(file)
        except struct.error as reason:
            raise ValueError("the WAV file ends too early") from reason
        if samples.dtype == np.uint8:  # the one unsigned format of WAV: silence is 128
            samples = samples.astype(np.int16) - 128
            peak = 128
        else:
            peak = np.iinfo(samples.dtype).max if np.issubdtype(samples.dtype, np.integer) else 1
        return (samples / peak).reshape(len(samples), -1), rate
    samples, rate = soundfile.read(file, always_2d=True, dtype="float32")
    return samples, rate


def _resampled(samples: npt.NDArray[np.floating], own_rate: int, rate: int) -> Samples:
    from scipy.signal import resample_poly

    if own_rate != rate:
        common = gcd(own_rate, rate)
        samples = resample_poly(samples, rate // common, own_rate // common)
    return samples.astype(np.float32)


def _synthesised(rate: int) -> Iterable[tuple[str, Samples, str]]:
    """One-second sounds: a gliding tone with overtones, a rise and a fall, and a little noise."""
    time = np.arange(rate) / rate
    for number in range(CLIPS):
        random = np.random.default_rng(number)
        low, high = random.uniform(80, 400, size=2)
        phase = 2 * np.pi * np.cumsum(low + (high - low) * time) / rate
        tone = sum(random.uniform(0, 1) / k * np.sin(k * phase) for k in range(1, 9))
        shape = np.sin(np.pi * time) ** random.uniform(0.5, 2)
        clip = 0.2 * shape * tone + 0.01 * random.normal(size=rate)
        yield f"clip {number}", clip.astype(np.float32), ""
