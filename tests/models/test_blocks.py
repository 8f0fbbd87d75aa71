"""Which modules are taken for layers, by structure."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from torch import nn

from isoscope.errors import IsoscopeError
from isoscope.models.blocks import find_blocks
from tests.models import nano


class Holder(nn.Module):
    """A model that holds the given parts."""

    def __init__(self, **parts: nn.Module) -> None:
        super().__init__()
        for name, part in parts.items():
            self.add_module(name, part)


def names(prefix: str, numbers: Iterable[int] = range(nano.LAYERS)) -> list[str]:
    return [f"{prefix}.{number}" for number in numbers]


@pytest.mark.parametrize("stack", [nn.ModuleList, lambda blocks: nn.Sequential(*blocks)])
def test_lists_inside_a_block_are_no_layers(stack: type[nn.ModuleList]) -> None:
    """The blocks hold heads in one ModuleList and experts of several weights each in another."""
    assert list(find_blocks(nano.nano(stack=stack))) == names("h")


def test_stages_are_looked_into() -> None:
    """A stage has no weights but those of its blocks."""
    stages = [Holder(blocks=nn.ModuleList(nano.Block() for _ in range(2))) for _ in range(2)]
    found = list(find_blocks(Holder(stages=nn.ModuleList(stages))))
    assert found == [*names("stages.0.blocks", range(2)), *names("stages.1.blocks", range(2))]


def test_an_encoder_and_a_decoder_both_count() -> None:
    held = Holder(
        encoder=nn.ModuleList(nano.Block() for _ in range(2)),
        decoder=nn.ModuleList(nano.Block() for _ in range(2)),
    )
    assert list(find_blocks(held)) == [*names("encoder", range(2)), *names("decoder", range(2))]


def test_one_block_is_a_stack_too() -> None:
    assert list(find_blocks(Holder(h=nn.ModuleList([nano.Block()])))) == ["h.0"]


@pytest.mark.parametrize(
    "module",
    [
        nn.Linear(3, 3),
        nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3)),
        Holder(layers=nn.ModuleList(nn.Linear(3, 3) for _ in range(4))),
        Holder(layers=nn.ModuleList()),
    ],
)
def test_a_model_without_blocks_says_what_was_looked_for(module: nn.Module) -> None:
    with pytest.raises(IsoscopeError, match=rf"{type(module).__name__} shows nothing to measure: looked for"):
        find_blocks(module)


@pytest.mark.parametrize("stage", [nn.Sequential, nn.ModuleList])
def test_stages_made_of_blocks(stage: type[nn.Module]) -> None:
    """A stage is no layer; its blocks are, also where a stage has but one."""

    def block() -> nn.Module:
        return Holder(first=nn.Linear(4, 4), second=nn.Linear(4, 4))

    model = Holder(
        stages=nn.ModuleList([stage([block()]) if stage is nn.ModuleList else stage(block()) for _ in "ab"])
    )
    model.stages[1].append(block())  # type: ignore[operator, union-attr]
    assert list(find_blocks(model)) == ["stages.0.0", "stages.1.0", "stages.1.1"]
