"""What one of two processes does that train together: DDP and FSDP2 on gloo, watched and alone."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard

import isoscope
from isoscope.models.source import Model
from isoscope.run.monitor.alarms import AlarmRaised
from isoscope.run.monitor.monitor import Monitor
from tests.run.training import Language, ids, language, loss_of, probe

STEPS = 2


def alongside() -> nn.Module:
    return nn.parallel.DistributedDataParallel(language(batch_norm=True, dropout=0.2))


def compiled() -> nn.Module:
    return torch.compile(alongside(), backend="eager")  # type: ignore[return-value]


def wrapped() -> nn.Module:
    return nn.Sequential(alongside())


def sharded() -> nn.Module:
    mesh, model = init_device_mesh("cpu", (2,)), language(dropout=0.2)
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh)


WAYS = {"ddp": alongside, "compiled": compiled, "wrapped": wrapped, "fsdp": sharded}


def weights(model: nn.Module) -> dict[str, Tensor]:
    """The whole of every weight, on every rank."""
    return {
        name.removeprefix("_orig_mod.").removeprefix("0.").removeprefix("module."): (
            tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
        ).clone()
        for name, tensor in model.state_dict().items()
    }


def direct(model: nn.Module, step: int, names: list[str]) -> Any:
    """A plain model of the same weights, looked at by one process with the whole probe."""
    kept = weights(model)
    plain = Language(batch_norm="blocks.0.norm.running_mean" in kept)
    plain.load_state_dict(kept)
    return isoscope.observe(Model(plain, "model", step=step), probe(), measures=names, heads=True).frame()


def trained(make: Callable[[], nn.Module], out: Path | None, **options: Any) -> dict[str, Any]:
    """Losses and weights of a training; with `out`, watched before and after every step of the optimiser."""
    model, rank = make(), distributed.get_rank()
    monitor = None if out is None else Monitor(model, probe(), every=1, budget=None, out=out, **options)
    torch.manual_seed(rank)
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.01)
    losses, expected = [], []
    for step in range(STEPS):
        optimiser.zero_grad()
        loss = loss_of(model, ids(4, 10 * step + rank))
        loss.backward()
        if monitor is not None:
            monitor.step(2 * step)  # the optimiser has not stepped
            if isinstance(model, FSDPModule):
                assert all("DTensor" in type(weight).__name__ for weight in model.parameters())
        optimiser.step()
        losses.append(loss.item())
        if monitor is not None:
            monitor.step(2 * step + 1)
            names = list(dict.fromkeys(measure.name for measure in monitor._probe.measures))
            with torch.random.fork_rng():
                expected.append(direct(model, 2 * step + 1, names))
    found = {"losses": losses, "weights": weights(model)}
    if monitor is not None:
        monitor.close()
        found |= {"rows": monitor.frame(), "expected": expected, "folder": monitor.folder}
    return found


def own_probes() -> Any:
    """Every rank has another probe: all of both is looked at."""
    rank = distributed.get_rank()
    monitor = Monitor(language(), probe(4)[2 * rank : 2 * rank + 1 + rank], budget=None)
    monitor.step(0)
    return monitor.frame()


def raised() -> tuple[str, str]:
    """An alarm that ends training ends it on every rank; a folder that is refused is refused on all."""
    model = alongside()
    monitor = Monitor(model, probe(), budget=None, on_alarm="raise")
    with torch.no_grad():
        model.module.tokens.weight.fill_(torch.nan)  # type: ignore[operator, union-attr]
    try:
        monitor.step(0)
    except AlarmRaised as alarm:
        first = alarm.alarm.site
    try:
        Monitor(model, probe(), out=__file__)
    except isoscope.IsoscopeError as reason:
        return first, str(reason)
    return first, ""


def member(rank: int, folder: Path) -> None:
    distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    found: dict[str, Any] = {}
    for name, make in WAYS.items():
        found[name] = trained(make, None), trained(make, folder / name)
    found["whole"] = trained(alongside, folder / "whole", counterfactual=True)
    found["own"] = own_probes()
    found["raised"] = raised()
    (folder / f"rank-{rank}.pickle").write_bytes(pickle.dumps(found))
    distributed.destroy_process_group()


if __name__ == "__main__":
    member(int(sys.argv[1]), Path(sys.argv[2]))
