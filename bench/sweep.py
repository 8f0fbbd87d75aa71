"""What a sweep costs beside the measuring, and what a second worker gains.

    python bench/sweep.py [--small] [FOLDER]

Writes trajectories of GPT-2-shaped checkpoints of random numbers to a temporary folder (below FOLDER if
given; it is removed afterwards): of a small model (d = 256, 6 layers), read on 64 sequences of 512 tokens,
as the command does unless told, and of 128; and of one of the size that public trajectories begin with
(d = 768, 12 layers, 128 tokens). First, in one process of one thread and in turns: loading each
checkpoint and one plain forward over the data; the same with measures that cost O(d) a vector; and a sweep of
them, from the fingerprints to the last row. These are seconds of the processor, so that what else runs on the
machine is not counted. Then a sweep of the small model's weights alone, by one worker and by two, from the
start of their processes to the last row, by the clock; and what is read of all rows together, once a sweep
(change points and their uncertainty most of all). Prints ratios of one run and writes
bench/results/sweep-cpu.json.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import transformers

from isoscope.models.inputs import open_data
from isoscope.models.source import load
from isoscope.results.store import read_run
from isoscope.run.observe.observe import observe
from isoscope.sweeps.find.checkpoints import Checkpoint, in_folder
from isoscope.sweeps.sweep import measured, open_sweep, read_together, run_of, waiting
from isoscope.sweeps.verify.integrity import examine
from isoscope.sweeps.verify.verify import prints_of
from isoscope.sweeps.work.job import Asked, Outcome
from isoscope.sweeps.work.local import processes

RESULTS = Path(__file__).parent / "results"
MEASURES = ("mean_cosine", "mean_cosine_between", "drift", "relative_drift", "mean_norm")
TURNS = 3
KEEPING = {"MALLOC_TRIM_THRESHOLD_": "4000000000", "MALLOC_MMAP_THRESHOLD_": "2000000000"}  # glibc's


@dataclass(frozen=True)
class Size:
    """How large the models are, how many there are, and how many of them one turn measures."""

    width: int = 256
    layers: int = 6
    heads: int = 4
    vocabulary: int = 8192
    checkpoints: int = 16
    sequences: int = 64
    length: int = 512
    turn: int = 4


USUAL = Size()
SHORT = Size(length=128, turn=16)
BASE = Size(width=768, layers=12, heads=12, vocabulary=50_257, checkpoints=4, length=128)
SMALL = Size(width=64, layers=2, heads=2, vocabulary=512, checkpoints=4, sequences=4, length=64)


def write(folder: Path, size: Size) -> int:
    """The trajectory: random weights, a little further at every step; gives the bytes of one checkpoint."""
    config = transformers.GPT2Config(
        vocab_size=size.vocabulary,
        n_positions=size.length,
        n_embd=size.width,
        n_layer=size.layers,
        n_head=size.heads,
    )
    torch.manual_seed(0)
    model = transformers.GPT2Model(config)
    for number in range(size.checkpoints):
        with torch.no_grad():
            for weight in model.parameters():
                weight += 0.002 * torch.randn_like(weight)
        model.save_pretrained(folder / f"checkpoint-{100 * (number + 1)}")
    return (folder / "checkpoint-100" / "model.safetensors").stat().st_size


def asked_of(size: Size, what: str) -> Asked:
    return Asked(
        "bench",
        what=what,
        limit=size.sequences,
        max_length=size.length,
        tokens="bytes",
        measures=MEASURES,
        layers="layer.*,output",
        counterfactual=False,
        device="cpu",
    )


def sweep(asked: Asked, checkpoints: list[Checkpoint], out: Path, workers: int) -> None:
    """A sweep as the command makes it, without its page."""
    folder = open_sweep(run_of(asked, {}), out)
    prints = prints_of(folder, checkpoints, workers=max(1, workers), progress=lambda done, total: None)
    jobs = waiting(folder, asked, checkpoints, prints, examine(checkpoints, prints))
    events = measured(jobs, processes(workers, 1))
    failed = [event.failed for event in events if isinstance(event, Outcome) and event.failed]
    if failed:
        sys.exit(f"a unit failed: {failed[0]}")


def afresh(asked: Asked, checkpoints: list[Checkpoint], out: Path, workers: int) -> None:
    """A sweep into a folder that is not there yet."""
    shutil.rmtree(out, ignore_errors=True)
    sweep(asked, checkpoints, out, workers)


def forward(checkpoint: Checkpoint, size: Size) -> None:
    """Load and run over the data, and nothing else."""
    model = load(checkpoint.address, device="cpu")
    data = open_data("embedded", model, limit=size.sequences, max_length=size.length, tokens="bytes")
    with torch.no_grad():
        for batch in data:
            model.module(**batch.inputs)


def observed(checkpoint: Checkpoint, size: Size) -> None:
    """Load and measure, and keep nothing."""
    model = load(checkpoint.address, device="cpu")
    data = open_data("embedded", model, limit=size.sequences, max_length=size.length, tokens="bytes")
    observe(model, data, measures=MEASURES, layers="layer.*,output", counterfactual=False).rows()


def timed(work: Callable[[], object], tick: Callable[[], float] = time.perf_counter) -> float:
    start = tick()
    work()
    return tick() - start


def overhead(checkpoints: list[Checkpoint], size: Size, place: Path) -> dict[str, float]:
    """Seconds a checkpoint of each way, the least over turns: what disturbs only adds."""
    asked, found = asked_of(size, "measure"), dict[str, list[float]]()
    ways: dict[str, Callable[[], object]] = {
        "forward": lambda: [forward(each, size) for each in checkpoints],
        "observed": lambda: [observed(each, size) for each in checkpoints],
        "sweep": lambda: afresh(asked, checkpoints, place / "run", 0),
    }
    for _ in range(TURNS):
        for name, way in ways.items():
            found.setdefault(name, []).append(timed(way, time.process_time) / len(checkpoints))
    return {f"{name}_seconds": min(times) for name, times in found.items()}


def cost(size: Size, place: Path) -> dict[str, float]:
    """What a sweep of checkpoints of one size costs over loading and running them."""
    folder = _place(place, size)
    bytes_ = write(folder, size)
    checkpoints = in_folder(folder)
    shape = f"{size.layers} layers, d = {size.width}, {size.sequences} × {size.length} tokens"
    print(f"{len(checkpoints)} checkpoints of {bytes_ / 1e6:.0f} MB, {shape}")
    forward(checkpoints[0], size)  # what is imported and mapped for the first time
    told = overhead(checkpoints[: size.turn], size, place)
    base, by_hand = told["forward_seconds"], told["observed_seconds"]
    told["over_forward"] = told["sweep_seconds"] / base
    told["of_the_sweep_itself"] = (told["sweep_seconds"] - by_hand) / base
    print(f"  load + forward            {base:8.3f} s a checkpoint")
    print(f"  load + measure            {by_hand:8.3f} s   {by_hand / base:.3f}×")
    print(f"  sweep                     {told['sweep_seconds']:8.3f} s   {told['over_forward']:.3f}×")
    print(f"  what the sweep adds       {told['of_the_sweep_itself']:8.3f} of load + forward")
    asked = {"width": size.width, "layers": size.layers, "sequences": size.sequences, "length": size.length}
    return {**asked, "checkpoint_bytes": bytes_, **told}


def _place(below: Path, size: Size) -> Path:
    return below / f"width-{size.width}-length-{size.length}"


def workers(size: Size, place: Path) -> dict[str, float]:
    """What a second worker gains, of a sweep of weights."""
    weights, checkpoints = asked_of(size, "weights"), in_folder(_place(place, size))
    one, two = (timed(lambda n=n: afresh(weights, checkpoints, place / f"weights-{n}", n)) for n in (1, 2))
    print(f"  weights, one worker       {one:8.2f} s in all")
    print(f"  weights, two workers      {two:8.2f} s   {one / two:.2f}×")
    reading = timed(lambda: read_together(read_run(place / "weights-2")))
    print(f"  read together             {reading:8.2f} s, once a sweep of {len(checkpoints)}")
    told = {"weights_1_seconds": one, "weights_2_seconds": two, "two_workers": one / two}
    return {**told, "read_together_seconds": reading}


def main() -> None:
    if not KEEPING.items() <= os.environ.items():
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **KEEPING})
    words = sys.argv[1:]
    first = SMALL if "--small" in words else USUAL
    below = next((word for word in words if not word.startswith("--")), None)
    torch.set_num_threads(1)
    transformers.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory(dir=below) as there:
        place = Path(there)
        costs = [cost(first, place)]
        told = workers(first, place)
        if first is SMALL:
            return
        costs += [cost(size, place) for size in (SHORT, BASE)]
    kept = {"device": "cpu", "torch": torch.__version__, "cores": os.cpu_count(), "sizes": costs, **told}
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / "sweep-cpu.json"
    file.write_text(json.dumps(kept, indent=1) + "\n")
    print(f"written to {file}")


if __name__ == "__main__":
    main()
