"""Wrong inputs are refused in one sentence that says what to give; and what is chosen says why."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch

from isoscope.kernels.attention import rows as attention
from isoscope.kernels.attention.rows import attention_rows, chosen_backend, score_rows

Q, K = torch.zeros(2, 4, 5, 8), torch.zeros(2, 2, 7, 8)


@pytest.mark.parametrize(
    ("q", "k", "options", "said"),
    [
        (Q[0], K, {}, r"q and k must be \[batch, heads, queries or keys, width\]; they are \[4, 5, 8\] and"),
        (Q, K[:1], {}, "q and k must have the same batch and width"),
        (Q, torch.zeros(2, 3, 7, 8), {}, "a multiple of the key heads; there are 4 and 3"),
        (Q, K.half(), {}, "of one dtype, on one device; they are torch.float32 on cpu and torch.float16"),
        (Q.long(), K.long(), {}, "q and k must be floating"),
        (Q, K, {"scale": -1.0}, "scale must be a positive number; it is -1.0"),
        (Q, K, {"softcap": 0.0}, "softcap must be a positive number; it is 0.0: give None to have none"),
        (Q, K, {"window": 0}, "window must be at least 1, the query's own position; it is 0"),
        (Q, K, {"key_lengths": torch.tensor([3])}, "key_lengths must be 2 whole numbers, one a sequence"),
        (Q, K, {"key_lengths": torch.tensor([3.0, 4.0])}, "it is torch.float32 of shape"),
        (Q, K, {"mask": torch.ones(2, 7, dtype=torch.long)}, "mask must be boolean or floating; it is"),
        (Q, K, {"bias": torch.ones(5, 7, dtype=torch.bool)}, "bias must be floating; it is torch.bool"),
        (Q, K, {"mask": torch.ones(2, 5, 7)}, r"mask must broadcast to .* \[2, 4, 5, 7\]; it is \[2, 5, 7\]"),
        (Q, K, {"key_bias": torch.ones(1, 1, 1, 1, 7)}, "key_bias must broadcast to"),
        (Q, K, {"bias": torch.ones(5, 7, device="meta")}, "bias is on meta and the inputs are on cpu"),
        (Q, K, {"wanted": ("entropie",)}, r"wanted names no statistic: \['entropie'\]; there are lse"),
        (Q, K, {"backend": "cuda"}, "backend must be one of auto, chunked, triton; it is 'cuda'"),
        (Q.double(), K.double(), {"backend": "triton"}, "cannot be used here: the kernel does not"),
        (
            Q,
            K,
            {"backend": "triton", "softcap": 5.0, "bias": torch.zeros(7)},
            "the kernel adds no bias after a soft-cap; give 'auto' or 'chunked'",
        ),
    ],
)  # fmt: skip
def test_refusals(q: torch.Tensor, k: torch.Tensor, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said) as refusal:
        attention_rows(q, k, **options)
    assert "\n" not in str(refusal.value)


def test_scores_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match=r"scores must be floating and of shape .* they are torch.float32"):
        score_rows(torch.zeros(4, 5))


def test_the_choice_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "_triton_there", lambda: True)
    assert chosen_backend(Q, K) == ("chunked", "the inputs are on cpu")
    assert chosen_backend(Q, K, backend="chunked") == ("chunked", "it was asked for")
    assert chosen_backend(Q.double(), K.double())[1] == "the kernel does not compute in torch.float64"
    assert "soft-cap" in chosen_backend(Q, K, softcap=1.0, bias=torch.zeros(7))[1]
    monkeypatch.setattr(attention, "_triton_there", lambda: False)
    assert chosen_backend(Q, K) == ("chunked", "triton is not installed")
    with pytest.raises(ValueError, match="triton is not installed"):
        attention_rows(Q, K, backend="triton")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_triton_is_chosen() -> None:
    assert chosen_backend(Q.cuda(), K.cuda()) == ("triton", "the inputs are on a GPU")


def test_triton_is_not_imported_before_it_is_needed() -> None:
    code = """
import sys, torch
sys.modules["triton"] = None  # importing it now fails
from isoscope import attention_rows
attention_rows(torch.zeros(1, 1, 3, 4), torch.zeros(1, 1, 3, 4))
assert "isoscope.kernels.attention.triton" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_nothing_at_all() -> None:
    for shape in ((0, 2, 3, 4), (1, 2, 0, 4)):
        rows = attention_rows(torch.zeros(shape), torch.zeros(shape[0], 1, 5, 4))
        assert rows.entropy.shape == shape[:3]
    rows = attention_rows(torch.zeros(1, 2, 3, 4), torch.zeros(1, 1, 0, 4), mask=torch.ones(3, 0).bool())
    assert rows.entropy.isnan().all()
    assert not rows.visible.any()
