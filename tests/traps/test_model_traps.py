"""Traps of hooks: compiled models that never fire them, recomputation that fires them twice."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import isoscope
from tests.models.tiny import EVERY
from tests.traps.trap_models import SITES, Model, token_ids


def sites(observation: isoscope.Observation) -> list[str]:
    return [str(site) for site in observation.records]


@pytest.fixture(autouse=True)
def forget_what_was_compiled():
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.mark.parametrize("ran_before", [False, True], ids=["fresh", "already compiled"])
@pytest.mark.parametrize("how", ["torch.compile", "module.compile", "each block"])
def test_trap_hooks_added_after_compile_never_fire(how, ran_before):
    """Compiled code was traced without the hooks: a compiled model must show every layer all the same."""
    ids = token_ids(12, 7)
    expected = isoscope.observe(Model(), [ids]).frame()
    model: torch.nn.Module = Model()
    if how == "torch.compile":
        model = torch.compile(model, backend="eager")
    elif how == "module.compile":
        model.compile(backend="eager")
    else:
        for block in model.blocks:
            block.compile(backend="eager")
    if ran_before:
        with torch.no_grad():
            model(ids)
    seen = isoscope.observe(model, [ids])
    assert sites(seen) == SITES
    assert np.array_equal(seen.frame().value, expected.value, equal_nan=True)


def test_trap_is_real_a_hook_added_to_compiled_code_is_not_heard():
    """The trap itself, should torch ever mend it: blocks that were compiled one by one do not tell hooks."""
    model, ids, heard = Model().eval(), token_ids(2, 5), []
    compiled = torch.compile(model, backend="eager")
    with torch.no_grad():
        compiled(ids)
        with model.blocks[0].register_forward_hook(lambda *_: heard.append(1)):
            compiled(ids)
            fired = len(heard)
            with torch.compiler.set_stance("force_eager"):
                compiled(ids)
    assert fired <= 1 and len(heard) == fired + 1


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")  # torch's, of no_grad
@pytest.mark.parametrize("recompute", ["reentrant", "not reentrant"])
@pytest.mark.parametrize("training", [False, True])
def test_trap_activation_recomputation_counted_twice(training, recompute):
    """Checkpointed blocks run again in the backward pass; every vector counts once, in every layer."""
    ids = token_ids(12, 7)
    batches = [ids, token_ids(4, 7, 1)]
    seen = isoscope.observe(Model(recompute=recompute).train(training), batches, **EVERY)
    plain = isoscope.observe(Model(), batches, **EVERY)
    assert sites(seen) == SITES
    assert set(seen.frame().query("measure == 'drift'").n) == {16 * 7}
    assert np.array_equal(seen.frame().value, plain.frame().value, equal_nan=True)


def test_trap_is_real_recomputation_calls_a_hook_again():
    model, heard = Model(recompute="reentrant"), []
    with model.blocks[1].register_forward_hook(lambda *_: heard.append(1)):
        model(token_ids(2, 5)).sum().backward()
    assert len(heard) == 2


def test_observing_between_forward_and_backward_leaves_recomputation_alone():
    """A measurement in the middle of a training step counts no recomputation and changes no gradient."""
    ids = token_ids(6, 5)

    def gradients(look: bool) -> list[torch.Tensor]:
        model = Model(recompute="not reentrant").train()
        loss = model(ids).square().mean()
        if look:
            seen = isoscope.observe(model, [ids], **EVERY).frame()
            assert set(seen.query("measure == 'drift'").n) == {30}
        loss.backward()
        return [weight.grad for weight in model.parameters() if weight.grad is not None]

    assert all(torch.equal(one, other) for one, other in zip(gradients(True), gradients(False), strict=True))
