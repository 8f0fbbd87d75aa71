"""What a person waits for: `observe` with its defaults, and the command, against a plain forward.

Models have random weights and the shapes of models that people use. Each case runs the same batches through
the plain forward and through `observe(model, batches)`, then reads the rows with `.frame()`. Times are split
into survey, observe (survey included) and read: seconds on a GPU, seconds of the processor on a CPU. The
command is timed as a process on a tiny saved model, beside importing torch and transformers, and beside
writing the page of its run. A model that disagrees with the naive definitions is not timed. Writes
bench/results/end-to-end-<device>.json; a run of some cases (`--only`) leaves the others there as they are.
With `--profile FOLDER` nothing is timed: tables of where the time of each case goes are written there.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from isoscope import observe, read_run, report
from isoscope.geometry import attention, cosine, spectrum
from isoscope.models.source import Model
from isoscope.run.observe.observe import look

CUDA = torch.cuda.is_available()
RESULTS = Path(__file__).parent / "results"
VOCABULARY = 20_000
CHECKED = ("mean_cosine", "participation_ratio", "entropy")
TURNS = 3  # of the command


@dataclass(frozen=True)
class Case:
    """A model shape, how many batches of [sequences × tokens] it sees, and whether rows per head are read."""

    name: str
    model: Callable[[], nn.Module]
    batches: int
    sequences: int
    tokens: int
    heads: bool = False
    times: int = 2
    measures: str | None = None


def bert() -> nn.Module:
    from transformers import BertConfig, BertModel

    shape = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536}
    return BertModel(BertConfig(vocab_size=VOCABULARY, **shape))


def gpt2() -> nn.Module:
    from transformers import GPT2Config, GPT2Model

    return GPT2Model(GPT2Config(vocab_size=VOCABULARY))


def llama(width: int, layers: int, heads: int, groups: int, inner: int) -> nn.Module:
    from transformers import LlamaConfig, LlamaModel

    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads,
        num_key_value_heads=groups, intermediate_size=inner, max_position_embeddings=8192,
    )  # fmt: skip
    with torch.device("cuda" if CUDA else "cpu"):
        return LlamaModel(config)


def billion() -> nn.Module:
    return llama(2048, 16, 32, 8, 8192)


ON_GPU = (
    Case("1B Llama shape", billion, 8, 64, 512),
    Case("1B Llama shape, small batches", billion, 32, 8, 512),
    Case("7B Llama shape", lambda: llama(4096, 32, 32, 32, 11_008), 16, 16, 1024, times=1),
)
ON_CPU = (
    Case("MiniLM shape", bert, 8, 32, 128),
    Case("GPT-2 shape", gpt2, 8, 32, 128),
    Case("MiniLM shape, all measures", bert, 8, 32, 128, times=1, measures="all"),
    Case("GPT-2 shape, all measures", gpt2, 8, 32, 128, times=1, measures="all"),
    Case("135M rotary shape", lambda: llama(576, 30, 9, 3, 1536), 8, 8, 256, heads=True),
)


class Clock:
    """Seconds on a GPU, with what is still running; seconds of the processor on a CPU."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Time a part of the work; of several turns the fastest counts."""
        start = self._now()
        yield
        spent = self._now() - start
        self.seconds[name] = min(spent, self.seconds.get(name, spent))

    @staticmethod
    def _now() -> float:
        _wait()
        return time.perf_counter() if CUDA else time.process_time()


def timed(case: Case) -> dict[str, object]:
    """Forward, survey, pass and read of one case, with the ratio of the whole to the forward."""
    torch.manual_seed(0)
    model = case.model().eval()
    model = model.to("cuda", torch.bfloat16) if CUDA else model
    refuse_if_wrong(model)
    device = next(model.parameters()).device
    shape = (case.sequences, case.tokens)
    batches = [torch.randint(VOCABULARY, shape, device=device) for _ in range(case.batches)]
    clock, first = Clock(), Clock()
    forward(model, batches[:1])
    with first.part("observe and read"):  # kernels are compiled here
        observe(model, batches[:1], heads=case.heads, measures=case.measures).frame()
    for _ in range(case.times):
        with clock.part("forward"):
            forward(model, batches)
        with clock.part("survey"):
            look(Model(model, "model"), batches[0])
        if CUDA:
            torch.cuda.reset_peak_memory_stats()
        with clock.part("observe"):
            seen = observe(model, batches, heads=case.heads, measures=case.measures)
        with clock.part("read"):
            rows = seen.frame()
    spent = clock.seconds
    whole = (spent["observe"] + spent["read"]) / spent["forward"]
    print(
        f"  {case.name:<30} {case.batches} × ({case.sequences} × {case.tokens}): forward"
        f" {spent['forward']:.2f} s, survey {spent['survey']:.2f} s, observe {spent['observe']:.2f} s"
        f" ({spent['observe'] / spent['forward']:.2f}×), read {spent['read']:.2f} s, whole {whole:.2f}×"
    )
    return {
        "batches": [case.batches, *shape], **spent, "ratio of observe": spent["observe"] / spent["forward"],
        "ratio of the whole": whole, "first batch, compiling": first.seconds["observe and read"],
        "rows": len(rows), "peak GiB": _peak(),
    }  # fmt: skip


def profiled(case: Case, folder: Path) -> None:
    """Write what takes the time of the forward, of `observe` and of reading."""
    torch.manual_seed(0)
    model = case.model().eval()
    model = model.to("cuda", torch.bfloat16) if CUDA else model
    device = next(model.parameters()).device
    shape = (case.sequences, case.tokens)
    batches = [torch.randint(VOCABULARY, shape, device=device) for _ in range(2)]
    seen = observe(model, batches, heads=case.heads, measures=case.measures)
    seen.frame()
    parts: dict[str, Callable[[], object]] = {
        "forward": lambda: forward(model, batches),
        "observe": lambda: observe(model, batches, heads=case.heads, measures=case.measures),
        "read": lambda: seen.frame(),
    }
    of_device = [ProfilerActivity.CUDA] if CUDA else []
    for name, part in parts.items():
        if name == "read":
            seen = observe(model, batches, heads=case.heads, measures=case.measures)
        with profile(activities=[ProfilerActivity.CPU, *of_device]) as found:
            part()
            _wait()
        if name == "read":
            seen = observe(model, batches, heads=case.heads, measures=case.measures)
        with cProfile.Profile() as calls:
            part()
            _wait()
        with (folder / f"{case.name}, {name}.txt").open("w") as file:
            for column in ("self_cuda_time_total", "self_cpu_time_total")[0 if CUDA else 1 :]:
                print(found.key_averages().table(sort_by=column, row_limit=40), file=file)
            for column in ("tottime", "cumtime"):
                pstats.Stats(calls, stream=file).sort_stats(column).print_stats(60)


def _wait() -> None:
    if CUDA:
        torch.cuda.synchronize()


def _peak() -> float:
    if CUDA:
        return torch.cuda.max_memory_allocated() / 2**30
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


@torch.no_grad()
def forward(model: nn.Module, batches: list[Tensor]) -> None:
    for ids in batches:
        model(input_ids=ids)


@torch.no_grad()
def refuse_if_wrong(model: nn.Module) -> None:
    """Compare a pass over two short sequences with the definitions, on what the model itself returns."""
    device = next(model.parameters()).device
    ids = torch.randint(VOCABULARY, (2, 40), device=device)
    table = observe(model, [ids], measures=list(CHECKED), memory=1e11).frame()
    out = model(input_ids=ids, output_hidden_states=True)
    points = out.hidden_states[1].flatten(0, 1).double().cpu()
    expected = {
        "mean_cosine": cosine.mean_cosine(points),
        "participation_ratio": spectrum.participation_ratio(points),
    }
    model.set_attn_implementation("eager")
    weights = model(input_ids=ids, output_attentions=True).attentions[0].double()
    model.set_attn_implementation("sdpa")
    expected["entropy"] = float(attention.weight_rows(weights, weights.log()).entropy.mean())
    for name, value in expected.items():
        found = float(table[(table.layer == 1) & (table.measure == name)].value.iloc[0])
        tolerance = 2e-2 if CUDA and name == "entropy" else 1e-4  # weights come back in bfloat16
        assert abs(found - value) <= tolerance * abs(value), f"{name}: {found} is not {value}; not timed"


def command() -> dict[str, object]:
    """The command on a tiny saved model, in seconds of the processor, and the page of its run."""
    from transformers import BertConfig, BertModel

    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
        BertModel(BertConfig(vocab_size=512, **shape)).save_pretrained(model)
        measure = ["-c", "from isoscope.cli.main import main; main()", "measure", str(model)]
        measure += ["--limit", "32", "--max-length", "64", "--tokens", "bytes", "--out"]
        runs = [Path(folder) / f"run-{turn}" for turn in range(TURNS)]
        bare = min(_children(["-c", "import torch, transformers"]) for _ in runs)
        whole = min(_children([*measure, str(run)]) for run in runs)
        start = time.process_time()
        report(read_run(runs[0]))
        page = time.process_time() - start
    print(
        f"  isoscope measure on a tiny model: {whole:.2f} s, of which importing torch and transformers"
        f" {bare:.2f} s; writing the page alone {page:.2f} s"
    )
    return {"importing torch and transformers": bare, "the command": whole, "the page": page}


def _children(line: list[str]) -> float:
    """Seconds of the processor that Python takes with these arguments."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *line], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def pages() -> dict[str, float]:
    """The page of a run of the MiniLM shape with rows per head: seconds of the first, and of the next."""
    seen = observe(bert().eval(), [torch.randint(VOCABULARY, (32, 128)) for _ in range(8)], heads=True)
    with tempfile.TemporaryDirectory() as folder:
        clock = Clock()
        for part in ("first", "next"):
            with clock.part(part):
                seen.report(Path(folder) / "report.html")
    print(f"  the page of a MiniLM shape with heads: {clock.seconds['first']:.2f} s, then", end="")
    print(f" {clock.seconds['next']:.2f} s")
    return clock.seconds


def main() -> None:
    cases = {case.name: case for case in (ON_GPU if CUDA else ON_CPU)}
    choices = [*cases, *([] if CUDA else ["command", "pages"])]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=choices, nargs="+", default=choices, help="some of the cases")
    parser.add_argument("--times", type=int, help="turns of each case, of which the fastest counts")
    parser.add_argument("--profile", type=Path, metavar="FOLDER", help="write profiles, and time nothing")
    told = parser.parse_args()
    only = told.only
    if told.times:
        cases = {each: replace(case, times=told.times) for each, case in cases.items()}
    if told.profile:
        told.profile.mkdir(parents=True, exist_ok=True)
        for each in only:
            if each in cases:
                profiled(cases[each], told.profile)
        return
    name = torch.cuda.get_device_name() if CUDA else "cpu"
    threads = torch.get_num_threads()
    print(f"{name}, torch {torch.__version__}, {threads} threads, {os.cpu_count()} cores")
    RESULTS.mkdir(exist_ok=True)
    written = RESULTS / f"end-to-end-{name.lower().replace(' ', '-')}.json"
    known = json.loads(written.read_text()) if written.exists() else {}
    known |= {"device": name, "torch": torch.__version__, "threads": threads}
    known["cases"] = known.get("cases", {}) | {each: timed(cases[each]) for each in only if each in cases}
    for part, time_of in {"command": command, "pages": pages}.items():
        known |= {part: time_of()} if part in only else {}
    written.write_text(json.dumps(known, indent=1) + "\n")
    print(f"written to {written}")


if __name__ == "__main__":
    main()
