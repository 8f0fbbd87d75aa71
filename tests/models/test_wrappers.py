"""Models as users hold them: wrapped, compiled, with a head on top."""

from __future__ import annotations

import pytest
import torch
import transformers
from torch import Tensor, nn

import isoscope
from isoscope.data.batch import Batch
from isoscope.models.blocks import find_blocks
from isoscope.models.survey import survey
from tests.models import tiny

IDX = tiny.ids()["input_ids"]


def batch() -> Batch:
    return Batch(IDX, None, torch.arange(len(IDX)))


class Wrapper(nn.Module):
    """As DistributedDataParallel: the model is its `module`."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, idx: Tensor) -> Tensor:
        return self.module(idx)


@pytest.mark.parametrize("wrapper", [Wrapper, nn.DataParallel])
def test_a_wrapper_changes_nothing(wrapper: type[Wrapper]) -> None:
    inside = tiny.nano()
    wrapped = wrapper(tiny.nano())
    assert list(find_blocks(wrapped)) == list(find_blocks(inside))
    assert survey(wrapped, batch()).shapes == survey(inside, batch()).shapes
    assert survey(wrapped, batch()).leaves == survey(inside, batch()).leaves
    a, b = isoscope.observe(inside, [IDX]).frame(), isoscope.observe(wrapped, [IDX]).frame()
    assert a.drop(columns="model").equals(b.drop(columns="model"))


class Compiler:
    """A backend that compiles nothing and counts how often it is asked to."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, graph: torch.fx.GraphModule, examples: list[Tensor]) -> object:
        self.asked += 1
        return graph.forward


def whole(module: tiny.NanoGPT, compiler: Compiler) -> nn.Module:
    return torch.compile(module, backend=compiler)


def in_place(module: tiny.NanoGPT, compiler: Compiler) -> nn.Module:
    module.compile(backend=compiler)
    return module


def by_block(module: tiny.NanoGPT, compiler: Compiler) -> nn.Module:
    module.h = nn.ModuleList(torch.compile(block, backend=compiler) for block in module.h)
    return module


@pytest.mark.parametrize("way", [whole, in_place, by_block])
def test_a_compiled_model_is_seen_and_not_compiled_again(way: type) -> None:
    compiler = Compiler()
    compiled = way(tiny.nano().eval(), compiler)
    with torch.no_grad():
        before = compiled(IDX)
        asked = compiler.asked
        assert asked > 0
        assert list(find_blocks(compiled)) == ["h.0", "h.1", "h.2"]
        rows = isoscope.observe(compiled, [IDX]).frame()
        after = compiled(IDX)
    assert compiler.asked == asked
    assert torch.equal(before, after)
    plain = isoscope.observe(tiny.nano(), [IDX]).frame()
    assert rows.drop(columns="model").equals(plain.drop(columns="model"))


def test_torch_compile_with_its_own_eager_backend() -> None:
    compiled = torch.compile(tiny.nano().eval(), backend="eager")
    assert survey(compiled, batch()).shapes == survey(tiny.nano(), batch()).shapes


@pytest.mark.parametrize(
    ("family", "head"),
    [("bert", transformers.AutoModelForMaskedLM), ("gpt2", transformers.AutoModelForCausalLM)],
)
def test_a_model_with_a_head_reads_as_its_body(family: str, head: type) -> None:
    torch.manual_seed(0)
    live = head.from_config(tiny.CONFIGS[family]()).eval()
    a = isoscope.observe(live, [tiny.ids()]).frame()
    b = isoscope.observe(live.base_model, [tiny.ids()]).frame()
    assert a.drop(columns="model").equals(b.drop(columns="model"))
    assert set(a.kind) == {"layer", "attention"} | ({"output"} if family == "gpt2" else set())
