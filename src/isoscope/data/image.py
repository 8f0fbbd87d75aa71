"""Images as data: `embedded`, a folder of pictures or a dataset's column becomes batches of pixels.

A sequence is one image, its vectors are patches or spatial positions. Every image is a unit, whatever folder
it lies in: a class is no sample of classes, so the images of one class folder are independent given the
class. Class and register tokens that stand before the patches are special tokens: they count only when asked
for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from PIL import Image, UnidentifiedImageError
from torch import Tensor

from isoscope.data.batch import Batch
from isoscope.data.files import files_at
from isoscope.data.keys import content_hash, content_keys
from isoscope.errors import IsoscopeError

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm")
Processor = Callable[..., Any]


@dataclass(frozen=True)
class Images:
    """Pictures that could be read, ready to be processed; iterate over it for batches."""

    address: str
    pictures: tuple[Image.Image, ...]
    process: Processor
    patch: int | None
    special: bool
    batch_size: int
    seed: int
    notes: tuple[str, ...]

    @property
    def size(self) -> int:
        """How many images."""
        return len(self.pictures)

    def __len__(self) -> int:
        return -(-self.size // self.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        for start in range(0, self.size, self.batch_size):
            some = list(self.pictures[start : start + self.batch_size])
            pixels: Tensor = self.process(images=some, return_tensors="pt")["pixel_values"]
            content = (torch.frombuffer(bytearray(each.tobytes()), dtype=torch.uint8) for each in some)
            keys = torch.cat([content_keys(each[None], self.seed) for each in content])
            yield Batch({"pixel_values": pixels}, None, keys, self._patches(pixels))

    def _patches(self, pixels: Tensor) -> int | None:
        """How many patches an image has, where special tokens must be told from them."""
        if self.special or self.patch is None:
            return None
        return (pixels.shape[-2] // self.patch) * (pixels.shape[-1] // self.patch)

    def facts(self) -> dict[str, object]:
        """What a run records of its data."""
        digest = content_hash(f"{each.size}".encode() + each.tobytes() for each in self.pictures)
        return {
            "data": self.address, "data_hash": digest, "sequences": self.size,
            "counting": {"class and register tokens": "counted" if self.special else "left out"},
            "seed": self.seed
        }  # fmt: skip


def images(
    address: str, process: Processor,
    *, patch: int | None = None, limit: int | None = 256, batch_size: int = 16, special: bool = False,
    seed: int = 0
) -> Images:  # fmt: skip
    """Read the pictures at `address`: ``embedded`` (digits), a folder, all below it, or ``id:split:column``.

    `process` is an image processor. Files that cannot be read are left out, counted and named.
    """
    unread: list[str] = []
    pictures = tuple(islice(_digits() if address == "embedded" else _read(address, unread), limit))
    if not pictures:
        raise IsoscopeError(
            f"data '{address}' holds no picture that can be read; there is nothing to measure."
        )
    notes = [f"pictures that cannot be read are left out: {len(unread)}, first {unread[0]}"] if unread else []
    return Images(address, pictures, process, patch, special, batch_size, seed, tuple(notes))


def _read(address: str, unread: list[str]) -> Iterator[Image.Image]:
    for name, file in files_at(address, SUFFIXES, "pictures"):
        try:
            with Image.open(file) as picture:
                yield picture.convert("RGB")
        except (OSError, UnidentifiedImageError, ValueError, SyntaxError, Image.DecompressionBombError):
            unread.append(name)


def _digits() -> Iterable[Image.Image]:
    from sklearn.datasets import load_digits

    for pixels in load_digits().images:
        yield Image.fromarray((pixels * (255 / 16)).astype(np.uint8)).convert("RGB")
