"""Training with the monitor and without it is the same, bit for bit, however it is done."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from isoscope.run.monitor.monitor import Monitor
from isoscope.run.monitor.untouched import untouched, writable
from tests.run.training import ids, language, loss_of, probe, same, trained


def watched(model: nn.Module) -> Monitor:
    return Monitor(model, probe(2), every=2, budget=None, heads=False)


PLAIN: dict[str, object] = {}
WAYS: dict[str, tuple[Callable[[], nn.Module], dict[str, object]]] = {
    "plain": (language, PLAIN),
    "dropout": (lambda: language(dropout=0.3), PLAIN),
    "batch norm": (lambda: language(batch_norm=True), PLAIN),
    "checkpointed": (lambda: language(recompute=True, dropout=0.3), PLAIN),
    "checkpointed the old way": (lambda: language(recompute="reentrant"), PLAIN),
    "accumulated": (language, {"accumulate": 3, "watch_inside": True}),
    "autocast": (lambda: language(dropout=0.1), {"autocast": True}),
    "inside autocast": (language, {"autocast": True, "watch_inside": True, "accumulate": 2}),
    "compiled": (lambda: torch.compile(language(dropout=0.2), backend="eager"), PLAIN),
    "compiled with autograd": (lambda: torch.compile(language(), backend="aot_eager"), PLAIN),
}


@pytest.mark.parametrize("way", WAYS)
def test_nothing_changes(way: str) -> None:
    make, how = WAYS[way]
    torch._dynamo.reset()
    alone = trained(make(), **how)  # type: ignore[arg-type]
    torch._dynamo.reset()
    monitors: list[Monitor] = []

    def watch(model: nn.Module) -> Monitor:
        monitors.append(watched(model))
        return monitors[-1]

    assert same(trained(make(), watch, **how), alone)  # type: ignore[arg-type]
    assert set(monitors[0].frame().step) == {0, 2, 4}


def test_a_difference_would_be_seen() -> None:
    alone = trained(language(dropout=0.3))

    def draws(model: nn.Module) -> None:
        torch.rand(1)

    assert not same(trained(language(dropout=0.3), draws), alone)


def test_a_shuffling_loader_is_read_once_and_leaves_no_trace() -> None:
    data = TensorDataset(torch.cat([ids(8, seed) for seed in range(4)]))
    own = torch.Generator().manual_seed(3)
    for generator in (None, own):
        loader = DataLoader(
            data,
            batch_size=4,
            shuffle=True,
            generator=generator,
            collate_fn=lambda rows: torch.stack([x for (x,) in rows]),
        )
        state = own.get_state()
        tables = []

        def watch(
            model: nn.Module, loader: DataLoader[Tensor] = loader, tables: list[Monitor] = tables
        ) -> Monitor:
            tables.append(Monitor(model, loader, every=3, budget=None, heads=False))
            return tables[-1]

        assert same(trained(language(dropout=0.3), watch), trained(language(dropout=0.3)))
        assert torch.equal(own.get_state(), state)
        still = tables[0].frame()
        assert (
            still[still.measure == "mean_norm"]
            .groupby(["kind", "layer"], dropna=False)
            .n.nunique()
            .eq(1)
            .all()
        )


def test_every_state_is_put_back() -> None:
    model = language(batch_norm=True, dropout=0.5)
    model.blocks[0].eval()
    loss_of(model, ids()).backward()
    hooks = {
        name: len(part._forward_hooks) + len(part._forward_pre_hooks) for name, part in model.named_modules()
    }
    flags = [part.training for part in model.modules()]
    buffers = {name: (buffer, buffer.clone(), buffer._version) for name, buffer in model.named_buffers()}
    gradients = {name: weight.grad for name, weight in model.named_parameters()}
    copies = {name: None if grad is None else grad.clone() for name, grad in gradients.items()}
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    with torch.autocast("cpu", torch.bfloat16):
        Monitor(model, probe(), budget=None).step(0)
        assert torch.is_autocast_cache_enabled()
        assert torch.is_autocast_enabled("cpu")
    assert (random.random(), np.random.rand(), float(torch.rand(()))) == drawn()
    assert [part.training for part in model.modules()] == flags
    for name, (buffer, copy, version) in buffers.items():
        now = dict(model.named_buffers())[name]
        assert now is buffer and torch.equal(now, copy) and now._version == version
    for name, weight in model.named_parameters():
        assert weight.grad is gradients[name]
        assert weight.grad is None or torch.equal(weight.grad, copies[name])  # type: ignore[arg-type]
    assert hooks == {
        name: len(part._forward_hooks) + len(part._forward_pre_hooks) for name, part in model.named_modules()
    }
    assert torch.is_grad_enabled()


def drawn() -> tuple[float, float, float]:
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    return random.random(), np.random.rand(), float(torch.rand(()))


def test_untouched_undoes_whatever_is_done_inside() -> None:
    model = language(batch_norm=True)
    norm = model.blocks[0].norm
    mean = norm.running_mean
    was = mean.clone()
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    with pytest.raises(KeyError), untouched(model):
        torch.rand(7)
        model(ids())  # in train mode: the running statistics move
        assert not torch.equal(norm.running_mean, was)
        norm.running_mean = torch.zeros(16)
        model.eval()
        torch.set_grad_enabled(False)
        raise KeyError
    assert norm.running_mean is mean
    assert torch.equal(mean, was)
    assert int(norm.num_batches_tracked) == 0
    assert model.training and norm.training
    assert torch.is_grad_enabled()
    assert torch.equal(torch.rand(3), expected)


def test_attention_is_read_in_full_precision_of_what_autocast_gives() -> None:
    model, found = language(), []
    with torch.no_grad():
        for block in model.blocks:
            block.query.weight.mul_(8), block.key.weight.mul_(8)
    whole = functional.scaled_dot_product_attention

    def note(q: Tensor, k: Tensor, v: Tensor, **how: object) -> Tensor:
        found.append((q.double(), k.double()))
        return whole(q, k, v, is_causal=True)

    monitor = Monitor(model, probe(), budget=None, heads=False, skip_first=False)
    with torch.autocast("cpu", torch.bfloat16):
        monitor.step(0)
        with torch.no_grad(), pytest.MonkeyPatch.context() as patch:
            patch.setattr(functional, "scaled_dot_product_attention", note)
            for batch in probe():
                model.eval()(batch)
    rows = monitor.frame().set_index(["kind", "layer", "measure"]).value
    for layer in (1, 2):
        entropies = []
        for q, k in found[layer - 1 :: 2]:
            scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
            hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
            weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)
            entropies.append(-torch.xlogy(weights, weights).sum(-1))
        expected = float(torch.cat(entropies).mean())
        assert rows["attention", layer, "entropy"] == pytest.approx(expected, rel=1e-5)


def test_casts_that_autocast_keeps_are_not_used() -> None:
    """Weights that change inside a region of autocast are seen as they are."""

    def seen(before: bool) -> float:
        model = language()
        monitor = Monitor(model, probe(), budget=None, measures=["mean_norm"])
        with torch.autocast("cpu", torch.bfloat16):
            if before:
                loss_of(model, ids()).backward()
            with torch.no_grad():
                for weight in model.parameters():
                    weight.mul_(1.5)
            monitor.step(0)
        return float(monitor.frame().value.iloc[-1])

    assert seen(before=True) == seen(before=False)


def test_what_is_expanded_is_not_writable() -> None:
    assert writable(torch.zeros(3))
    assert not writable(torch.zeros(1).expand(3))
