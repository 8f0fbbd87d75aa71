"""Memory and time of `isoscope weights` on a checkpoint larger than it may hold: 4 GB in shards.

    python bench/weights.py [FOLDER]

Writes a Llama-shaped checkpoint of random bfloat16 numbers in safetensors shards to a temporary folder (below
FOLDER if given; it is removed afterwards), weighs it in a process of its own, and samples that process's
anonymous memory (RssAnon of /proc/self/status; pages of mapped files do not count, the kernel may drop them).
What is weighed is checked against a head computed by hand. Writes bench/results/weights-cpu.json.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import torch
from safetensors.torch import save_file

WIDTH, HEADS, KEY_HEADS, INNER, HIDDEN, VOCABULARY, LAYERS = 2048, 16, 4, 128, 8192, 32_000, 32
RESULTS = Path(__file__).parent / "results"
MEGABYTE = 2**20


def shapes(layer: int) -> dict[str, tuple[int, ...]]:
    """The tensors of one layer."""
    name = f"model.layers.{layer}"
    return {
        f"{name}.self_attn.q_proj.weight": (HEADS * INNER, WIDTH),
        f"{name}.self_attn.k_proj.weight": (KEY_HEADS * INNER, WIDTH),
        f"{name}.self_attn.v_proj.weight": (KEY_HEADS * INNER, WIDTH),
        f"{name}.self_attn.o_proj.weight": (WIDTH, HEADS * INNER),
        f"{name}.mlp.gate_proj.weight": (HIDDEN, WIDTH),
        f"{name}.mlp.up_proj.weight": (HIDDEN, WIDTH),
        f"{name}.mlp.down_proj.weight": (WIDTH, HIDDEN),
        f"{name}.input_layernorm.weight": (WIDTH,),
        f"{name}.post_attention_layernorm.weight": (WIDTH,),
    }


def write(folder: Path) -> int:
    """The checkpoint: a shard a layer; gives its bytes."""
    parts = [shapes(layer) for layer in range(LAYERS)]
    parts.append({"model.embed_tokens.weight": (VOCABULARY, WIDTH), "model.norm.weight": (WIDTH,)})
    where, total = {}, 0
    for number, part in enumerate(parts, start=1):
        file = f"model-{number:05d}-of-{len(parts):05d}.safetensors"
        made = {name: (0.02 * torch.randn(shape)).bfloat16() for name, shape in part.items()}
        save_file(made, folder / file, metadata={"format": "pt"})
        total += (folder / file).stat().st_size
        where |= dict.fromkeys(part, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": where}))
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": WIDTH,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KEY_HEADS,
        "head_dim": INNER,
        "intermediate_size": HIDDEN,
        "vocab_size": VOCABULARY,
        "tie_word_embeddings": True,
    }
    (folder / "config.json").write_text(json.dumps(config))
    return total


def anonymous() -> int:
    """The anonymous memory of this process, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("this kernel does not tell RssAnon")


class Peak(threading.Thread):
    """Samples the anonymous memory every 5 ms."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.before, self.most, self.over = anonymous(), 0, False

    def run(self) -> None:
        """Until it is over."""
        while not self.over:
            self.most = max(self.most, anonymous() - self.before)
            time.sleep(0.005)


def weigh_alone(folder: str) -> None:
    """In a process of its own: weigh, and print what it took."""
    from isoscope.models.weights import open_weights
    from isoscope.run.weigh.heads import weigh_heads
    from isoscope.run.weigh.weigh import weigh
    from isoscope.run.weigh.weighed import fingerprint

    watch = Peak()
    watch.start()
    start = time.perf_counter()
    opened = open_weights(folder)
    fingerprint(opened)
    told = {"open_seconds": time.perf_counter() - start}
    start = time.perf_counter()
    for each in weigh_heads(opened, 512, 0, lambda site, why: sys.exit(f"{site}: {why}")):
        last = each
    told["heads_seconds"], told["heads_peak_bytes"] = time.perf_counter() - start, watch.most
    start = time.perf_counter()
    found = weigh(folder).frame()
    told["all_seconds"], told["peak_bytes"] = time.perf_counter() - start, watch.most
    watch.over = True
    site = last.site
    mine = found[(found.kind == site.kind) & (found.layer == site.layer) & (found["head"] == HEADS - 1)]
    told["trace"] = float(mine[mine.measure == "trace"].value.iloc[0])
    told["rows"] = len(found)
    print(json.dumps(told))


def by_hand(folder: Path) -> float:
    """Tr W of the last head of the last layer, from the file."""
    from safetensors import safe_open

    name = f"model.layers.{LAYERS - 1}"
    index = json.loads((folder / "model.safetensors.index.json").read_text())["weight_map"]
    with safe_open(folder / index[f"{name}.self_attn.q_proj.weight"], "pt") as shard:
        query, key, gamma = (
            shard.get_tensor(f"{name}.{part}.weight").double()
            for part in ("self_attn.q_proj", "self_attn.k_proj", "input_layernorm")
        )
    return float(((query[-INNER:] * gamma) * (key[-INNER:] * gamma)).sum()) * INNER**-0.5


def main() -> None:
    if sys.argv[1:2] == ["--alone"]:
        weigh_alone(sys.argv[2])
        return
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as place:
        folder = Path(place)
        size = write(folder)
        print(f"{size / 1e9:.2f} GB in {LAYERS + 1} shards, {LAYERS} layers of {HEADS} heads, d = {WIDTH}")
        done = subprocess.run(
            [sys.executable, __file__, "--alone", place], check=True, capture_output=True, text=True
        )
        told = json.loads(done.stdout.splitlines()[-1])
        right = by_hand(folder)
    if not abs(told["trace"] - right) <= 1e-9 + 1e-6 * abs(right):
        sys.exit(f"tr W of the last head is {told['trace']}, by hand {right}: not kept")
    vocabulary = 4 * VOCABULARY * WIDTH
    print(f"  open and fingerprint   {told['open_seconds']:8.2f} s")
    print(
        f"  queries and keys       {told['heads_seconds']:8.2f} s   "
        f"{told['heads_peak_bytes'] / MEGABYTE:6.0f} MiB anonymous at most"
    )
    print(
        f"  all of it              {told['all_seconds']:8.2f} s   "
        f"{told['peak_bytes'] / MEGABYTE:6.0f} MiB anonymous at most, {told['peak_bytes'] / size:.2f} of the "
        f"checkpoint, {told['peak_bytes'] / vocabulary:.1f} times its vocabulary in float32"
    )
    kept = {
        "device": "cpu",
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "checkpoint_bytes": size,
        "vocabulary_float32_bytes": vocabulary,
        **told,
    }
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / "weights-cpu.json"
    file.write_text(json.dumps(kept, indent=1) + "\n")
    print(f"written to {file}")


if __name__ == "__main__":
    main()
