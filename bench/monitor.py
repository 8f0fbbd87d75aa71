"""What watching costs a training: a language model of the shape of GPT-2, random weights, with and without.

Two copies train on the same data turn by turn in one run, one of them watched by the default schedule within
the default budget. Prints how many steps were measured of how many, the tokens of the probe, both times and
their ratio; on a GPU at least 20 of at least 2,000 steps, a probe of at least 8k tokens, and 100M parameters.
Refuses to print a ratio when the two trainings differ. Writes bench/results/monitor-<device>.json.
"""

from __future__ import annotations

import json
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import torch
from torch import Tensor, nn

from isoscope.run.monitor import Monitor

CUDA = torch.cuda.is_available()
WIDTH, LAYERS, HEADS, VOCABULARY = (768, 12, 12, 50_257) if CUDA else (64, 2, 2, 256)
SEQUENCES, LENGTH = (16, 1024) if CUDA else (8, 64)
PROBE = (2, 8) if CUDA else (1, 8)  # batches of so many sequences
STEPS, TURN, WARM = 2000, 250, 20
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

    def be_watched(self) -> None:
        """What getting ready takes counts as well."""
        with self.watch:
            self.monitor = Monitor(self.model, probe(), name="gpt2", clock=self.watch)


def precision() -> AbstractContextManager[object]:
    return torch.autocast("cuda", torch.bfloat16) if CUDA else nullcontext()


def probe() -> list[dict[str, Tensor]]:
    random = torch.Generator().manual_seed(2)
    batches, size = PROBE
    return [
        {"input_ids": torch.randint(VOCABULARY, (size, LENGTH), generator=random)} for _ in range(batches)
    ]


def now() -> float:
    if CUDA:
        torch.cuda.synchronize()
    return tick()


def main() -> None:
    if not CUDA:
        torch.set_num_threads(1)
    name = torch.cuda.get_device_name() if CUDA else "cpu"
    alone, watched = Training(), Training()
    parameters = sum(weight.numel() for weight in alone.model.parameters())
    for training in (alone, watched):
        for _ in range(WARM):
            training.step()
    watched.be_watched()
    for _ in range(STEPS // TURN):
        for training in (alone, watched):
            training.turn(TURN)
    assert watched.monitor is not None
    pairs = zip(alone.model.parameters(), watched.model.parameters(), strict=True)
    if not CUDA:  # there only deterministic algorithms, which are slower, would be the same
        assert all(torch.equal(one, two) for one, two in pairs), "the trainings differ: not compared"
    rows = watched.monitor.frame()
    measured, tokens = rows["step"].nunique(), PROBE[0] * PROBE[1] * LENGTH
    ratio = watched.watch.seconds / alone.watch.seconds
    account = watched.monitor._budget
    print(f"{name}: {parameters / 1e6:.1f} M parameters, {SEQUENCES} × {LENGTH} tokens a step")
    print(f"  {measured} steps measured of {watched.done}, on a probe of {tokens} tokens, {len(rows)} rows")
    print(f"  {1e3 * alone.watch.seconds / STEPS:.1f} ms a step alone, {1e3 * account.a_look:.0f} ms a look")
    print(f"  {alone.watch.seconds:.1f} s without, {watched.watch.seconds:.1f} s with: {ratio:.4f}×")
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
        "seconds without": alone.watch.seconds,
        "seconds with": watched.watch.seconds,
        "ratio": ratio,
        "budget": account.facts(),
    }
    written = RESULTS / f"monitor-{name.lower().replace(' ', '-')}.json"
    written.write_text(json.dumps(known, indent=1) + "\n")
    print(f"written to {written}")


if __name__ == "__main__":
    main()
