"""`isoscope weights` as a person types it: tables, run folder, JSON, and one sentence for bad input."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
import torch
from torch import nn

from isoscope import read_run
from isoscope.cli.screen import terminal as screen
from isoscope.measures.on_data import EXPLANATIONS
from isoscope.run.telling import Telling
from tests.conftest import Answer
from tests.models.tiny import tokenizer
from tests.run.weighing import bert, llama, shard_of, sharded

Isoscope = Callable[..., Answer]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("models") / "tiny-llama"
    llama().save_pretrained(place)  # type: ignore[operator]
    return place


def test_it_prints_tables_words_and_the_path_of_the_page(
    isoscope: Isoscope, folder: Path, tmp_path: Path
) -> None:
    answer = isoscope("weights", folder, "--out", tmp_path / "run")
    assert answer.code == 0
    for word in (
        "query_key.3", "symmetric", "regimes", "undecided", "output, without top", "isotropy", "‖γ‖/√d",
        "random W of the same size", "report.html",
    ):  # fmt: skip
        assert word in answer.out
    assert "rotary position turns queries and keys" in " ".join(answer.err.split())
    run = read_run(tmp_path / "run")
    assert run.run.kind == "weights" and run.run.question["length"] == 512
    assert set(run.frame().measure) <= set(run.run.measures)
    assert set(run.points().picture) == {"spectrum", "plane", "propagation", "svd"}
    assert (tmp_path / "run" / "report.html").stat().st_size > 1e5


def test_a_second_call_measures_nothing_again(isoscope: Isoscope, folder: Path, tmp_path: Path) -> None:
    asked = ("weights", folder, "--out", tmp_path / "run")
    first = isoscope(*asked)
    kept = next((tmp_path / "run" / "rows").iterdir())
    written = kept.stat().st_mtime_ns
    second = isoscope(*asked)
    assert second.code == 0 and "nothing is measured again" in second.err
    assert second.out == first.out and kept.stat().st_mtime_ns == written
    other = isoscope(*asked, "--length", 64)
    assert other.code == 2 and "asked with other settings (length)" in other.err


def test_changed_weights_are_another_question(isoscope: Isoscope, tmp_path: Path) -> None:
    model = bert()
    model.save_pretrained(tmp_path / "model")  # type: ignore[operator]
    assert isoscope("weights", tmp_path / "model", "--out", tmp_path / "run").code == 0
    with torch.no_grad():
        model.encoder.layer[0].attention.self.key.weight.neg_()
    model.save_pretrained(tmp_path / "model")  # type: ignore[operator]
    answer = isoscope("weights", tmp_path / "model", "--out", tmp_path / "run")
    assert answer.code == 2 and "asked with other settings (weights)" in answer.err


def test_another_config_is_another_question(isoscope: Isoscope, tmp_path: Path) -> None:
    bert().save_pretrained(tmp_path / "model")  # type: ignore[operator]
    asked = ("weights", tmp_path / "model", "--out", tmp_path / "run")
    assert isoscope(*asked).code == 0
    told = json.loads((tmp_path / "model" / "config.json").read_text())
    (tmp_path / "other.json").write_text(json.dumps({**told, "num_attention_heads": 2}))
    answer = isoscope(*asked, "--config", tmp_path / "other.json")
    assert answer.code == 2 and "asked with other settings (weights)" in answer.err
    assert "nothing is measured again" in isoscope(*asked).err


def test_json_is_for_machines(isoscope: Isoscope, folder: Path, tmp_path: Path) -> None:
    told = json.loads(isoscope("weights", folder, "--json", "--out", tmp_path / "run").out)
    kept = read_run(tmp_path / "run").frame()
    assert [row["measure"] for row in told["rows"]] == kept.measure.tolist()
    assert any("rotary position" in note for note in told["notes"])


def test_report_shows_the_same_tables(isoscope: Isoscope, folder: Path, tmp_path: Path) -> None:
    first = isoscope("weights", folder, "--out", tmp_path / "run")
    assert isoscope("report", tmp_path / "run").out == first.out


def test_a_narrow_terminal_shows_whole_cells(
    isoscope: Isoscope, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isoscope.cli.screen.terminal.screen_width", lambda **_: 80)
    out = isoscope("weights", folder, "--out", tmp_path / "run").out
    assert "…" not in out and "regimes" in out


def test_with_data_the_norm_has_its_stages(isoscope: Isoscope, tiny_bert: Path, tmp_path: Path) -> None:
    asked = ("weights", tiny_bert, "--data", "embedded", "--limit", 8, "--max-length", 32, "--out")
    answer = isoscope(*asked, tmp_path / "run")
    assert answer.code == 0
    for word in ("the same on data", "stages of the final norm", "standardised", "without bias"):
        assert word in answer.out
    run = read_run(tmp_path / "run")
    assert set(run.frame().measure) <= set(run.run.measures)
    assert "nothing is measured again" in isoscope(*asked, tmp_path / "run").err


def test_with_data_nothing_that_weights_alone_say_is_lost(isoscope: Isoscope, tmp_path: Path) -> None:
    llama().save_pretrained(tmp_path / "model")  # type: ignore[operator]
    tokenizer("both").save_pretrained(tmp_path / "model")
    asked = ("weights", tmp_path / "model", "--out")
    assert isoscope(*asked, tmp_path / "alone").code == 0
    data = ("--data", "embedded", "--limit", 8, "--max-length", 32)
    assert isoscope(*asked, tmp_path / "both", *data).code == 0
    alone, both = (read_run(tmp_path / run).frame().drop(columns="run") for run in ("alone", "both"))
    pd.testing.assert_frame_equal(both[: len(alone)], alone)
    assert (alone.kind == "output_vocabulary").any() and "walk_slope" in set(both.measure)


def test_list_has_the_measures_of_weights(isoscope: Isoscope) -> None:
    told = isoscope("list", "measures").out
    for name in ("symmetric_share: symmetric share of W", "singular_entropy", "norm_weight_outliers"):
        assert name in told
    for name, words in EXPLANATIONS.items():
        assert f"{name}: {words['title']}" in told and str(words["says"]) in told


def test_a_measure_of_weights_is_not_of_a_pass(isoscope: Isoscope, tiny_bert: Path) -> None:
    answer = isoscope("measure", tiny_bert, "--measures", "trace")
    assert answer.code == 2
    assert answer.err == "isoscope: trace is read off weights: `isoscope weights MODEL` gives it.\n"


def test_a_missing_shard_leaves_the_rest(isoscope: Isoscope, tmp_path: Path) -> None:
    place = sharded(llama(), tmp_path / "model")
    shard_of(place, "model.layers.1.self_attn.k_proj.weight").unlink()
    answer = isoscope("weights", place, "--out", tmp_path / "run")
    assert answer.code == 0
    assert "is missing" in " ".join(answer.err.split()) and "query_key.2 " not in answer.out
    assert "query_key.3" in answer.out


def sentence(answer: Answer) -> str:
    assert answer.code == 2 and answer.err.count("\n") == 1 and "Traceback" not in answer.err
    return answer.err.removeprefix("isoscope: ").strip()


def test_where_nothing_can_be_read_it_is_one_sentence_and_no_folder(
    isoscope: Isoscope, tmp_path: Path
) -> None:
    place = sharded(llama(), tmp_path / "model")
    for shard in place.glob("*.safetensors"):
        shard.unlink()
    told = sentence(isoscope("weights", place, "--out", tmp_path / "run"))
    assert told.startswith(f"nothing of '{place}' can be weighed: 8 shards are missing, first model-00001")
    assert not (tmp_path / "run").exists()


def test_a_model_of_nan_is_one_sentence_and_no_folder(isoscope: Isoscope, tmp_path: Path) -> None:
    model = bert()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(torch.nan)
    model.save_pretrained(tmp_path / "model")  # type: ignore[operator]
    told = sentence(isoscope("weights", tmp_path / "model", "--out", tmp_path / "run"))
    assert told.endswith("can be weighed: every number in it that is weighed is NaN or Inf.")
    assert not (tmp_path / "run").exists()


def test_what_is_undefined_is_named_with_its_place(isoscope: Isoscope, tmp_path: Path) -> None:
    model = llama()
    with torch.no_grad():
        model.model.layers[0].self_attn.q_proj.weight[5] = torch.nan  # head 1
        model.model.layers[2].self_attn.k_proj.weight.fill_(torch.nan)
    model.save_pretrained(tmp_path / "model")  # type: ignore[operator]
    answer = isoscope("weights", tmp_path / "model", "--out", tmp_path / "run")
    told = " ".join(answer.err.split())
    assert answer.code == 0
    assert "trace, trace_square, " in told
    assert " at query_key.1 (head 1), query_key.3: undefined, weights that are NaN or Inf" in told
    assert "norm_bias_size, bias_vocabulary_cosine: undefined, the norm has no β" in told


def test_runs_of_weights_are_not_compared(isoscope: Isoscope, folder: Path, tmp_path: Path) -> None:
    isoscope("weights", folder, "--out", tmp_path / "run")
    told = sentence(isoscope("compare", tmp_path / "run", "--out", tmp_path / "together"))
    assert told.startswith(
        f"{tmp_path / 'run'} is a run of `isoscope weights` and holds no layers to compare"
    )
    assert not (tmp_path / "together").exists()


def test_what_takes_long_is_announced(
    isoscope: Isoscope, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    plain = screen.bar
    monkeypatch.setattr(screen, "bar", lambda what: (told.append(what), plain(what))[1])
    monkeypatch.setattr(screen, "TELLING", Telling(screen.bar))
    assert isoscope("weights", folder, "--out", tmp_path / "run").code == 0
    assert list(dict.fromkeys(told)) == [
        "loading libraries",
        f"opening {folder}",
        f"weighing {folder}",
        "writing the page",
    ]


def test_a_truncated_file_and_a_pickle_with_code(isoscope: Isoscope, tmp_path: Path) -> None:
    model = bert()
    model.save_pretrained(tmp_path / "cut")  # type: ignore[operator]
    file = tmp_path / "cut" / "model.safetensors"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    assert sentence(isoscope("weights", tmp_path / "cut")).startswith(f"{file.name} is cut short: ")
    model.config.save_pretrained(tmp_path / "code")
    torch.save({"model": nn.Linear(2, 2)}, tmp_path / "code" / "pytorch_model.bin")
    assert "nothing of it was run" in sentence(isoscope("weights", tmp_path / "code"))


def test_an_architecture_that_is_not_known(isoscope: Isoscope, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "odd", "num_attention_heads": 2}')
    torch.save(
        {f"parts.{i}.{name}": torch.ones(6, 6) for i in "01" for name in ("asks", "is")},
        tmp_path / "pytorch_model.bin",
    )
    assert "--query and --key, patterns with one group" in sentence(isoscope("weights", tmp_path))
    asked = ("--query", r"parts\.(\d+)\.asks", "--key", r"parts\.(\d+)\.is", "--out", tmp_path / "run")
    answer = isoscope("weights", tmp_path, *asked)
    assert answer.code == 0 and "query_key.2" in answer.out
    assert sentence(isoscope("weights", tmp_path, "--query", "x")).startswith(
        "--query was given without --key"
    )
