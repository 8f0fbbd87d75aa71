"""What the tap shows of real architectures: every layer once, in order, and nothing changed."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import isoscope
from isoscope.data.batch import Batch
from isoscope.models.blocks import find_blocks
from isoscope.models.survey import survey
from isoscope.models.tap import at_rest, tap
from isoscope.sites import Site
from tests.models import tiny

Saved = Callable[[str], Path]
MOLECULES = {2, 3, 4}  # CANINE's layers between the two of characters


def hooks(module: nn.Module) -> list[tuple[list[int], list[int]]]:
    return [(list(part._forward_hooks), list(part._forward_pre_hooks)) for part in module.modules()]


def look(module: nn.Module, call: Callable[[], object]) -> list[tuple[Site, Tensor]]:
    seen: list[tuple[Site, Tensor]] = []
    with at_rest(module), tap(module, find_blocks(module), lambda site, x: seen.append((site, x.clone()))):
        call()
    return seen


def sites(layers: int, *, output: bool) -> list[Site]:
    return [*(Site("layer", i) for i in range(layers + 1)), *([Site("output")] if output else [])]


@pytest.mark.parametrize("family", tiny.CONFIGS)
def test_every_layer_is_seen_once_in_order_and_nothing_changes(family: str, saved: Saved) -> None:
    module = isoscope.load(str(saved(family))).module
    inputs = tiny.ids()
    with torch.no_grad():
        plain = module(**inputs).last_hidden_state
    before = hooks(module)
    tapped: list[Tensor] = []
    seen = look(module, lambda: [tapped.append(module(**inputs).last_hidden_state) for _ in range(2)])

    layers = tiny.LAYERS + 2 * (family == "canine")
    once = sites(layers, output=family in tiny.FINAL_NORMS)
    assert [site for site, _ in seen] == once * 2
    for site, x in seen:
        length = 6 if family == "canine" and site.layer in MOLECULES else 24
        assert x.shape == (3, length, tiny.WIDTH), site
    for (_, first), (_, second) in zip(seen[: len(once)], seen[len(once) :], strict=True):
        assert torch.equal(first, second)
    assert torch.equal(plain, tapped[0])
    assert torch.equal(plain, tapped[1])
    assert hooks(module) == before
    assert torch.equal(seen[-1][1], plain), "the last that is seen is what the model gives"


@pytest.mark.parametrize("family", tiny.CONFIGS)
def test_what_is_seen_is_what_transformers_itself_reports(family: str, saved: Saved) -> None:
    module = isoscope.load(str(saved(family))).module
    inputs = tiny.ids()
    seen = dict(look(module, lambda: module(**inputs)))
    with torch.no_grad():
        theirs = list(module(**inputs, output_hidden_states=True).hidden_states)
    if family == "canine":  # reports the input of each of its three encoders
        del theirs[2], theirs[-2]
    last = Site("output") if family in tiny.FINAL_NORMS else Site("layer", len(theirs) - 1)
    mine = [seen[Site("layer", i)] for i in range(len(theirs) - 1)] + [seen[last]]
    for layer, (ours, other) in enumerate(zip(mine, theirs, strict=True)):
        assert torch.equal(ours, other), f"{family}, layer {layer}"
    if family in tiny.FINAL_NORMS:
        norm = getattr(module, tiny.FINAL_NORMS[family])
        assert torch.equal(norm(seen[Site("layer", tiny.LAYERS)]), seen[Site("output")])


@pytest.mark.parametrize("family", tiny.CONFIGS)
def test_no_hook_is_left_after_an_exception(family: str, saved: Saved) -> None:
    module = isoscope.load(str(saved(family))).module
    before = hooks(module)

    def receive(site: Site, x: Tensor) -> None:
        if site.layer == 2:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), at_rest(module), tap(module, find_blocks(module), receive):
        module(**tiny.ids())
    assert hooks(module) == before
    # and the next pass starts from layer 0 again
    assert look(module, lambda: module(**tiny.ids()))[0][0] == Site("layer", 0)


def test_a_failed_forward_inside_one_tap_does_not_shift_the_next() -> None:
    module = tiny.nano()
    seen: list[Site] = []

    def receive(site: Site, x: Tensor) -> None:
        seen.append(site)
        if len(seen) == 2:
            raise ZeroDivisionError

    with at_rest(module), tap(module, find_blocks(module), receive):
        with pytest.raises(ZeroDivisionError):
            module(tiny.ids()["input_ids"])
        module(tiny.ids()["input_ids"])
    assert seen[2:] == sites(tiny.LAYERS, output=True)


@pytest.mark.parametrize(("groups", "inner"), [(1, 2), (2, 1), (2, 2)])
def test_albert_has_a_layer_for_every_call_of_a_shared_block(groups: int, inner: int) -> None:
    module = tiny.model("albert", num_hidden_layers=4, num_hidden_groups=groups, inner_group_num=inner)
    inputs = tiny.ids()
    seen = dict(look(module, lambda: module(**inputs)))
    assert list(seen) == sites(4 * inner, output=False)
    transformer = module.encoder
    with torch.no_grad():
        given = transformer.embedding_hidden_mapping_in(module.embeddings(inputs["input_ids"]))
        assert torch.equal(given, seen[Site("layer", 0)])
        assert torch.equal(module(**inputs).last_hidden_state, seen[Site("layer", 4 * inner)])
    states = [seen[site] for site in seen]
    assert all(not torch.equal(a, b) for a, b in pairwise(states))


@pytest.mark.parametrize("norm", [True, False])
@pytest.mark.parametrize("batch_first", [True, False])
def test_torch_encoder_against_itself_with_the_fast_path_off(batch_first: bool, norm: bool) -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(tiny.WIDTH, 2, 32, batch_first=batch_first)
    final = nn.LayerNorm(tiny.WIDTH) if norm else None
    module = nn.TransformerEncoder(layer, tiny.LAYERS, norm=final, enable_nested_tensor=batch_first).eval()
    x = torch.randn(5, 7, tiny.WIDTH) if batch_first else torch.randn(7, 5, tiny.WIDTH)
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
    assert [site for site, _ in seen] == sites(tiny.LAYERS, output=norm)
    assert all(torch.equal(mine, other) for (_, mine), other in zip(seen, by_hand, strict=False))
    assert torch.equal(outputs[0], plain)
    assert torch.equal(seen[-1][1], plain)


@pytest.mark.parametrize("stack", [nn.ModuleList, lambda blocks: nn.Sequential(*blocks)])
def test_a_hand_written_model(stack: Callable[[list[nn.Module]], nn.Module]) -> None:
    module = tiny.nano(stack=stack).eval()
    idx = tiny.ids()["input_ids"]
    with torch.no_grad():
        plain = module(idx)
        x = module.wte(idx) + module.wpe(torch.arange(24))
        by_hand = [x]
        for block in module.h:
            by_hand.append(block(by_hand[-1]))
        by_hand.append(module.ln_f(by_hand[-1]))
    outputs: list[Tensor] = []
    seen = look(module, lambda: outputs.append(module(idx)))
    assert [site for site, _ in seen] == sites(tiny.LAYERS, output=True)
    assert all(torch.equal(mine, other) for (_, mine), other in zip(seen, by_hand, strict=True))
    assert torch.equal(outputs[0], plain)


def test_survey_names_sites_and_widths() -> None:
    found = survey(tiny.nano(), Batch(tiny.ids()["input_ids"], None, torch.arange(3)))
    assert [(site, found.width(site)) for site in found.shapes] == [
        (site, tiny.WIDTH) for site in sites(tiny.LAYERS, output=True)
    ]
    assert list(found.leaves.values()) == list(found.blocks)


class Broken(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        raise ZeroDivisionError


@pytest.mark.parametrize("broken", [False, True])
def test_at_rest_puts_back_every_flag_and_touches_no_random_state(broken: bool) -> None:
    module = tiny.nano()
    module.h[1].eval()
    module.h[2].dropout.eval()
    if broken:
        module.lm_head = Broken()
    flags = {name: part.training for name, part in module.named_modules()}
    data = [tiny.ids()["input_ids"]]
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
    data = [tiny.ids()["input_ids"]]
    training, resting = tiny.nano().train(), tiny.nano().eval()
    a, b = isoscope.observe(training, data).frame(), isoscope.observe(resting, data).frame()
    assert a.equals(b)
    assert training.h[0].dropout.training
    assert not torch.equal(training(data[0]), training(data[0])), "dropout is still on for the training"
