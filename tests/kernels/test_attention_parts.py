"""Rows without parts of their scores, and the parts' variances, are those of the definition."""

from __future__ import annotations

import math
from dataclasses import fields

import pytest
import torch
from torch import Tensor

from isoscope.geometry import anatomy
from isoscope.geometry import attention as definition
from isoscope.kernels.attention.parts import PartRows, part_rows
from tests.kernels.attention_cases import CASES, DEVICE, Case, assert_close, heads, moved, normal, on_triton
from tests.tiers import nightly

TAKEN = {
    "without_key": ("key",),
    "without_position_and_key": ("position", "key"),
    "without_position": ("position", "query position"),
    "content": ("position", "key", "query position"),
}
PLAIN = tuple(
    case
    for case in CASES
    if case.options(torch.Generator().manual_seed(0), case.t, case.s).keys() <= {"causal", "mask", "scale"}
)
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def defined(
    q: Tensor, k: Tensor, mean: Tensor, means: Tensor, *, scale: float, causal: bool = False,
    mask: Tensor | None = None,
) -> tuple[dict[str, definition.AttentionRows], Tensor]:  # fmt: skip
    """The rows of every variant, and the variance of every part [4, b, h, t], from the whole matrices."""
    copies = q.shape[1] // k.shape[1]
    key, key_mean = (each.double().expand(k.shape).repeat_interleave(copies, 1) for each in (k, means))
    visible = definition.visible_keys((*q.shape[:3], k.shape[2]), causal=causal, mask=mask, device=q.device)
    added = None if mask is None or mask.dtype == torch.bool else mask.double()
    each = anatomy.parts(q, key, mean, key_mean, scale, added)
    scores = torch.stack(each).sum(0)
    whole = scale * q.double() @ key.mT + (0 if added is None else added)
    apart = torch.where(visible, (scores - whole).abs(), 0).nan_to_num()
    assert apart.max() < 1e-9, "the parts add up to the score"
    offset = k.shape[2] - q.shape[2] if causal else 0

    def rows(taken: tuple[str, ...]) -> definition.AttentionRows:
        left = sum(part for part, name in zip(each, anatomy.PARTS, strict=True) if name not in taken)
        return definition.row_statistics(left, visible, offset=offset)

    variances = [definition.row_statistics(part, visible).score_variance for part in each]
    return {name: rows(taken) for name, taken in TAKEN.items()}, torch.stack(variances)


def agree(found: PartRows, q: Tensor, k: Tensor, mean: Tensor, means: Tensor, **options: object) -> None:
    rows, variances = defined(q, k, mean, means, **options)  # type: ignore[arg-type]
    for name, expected in rows.items():
        assert_close(getattr(found, name), expected, extra=4.0)
    usable = ~rows["content"].lse.isnan()
    torch.testing.assert_close(
        found.variances.double()[:, usable], variances[:, usable], atol=2e-5, rtol=5e-5, equal_nan=True
    )


def made(case: Case, shared: bool) -> tuple[Tensor, Tensor, Tensor, Tensor, dict[str, object]]:
    """q, k, their means (the same for all sequences where `shared`) and the options of a case."""
    generator = torch.Generator().manual_seed(sum(map(ord, case.name)))
    options = moved(case.options(generator, case.t, case.s))
    q, k = (part.to(DEVICE) for part in heads(generator, case.t, case.s, scale=options.get("scale")))
    options = {"scale": q.shape[-1] ** -0.5} | options
    mean, means = (each.mean(2, keepdim=True) for each in (q, k))
    mean = mean * (1 + 0.3 * normal(generator, case.t, q.shape[-1]).to(DEVICE))
    means = means + 0.2 * normal(generator, case.s, q.shape[-1]).to(DEVICE)
    return q, k, mean[:1] if shared else mean, means[:1] if shared else means, options


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("case", PLAIN, ids=lambda case: case.name)
def test_chunked_parts_are_those_of_the_definition(case: Case, shared: bool) -> None:
    q, k, mean, means, options = made(case, shared)
    agree(part_rows(q, k, mean, means, backend="chunked", **options), q, k, mean, means, **options)


@on_triton
@pytest.mark.parametrize("number", [2, *nightly(*range(len(PLAIN)))])
def test_triton_parts_are_those_of_the_definition(number: int) -> None:
    q, k, mean, means, options = made(PLAIN[number], shared=True)
    agree(part_rows(q, k, mean, means, backend="triton", **options), q, k, mean, means, **options)


@on_triton
def test_parts_of_bfloat16_beside_means_of_float32() -> None:
    """Mean keys are rounded as keys are: the parts still add up."""
    generator = torch.Generator().manual_seed(3)
    q, k = (normal(generator, 2, n, 37, 64).to(DEVICE, torch.bfloat16) for n in (4, 2))
    mean, means = (3 * normal(generator, 1, n, 37, 64).to(DEVICE) for n in (4, 2))
    options = {"causal": True, "scale": 1 / 8}
    found = part_rows(q, k, mean, means, backend="triton", **options)
    agree(found, q, k, mean, means.bfloat16(), **options)


def test_rows_that_are_known_are_not_read_again() -> None:
    q, k, mean, means, options = made(PLAIN[0], shared=True)
    whole = part_rows(q, k, mean, means, backend="chunked", **options)
    known = part_rows(q, k, mean, means, backend="chunked", known=whole.without_position_and_key, **options)
    assert known.without_position_and_key is whole.without_position_and_key
    for field in fields(definition.AttentionRows):
        one, other = (getattr(each.without_key, field.name) for each in (whole, known))
        torch.testing.assert_close(one, other, equal_nan=True, rtol=0, atol=0)


@pytest.mark.parametrize("backend", ["chunked", pytest.param("triton", marks=on_triton)])
def test_means_of_nothing_leave_everything_to_the_content(backend: str) -> None:
    q, k, _, _, options = made(PLAIN[2], shared=True)
    nothing = q.new_zeros(1, 1, 1, q.shape[-1])
    found = part_rows(q, k, nothing, nothing, backend=backend, **options)
    whole = definition.attention_rows(q, k, **options)
    assert_close(found.content, whole, extra=2.0)
    assert_close(found.without_key, whole, extra=2.0)
    assert found.variances[:3].abs().max() == 0
    assert math.isclose(
        float(found.variances[3, 0, 0, -1]), float(whole.score_variance[0, 0, -1]), rel_tol=1e-4
    )
