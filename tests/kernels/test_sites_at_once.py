"""Sites of a batch that are folded at once, as on a GPU: the readings are those of each site by itself."""

from __future__ import annotations

import os
from types import ModuleType

import pandas as pd
import pytest
import torch
from torch import nn

from isoscope import observe
from isoscope.kernels.cloud import totals as cloud
from isoscope.kernels.head_sums import totals as head_sums
from isoscope.kernels.row_totals import totals as row_totals
from isoscope.run.observe import attend, fold, layers
from tests.tiers import nightly

pytestmark = pytest.mark.skipif(
    os.environ.get("TRITON_INTERPRET") != "1", reason="needs Triton's interpreter"
)
FUSING: tuple[ModuleType, ...] = (attend, layers, cloud, head_sums, row_totals)


def gpt2() -> nn.Module:
    from transformers import GPT2Config, GPT2Model

    return GPT2Model(GPT2Config(n_embd=32, n_layer=3, n_head=2, vocab_size=60, n_positions=64)).eval()


def llama() -> nn.Module:
    from transformers import LlamaConfig, LlamaModel

    shape = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 2, "num_key_value_heads": 1}
    return LlamaModel(LlamaConfig(**shape, intermediate_size=48, vocab_size=60)).eval()


class Overwriting(nn.Module):
    """Blocks that add to their input in place, so that what a block was given is gone once it has run."""

    def __init__(self) -> None:
        super().__init__()
        parts = [nn.Sequential(nn.Linear(32, 48), nn.GELU(), nn.Linear(48, 32)) for _ in range(3)]
        self.blocks = nn.ModuleList([Adding(part) for part in parts])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.clone()
        for block in self.blocks:
            x = block(x)
        return x


class Adding(nn.Module):
    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.part = part
        self.scale = nn.Linear(32, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.add_(self.part(x) * self.scale(x))


def read(model: nn.Module, batches: list[torch.Tensor], groups: list[int] | None) -> pd.DataFrame:
    table = observe(model, batches, measures="all", heads=True, groups=groups).frame()
    return table.set_index(["kind", "layer", "head", "measure"]).sort_index()


@pytest.mark.parametrize("made", [*nightly(gpt2), llama, Overwriting])
@pytest.mark.parametrize("room", [*nightly(1.0, 100.0), 2.5])  # how many layers fit at once
@pytest.mark.parametrize("groups", [*nightly(None), [0, 1, 2, 0, 3, 4, 4, 5, 1]], ids=["alone", "joint"])
def test_readings_are_those_of_each_site(
    made: type, room: float, groups: list[int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    model = made()
    shapes = ((2, 12), (2, 12), (1, 12), (4, 5))  # the number of sequences and their length change on the way
    batches = [
        torch.randn(*shape, 32) if made is Overwriting else torch.randint(60, shape) for shape in shapes
    ]
    expected = read(model, batches, groups)
    for module in FUSING:
        monkeypatch.setattr(module, "fused", lambda points: points.dtype != torch.float64)
    folded: list[int] = []
    kept = layers.Layers._fold
    monkeypatch.setattr(
        layers.Layers,
        "_fold",
        lambda self, sites, *rest: (folded.append(len(sites)), kept(self, sites, *rest)),
    )
    # bytes of one layer with its records, and of one attention
    monkeypatch.setattr(layers, "AT_ONCE", int(room * 950_000) if room > 1 else 0)
    monkeypatch.setattr(fold, "ON_CPU", int(room * 17_000) if room > 1 else 0)
    found = read(model, batches, groups)
    assert (max(folded) > 1) == (room > 1)
    assert list(found.index) == list(expected.index)
    for name in ("value", "n", "null", "low", "high"):
        one, two = found[name].to_numpy(float), expected[name].to_numpy(float)
        off = pd.Series(abs(one - two) > 1e-4 * abs(two) + 2e-5, found.index)
        assert not off.any(), f"{name}: {found[off.to_numpy()]}"
        assert (pd.isna(one) == pd.isna(two)).all()
