"""What the tap shows of models written by hand: every layer once, in order, and nothing changed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import isoscope
from isoscope.data.batch import Batch
from isoscope.models.blocks import find_blocks
from isoscope.models.survey import survey
from isoscope.models.tap import at_rest, tap
from isoscope.sites import Site
from tests.models import nano


def hooks(module: nn.Module) -> list[tuple[list[int], list[int]]]:
    return [(list(part._forward_hooks), list(part._forward_pre_hooks)) for part in module.modules()]


def look(module: nn.Module, call: Callable[[], object]) -> list[tuple[Site, Tensor]]:
    seen: list[tuple[Site, Tensor]] = []
    with at_rest(module), tap(module, find_blocks(module), lambda site, x: seen.append((site, x.clone()))):
        call()
    return seen


def sites(layers: int, *, output: bool) -> list[Site]:
    return [*(Site("layer", i) for i in range(layers + 1)), *([Site("output")] if output else [])]


def test_a_failed_forward_inside_one_tap_does_not_shift_the_next() -> None:
    module = nano.nano()
    seen: list[Site] = []

    def receive(site: Site, x: Tensor) -> None:
        seen.append(site)
        if len(seen) == 2:
            raise ZeroDivisionError

    with at_rest(module), tap(module, find_blocks(module), receive):
        with pytest.raises(ZeroDivisionError):
            module(nano.ids()["input_ids"])
        module(nano.ids()["input_ids"])
    assert seen[2:] == sites(nano.LAYERS, output=True)


@pytest.mark.parametrize("norm", [True, False])
@pytest.mark.parametrize("batch_first", [True, False])
def test_torch_encoder_against_itself_with_the_fast_path_off(batch_first: bool, norm: bool) -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(nano.WIDTH, 2, 32, batch_first=batch_first)
    final = nn.LayerNorm(nano.WIDTH) if norm else None
    module = nn.TransformerEncoder(layer, nano.LAYERS, norm=final, enable_nested_tensor=batch_first).eval()
    x = torch.randn(5, 7, nano.WIDTH) if batch_first else torch.randn(7, 5, nano.WIDTH)
    padding = torch.zeros(5, 7, dtype=torch.bool)
    padding[1:, 5:] = True
    inputs = {"src": x, "src_key_padding_mask": padding}
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with torch.no_grad():
            plain = module(**inputs)
            by_hand = [x]
            for block in module.layers:
                by_hand.append(block(by_hand[-1], src_key_padding_mask=padding))
    finally:
        torch.backends.mha.set_fastpath_enabled(True)
    before, outputs = hooks(module), []
    seen = look(module, lambda: outputs.append(module(**inputs)))
    assert torch.backends.mha.get_fastpath_enabled()
    assert hooks(module) == before
    assert [site for site, _ in seen] == sites(nano.LAYERS, output=norm)
    assert all(torch.equal(mine, other) for (_, mine), other in zip(seen, by_hand, strict=False))
    assert torch.equal(outputs[0], plain)
    assert torch.equal(seen[-1][1], plain)


@pytest.mark.parametrize("stack", [nn.ModuleList, lambda blocks: nn.Sequential(*blocks)])
def test_a_hand_written_model(stack: Callable[[list[nn.Module]], nn.Module]) -> None:
    module = nano.nano(stack=stack).eval()
    idx = nano.ids()["input_ids"]
    with torch.no_grad():
        plain = module(idx)
        x = module.wte(idx) + module.wpe(torch.arange(24))
        by_hand = [x]
        for block in module.h:
            by_hand.append(block(by_hand[-1]))
        by_hand.append(module.ln_f(by_hand[-1]))
    outputs: list[Tensor] = []
    seen = look(module, lambda: outputs.append(module(idx)))
    assert [site for site, _ in seen] == sites(nano.LAYERS, output=True)
    assert all(torch.equal(mine, other) for (_, mine), other in zip(seen, by_hand, strict=True))
    assert torch.equal(outputs[0], plain)


def test_survey_names_sites_and_widths() -> None:
    found = survey(nano.nano(), Batch(nano.ids()["input_ids"], None, torch.arange(3)))
    assert [(site, found.width(site)) for site in found.shapes] == [
        (site, nano.WIDTH) for site in sites(nano.LAYERS, output=True)
    ]
    assert list(found.leaves.values()) == list(found.blocks)


class Broken(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        raise ZeroDivisionError


@pytest.mark.parametrize("broken", [False, True])
def test_at_rest_puts_back_every_flag_and_touches_no_random_state(broken: bool) -> None:
    module = nano.nano()
    module.h[1].eval()
    module.h[2].dropout.eval()
    if broken:
        module.lm_head = Broken()
    flags = {name: part.training for name, part in module.named_modules()}
    data = [nano.ids()["input_ids"]]
    random = torch.get_rng_state()
    if broken:
        with pytest.raises(ZeroDivisionError):
            isoscope.observe(module, data)
    else:
        isoscope.observe(module, data)
    assert {name: part.training for name, part in module.named_modules()} == flags
    assert torch.equal(torch.get_rng_state(), random)
    assert torch.is_grad_enabled()
    assert torch.backends.mha.get_fastpath_enabled()
    assert not any(forward or pre for forward, pre in hooks(module))


def test_a_model_in_train_mode_is_read_as_at_rest() -> None:
    """Dropout of one half would change every reading."""
    data = [nano.ids()["input_ids"]]
    training, resting = nano.nano().train(), nano.nano().eval()
    a, b = isoscope.observe(training, data).frame(), isoscope.observe(resting, data).frame()
    assert a.equals(b)
    assert training.h[0].dropout.training
    assert not torch.equal(training(data[0]), training(data[0])), "dropout is still on for the training"
