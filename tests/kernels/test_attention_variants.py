"""Rows of shifted queries are those of the definition, whatever the shift, the mask and the backend."""

from __future__ import annotations

import math

import pytest
import torch

from isoscope.geometry import attention as definition
from isoscope.kernels.attention.rows import SHIFT_VARIANCE, STATISTICS, variant_rows
from tests.kernels.attention_cases import CASES, DEVICE, Case, assert_close, heads, moved, normal, on_triton
from tests.tiers import nightly

STILL = tuple(case for case in CASES if "soft-cap" not in case.name)
# NumPy, under the interpreter, warns of what a GPU computes in silence: 0/0 of rows that see nothing
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def inputs(case: Case) -> tuple[torch.Tensor, torch.Tensor, list[torch.Tensor], dict[str, object]]:
    """q, k, a shift that is the same at every position, one that is not, and the options."""
    generator = torch.Generator().manual_seed(sum(map(ord, case.name)))
    options = moved(case.options(generator, case.t, case.s))
    q, k = (part.to(DEVICE) for part in heads(generator, case.t, case.s, scale=options.get("scale")))
    steady = q.mean(2, keepdim=True)
    turned = q * 0.1 + steady * normal(generator, case.t, q.shape[-1]).to(DEVICE)
    return q, k, [steady, turned], options


def as_defined(case: Case, backend: str) -> None:
    q, k, shifts, options = inputs(case)
    rows, variants = variant_rows(q, k, shifts, backend=backend, **options)
    assert_close(rows, definition.attention_rows(q, k, **options))
    bare = {name: value for name, value in options.items() if name not in ("bias", "key_bias")}
    if "mask" in bare:
        bare["mask"] = definition.seen(bare["mask"])
    for shift, variant in zip(shifts, variants, strict=True):
        assert_close(variant.rows, definition.attention_rows(q - shift, k, **options), extra=2.0)
        expected = definition.attention_rows(shift.expand_as(q), k, **bare).score_variance
        found = variant.shift_variance.double()
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=2e-5, equal_nan=True)


@pytest.mark.parametrize("case", STILL, ids=lambda case: case.name)
def test_chunked_variants_are_those_of_the_definition(case: Case) -> None:
    as_defined(case, "chunked")


@on_triton
@pytest.mark.parametrize("name", ["causal lengths", "as in T5"])
def test_triton_variants_are_those_of_the_definition(name: str) -> None:
    as_defined(next(case for case in CASES if case.name == name), "triton")


@on_triton
@pytest.mark.parametrize("width", [5, 64, 80, *nightly(128, 144)])
@pytest.mark.parametrize("dtype", [torch.bfloat16, *nightly(torch.float16)])
def test_shifts_in_float32_of_half_precision_queries(width: int, dtype: torch.dtype) -> None:
    """Queries less a shift keep all bits of float32 beside keys of 16 bits."""
    generator = torch.Generator().manual_seed(width)
    q, k = (normal(generator, 2, n, 37, width).to(DEVICE, dtype) for n in (4, 2))
    shifts = [3 * normal(generator, 4, 37, width).to(DEVICE)[None].float()]
    options = {"causal": True, "scale": 1 / math.sqrt(width)}
    rows, (without,) = variant_rows(q, k, shifts, backend="triton", **options)
    exact, keys, shift = q.double(), k.double(), shifts[0].double()
    assert_close(rows, definition.attention_rows(exact, keys, **options))
    assert_close(without.rows, definition.attention_rows(exact - shift, keys, **options), extra=2.0)
    expected = definition.attention_rows(shift.expand_as(exact), keys, **options).score_variance
    torch.testing.assert_close(without.shift_variance.double(), expected, atol=1e-5, rtol=2e-5)


def test_only_what_is_wanted_of_a_shift_need_be_there() -> None:
    q, k, shifts, _ = inputs(CASES[2])
    whole, all_of = variant_rows(q, k, shifts, causal=True, backend="chunked")
    rows, (one, two) = variant_rows(
        q, k, shifts, causal=True, backend="chunked", wanted=(), wanted_of=(["entropy"], [SHIFT_VARIANCE])
    )
    assert rows.entropy.isnan().all()
    assert two.rows.entropy.isnan().all()
    assert torch.equal(rows.visible, whole.visible)
    assert torch.equal(one.rows.visible, whole.visible)
    torch.testing.assert_close(one.rows.entropy, all_of[0].rows.entropy)
    torch.testing.assert_close(two.shift_variance, all_of[1].shift_variance)


def test_float64_shifts_stay_float64() -> None:
    q, k, shifts, _ = inputs(CASES[2])
    q, k, shifts = q.double(), k.double(), [shift.double() for shift in shifts]
    _, variants = variant_rows(q, k, shifts, causal=True, backend="chunked")
    for shift, variant in zip(shifts, variants, strict=True):
        assert variant.rows.entropy.dtype == variant.shift_variance.dtype == torch.float64
        assert_close(variant.rows, definition.attention_rows(q - shift, k, causal=True), extra=1e-6)


def test_a_shift_that_is_not_finite_spoils_its_rows_alone() -> None:
    q, k, shifts, _ = inputs(CASES[0])
    shifts[0] = shifts[0].expand_as(q).clone()
    shifts[0][1, 2, 5, 3] = math.nan
    rows, (spoilt, fine) = variant_rows(q, k, shifts, backend="chunked")
    assert spoilt.rows.entropy.isnan().nonzero().tolist() == [[1, 2, 5]]
    assert spoilt.shift_variance.isnan().nonzero().tolist() == [[1, 2, 5]]
    assert not any(getattr(each, name).isnan().any() for each in (rows, fine.rows) for name in STATISTICS)


def test_refusals() -> None:
    q, k, shifts, _ = inputs(CASES[0])
    with pytest.raises(ValueError, match="a shift must broadcast to the queries"):
        variant_rows(q, k, [shifts[0][..., :5]])
    with pytest.raises(ValueError, match="wanted_of must name statistics for each of 2 shifts; it has 1"):
        variant_rows(q, k, shifts, wanted_of=[STATISTICS])
    with pytest.raises(ValueError, match=r"wanted_of names no statistic: \['sharpness'\]"):
        variant_rows(q, k, shifts[:1], wanted_of=[["sharpness"]])
