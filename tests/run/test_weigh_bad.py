"""Bad weights: one part fails with a sentence, the others are measured; nothing at all is an error."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from isoscope.errors import IsoscopeError
from isoscope.run.weigh.weigh import weigh
from tests.models.tiny import VOCABULARY
from tests.run.weighing import bert, llama, shard_of, sharded, value


def test_a_missing_shard_takes_only_what_is_in_it(tmp_path: Path) -> None:
    whole = weigh(str(sharded(llama(), tmp_path))).frame()
    lost = shard_of(tmp_path, "model.layers.1.self_attn.q_proj.weight")
    lost.unlink()
    found = weigh(str(tmp_path))
    (told,) = (remark for remark in found.remarks if "query_key.2" in remark)
    assert f"the shard {lost.name} of '{tmp_path}' is missing" in told
    left = found.frame()
    assert not (left.layer == 2).any()
    same = ["kind", "layer", "head", "measure"]
    both = left.merge(whole, on=same, suffixes=("", "_whole"))
    assert len(both) == len(left) and np.allclose(both.value, both.value_whole, equal_nan=True)


def test_a_truncated_shard_is_one_sentence(tmp_path: Path) -> None:
    file = shard_of(sharded(llama(), tmp_path), "model.embed_tokens.weight")
    file.write_bytes(file.read_bytes()[:-100])
    found = weigh(str(tmp_path))
    (told,) = (remark for remark in found.remarks if remark.startswith("input_vocabulary"))
    assert told.startswith(f"input_vocabulary: {file.name} is cut short: ")
    assert (found.frame().kind == "output_vocabulary").any()


def test_a_head_that_is_nan_is_told_and_the_others_are_read() -> None:
    model = llama()
    with torch.no_grad():
        model.model.layers[0].self_attn.q_proj.weight[5] = math.nan  # head 1
        model.model.embed_tokens.weight[3] = math.inf
    found = weigh(model)
    table = found.frame()
    assert any("query_key.1: 16 weights of queries and keys are NaN or Inf" in each for each in found.remarks)
    bad = value(table, "query_key", "trace", 1, 1)
    assert math.isnan(bad.value) and bad.note == "weights that are NaN or Inf"
    assert value(table, "query_key", "trace", 1).note.endswith(
        "1 of 4 heads left out: weights that are NaN or Inf"
    )
    assert not math.isnan(value(table, "query_key", "trace", 1, 0).value)
    regimes = value(table, "query_key", "trace", 1).note.partition(";")[0].removeprefix("regimes: ")
    assert sum(int(part.split()[0]) for part in regimes.split(" · ")) == 3
    assert value(table, "query_key", "query_key_rank", 1).note.startswith("ρ(t) simulated for 3 of 3 heads; ")
    assert value(table, "input_vocabulary", "not_finite").value == 1
    assert f"input_vocabulary: 1 of {VOCABULARY} rows hold NaN or Inf and are left out" in found.remarks
    assert value(table, "input_vocabulary", "partition_isotropy").n == VOCABULARY - 1
    points = found.points()
    assert points[["x", "y"]].notna().all(axis=None)


def test_nothing_at_all_is_an_error(tmp_path: Path) -> None:
    folder = sharded(llama(), tmp_path)
    for shard in folder.glob("*.safetensors"):
        shard.unlink()
    lost = r"^nothing of '.*' can be weighed: 8 shards are missing, first model-00001-of-00008.safetensors\.$"
    with pytest.raises(IsoscopeError, match=lost):
        weigh(str(folder))


def test_shards_that_fail_for_several_reasons_are_told_by_reason(tmp_path: Path) -> None:
    shards = sorted(sharded(llama(), tmp_path).glob("*.safetensors"))
    for number, shard in enumerate(shards):
        shard.unlink() if number < 3 else shard.write_bytes(b"no header at all")
    with pytest.raises(IsoscopeError) as told:
        weigh(str(tmp_path))
    assert str(told.value).endswith(
        f"3 shards are missing, first {shards[0].name}; 5 shards cannot be read, first {shards[3].name}."
    )


@pytest.mark.parametrize("truncated", [False, True])
def test_a_shard_that_holds_nothing_weighed_is_one_remark(tmp_path: Path, truncated: bool) -> None:
    whole = weigh(str(sharded(llama(), tmp_path)))
    lost = shard_of(tmp_path, "model.layers.1.mlp.up_proj.weight")
    if truncated:
        lost.write_bytes(lost.read_bytes()[:-100])
    else:
        lost.unlink()
    found = weigh(str(tmp_path))
    (told,) = set(found.remarks) - set(whole.remarks)
    reason = (
        f"{lost.name} is cut short: " if truncated else f"the shard {lost.name} of '{tmp_path}' is missing"
    )
    assert told.startswith(reason) and told.endswith("; no reading is lost by it")
    assert len(found.frame()) == len(whole.frame())


def test_a_model_of_nan_is_an_error() -> None:
    model = llama()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(math.nan)
    batches = [torch.ones(2, 5, dtype=torch.long)]
    for data in (None, batches):
        with pytest.raises(IsoscopeError, match=r"nothing of 'Llama.*' can be weighed: every number in it"):
            weigh(model, data=data)


def test_a_pickle_with_code_is_refused(tmp_path: Path) -> None:
    model = bert()
    model.config.save_pretrained(tmp_path)
    torch.save({"weights": nn.Linear(2, 2)}, tmp_path / "pytorch_model.bin")
    with pytest.raises(IsoscopeError, match="asks for more than tensors"):
        weigh(str(tmp_path))


def test_names_of_an_unknown_architecture_can_be_given() -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.num_heads = 2
            self.parts = nn.ModuleList(
                nn.ModuleDict({"asks": nn.Linear(6, 6), "is": nn.Linear(6, 6)}) for _ in "ab"
            )

    model = Odd()
    found = weigh(model, query=r"parts\.(\d+)\.asks\.weight", key=r"parts\.(\d+)\.is\.weight")
    assert set(found.frame().layer.dropna()) == {1, 2}
    with pytest.raises(IsoscopeError, match="--query was given without --key"):
        weigh(model, query="x")
