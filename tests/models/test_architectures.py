"""Architectures of transformers: which modules are their layers, and what the tap shows of them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
import torch
import transformers
from torch import Tensor

import isoscope
from isoscope.models.blocks import find_blocks
from isoscope.models.tap import at_rest, tap
from isoscope.sites import Site
from tests.models import tiny
from tests.models.test_blocks import names
from tests.models.test_tap import hooks, look, sites

Saved = Callable[[str], Path]
MOLECULES = {2, 3, 4}  # CANINE's layers between the two of characters


@pytest.mark.parametrize(
    ("family", "expected"),
    [
        ("bert", names("encoder.layer")),
        ("roberta", names("encoder.layer")),
        ("gpt2", names("h")),
        ("gpt_neox", names("layers")),
        ("llama", names("layers")),
        ("albert", ["encoder.albert_layer_groups.0.albert_layers.0"]),
        ("modernbert", names("layers")),
        ("deberta_v2", names("encoder.layer")),
        ("canine", ["initial_char_encoder.layer.0", *names("encoder.layer"), "final_char_encoder.layer.0"]),
    ],
)
def test_the_blocks_of_an_architecture(family: str, expected: list[str]) -> None:
    assert list(find_blocks(tiny.model(family))) == expected


def test_every_family_is_named_above() -> None:
    marks = test_the_blocks_of_an_architecture.pytestmark  # type: ignore[attr-defined]
    assert {case[0] for case in marks[0].args[1]} == set(tiny.CONFIGS)


def test_a_mixture_of_experts() -> None:
    config = transformers.MixtralConfig(
        vocab_size=40,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        num_local_experts=3,
        head_dim=8,
        pad_token_id=None,
    )
    assert list(find_blocks(transformers.MixtralModel(config))) == names("layers", range(2))


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
