"""One policy of counting: the same tokens count alike however they come, and what is lost is noted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

import isoscope
from isoscope.cli.measure import measure
from isoscope.data.counting import Counting
from isoscope.errors import IsoscopeError
from tests.cli import conftest
from tests.models import tiny
from tests.run.training import ids, language

VERB = measure
MEASURES = ["mean_cosine_between", "drift", "relative_drift", "mean_norm", "entropy", "sink_mass"]


run = conftest.call  # a fixture


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> str:
    random = np.random.default_rng(0)
    words = ["the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "while", "it", "rains"]
    texts = [" ".join(random.choice(words, size=random.integers(4, 16))) for _ in range(30)]
    file = tmp_path_factory.mktemp("lines") / "lines.jsonl"
    file.write_text("\n".join(json.dumps({"text": text}) for text in dict.fromkeys(texts)))
    return str(file)


def numbers(rows) -> np.ndarray:
    rows = rows[rows["head"].isna() & rows.measure.isin(MEASURES)]
    rows = rows.sort_values(["kind", "layer", "measure"])
    return rows[["n", "value", "null", "low", "high"]].to_numpy(float)


@pytest.mark.parametrize("policy", [{}, {"skip_first": False}, {"skip_special": False}, tiny.EVERY])
def test_the_same_tokens_have_the_same_readings(
    run: conftest.Call, tmp_path: Path, lines: str, policy: dict[str, bool]
) -> None:
    folder = tiny.save("bert", tmp_path / "bert")
    loaded = isoscope.load(str(folder))
    special, first = (policy.get(name) is False for name in ("skip_special", "skip_first"))
    data = isoscope.text(
        lines, loaded.tokenizer, pack=False, max_length=20, batch_size=6, special=special, first=first
    )
    expected = isoscope.observe(loaded, data, measures=MEASURES)
    batches = [dict(batch.inputs) for batch in data]
    assert any((batch["attention_mask"] == 0).any() for batch in batches)
    listed = isoscope.observe(loaded, batches, measures=MEASURES, **policy)
    rows = [{name: x[0] for name, x in batch.items()} for each in batches for batch in _single(each)]
    loader = DataLoader(rows, batch_size=None, collate_fn=lambda row: {k: x[None] for k, x in row.items()})
    loaded_rows = isoscope.observe(loaded, loader, measures=MEASURES, **policy)
    monitor = isoscope.Monitor(loaded, batches, measures=MEASURES, budget=None, **policy)
    monitor.step(0)
    flags = [*(["--count-special"] if special else []), *(["--count-first"] if first else [])]
    run(
        folder, "--data", lines, "--no-pack", "--max-length", 20, "--batch-size", 6,
        "--measures", ",".join(MEASURES), "--out", tmp_path / "run", *flags
    )  # fmt: skip
    tables = [
        listed.frame(),
        loaded_rows.frame(),
        monitor.frame(),
        isoscope.read_run(tmp_path / "run").frame(),
    ]
    for table in tables:
        np.testing.assert_allclose(numbers(table), numbers(expected.frame()), rtol=1e-5, atol=1e-6)
    for facts in (listed.facts, monitor._run.question):
        said = facts["counting"]
        assert said["position 0"] == ("counted" if first else "left out")
        assert said["special tokens"] == ("counted" if special else "left out, as named by the tokenizer")
    assert listed.remarks == ()


def _single(batch: dict[str, torch.Tensor]) -> list[dict[str, torch.Tensor]]:
    many = len(batch["input_ids"])
    return [{name: x[i : i + 1] for name, x in batch.items()} for i in range(many)]


def counted(module: nn.Module, item: object, **policy: bool) -> tuple[int, isoscope.Observation]:
    seen = isoscope.observe(module, [item], measures=["mean_norm"], layers="layer.0", **policy)
    return int(seen.frame().n.iloc[0]), seen


def test_special_ids_of_a_config() -> None:
    module = tiny.model("llama")
    module.config.bos_token_id, module.config.eos_token_id, module.config.pad_token_id = 5, [6, 7], None
    tokens = torch.tensor([[5, 9, 6, 10, 7, 11], [12, 5, 13, 14, 15, 16]])
    assert counted(module, {"input_ids": tokens})[0] == 3 + 4
    assert counted(module, {"input_ids": tokens}, skip_special=False)[0] == 10
    assert counted(module, {"input_ids": tokens}, skip_first=False)[0] == 3 + 5
    found, seen = counted(module, {"input_ids": tokens}, **tiny.EVERY)
    assert found == 12 and seen.facts["counting"]["special tokens"] == "counted"
    module.config.bos_token_id = module.config.eos_token_id = None
    module.config.pad_token_id = 5
    assert "only 5 is known, from the model's config" in counted(module, {"input_ids": tokens})[1].remarks[0]


def test_position_0_is_the_first_that_is_no_padding() -> None:
    module = tiny.model("llama")
    tokens = torch.randint(8, 40, (2, 6))
    mask = torch.tensor([[0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0]])
    found = Counting.of(None, None).apply(isoscope.Batch(tokens, mask.bool(), torch.arange(2)))
    assert found.counts.tolist() == [[False] * 3 + [True] * 3, [False] + [True] * 4 + [False]]
    assert counted(module, {"input_ids": tokens, "attention_mask": mask}, skip_special=False)[0] == 7


def test_where_special_tokens_are_not_known_a_remark_says_so() -> None:
    found, seen = counted(language(), ids(3, 0))
    assert found == 3 * (ids(3, 0).shape[1] - 1)
    assert seen.facts["counting"]["special tokens"] == "not known"
    assert "its config names no special token" in seen.remarks[0]
    assert counted(language(), ids(3, 0), skip_special=False)[1].remarks == ()


def test_of_floats_nothing_is_known() -> None:
    module = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)) for _ in range(3)))
    x = torch.randn(5, 6, 4)
    found, seen = counted(module, x)
    assert found == 30
    assert seen.facts["counting"]["position 0"] == "counted"
    assert "the inputs are no token ids" in seen.remarks[0]
    assert counted(module, x, skip_first=True)[0] == 25
    assert counted(module, torch.randn(5, 4))[1].remarks == ()


def test_a_batch_made_by_hand_says_itself_what_counts() -> None:
    tokens = torch.randint(5, 40, (2, 6))
    found, seen = counted(tiny.nano(), isoscope.Batch(tokens, None, torch.arange(2)))
    assert found == 12 and "counting" not in seen.facts


def test_data_has_a_policy_of_its_own(lines: str) -> None:
    data = isoscope.text(lines, tiny.tokenizer())
    with pytest.raises(IsoscopeError, match="this data has its own policy"):
        isoscope.observe(tiny.model("bert"), data, skip_first=False)
    with pytest.raises(IsoscopeError, match="groups= is for batches of your own"):
        isoscope.observe(tiny.model("bert"), data, groups=[1])


@pytest.mark.parametrize("measures", [["intrinsic_dimension"], ["mean_cosine"], ["mean_norm"], ["isoscore"]])
def test_nothing_is_dropped_in_silence(measures: list[str]) -> None:
    cloud = torch.randn(200, 8)
    cloud[3, 2], cloud[7, 0], cloud[11] = torch.nan, torch.inf, 0
    notes = isoscope.describe(cloud, measures=measures).notes()
    assert "cloud: 2 of 200 vectors have NaN or Inf, or overflow, and are left out" in notes
    assert "cloud: 1 of 198 vectors are zero: cosines leave them out" in notes


def test_rows_with_nan_are_noted_whatever_is_asked_for() -> None:
    module = tiny.nano()
    with torch.no_grad():
        module.wte.weight[9] = torch.nan
    tokens = torch.tensor([[9, 5, 6, 7], [8, 5, 6, 7]])
    notes = isoscope.observe(module, [tokens], measures=["query_drift"]).notes()
    assert any("rows have scores with NaN or Inf, and are left out" in note for note in notes)
