"""What data adds to weights: one pass, three parts; where one cannot be had the others are."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import transformers
from scipy.stats import spearmanr
from torch import nn

import isoscope
from isoscope.data.batch import Batch
from isoscope.errors import IsoscopeError
from isoscope.measures.on_data import EXPLANATIONS
from isoscope.measures.table import MEASURES
from isoscope.models.source import Model
from isoscope.models.weights import open_weights
from isoscope.results.points import POINT_COLUMNS
from isoscope.results.row import frame
from isoscope.run.weigh.data import data_part
from isoscope.run.weigh.frequency import added_counts, frequency_readings, token_counts
from isoscope.run.weigh.weighed import Findings
from tests.models import tiny, weighed
from tests.run.walking import Walking, batches, walks

WORDS = {"family", "title", "formula", "says", "misleads", "null", "interval", "source", "range"}
STAGES = [
    f"norm_{name}"
    for name in ("before", "standardised", "scaled", "output", "without_bias", "without_weight")
]


def part_of(module: Any, data: Any, **options: Any) -> Findings:
    source = Model(module, "tiny")
    return data_part(source, open_weights(source), data, **options)


def only(table: pd.DataFrame, kind: str, measure: str) -> pd.Series:
    found = table[(table["kind"] == kind) & (table["measure"] == measure) & table["head"].isna()]
    assert len(found) == 1
    return found.iloc[0]


def test_everything_is_there(bert: str, lines: str) -> None:
    """From a folder, with real tokens and packed text: rows, points, facts, remarks."""
    source = isoscope.load(bert)
    data = isoscope.text(lines, source.tokenizer, max_length=40, limit=12, batch_size=5)
    done: list[tuple[int, int | None]] = []
    part = data_part(source, open_weights(bert), data, progress=lambda *at: done.append(at))
    table = frame(part.rows)
    assert done == [(5, 12), (10, 12), (12, 12)]
    assert list(dict.fromkeys(table["kind"])) == [*STAGES, "norm", "query_key", "input_vocabulary"]
    known = {measure.name for measure in MEASURES} | EXPLANATIONS.keys()
    assert set(table["measure"]) <= known
    assert set(table[table["kind"] == "query_key"]["measure"]) <= EXPLANATIONS.keys()
    assert EXPLANATIONS.keys() <= set(table["measure"])
    heads = table[table["head"].notna()]
    assert set(zip(heads["layer"], heads["head"], strict=True)) == {(i, j) for i in (1, 2, 3) for j in (0, 1)}
    assert list(part.points.columns) == list(POINT_COLUMNS)
    shown = part.points.groupby(["layer", "head", "series"]).size()
    assert len(shown) == 3 * 2 * 4 and set(shown) == {32}
    predicted = part.points[part.points["series"] == "predicted"]
    assert predicted["y"].between(0, 1).all() and predicted["x"].between(0, 1).all()
    measured = part.points[part.points["series"] == "measured"]
    assert np.allclose(measured.groupby(["layer", "head"])["y"].mean(), 1, atol=1e-5)
    assert part.facts["sequences"] == 12
    assert any("the theory takes inputs for a random walk" in remark for remark in part.remarks)
    assert not table["value"].isna().all()
    first = table[table["kind"] == "norm_output"].set_index("measure")["value"]
    whole = isoscope.observe(source, data, measures=["drift", "mean_cosine_between", "isoscore"]).frame()
    last = whole[whole["layer"] == 3].set_index("measure")["value"]  # post-norm: what leaves the last block
    for measure in ("drift", "mean_cosine_between", "isoscore"):
        assert first[measure] == pytest.approx(last[measure], rel=1e-5)


def test_every_explanation_has_all_its_words() -> None:
    for name, words in EXPLANATIONS.items():
        assert set(words) == WORDS and all(words.values()), name
    assert not EXPLANATIONS.keys() & {measure.name for measure in MEASURES}


def test_weights_of_a_file_with_other_names(tmp_path: Path) -> None:
    """Saved with its head, the file's names have a prefix that the running model lacks."""
    module = weighed.model("bert", transformers.AutoModelForMaskedLM)
    module.save_pretrained(tmp_path)
    source = Model(transformers.AutoModel.from_pretrained(tmp_path).eval(), "tiny")
    from_file = data_part(source, open_weights(str(tmp_path)), [tiny.ids(4, 20)])
    alive = data_part(source, open_weights(source), [tiny.ids(4, 20)])
    mine, other = (frame(part.rows)[["kind", "layer", "measure", "value"]] for part in (from_file, alive))
    pd.testing.assert_frame_equal(mine, other)
    assert len(mine) > 50


def counted(rows: list[list[int]], mask: list[list[int]]) -> Counter[int]:
    return Counter(
        token
        for ids, seen in zip(rows, mask, strict=True)
        for token, one in zip(ids, seen, strict=True)
        if one
    )


def test_tokens_are_counted_where_they_count() -> None:
    given, more = tiny.ids(4, 20), tiny.ids(3, 11, seed=5)
    total = torch.zeros(0, dtype=torch.long)
    expected: Counter[int] = Counter()
    for each in (given, more):
        batch = Batch(each, each["attention_mask"].bool(), torch.arange(len(each["input_ids"])))
        found = token_counts(batch)
        assert found is not None
        total = added_counts(total, found)
        expected += counted(each["input_ids"].tolist(), each["attention_mask"].tolist())
    assert {token: int(total[token]) for token in total.nonzero().flatten().tolist()} == dict(expected)
    assert int(total[tiny.PAD]) == 0
    assert token_counts(Batch(torch.randn(2, 3, 4), None, torch.arange(2))) is None


@pytest.mark.parametrize("seed", range(3))
def test_frequency_is_held_against_rows(seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    counts = torch.randint(0, 6, (50,), generator=random)
    matrix = torch.randn(60, 7, generator=random) + 0.5
    matrix[int(counts.nonzero()[0])] = torch.nan
    found = frequency_readings(matrix, counts)
    seen = counts.nonzero().flatten()[1:]
    mean = matrix[~matrix.isnan().any(1)].mean(0)
    for measure, values in (
        ("frequency_norm_correlation", matrix[seen].norm(dim=1)),
        ("frequency_drift_correlation", matrix[seen] @ mean),
    ):
        expected = spearmanr(counts[seen].numpy(), values.numpy()).statistic
        assert found[measure].value == pytest.approx(expected, abs=1e-6)
        assert found[measure].low < expected < found[measure].high and found[measure].n == len(seen)


def test_a_planted_relation_is_found() -> None:
    counts = torch.arange(1, 41)
    matrix = torch.zeros(40, 3)
    matrix[:, 0], matrix[:, 1] = 1 / counts, 0.1
    found = frequency_readings(matrix, counts)
    assert found["frequency_norm_correlation"].value == pytest.approx(-1)
    assert found["frequency_drift_correlation"].value == pytest.approx(-1)
    same = frequency_readings(matrix, torch.ones(40, dtype=torch.long))
    assert all(math.isnan(reading.value) and "equally often" in reading.note for reading in same.values())
    few = frequency_readings(matrix, torch.arange(5))
    assert all("fewer than 10 token types" in reading.note for reading in few.values())


def test_untied_matrices_are_both_held_against_frequency() -> None:
    module = weighed.model("llama", transformers.AutoModelForCausalLM)
    table = frame(part_of(module, [tiny.ids(4, 20)]).rows)
    for kind in ("input_vocabulary", "output_vocabulary"):
        assert only(table, kind, "frequency_norm_correlation")["n"] > 10
    tied = frame(part_of(weighed.model("gpt2", transformers.AutoModelForCausalLM), [tiny.ids(4, 20)]).rows)
    assert "output_vocabulary" not in set(tied["kind"])


def test_a_model_without_tokens_norm_or_names() -> None:
    """A part that cannot be had is a remark; the others are measured."""
    queries = torch.eye(4).expand(2, 4, 4)
    part = part_of(Walking(queries, queries), batches(walks(9, 20, 4), 4))
    assert any("the data has no tokens" in remark for remark in part.remarks)
    assert any("no final norm with weights is known" in remark for remark in part.remarks)
    assert set(frame(part.rows)["kind"]) == {"query_key"}
    tables = nn.ModuleDict({"wte": nn.Embedding(tiny.VOCABULARY, 16)})
    source = Model(weighed.model("gpt2"), "tiny")
    bare = data_part(source, open_weights(tables), [tiny.ids()])
    assert any("no attention whose queries and keys are known" in remark for remark in bare.remarks)
    assert set(frame(bare.rows)["kind"]) == {"input_vocabulary"}


def test_data_without_a_batch() -> None:
    with pytest.raises(IsoscopeError, match="the data holds no batch"):
        part_of(weighed.model("bert"), [])


def test_the_model_is_left_as_it_was() -> None:
    module = weighed.model("gpt2").train()
    before = {name: weight.clone() for name, weight in module.state_dict().items()}
    part_of(module, [tiny.ids()])
    assert module.training and not any(
        part._forward_hooks or part._forward_pre_hooks for part in module.modules()
    )
    assert all(torch.equal(before[name], weight) for name, weight in module.state_dict().items())


def test_a_hand_written_model() -> None:
    """Every head a module of its own, tokens as a bare tensor."""
    part = part_of(tiny.nano(), [tiny.ids(3, 18)["input_ids"].clamp(min=5)])
    table = frame(part.rows)
    heads = table[(table["measure"] == "propagation_agreement") & table["head"].notna()]
    assert sorted(set(heads["head"])) == [0, 1] and heads["value"].notna().all()
    assert only(table, "norm_output", "drift")["n"] == 54


@pytest.mark.parametrize("batch_first", [False, True])
def test_torchs_own_encoder(batch_first: bool) -> None:
    """Sequences first or second: the same numbers."""
    torch.manual_seed(0)
    block = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    norm = nn.LayerNorm(16)
    first = nn.TransformerEncoder(block, 2, norm=norm, enable_nested_tensor=False).double().eval()
    weighed.shaken(first)
    inputs = walks(9, 14, 16)
    expected = frame(part_of(first, [inputs]).rows)
    if batch_first:
        assert set(expected["kind"]) >= {"norm_output", "query_key"}
        return
    turned = (
        nn.TransformerEncoder(
            nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0),
            2,
            norm=nn.LayerNorm(16),
            enable_nested_tensor=False,
        )
        .double()
        .eval()
    )
    turned.load_state_dict(first.state_dict())
    found = frame(part_of(turned, [inputs.transpose(0, 1)]).rows)
    names = ["kind", "layer", "head", "measure", "n"]
    assert found[names].equals(expected[names])
    smooth = ~found["measure"].isin(["propagation_agreement", "softmax_agreement"])
    np.testing.assert_allclose(found["value"][smooth], expected["value"][smooth], rtol=1e-6, atol=1e-8)


def test_counts_of_different_lengths_are_added() -> None:
    assert added_counts(torch.tensor([1, 2]), torch.tensor([0, 0, 5])).tolist() == [1, 2, 5]
