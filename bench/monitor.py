"""What watching costs a training: a language model of the shape of GPT-2, random weights, with and without.

Two copies train on the same data turn by turn in one run, one of them watched by the default schedule within
the default budget, into a run folder. Prints how many steps were measured of how many, the tokens of the
probe, both times and their ratio; on a GPU at least 20 of at least 2,000 steps, a probe of at least 8k
tokens, and 100M parameters. Everything that watching takes is in its time: getting ready, looking, writing.
Kernels are compiled before, by a look that is timed by itself, since that happens once on a machine.
Refuses to print a ratio when the two trainings differ. On a CPU a look every 10 steps, with the default
measures and no budget, is compared with ``wandb.watch(model, log="all", log_freq=10)`` (offline) in one run,
where wandb is installed. Writes bench/results/monitor-<device>.json.
"""

from __future__ import annotations

import importlib.util
import json
import tempfile
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import torch
from torch import Tensor, nn

from isoscope.run.monitor.monitor import Monitor

CUDA = torch.cuda.is_available()
WIDTH, LAYERS, HEADS, VOCABULARY = (768, 12, 12, 50_257) if CUDA else (64, 2, 2, 256)
SEQUENCES, LENGTH = (24, 1024) if CUDA else (8, 64)
PROBE = 8  # sequences, one batch
STEPS, TURN, WARM = 2000, 250, 20
EVERY, ROUNDS, ROUND = 10, 6, 100  # steps between looks, turns of each way, steps of a turn
FEWER = 8 if CUDA else 1  # on a GPU the one alone makes an eighth of the steps: it is compared step by step
LOOKS = 20  # at least, on a GPU
tick = time.perf_counter if CUDA else time.process_time  # on a CPU, whatever else runs there is not counted
RESULTS = Path(__file__).parent / "results"


def gpt2() -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=VOCABULARY,
        n_embd=WIDTH,
        n_layer=LAYERS,
        n_head=HEADS,
        n_positions=LENGTH,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=0,
    )
    torch.manual_seed(0)
    return GPT2LMHeadModel(config).to("cuda" if CUDA else "cpu")


class Stopwatch:
    """Seconds of one training: it stands still while the other has its turn."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.started: float | None = None

    def __call__(self) -> float:
        """What it shows."""
        return self.seconds + (0.0 if self.started is None else tick() - self.started)

    def __enter__(self) -> None:
        self.started = now()

    def __exit__(self, *raised: object) -> None:
        self.seconds, self.started = self.seconds + now() - (self.started or 0.0), None


class Training:
    """A model, its optimiser and how long its steps have taken; watched once it is asked to be."""

    def __init__(self) -> None:
        self.model = gpt2().train()
        self.optimiser = torch.optim.AdamW(self.model.parameters(), lr=3e-4, fused=True)
        self.random = torch.Generator().manual_seed(1)
        self.watch, self.done = Stopwatch(), 0
        self.monitor: Monitor | None = None

    def turn(self, steps: int) -> None:
        """So many steps, on its own clock."""
        with self.watch:
            for _ in range(steps):
                if self.monitor is not None:
                    with precision():  # it looks at the model as it trains
                        self.monitor.step(self.done)
                self.step()
                self.done += 1

    def step(self) -> None:
        """One step on fresh data."""
        ids = torch.randint(VOCABULARY, (SEQUENCES, LENGTH), generator=self.random)
        ids = ids.to(next(self.model.parameters()).device, non_blocking=True)
        with precision():
            loss = self.model(input_ids=ids, labels=ids).loss
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()

    def be_watched(self, out: Path) -> None:
        """What getting ready takes counts as well."""
        with self.watch, precision():
            self.monitor = Monitor(self.model, probe(), name="gpt2", out=out, steps=STEPS, clock=self.watch)


def every_ten(folder: Path) -> dict[str, float]:
    """Seconds of the processor per step, the least over turns: alone, looked at and watched by wandb."""
    ways = {"alone": Training(), "monitor": Training()}
    monitor = Monitor(ways["monitor"].model, probe(), out=folder / "every", every=EVERY, budget=None)
    ways["monitor"].monitor = monitor
    run = None
    if importlib.util.find_spec("wandb") is None:
        print("  wandb is not installed: nothing to compare a look every 10 steps with")
    else:
        import wandb

        quiet = wandb.Settings(x_disable_stats=True, x_disable_meta=True, console="off", silent=True)
        run = wandb.init(project="isoscope", dir=str(folder), mode="offline", settings=quiet)
        ways["wandb.watch"] = Training()
        run.watch(ways["wandb.watch"].model, log="all", log_freq=EVERY)
    found: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(ROUNDS + 1):
        for name, training in ways.items():
            start = now()
            for _ in range(ROUND // EVERY):
                training.turn(EVERY)
                if name == "wandb.watch" and run is not None:
                    run.log({"step": training.done})
            if number:  # the first turn warms up
                found[name].append((now() - start) / ROUND)
    if run is not None:
        run.finish()
    least = {name: min(times) for name, times in found.items()}
    told = ", ".join(f"{name} {least[name] / least['alone']:.3f}×" for name in least if name != "alone")
    print(f"  every {EVERY} steps, of {1e3 * least['alone']:.1f} ms a step alone: {told}")
    return least


def precision() -> AbstractContextManager[object]:
    return torch.autocast("cuda", torch.bfloat16) if CUDA else nullcontext()


def probe() -> list[dict[str, Tensor]]:
    random = torch.Generator().manual_seed(2)
    return [{"input_ids": torch.randint(VOCABULARY, (PROBE, LENGTH), generator=random)}]


def first_look() -> float:
    """Seconds until a model that is thrown away has been looked at once: kernels are compiled in it."""
    model, start = gpt2().train(), now()
    with precision():
        Monitor(model, probe(), name="gpt2").step(0)
    return now() - start


@torch.no_grad()
def forward_alone(model: nn.Module) -> float:
    """Seconds of the probe's forward with nobody looking, the best of five."""
    ids = probe()[0]["input_ids"].to(next(model.parameters()).device)
    taken = []
    for _ in range(5):
        start = now()
        with precision():
            model(input_ids=ids)
        taken.append(now() - start)
    return min(taken)


def now() -> float:
    if CUDA:
        torch.cuda.synchronize()
    return tick()


def main() -> None:
    if not CUDA:
        torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        often = {} if CUDA else every_ten(Path(folder))
        compare(Path(folder) / "run", often)


def compare(out: Path, often: dict[str, float]) -> None:
    name = torch.cuda.get_device_name() if CUDA else "cpu"
    compiling = first_look()
    alone, watched = Training(), Training()
    parameters = sum(weight.numel() for weight in alone.model.parameters())
    for training in (alone, watched):
        for _ in range(WARM):
            training.step()
    watched.be_watched(out)
    for turn in range(STEPS // TURN):
        for training in (alone, watched) if turn % 2 == 0 else (watched, alone):
            training.turn(TURN // FEWER if training is alone else TURN)
    assert watched.monitor is not None
    pairs = zip(alone.model.parameters(), watched.model.parameters(), strict=True)
    if not CUDA:  # there only deterministic algorithms, which are slower, would be the same
        assert all(torch.equal(one, two) for one, two in pairs), "the trainings differ: not compared"
    rows = watched.monitor.frame()
    measured, tokens = rows["step"].nunique(), PROBE * LENGTH
    without = alone.watch.seconds * watched.done / alone.done
    ratio = watched.watch.seconds / without
    account = watched.monitor._budget
    print(f"{name}: {parameters / 1e6:.1f} M parameters, {SEQUENCES} × {LENGTH} tokens a step")
    print(f"  {measured} steps measured of {watched.done}, on a probe of {tokens} tokens, {len(rows)} rows")
    forward = forward_alone(watched.model)
    print(
        f"  {1e3 * without / STEPS:.1f} ms a step alone, {1e3 * account.a_look:.0f} ms a look,",
        end="",
    )
    print(f" of which {1e3 * forward:.0f} ms the forward; the first on this machine {compiling:.1f} s")
    print(f"  {without:.1f} s without (from {alone.done} steps),", end="")
    print(f" {watched.watch.seconds:.1f} s with: {ratio:.4f}×")
    if CUDA and measured < LOOKS:
        print(f"  fewer than {LOOKS} steps measured: the ratio is not that of the claim")
    for note in watched.monitor.notes():
        print(f"  {note}")
    RESULTS.mkdir(exist_ok=True)
    known = {
        "device": name,
        "torch": torch.__version__,
        "parameters": parameters,
        "steps": watched.done,
        "measured": measured,
        "probe tokens": tokens,
        "tokens a step": SEQUENCES * LENGTH,
        "seconds of the first look": compiling,
        "seconds of the probe's forward": forward,
        "steps without": alone.done,
        "seconds without": without,
        "seconds with": watched.watch.seconds,
        "ratio": ratio,
        "budget": account.facts(),
        f"seconds a step, a look every {EVERY}": often,
    }
    written = RESULTS / f"monitor-{name.lower().replace(' ', '-')}.json"
    written.write_text(json.dumps(known, indent=1) + "\n")
    print(f"written to {written}")


if __name__ == "__main__":
    main()
