"""The fast ways give the rows of the definition, for every kind of input and every precision."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import pytest
import torch

from isoscope.geometry import attention as definition
from isoscope.kernels.attention.rows import STATISTICS, attention_rows, score_rows
from tests.kernels.attention_cases import (
    BACKENDS,
    CASES,
    DEVICE,
    Case,
    assert_close,
    heads,
    moved,
    normal,
    on_triton,
)
from tests.tiers import nightly

# NumPy, under the interpreter, warns of what a GPU computes in silence: 0/0 of rows that see nothing
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
# One case per feature runs in Triton's interpreter in `make test`; `make nightly` runs the whole grid
FEATURES = {
    "causal lengths", "causal window", "left-padded mask", "as in T5", "bias", "key bias",
    "soft-cap and mask", "scale",
}  # fmt: skip


def inputs(case: Case, dtype: torch.dtype) -> tuple[list[torch.Tensor], dict[str, object]]:
    generator = torch.Generator().manual_seed(sum(map(ord, case.name)))
    options = moved(case.options(generator, case.t, case.s))
    made = heads(generator, case.t, case.s, scale=options.get("scale"))
    return [part.to(DEVICE, dtype) for part in made], options


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_chunked_rows_are_those_of_the_definition(case: Case, dtype: torch.dtype) -> None:
    as_defined(case, dtype, "chunked")


@on_triton
@pytest.mark.parametrize(
    ("case", "dtype"),
    [
        (case, dtype) if dtype == torch.float32 and case.name in FEATURES else nightly((case, dtype))[0]
        for dtype in (torch.float32, torch.bfloat16, torch.float16)
        for case in CASES
    ],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_triton_rows_are_those_of_the_definition(case: Case, dtype: torch.dtype) -> None:
    as_defined(case, dtype, "triton")


def as_defined(case: Case, dtype: torch.dtype, backend: str) -> None:
    (q, k), options = inputs(case, dtype)
    found = attention_rows(q, k, backend=backend, **options)
    assert_close(found, definition.attention_rows(q, k, **options))
    assert found.entropy.dtype == torch.float32
    assert found.visible.dtype == torch.int32


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_float64_stays_float64(case: Case) -> None:
    (q, k), options = inputs(case, torch.float64)
    found = attention_rows(q, k, backend="chunked", **options)
    assert found.entropy.dtype == torch.float64
    assert_close(found, definition.attention_rows(q, k, **options), extra=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("t", "s"), [(1, 63), (63, 1), (130, 130), *nightly((1000, 1000))])
@pytest.mark.parametrize("causal", [True, False])
def test_lengths(t: int, s: int, causal: bool, backend: str) -> None:
    generator = torch.Generator().manual_seed(t)
    q, k = (part[:1, :2].to(DEVICE, torch.bfloat16) for part in heads(generator, t, s, width=16))
    q, k = q[:, 1:], k[:, :1]  # one head, within ±10
    found = attention_rows(q, k, causal=causal, backend=backend)
    assert_close(found, definition.attention_rows(q, k, causal=causal))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("width", [5, 64, 300])
def test_any_width(width: int, backend: str) -> None:
    q, k = (part.to(DEVICE) for part in heads(torch.Generator().manual_seed(width), 20, 33, width=width))
    assert_close(attention_rows(q, k, backend=backend), definition.attention_rows(q, k))


@pytest.mark.parametrize("backend", BACKENDS)
def test_scores_far_from_zero_keep_their_variance(backend: str) -> None:
    """A sum of squares would lose it: mean −80, variance 1e-2, and one key far above the others."""
    generator = torch.Generator().manual_seed(0)
    k = torch.cat([torch.full((1, 1, 90, 1), -80.0), 0.1 * normal(generator, 1, 1, 90, 15)], -1)
    k[0, 0, 3, 0] = 80.0
    q = torch.ones(1, 1, 5, 16)
    q[0, 0, :, 1:] = normal(generator, 5, 15)
    mask = torch.ones(1, 1, 5, 90, dtype=torch.bool)
    mask[0, 0, 2:, 3] = False
    for options in ({}, {"mask": mask}):
        found = attention_rows(q.to(DEVICE), k.to(DEVICE), scale=1.0, backend=backend, **moved(options))
        expected = definition.attention_rows(q, k, scale=1.0, **options)
        torch.testing.assert_close(
            found.score_variance.double().cpu(), expected.score_variance, rtol=2e-4, atol=0.0
        )


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_old_mask_of_minus_ten_thousand_costs_no_precision(backend: str) -> None:
    generator = torch.Generator().manual_seed(0)
    q, k = (part.to(DEVICE) for part in heads(generator, 30, 80))
    mask = torch.where(torch.arange(80, device=DEVICE) < 70, -10000.0, 0.0)
    found = attention_rows(q, k, mask=mask, backend=backend)
    expected = definition.attention_rows(q, k, mask=mask)
    blank = torch.zeros_like(expected.score_variance)  # it is 1e7 here, and means nothing
    assert_close(replace(found, score_variance=blank), replace(expected, score_variance=blank))


@pytest.mark.parametrize("backend", BACKENDS)
def test_one_key_has_no_entropy_and_equal_scores_have_all(backend: str) -> None:
    q, k = torch.zeros(1, 2, 50, 16, device=DEVICE), torch.ones(1, 1, 50, 16, device=DEVICE)
    q[:, 1] = 7.3
    rows = attention_rows(q, k, causal=True, backend=backend)
    log = torch.arange(1, 51, device=DEVICE).float().log()
    torch.testing.assert_close(rows.entropy, log.expand(1, 2, 50), atol=1e-6, rtol=0.0)
    assert not rows.entropy[..., 0].any()
    torch.testing.assert_close(rows.largest, (-log).exp().expand(1, 2, 50), atol=1e-5, rtol=0.0)
    torch.testing.assert_close(rows.score_variance, torch.zeros_like(rows.lse), atol=1e-6, rtol=0.0)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("masked", [False, True])
def test_what_is_not_finite_spoils_its_row_alone(masked: bool, backend: str) -> None:
    generator = torch.Generator().manual_seed(1)
    q, k = heads(generator, 20, 30)
    q[0, 1, 4, 3] = math.nan
    q[1, 2, 7] = math.inf
    q[1, 2, 8] = -math.inf
    options = {"mask": torch.rand(20, 30, generator=generator) < 0.7} if masked else {}
    found = attention_rows(q.to(DEVICE), k.to(DEVICE), backend=backend, **moved(options))
    expected = definition.attention_rows(q, k, **options)
    assert expected.entropy.isnan().sum() == 3
    assert_close(found, expected)
    assert (found.visible > 0).all()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("how", ["mask", "order", "length"])
def test_what_is_hidden_may_be_anything(how: str, backend: str) -> None:
    q, k = heads(torch.Generator().manual_seed(2), 20, 20)
    k[:, :, 15] = math.nan
    k[:, :, 16] = math.inf
    k[:, :, 17] = -math.inf
    options = {
        "mask": {"mask": (torch.arange(20) < 15) | (torch.arange(20) > 17)},
        "order": {"causal": True},
        "length": {"key_lengths": torch.tensor([15, 9])},
    }[how]
    found = attention_rows(q.to(DEVICE), k.to(DEVICE), backend=backend, **moved(options))
    assert_close(found, definition.attention_rows(q, k, **options))
    assert found.entropy[:, :, :15].isfinite().all()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ["bias", "key_bias"])
def test_only_a_mask_hides(name: str, backend: str) -> None:
    q, k = (part.to(DEVICE) for part in heads(torch.Generator().manual_seed(3), 5, 9))
    term = torch.zeros(5, 9, device=DEVICE)
    term[2, 4] = -math.inf
    for mask in (None, torch.ones(9, dtype=torch.bool, device=DEVICE)):
        rows = attention_rows(q, k, mask=mask, backend=backend, **{name: term})
        assert rows.lse[:, :, 2].isnan().all()
        assert rows.lse.isnan().sum() == 8
        assert (rows.visible == 9).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_not_wanted_may_be_left_out(backend: str) -> None:
    q, k = (part.to(DEVICE) for part in heads(torch.Generator().manual_seed(4), 40, 40))
    whole = attention_rows(q, k, causal=True, backend=backend)
    core = attention_rows(q, k, causal=True, backend=backend, wanted=("entropy", "collision"))
    for name in ("lse", "entropy", "largest", "max_score", "visible", "collision"):
        torch.testing.assert_close(getattr(core, name), getattr(whole, name), rtol=1e-6, atol=1e-6)


def test_the_fields_are_the_statistics() -> None:
    assert tuple(field.name for field in fields(definition.AttentionRows)) == STATISTICS


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_scores_that_exist_already(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(5)
    scores = normal(generator, 2, 4, 70, 600) * torch.tensor([1.0, 2.0, 15.0, 0.0])[:, None, None]
    scores = scores.to(dtype)
    scores[torch.rand(2, 4, 70, 600, generator=generator) < 0.3] = torch.finfo(dtype).min
    scores[0, 1, 4] = -math.inf
    scores[1, 2, 3, 5] = math.nan
    scores = scores.to(DEVICE)
    for options in ({}, {"key_bias": normal(generator, 4, 1, 600)}, {"causal": True}):
        found = score_rows(scores, **moved(options))
        assert_close(found, definition.score_rows(scores, **moved(options)))
        assert found.visible[0, 1, 4] == 0
        assert found.lse[0, 1, 4].isnan()
        assert found.lse[1, 2, 3].isnan()


@pytest.mark.parametrize("change", ["entropy", "lse", "score_variance", "distance", "first_key", "visible"])
def test_the_comparison_can_fail(change: str) -> None:
    """A wrong base of the logarithm, a sample variance, a distance off by 1e-3: each is seen."""
    q, k = heads(torch.Generator().manual_seed(6), 30, 30)
    right = definition.attention_rows(q, k, causal=True)
    wrong = {
        "entropy": right.entropy / math.log(2),
        "lse": right.lse / math.log(2),
        "score_variance": right.score_variance * right.visible / (right.visible - 1),
        "distance": right.distance * 1.001,
        "first_key": torch.nan_to_num(right.first_key * 0),
        "visible": right.visible - 1,
    }
    assert_close(right, right)
    with pytest.raises(AssertionError, match=change):
        assert_close(replace(right, **{change: wrong[change]}), right)


def test_reduced_precision_of_products_is_not_used() -> None:
    """Callers may have allowed bfloat16 or TF32 products; here they are not taken, and stay allowed."""
    q, k = (part.to(DEVICE) for part in heads(torch.Generator().manual_seed(7), 100, 100, width=64))
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("medium")
        assert_close(attention_rows(q, k, backend="chunked"), definition.attention_rows(q, k))
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("causal", [True, False])
def test_a_sink_and_a_far_mean_cost_no_precision(causal: bool, backend: str) -> None:
    """Rows of scores about −60 whose first key stands at 60: what a reference near most keys is far from."""
    generator = torch.Generator().manual_seed(8)
    q, k = normal(generator, 1, 1, 90, 16), normal(generator, 1, 1, 90, 16)
    q[..., 0], k[..., 0] = 8.0, -30.0
    k[0, 0, 0, 0] = 30.0
    found = attention_rows(q.to(DEVICE), k.to(DEVICE), causal=causal, backend=backend)
    expected = definition.attention_rows(q, k, causal=causal)
    for name in STATISTICS:
        mine, right = getattr(found, name).double().cpu(), getattr(expected, name).double()
        torch.testing.assert_close(mine, right, atol=5e-5, rtol=1e-5, msg=name)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_sink_of_some_rows_hidden_from_others(backend: str) -> None:
    """Rows that do not see the sink, beside rows that do, have a small variance far from zero."""
    generator = torch.Generator().manual_seed(9)
    q, k = normal(generator, 1, 1, 40, 16), 0.2 * normal(generator, 1, 1, 70, 16)
    q[..., 0], k[..., 0] = 8.0, -30.0
    k[0, 0, 5, 0] = 30.0
    mask = torch.ones(40, 70, dtype=torch.bool)
    mask[::2, 5] = False
    found = attention_rows(q.to(DEVICE), k.to(DEVICE), mask=mask.to(DEVICE), backend=backend)
    expected = definition.attention_rows(q, k, mask=mask)
    assert expected.score_variance[..., ::2].max() < 0.2
    torch.testing.assert_close(found.entropy.double().cpu(), expected.entropy, atol=5e-5, rtol=0.0)
    torch.testing.assert_close(
        found.score_variance.double().cpu(), expected.score_variance, atol=0.0, rtol=2e-4
    )


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("level", [1000.0, -1000.0])
def test_rows_far_from_every_guess_are_found(level: float, backend: str) -> None:
    """A level that products do not show puts every weight of a row out of the range of float32."""
    generator = torch.Generator().manual_seed(10)
    q, k = heads(generator, 40, 70)
    bias = torch.zeros(40, 1)
    bias[::3] = level
    expected = definition.attention_rows(q, k, bias=bias)
    for wanted in (STATISTICS, ("entropy", "collision")):
        found = attention_rows(
            q.to(DEVICE), k.to(DEVICE), bias=bias.to(DEVICE), wanted=wanted, backend=backend
        )
        for name in ("lse", "entropy", "largest", "max_score", "collision"):
            mine, right = getattr(found, name).double().cpu(), getattr(expected, name)
            torch.testing.assert_close(mine, right, atol=5e-4, rtol=1e-6, msg=name)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_call_made_before_is_not_taken_for_another(backend: str) -> None:
    """The same shapes with other numbers, another alignment, another scale, other lengths."""
    generator = torch.Generator().manual_seed(11)
    for t, shift, scale in ((64, 0, None), (64, 0, None), (64, 1, None), (64, 0, 0.1), (128, 0, None)):
        spare = [normal(generator, 2 * t * 32 + 1).to(DEVICE, torch.bfloat16) for _ in range(2)]
        q, k = (part[shift : shift + 2 * t * 32].view(1, 2, t, 32) for part in spare)
        found = attention_rows(q, k, causal=True, scale=scale, backend=backend)
        assert_close(found, definition.attention_rows(q, k, causal=True, scale=scale))
