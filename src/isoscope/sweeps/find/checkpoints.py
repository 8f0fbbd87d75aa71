"""A trajectory: the checkpoints of one training, in the order of their steps.

A checkpoint is a folder with a config or weights (`checkpoint-500/`, also where it is empty), or a file of
weights (`step_500.pt`), but no state of an optimiser and no shard.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from isoscope.errors import IsoscopeError
from isoscope.results.trajectory import BETWEEN

SUFFIXES = (".safetensors", ".pt", ".pth", ".bin", ".ckpt")  # files of weights, the first is preferred
BELOW = "checkpoints"  # where a run of the lab, and many a trainer, keeps them
_STATE = "trainer_state.json"
_OF_NO_MODEL = re.compile(r"optimi[sz]er|scheduler|scaler|rng_state|random_state|training_args|^state$", re.I)
_OF_ONE_MODEL = re.compile(r"^((model|pytorch_model)(-\d+-of-\d+)?|consolidated(\.\d+)?)$")
_WORDS = ("step", "checkpoint|ckpt|chkpt", "iteration|iter|update", "epoch")  # which number is the step
_THOUSANDS = {"": 1, "k": 1_000, "m": 1_000_000, "b": 1_000_000_000}
_NUMBER = r"(\d{1,3}(?:[,_]000)+|\d{1,3}(?:,\d{3})+|\d+(?:\.\d+(?=[kmb]))?)([kmb]?)(?![a-z\d])"


@dataclass(frozen=True)
class Checkpoint:
    """One checkpoint of a trajectory: its step, where it is, and how it is opened.

    `address` is a folder, a file of weights, or a hub id, of which `revision` is one; `config` is the
    config.json of a single file that has none beside it.
    """

    name: str
    step: int | None
    address: str
    revision: str = ""
    config: str | None = None

    @property
    def unit(self) -> str:
        """What the run folder calls its unit: the name, of which a sweep has one each."""
        return f"checkpoint {self.name}" if self.name == BETWEEN else self.name


def step_in(name: str) -> int | None:
    """The step that a name tells: the number after "step", "checkpoint", … or the only one in it.

    >>> step_in("checkpoint-500"), step_in("seed_3-step_20k"), step_in("epoch=2-step=1,200"), step_in("final")
    (500, 20000, 1200, None)
    """
    for word in _WORDS:
        found = re.findall(rf"(?:{word})s?[ _=.-]*{_NUMBER}", name.lower())
        if found:
            return _number(*found[-1])
    alone = re.findall(rf"(?<![\d.,]){_NUMBER}", name.lower())
    numbers = re.findall(r"\d+", name)
    whole = alone and numbers == re.findall(r"\d+", alone[0][0])  # no other, and all of it understood
    return _number(*alone[0]) if whole and not re.search(r"rank", name, re.I) else None


def _number(written: str, thousands: str) -> int:
    """A number as people write it.

    >>> _number("1,000", ""), _number("1.5", "k")
    (1000, 1500)
    """
    return round(float(re.sub("[,_]", "", written)) * _THOUSANDS[thousands])


def in_folder(folder: str | Path, *, config: str | None = None) -> list[Checkpoint]:
    """The checkpoints in a folder, or in its folder `checkpoints`, by step, safetensors preferred."""
    place = Path(folder)
    if not place.is_dir():
        raise IsoscopeError(f"no folder '{folder}': give a folder of checkpoints, or a hub id.")
    folders = _folders(place)
    found = [*folders, *_files(place, config, {each.name for each in folders})]
    if not found and (place / BELOW).is_dir():
        return in_folder(place / BELOW, config=config)
    if not found and _is_model(place):
        raise IsoscopeError(
            f"'{folder}' holds one model and no checkpoints of its training; `isoscope measure` measures it."
        )
    if not found:
        files = ", ".join(f"*{suffix}" for suffix in SUFFIXES)
        raise IsoscopeError(
            f"'{folder}' holds no checkpoints: looked for folders with a config.json or weights "
            f"(checkpoint-500/, step1000/), for files of weights ({files}), and for both in {BELOW}/."
        )
    return in_order(found)


def in_order(checkpoints: Iterable[Checkpoint]) -> list[Checkpoint]:
    """By their steps; those without come last, by name, numbers in it by their size."""
    return sorted(checkpoints, key=lambda each: (each.step is None, each.step or 0, _natural(each.name)))


def _folders(place: Path) -> list[Checkpoint]:
    found = []
    for each in sorted(place.iterdir()):
        if each.name.startswith(".") or not each.is_dir() or each.name == BELOW:
            continue
        called = re.match(r"(checkpoint|ckpt|(global_?)?step|iter)[ _=.-]*\d", each.name, re.I)
        if _is_model(each) or called:
            step = step_in(each.name)
            found.append(Checkpoint(each.name, _trained(each) if step is None else step, str(each)))
    return found


def _files(place: Path, config: str | None, taken: Collection[str]) -> list[Checkpoint]:
    """Single files, one of each stem, called by it; with their suffix where a folder has that name."""
    by_stem: dict[str, Path] = {}
    for file in _weights(place):
        if file.is_file() and not _OF_ONE_MODEL.match(file.stem):
            by_stem.setdefault(file.stem, file)
    return [
        Checkpoint(file.name if stem in taken else stem, step_in(stem), str(file), config=config)
        for stem, file in by_stem.items()
    ]


def _is_model(folder: Path) -> bool:
    """Whether a folder is meant to hold a model, whole or not."""
    return (folder / "config.json").exists() or any(folder.glob("*.index.json")) or any(_weights(folder))


def _weights(folder: Path) -> Iterator[Path]:
    """What is called as files of a model's weights are, by suffix and name."""
    for suffix in SUFFIXES:
        for file in sorted(folder.glob(f"*{suffix}")):
            if not file.name.startswith(".") and not _OF_NO_MODEL.search(file.stem):
                yield file


def _trained(folder: Path) -> int | None:
    """The step that a trainer wrote beside the weights."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        return int(json.loads((folder / _STATE).read_text())["global_step"])
    return None


def _natural(name: str) -> tuple[tuple[int, str], ...]:
    """Sorts 10 after 9.

    >>> sorted(["run 10", "run 9"], key=_natural)
    ['run 9', 'run 10']
    """
    return tuple(
        (int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name) if part
    )
