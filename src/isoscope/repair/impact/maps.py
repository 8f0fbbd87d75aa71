"""Can a repair matter to a reader at all? What the map is, tested on its numbers, against what readers miss.

A map y = Ax + c cannot matter to

- cosines, where it is a rotation (or reflection) and one scale, and shifts nothing: AᵀA = s²I, c = 0;
- a linear probe without a penalty, where it can be undone: it finds the same boundary, whatever c;
- a ridge on vectors as they are, its strength relative to their variance: rotation, one scale, any shift;
- a ridge on standardised vectors, where every dimension is only scaled, shifted or moved to another place;
- the head of a language model, softmax(Wx + b), where W(A − I) and Wc are the same for all words.

In all other cases it can, whatever its name: whitening can be undone and moves a ridge, since what is wide
and what is narrow is all that a ridge goes by. That a map is one of these is only half of the verdict; the
other half is that what the reader gives was found equal (outcome.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from isoscope.repair.keep.repair import Repair

EXACT = 1e-9  # of the largest stretch: what is off by less is off by rounding


@dataclass(frozen=True)
class Character:
    """What a map is, as its numbers show."""

    affine: bool
    injective: bool = False  # no direction is lost
    similar: bool = False  # rotation, reflection, and one scale
    monomial: bool = False  # each dimension scaled and put in one place
    shifts: bool = True


def character(repair: Repair, size: float = 1.0) -> Character:
    """Test the map of a repair; `size` is the norm of the vectors that a shift is held against."""
    if not repair.is_affine:
        return Character(affine=False)
    matrix, offset = repair.affine()
    stretch = torch.linalg.svdvals(matrix)
    most = float(stretch[0])
    if most == 0:
        return Character(affine=True)
    square = matrix.shape[0] == matrix.shape[1]
    sizes = matrix.abs()
    held = sizes > EXACT * sizes.max(1, keepdim=True).values  # of its own row: scales may differ
    one_each = square and bool((held.sum(0) == 1).all() and (held.sum(1) == 1).all())
    injective = matrix.shape[0] >= matrix.shape[1] and float(stretch[-1]) > EXACT * most
    return Character(
        affine=True, injective=injective, similar=square and float(stretch[0] - stretch[-1]) <= EXACT * most,
        monomial=one_each, shifts=float(offset.norm()) > EXACT * most * size
    )  # fmt: skip


def cannot_matter(found: Character, reader: str) -> str:
    """Why a map of this character cannot matter to a reader; empty where it can."""
    if reader == "cosine" and found.similar and not found.shifts:
        return "a rotation and one scale, before cosines"
    if reader == "unpenalised" and found.affine and found.injective:
        return "a map that can be undone, before a linear reader without a penalty"
    if reader == "ridge" and found.similar:
        return "a rotation, a shift and one scale, before a ridge relative to the variance"
    if reader == "standardised" and found.monomial:
        return "every dimension scaled and shifted by itself, before a reader that standardises"
    return ""


def cannot_matter_to_head(repair: Repair, weight: Tensor) -> str:
    """The same of a head whose weight is [words, d]: softmax ignores what is added to all logits alike."""
    if not repair.is_affine or repair.gives != repair.width:
        return ""
    matrix, offset = repair.affine()
    apart = weight.detach().to("cpu", torch.float64)
    apart = apart - apart.mean(0)
    moved = apart @ (matrix - torch.eye(repair.width, dtype=torch.float64))
    size = float(apart.norm())
    same = float(moved.norm()) <= EXACT * size and float((apart @ offset).norm()) <= EXACT * size
    return "a map that adds the same to every word's logit" if same else ""
