"""Laws of attention rows, on drawn shapes: blocks, order of keys, batching, shifts, shared heads, masks."""

from __future__ import annotations

import pytest
import torch

from isoscope.geometry import attention as definition
from isoscope.kernels.attention import chunked as attention_chunked
from isoscope.kernels.attention.rows import STATISTICS, AttentionRows, attention_rows

hypothesis = pytest.importorskip("hypothesis")
st = pytest.importorskip("hypothesis.strategies")

shapes = st.fixed_dictionaries(
    {
        "b": st.integers(1, 3),
        "g": st.integers(1, 3),
        "r": st.integers(1, 3),
        "t": st.integers(1, 70),
        "s": st.integers(1, 70),
        "seed": st.integers(0, 999),
    }
)
drawn = hypothesis.settings(max_examples=15, deadline=None, derandomize=True)


def heads(shape: dict[str, int]) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(shape["seed"])
    b, g, r, t, s = (shape[name] for name in "bgrts")
    q = torch.randn(b, g * r, t, 7, generator=generator, dtype=torch.float64)
    return q, torch.randn(b, g, s, 7, generator=generator, dtype=torch.float64)


def assert_same(found: AttentionRows, right: AttentionRows, *leave: str) -> None:
    for name in set(STATISTICS) - set(leave):
        torch.testing.assert_close(
            getattr(found, name), getattr(right, name), rtol=1e-9, atol=1e-9, equal_nan=True, msg=name
        )


@drawn
@hypothesis.given(
    shapes, st.booleans(), st.none() | st.integers(1, 80), st.sampled_from([(1, 1), (8, 5), (64, 16)])
)
def test_blocks_do_not_matter(
    shape: dict[str, int], causal: bool, window: int | None, block: tuple[int, int]
) -> None:
    q, k = heads(shape)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(attention_chunked._QUERIES, "cpu", (1, block[0]))
        patch.setitem(attention_chunked._SCORES, "cpu", block[0] * block[1])
        found = attention_rows(q, k, causal=causal, window=window)
    assert_same(found, definition.attention_rows(q, k, causal=causal, window=window))


@drawn
@hypothesis.given(shapes)
def test_the_order_of_keys_matters_only_to_places(shape: dict[str, int]) -> None:
    q, k = heads(shape)
    order = torch.randperm(k.shape[2], generator=torch.Generator().manual_seed(shape["seed"]))
    assert_same(attention_rows(q, k[:, :, order]), attention_rows(q, k), "first_key", "distance")


@drawn
@hypothesis.given(shapes)
def test_a_batch_is_its_sequences(shape: dict[str, int]) -> None:
    q, k = heads(shape)
    lengths = torch.randint(0, k.shape[2] + 1, (len(q),), generator=torch.Generator().manual_seed(1))
    whole = attention_rows(q, k, key_lengths=lengths)
    for i in range(len(q)):
        alone = attention_rows(q[i : i + 1], k[i : i + 1, :, : lengths[i]])
        mine = AttentionRows(*(getattr(whole, name)[i : i + 1] for name in STATISTICS))
        assert_same(mine, alone)


@drawn
@hypothesis.given(shapes)
def test_a_constant_on_a_row_moves_only_its_level(shape: dict[str, int]) -> None:
    q, k = heads(shape)
    level = torch.randn(q.shape[2], 1, dtype=torch.float64, generator=torch.Generator().manual_seed(2)) * 30
    moved, still = attention_rows(q, k, bias=level), attention_rows(q, k)
    assert_same(moved, still, "lse", "max_score")
    torch.testing.assert_close(moved.lse - still.lse, level[:, 0].expand_as(still.lse))


@drawn
@hypothesis.given(shapes)
def test_shared_keys_are_repeated_keys(shape: dict[str, int]) -> None:
    q, k = heads(shape)
    assert_same(
        attention_rows(q, k, causal=True),
        attention_rows(q, k.repeat_interleave(shape["r"], 1), causal=True),
    )


@drawn
@hypothesis.given(shapes, st.integers(1, 80))
def test_a_mask_can_say_what_order_window_and_length_say(shape: dict[str, int], window: int) -> None:
    q, k = heads(shape)
    b, h, t, _ = q.shape
    s = k.shape[2]
    lengths = torch.randint(0, s + 1, (b,), generator=torch.Generator().manual_seed(3))
    options = {"causal": True, "window": window, "key_lengths": lengths}
    mask = definition.visible_keys((b, h, t, s), **options)
    leave = () if t == s else ("distance",)  # without the flag a query stands at i
    right = attention_rows(q, k, **options)
    for spelling in (mask, torch.where(mask, 0.0, torch.finfo(torch.float32).min)):
        assert_same(attention_rows(q, k, mask=spelling), right, *leave)


@drawn
@hypothesis.given(shapes)
def test_the_closed_form_of_the_drift_share(shape: dict[str, int]) -> None:
    """Var_j of the mean query's scores is scale²·q̄ᵀΣ_k q̄, and subtracting them as a key bias removes it."""
    q, k = heads(shape)
    q = q[:, : shape["r"]] + 1.0
    k = k[:, :1]
    mean = q.mean(2, keepdim=True)  # by sequence and head
    scale = q.shape[-1] ** -0.5
    centred = k - k.mean(2, keepdim=True)
    covariance = centred.mT @ centred / k.shape[2]
    variance = scale**2 * (mean @ covariance @ mean.mT)[..., 0, 0]
    torch.testing.assert_close(attention_rows(mean, k).score_variance[..., 0], variance)
    without = attention_rows(q, k, key_bias=-scale * (mean @ k.mT))
    assert_same(without, attention_rows(q - mean, k))
