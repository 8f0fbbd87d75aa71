"""Records are brought to the CPU whole, in one copy for each dtype."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pytest
import torch
from torch import Tensor

from isoscope.run.near import _copied, _rebuilt, _tensors, near, near_where_small


@dataclass(frozen=True)
class Inner:
    some: Tensor
    empty: Tensor


@dataclass(frozen=True)
class Outer:
    name: str
    inner: Inner
    number: Tensor
    turned: Tensor
    again: Tensor

    @cached_property
    def read(self) -> float:
        return float(self.number)


def records(device: str = "cpu") -> dict[str, dict[type, Outer]]:
    random = torch.Generator().manual_seed(4)

    def made(*shape: int) -> Tensor:
        return torch.randn(shape, generator=random, dtype=torch.float64).to(device)

    found = {}
    for site in ("layer.0", "layer.1"):
        shared = made(3, 2)
        places = torch.arange(5, device=device)
        found[site] = {Outer: Outer(site, Inner(shared, made(0, 4)), made(), made(4, 3, 2).mT, places[1:])}
    return found


def same(one: dict[str, dict[type, Outer]], other: dict[str, dict[type, Outer]]) -> bool:
    mine, its = list(_tensors(one)), list(_tensors(other))
    return (
        list(one) == list(other)
        and [each[Outer].name for each in one.values()] == [each[Outer].name for each in other.values()]
        and all(x.dtype == y.dtype and torch.equal(x.cpu(), y.cpu()) for x, y in zip(mine, its, strict=True))
    )


def test_records_that_are_near_stay() -> None:
    held = records()
    assert near(held) is held


def test_flat_copies_are_put_back_where_they_were() -> None:
    held = records()
    assert held["layer.0"][Outer].read == float(held["layer.0"][Outer].number)  # kept beside the fields
    copies: dict[int, Tensor] = {}
    for dtype in (torch.float64, torch.int64):
        copies |= _copied([tensor for tensor in _tensors(held) if tensor.dtype == dtype])
    brought = _rebuilt(held, copies)
    assert same(brought, held)
    assert len({tensor.untyped_storage().data_ptr() for tensor in _tensors(brought) if tensor.numel()}) == 2
    held["layer.1"][Outer].number.add_(1)
    assert not same(brought, held)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_records_of_a_gpu() -> None:
    far = records("cuda")
    brought = near(far)
    assert all(tensor.device.type == "cpu" for tensor in _tensors(brought))
    assert same(brought, far)


def test_records_with_a_large_tensor_stay_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    brought: list[object] = []
    monkeypatch.setattr("isoscope.run.near.near", lambda held: brought.extend(held) or held)
    monkeypatch.setattr("isoscope.run.near.SMALL", 23)  # `turned` has 24 numbers
    held = records()
    assert same(near_where_small(held), held) and brought == []
    monkeypatch.setattr("isoscope.run.near.SMALL", 24)
    assert same(near_where_small(held), held) and brought == [("layer.0", Outer), ("layer.1", Outer)]
