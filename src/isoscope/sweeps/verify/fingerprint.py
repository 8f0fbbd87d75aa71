"""What a checkpoint is, told from its files without making the model.

One pass over the tensors, each byte read once: a digest of all of them, one of each part (a layer, or a
tensor outside the layers), how many numbers are not finite, and a sketch, `PLACES` weights from the same
places in every checkpoint of a training. A checkpoint is the same in one file and in ten shards. What cannot
be read is a fault in one sentence, never an exception.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope.errors import IsoscopeError, first_line
from isoscope.models.weights.files import (
    LOOKED_FOR,
    Tensors,
    file_in_folder,
    sharded_tensors,
    single_file_tensors,
    told_together,
)
from isoscope.sweeps.find.checkpoints import Checkpoint
from isoscope.sweeps.verify.settings import settings_in

PLACES = 2048  # of a sketch: 11 kB as text, and distances to some per cent
AT_ONCE = 2**22  # numbers that are read at once
BROKEN, NOT_FINITE = "broken", "not finite"
_DIGITS = 16  # of a digest
_TENSORS = 128  # that a sketch looks into at most
_ADAPTER = "adapter_config.json"  # as PEFT writes it, beside weights that are no model's


@dataclass(frozen=True)
class Fingerprint:
    """What is known of a checkpoint's weights and config; it travels in the facts of a unit.

    What is not known is empty. Sketches can be compared where `layout`, the names and shapes, is the same.
    """

    digest: str
    config: str
    sketch: tuple[float, ...] = ()
    fault: str = ""
    kind: str = ""  # of the fault: broken, or not finite
    layout: str = ""
    parts: tuple[tuple[str, str], ...] = ()  # name and digest
    settings: tuple[tuple[str, str], ...] = ()  # what the config says

    @property
    def identity(self) -> str:
        """What fixes the numbers of a checkpoint: its weights and its config.

        >>> Fingerprint("0f", "c1").identity
        '0f c1'
        """
        return f"{self.digest} {self.config}"

    def to_json(self) -> str:
        """As text, the sketch in single precision."""
        said = vars(self) | {"parts": dict(self.parts), "settings": dict(self.settings)}
        body = np.asarray(self.sketch, dtype="<f4").tobytes()
        return json.dumps(said | {"sketch": base64.b64encode(body).decode()}, sort_keys=True)

    @staticmethod
    def from_json(text: str) -> Fingerprint:
        """Of the text that `to_json` gave."""
        said: dict[str, Any] = json.loads(text)
        body = np.frombuffer(base64.b64decode(said.pop("sketch")), dtype="<f4")
        parts, settings = (tuple(sorted(said.pop(name).items())) for name in ("parts", "settings"))
        return Fingerprint(**said, sketch=tuple(map(float, body)), parts=parts, settings=settings)


def fingerprint(checkpoint: Checkpoint) -> Fingerprint:
    """The fingerprint of a checkpoint on this machine: a folder, or a file of weights."""
    config, settings, fault = settings_in(config_file(checkpoint))
    broken = partial(Fingerprint, "", config, kind=BROKEN, settings=settings)
    try:
        found = _read(_tensors(Path(checkpoint.address)))
    except IsoscopeError as reason:
        return broken(fault=str(reason))
    except Exception as reason:  # noqa: BLE001  whatever a damaged file makes of any library
        return broken(fault=f"cannot read {checkpoint.address}: {first_line(reason)}.")
    known = replace(found, config=config, settings=settings)
    return replace(known, fault=fault, kind=BROKEN) if fault else known


def _read(tensors: Tensors) -> Fingerprint:
    """Read every tensor once, by name: all but what the config says."""
    names = sorted(tensors.names)
    parts: dict[str, Any] = {}
    layout, wild = hashlib.blake2b(digest_size=8), list[tuple[str, int, int]]()
    sketched: dict[str, tuple[str, int]] = {}  # a tensor's name and shape; its name, and how many axes it has
    for name in names:
        tensor = tensors.stored(name).detach()
        said = f"{name}{tuple(tensor.shape)}"
        layout.update(said.encode())
        own = parts.setdefault(part_of(name), hashlib.sha256())  # twice as fast as blake2b where CPUs know it
        own.update(f"{said}{tensor.dtype}".encode())
        flat = tensor.cpu().contiguous().reshape(-1)
        nan = infinite = 0
        for block in torch.split(flat, AT_ONCE):
            own.update(block.view(torch.uint8).numpy().data)
            few = _not_finite(block)
            nan, infinite = nan + few[0], infinite + few[1]
        if nan or infinite:
            wild.append((name, nan, infinite))
        if tensor.is_floating_point() and flat.numel():
            sketched[said] = name, tensor.dim()
    digests = tuple((part, own.hexdigest()[:_DIGITS]) for part, own in sorted(parts.items()))
    whole = hashlib.blake2b(repr(digests).encode(), digest_size=8).hexdigest()
    sketch, kind = _sketch(tensors, sketched), NOT_FINITE if wild else ""
    return Fingerprint(whole, "", sketch, _wild_words(wild), kind, layout.hexdigest(), digests)


def part_of(name: str) -> str:
    """The layer that a tensor belongs to, or its own name.

    >>> part_of("encoder.layer.3.output.weight"), part_of("h.11.attn.c_attn.bias"), part_of("wte.weight")
    ('encoder.layer.3', 'h.11', 'wte.weight')
    """
    layer = re.match(r"(.*?(?:^|\.)\d+)\.", name)
    return layer[1] if layer else name


def _sketch(tensors: Tensors, there: Mapping[str, tuple[str, int]]) -> tuple[float, ...]:
    """As many numbers of each of up to `_TENSORS` tensors: matrices, where there are any.

    Every tensor counts alike: otherwise embeddings of words that never come up would be most of it.
    """
    matrices = [said for said, (_, axes) in there.items() if axes > 1]
    chosen = sorted(matrices or there, key=lambda said: hashlib.blake2b(said.encode()).digest())[:_TENSORS]
    if not chosen:
        return ()
    each = -(-PLACES // len(chosen))
    found = torch.cat([_sample(said, tensors.stored(there[said][0]), each) for said in sorted(chosen)])
    return tuple(found[:PLACES].tolist())


def _sample(said: str, tensor: Tensor, most: int) -> Tensor:
    """Numbers of a tensor from places that its name and shape choose."""
    seed = int.from_bytes(hashlib.blake2b(said.encode(), digest_size=8).digest())
    places = np.random.default_rng(seed).integers(0, tensor.numel(), min(most, tensor.numel()))
    return tensor.detach().reshape(-1)[torch.from_numpy(places)].cpu().float()


def _not_finite(block: Tensor) -> tuple[int, int]:
    """How many numbers are NaN, and how many infinite."""
    if block.is_complex():
        block = torch.view_as_real(block).reshape(-1)
    if not block.is_floating_point():
        return 0, 0
    plain = block if block.dtype == torch.float64 else block.float()
    if bool(plain.sum().isfinite()):  # one that is not finite makes the sum so
        return 0, 0
    return int(plain.isnan().sum()), int(plain.isinf().sum())


def _wild_words(wild: Sequence[tuple[str, int, int]]) -> str:
    """The first of the tensors that are not finite: its name, how many are NaN, how many infinite."""
    if not wild:
        return ""
    name, *counts = wild[0]
    each = zip(counts, ("NaN", "infinite"), strict=True)
    counted = " and ".join(f"{count:,} {what}" for count, what in each if count)
    more = "" if len(wild) == 1 else f", the first of {len(wild)} tensors that are not finite"
    return f"{name} has {counted}{more}."


def _tensors(place: Path) -> Tensors:
    """The tensors in a folder or a file, by name, none of them read yet."""
    if not place.exists():
        raise IsoscopeError(f"{place} is not there.")
    if place.is_file():
        return _opened(place)
    fetch = partial(file_in_folder, place)
    found = next((file for file in LOOKED_FOR if fetch(file) is not None), None)
    if found is None and (place / _ADAPTER).is_file():
        raise IsoscopeError(
            f"{place.name} holds an adapter ({_ADAPTER}) and no model; merge it into its model first."
        )
    if found is None:
        raise IsoscopeError(f"{place} holds no weights: looked for {', '.join(LOOKED_FOR)}.")
    if not found.endswith(".json"):
        return _opened(place / found)
    tensors = sharded_tensors(place.name, found, fetch, True)
    with suppress(IsoscopeError):  # all that cannot be read is told at once
        tensors.check(tensors.names)
    if faults := tensors.faults():
        raise IsoscopeError(told_together(faults) + ".")
    return tensors


def _opened(file: Path) -> Tensors:
    return single_file_tensors(str(file), lambda _: file, file.name)


def config_file(checkpoint: Checkpoint) -> Path:
    """The config that a checkpoint is opened with: the one that is given, or the one in or beside it."""
    if checkpoint.config is not None:
        given = Path(checkpoint.config)
        return given if given.suffix == ".json" else given / "config.json"
    place = Path(checkpoint.address)
    return (place.parent if place.is_file() else place) / "config.json"
