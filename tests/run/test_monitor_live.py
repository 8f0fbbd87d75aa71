"""The batch that trains, seen while it trains: what was seen, that nothing changed, and its gradients."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
import torch
import transformers
from torch import Tensor, nn
from torch.nn import functional

import isoscope
from isoscope.errors import IsoscopeError
from isoscope.lab.model.transformer import Shape, build
from isoscope.models.source import Model
from isoscope.run.monitor.gradients import along
from isoscope.run.monitor.monitor import Monitor
from tests.run.training import ids, language, loss_of, probe, same

MEASURES = ["mean_cosine", "mean_norm", "entropy", "query_drift", "key_drift"]


def monitor_of(model: nn.Module, **options: object) -> Monitor:
    return Monitor(model, probe(), budget=None, measures=MEASURES, skip_first=False, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("recompute", [False, True, "reentrant"])
def test_rows_are_those_of_the_batch(recompute: bool | str) -> None:
    model, batch = language(recompute=recompute), ids(9, 5)
    monitor = monitor_of(model)
    plain = Model(language(), "model", revision="live", step=3)
    expected = isoscope.observe(plain, [batch], measures=MEASURES, heads=True, skip_first=False).frame()
    with monitor.watch(3):
        loss_of(model, batch).backward()
    pd.testing.assert_frame_equal(monitor.frame().drop(columns="run"), expected.drop(columns="run"))
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.blocks.modules())


def test_several_forwards_are_one_look() -> None:
    model, batches = language(), [ids(4, 5), ids(4, 6)]
    monitor = monitor_of(model)
    with monitor.watch(0):
        for batch in batches:
            loss_of(model, batch).backward()
    assert set(monitor.frame().query("measure == 'mean_norm'").n) == {2 * batches[0].numel()}


@pytest.mark.parametrize("by_place", [True, False])
def test_what_the_mask_leaves_out_does_not_count(by_place: bool) -> None:
    model = build(Shape(vocabulary=40, width=16, layers=2, heads=2, length=12), seed=0)
    batch = ids(4, 5)
    mask = torch.arange(batch.shape[1]) < torch.tensor([3, 12, 1, 7])[:, None]
    monitor = Monitor(model, [batch], budget=None, measures=["mean_norm"], skip_first=False)
    with monitor.watch(0):
        model(batch, mask) if by_place else model(batch, attention_mask=mask)
    assert set(monitor.frame().n) == {23}


def trained(watch: bool) -> tuple[list[float], dict[str, Tensor]]:
    model = language(dropout=0.3, batch_norm=True)
    monitor = monitor_of(model)
    torch.manual_seed(3)
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.01)
    losses = []
    for step in range(4):
        optimiser.zero_grad()
        if watch:
            with monitor.watch(step, gradients=True):
                loss = loss_of(model, ids(4, step))
                loss.backward()
        else:
            loss = loss_of(model, ids(4, step))
            loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert monitor.frame().step.nunique() == (4 if watch else 0)
    return losses, model.state_dict()


def test_training_is_the_same() -> None:
    assert same(trained(watch=True), trained(watch=False))


def test_kept_beside_the_probe_and_not_twice(tmp_path: Path) -> None:
    for _ in range(2):
        model = language()
        with monitor_of(model, every=1, out=tmp_path / "run") as monitor:
            monitor.step(0)
            with monitor.watch(0):
                model(ids())
    rows = monitor.frame()
    assert isoscope.read_run(tmp_path / "run").units() == ["live 000000", "step 000000"]
    assert set(rows.revision) == {"", "live"}
    assert not rows.duplicated(["revision", "kind", "layer", "head", "measure"]).any()


@pytest.mark.parametrize("way", [lambda model: torch.compile(model, backend="eager"), "in place"])
def test_a_compiled_model_is_refused(way: object) -> None:
    model: nn.Module = language()
    if callable(way):
        model = way(model)
    else:
        model.compile(backend="eager")
    monitor = monitor_of(model)
    with pytest.raises(IsoscopeError, match="compiled code runs out of sight; call step"), monitor.watch(0):
        model(ids())


def test_what_is_missing_is_said() -> None:
    model = language()
    monitor = monitor_of(model)
    with pytest.raises(IsoscopeError, match="the model was not called inside watch"), monitor.watch(0):
        pass
    with (
        pytest.raises(IsoscopeError, match="has no gradient; call backward inside"),
        monitor.watch(1, gradients=True),
    ):
        model(ids())
    with pytest.raises(KeyError), monitor.watch(2):
        raise KeyError


@pytest.mark.parametrize("before", [False, True])
def test_gradients_along_the_means(before: bool) -> None:
    """Against the formula, head by head, from hooks of the test's own; earlier gradients do not count."""
    model, batch = language(), ids(6, 5)
    with torch.no_grad():
        model.blocks[1].query.bias.add_(1.0)
    monitor = monitor_of(model)
    if before:
        loss_of(model, ids(6, 9)).backward()
    seen: dict[str, Tensor] = {}
    block = model.blocks[1]
    hooks = [
        part.register_forward_hook(lambda _, given, out, name=name: seen.update({name: out.detach()}))
        for name, part in (("query", block.query), ("key", block.key))
    ]
    with monitor.watch(0, gradients=True):
        loss_of(model, batch).backward()
    for hook in hooks:
        hook.remove()
    model.zero_grad()
    loss_of(model, batch).backward()
    rows = monitor.frame()
    for name in ("query", "key"):
        mean = seen[name].double().mean((0, 1)).view(2, -1)
        gradient = getattr(block, name).weight.grad.double().view(2, mean.shape[1], -1)  # [h, e, d]
        mine = rows[(rows.measure == f"{name}_gradient_share") & (rows.layer == 2)]
        for head in range(2):
            unit = functional.normalize(mean[head], dim=0)
            share = (unit @ gradient[head]).square().sum() / gradient[head].square().sum()
            assert mine[mine["head"] == head].value.item() == pytest.approx(float(share), rel=1e-4)
        assert set(mine.null) == {1 / mean.shape[1]}
        assert mine[mine["head"].isna()].value.item() == pytest.approx(
            mine[mine["head"].notna()].value.mean()
        )


def test_gradients_of_a_model_of_transformers() -> None:
    config = transformers.GPT2Config(vocab_size=40, n_embd=16, n_layer=2, n_head=2, n_positions=16)
    model = transformers.GPT2LMHeadModel(config)
    monitor = Monitor(model, [{"input_ids": ids()}], budget=None)
    with monitor.watch(0, gradients=True):
        model(input_ids=ids(), labels=ids()).loss.backward()
    rows = monitor.frame()
    shares = rows[rows.measure.isin(["query_gradient_share", "key_gradient_share"])]
    assert len(shares) == 2 * 2 * 3
    assert shares.value.between(0, 1).all()


def test_the_share_of_a_gradient_along_a_mean_by_hand() -> None:
    gradient = torch.tensor([[[3.0, 0.0], [0.0, 4.0]]])
    assert along(gradient, torch.tensor([[0.0, 2.0]])).tolist() == pytest.approx([0.64])
