"""A pass that measures against a plain forward: a model of the shape of a 1B-parameter Llama, random weights.

Timed in one run, turn by turn, over the same batches: the plain forward; with all measures that need O(d);
with one covariance a site and attention rows; the counterfactual apart; and what people do today, attention
and hidden states returned and kept, cosines of sampled pairs. Batches of 32k tokens in sequences of several
lengths, 512 being what `isoscope measure` cuts text into, and one small batch, where a pass waits for the
CPU. Writes bench/results/observe-<device>.json.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from isoscope import observe
from isoscope.data.batch import as_batch
from isoscope.models.source import Model
from isoscope.run.observe.fold import Folder
from isoscope.run.observe.memory import Plan
from isoscope.run.observe.observe import look
from isoscope.stats.base import Stat
from isoscope.stats.centre import Centre
from isoscope.stats.counterfactual import Counterfactual
from isoscope.stats.dimensions import Dimensions
from isoscope.stats.directions import Directions
from isoscope.stats.moments import Moments
from isoscope.stats.queries import Queries
from isoscope.stats.rows import Rows
from isoscope.stats.within import Within

CUDA = torch.cuda.is_available()
WIDTH, LAYERS, HEADS, GROUPS, INNER = (2048, 16, 32, 8, 8192) if CUDA else (64, 3, 4, 2, 128)
SHAPES = ((64, 512), (32, 1024), (16, 2048), (4, 2048)) if CUDA else ((2, 64),)  # sequences × tokens
RETURNED = (16, 2048) if CUDA else (2, 64)  # where all attention is returned too: 95 GiB
BATCHES, TIMES = (4, 3) if CUDA else (2, 3)
OF_WIDTH: tuple[type[Stat], ...] = (Directions, Centre, Dimensions, Within)
RESULTS = Path(__file__).parent / "results"


def llama() -> nn.Module:
    from transformers import LlamaConfig, LlamaModel

    config = LlamaConfig(
        vocab_size=32_000,
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=GROUPS,
        intermediate_size=INNER,
        max_position_embeddings=8192,
    )
    torch.manual_seed(0)
    model = LlamaModel(config).eval()
    return model.to("cuda", torch.bfloat16) if CUDA else model


def milliseconds(work: Callable[[], object]) -> float:
    if CUDA:
        torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    if CUDA:
        torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - start)


def returned(model: nn.Module, ids: Tensor) -> float:
    """What people do: everything returned and kept, 10,000 pairs sampled a layer, entropies of the matrix."""
    out = model(input_ids=ids, output_attentions=True, output_hidden_states=True)
    found = 0.0
    for state in out.hidden_states:
        flat = state.flatten(0, 1)
        one, two = torch.randint(len(flat), (2, 10_000), device=flat.device)
        found += float(F.cosine_similarity(flat[one].float(), flat[two].float()).mean())
    for weights in out.attentions:
        found += float(-torch.xlogy(weights.float(), weights.float()).sum(-1).mean())
    return found


def main() -> None:
    model = llama()
    name = torch.cuda.get_device_name() if CUDA else "cpu"
    tables = {}
    for sequences, length in SHAPES:
        said = f"{sequences} × {length} tokens"
        print(f"{name}: {LAYERS} layers of {WIDTH}, {said}, torch {torch.__version__}")
        tables[said] = timed(model, sequences, length)
    RESULTS.mkdir(exist_ok=True)
    written = RESULTS / f"observe-{name.lower().replace(' ', '-')}.json"
    known = {"device": name, "torch": torch.__version__, "layers": LAYERS, "width": WIDTH, "tables": tables}
    written.write_text(json.dumps(known, indent=1) + "\n")
    print(f"written to {written}")


def timed(model: nn.Module, sequences: int, length: int) -> dict[str, object]:
    """Every way on a few batches on end, turn by turn; then what people do today: milliseconds a batch."""
    device = next(model.parameters()).device
    many = [torch.randint(32_000, (sequences, length), device=device) for _ in range(BATCHES)]
    found = look(Model(model, "llama"), many[0])
    batches = [as_batch(ids, seed=0) for ids in many]
    sites = (*found.shapes, *found.attention)

    def folder(
        kept: Iterable[type[Stat]], attention: tuple[type[Stat], ...], share: float = 1.0
    ) -> tuple[Folder, Callable[[], object]]:
        made = Folder(sites, Plan(tuple(kept), 1), attention, found, share)
        return made, lambda: [made.fold(model, batch) for batch in batches]

    made, queries = folder((), (Rows, Queries, Counterfactual))

    @torch.no_grad()
    def plain_forward() -> None:
        for ids in many:
            model(input_ids=ids)

    ways: dict[str, Callable[[], object]] = {
        "plain forward": plain_forward,
        "all O(d) measures": folder(OF_WIDTH, ())[1],
        "O(d) and a covariance": folder((*OF_WIDTH, Moments), ())[1],
        "attention rows": folder((), (Rows,))[1],
        "O(d), a covariance, rows": folder((*OF_WIDTH, Moments), (Rows,))[1],
        "the same, 1/4 of the rows": folder((*OF_WIDTH, Moments), (Rows,), 0.25)[1],
        "rows, queries and keys": queries,
        "the counterfactual": lambda: list(made.fold_counterfactual(model, batches)),
    }
    _refuse_if_wrong(model, many[0])
    times: dict[str, list[float]] = {name: [] for name in ways}
    peaks = {name: _peak(work) for name, work in ways.items()}  # and the first call of each is not timed
    for _ in range(TIMES):
        for name, work in ways.items():
            times[name].append(milliseconds(work) / BATCHES)
    plain = statistics.median(times["plain forward"])
    table: dict[str, object] = {}
    for what, spent in times.items():
        middle = statistics.median(spent)
        table[what] = {"ms": middle, "ratio": middle / plain, "peak GiB": peaks[what]}
        print(f"  {what:<28} {middle:9.1f} ms   {middle / plain:6.2f}× the plain forward")
    if (sequences, length) == RETURNED:
        table["returned and sampled"] = _returned(model, many[0], plain)
    return table


def _peak(work: Callable[[], object]) -> float | None:
    if not CUDA:
        return None
    torch.cuda.reset_peak_memory_stats()
    work()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() / 2**30


def _returned(model: nn.Module, ids: Tensor, plain: float) -> dict[str, object]:
    model.set_attn_implementation("eager")
    try:
        with torch.no_grad():
            returned(model, ids)
            if CUDA:
                torch.cuda.reset_peak_memory_stats()
            spent = milliseconds(lambda: returned(model, ids))
    except torch.OutOfMemoryError:
        print("  returned and sampled: out of memory")
        return {"ms": None, "ratio": None}
    finally:
        model.set_attn_implementation("sdpa")
    peak = torch.cuda.max_memory_allocated() / 2**30 if CUDA else float("nan")
    print(f"  {'returned and sampled':<28} {spent:9.1f} ms   {spent / plain:6.2f}×, peak {peak:.1f} GiB")
    return {"ms": spent, "ratio": spent / plain, "peak GiB": peak}


def _refuse_if_wrong(model: nn.Module, ids: Tensor) -> None:
    """The mean cosine of the pass is that of the hidden states the model returns."""
    some = ids[:, :64]
    table = observe(model, [some], measures=["mean_cosine"], layers="layer.*").frame()
    with torch.no_grad():
        states = model(input_ids=some, output_hidden_states=True).hidden_states
    unit = F.normalize(states[1].flatten(0, 1).double(), dim=-1)
    n = len(unit)
    expected = float((unit.sum(0) @ unit.sum(0) - n) / (n * (n - 1)))
    got = float(table[table.layer == 1].value.iloc[0])
    assert abs(got - expected) < 1e-6, f"{got} is not {expected}: not timed"


if __name__ == "__main__":
    main()
