"""A lesson from pictures: which class each is of, from its patches."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import torch
from PIL import Image, UnidentifiedImageError
from torch import Tensor

from isoscope.data.image import SUFFIXES
from isoscope.errors import IsoscopeError
from isoscope.lab.tasks.base import Examples, Lesson, class_loss, data_hash

PATCHES = 8  # a side, at most: of 8 × 8 digits every pixel, of 32 × 32 pictures squares of 4


def images(data: str, length: int) -> Lesson:
    """Classes of pictures in a folder with a folder a class, or of embedded digits; a fifth is held out."""
    pixels, labels, names = _digits() if data == "embedded" else _folder(Path(data))
    order = torch.randperm(len(pixels), generator=torch.Generator().manual_seed(0))
    patches, labels = _patches(pixels)[order], labels[order]
    held = max(1, len(patches) // 5)
    mean, spread = patches[held:].mean((0, 1)), patches[held:].std().clamp_min(1e-6)
    patches = (patches - mean) / spread

    def draw(random: torch.Generator, size: int) -> Examples:
        chosen = torch.randint(held, len(patches), (size,), generator=random)
        return Examples(patches[chosen], labels[chosen])

    judged, same, many = Examples(patches[:held], labels[:held]), data_hash(pixels, labels), len(names)
    told = (class_loss, math.log(many), "nats a picture", patches.shape[2], patches.shape[1])
    facts = {"data": data, "data_hash": same, "items": len(patches), "classes": list(names)}
    return Lesson(draw, judged, *told, causal=False, vectors=True, outputs=many, pooled=True, facts=facts)


def _patches(pixels: Tensor) -> Tensor:
    """Pictures [n, c, s, s] as squares, [n, t, c·p²]."""
    side = pixels.shape[-1] // PATCHES if pixels.shape[-1] >= PATCHES else 1
    cut = pixels.unfold(2, side, side).unfold(3, side, side)  # [n, c, rows, columns, p, p]
    return cut.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2).contiguous()


def _digits() -> tuple[Tensor, Tensor, tuple[str, ...]]:
    from sklearn.datasets import load_digits

    digits = load_digits()
    pixels = torch.from_numpy(digits.images).float()[:, None] / 16
    return pixels, torch.from_numpy(digits.target).long(), tuple(map(str, range(10)))


def _folder(folder: Path) -> tuple[Tensor, Tensor, tuple[str, ...]]:
    """Every picture below the folder of its class, all of one size."""
    if not folder.is_dir():
        raise IsoscopeError(f"no pictures at '{folder}': give 'embedded' or a folder with a folder a class.")
    found: list[Tensor] = []
    labels: list[int] = []
    names = tuple(sorted(each.name for each in folder.iterdir() if each.is_dir()))
    for label, name in enumerate(names):
        for file in sorted((folder / name).rglob("*")):
            if file.suffix.lower() not in SUFFIXES:
                continue
            try:
                with Image.open(file) as picture:
                    found.append(torch.from_numpy(np.array(picture.convert("RGB"))).permute(2, 0, 1))
            except (OSError, UnidentifiedImageError, ValueError) as reason:
                raise IsoscopeError(f"cannot read the picture {file}: {reason}.") from reason
            labels.append(label)
    sizes = {tuple(each.shape) for each in found}
    if len(names) < 2 or len(found) < 2:
        raise IsoscopeError(
            f"'{folder}' holds {len(found)} pictures in {len(names)} folders; two classes or more are needed."
        )
    if len(sizes) > 1 or found[0].shape[1] != found[0].shape[2]:
        raise IsoscopeError(
            f"the pictures in '{folder}' are not squares of one size; there are {sorted(sizes)[:3]}."
        )
    return torch.stack(found).float() / 255, torch.tensor(labels), names
