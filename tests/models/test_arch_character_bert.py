"""CharacterBERT: published names, the CNN and the spelling by hand, and text from the command line."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import transformers

import isoscope as package
from isoscope.data.words import LONGEST, Words, spell
from isoscope.models.arch.character_bert import CharacterBert, CharacterCNN
from isoscope.models.arch.configs import CharacterBertConfig
from isoscope.models.inputs import open_data
from isoscope.models.weights import open_weights
from tests.conftest import Answer

OF_THE_CNN = (  # after embeddings.word_embeddings.
    "_char_embedding_weights", *(f"char_conv_{i}.{what}" for i in range(7) for what in ("weight", "bias")),
    *(f"_highways._layers.{i}.{what}" for i in range(2) for what in ("weight", "bias")),
    "_projection.weight", "_projection.bias",
)  # fmt: skip
BESIDE = ("position_embeddings.weight", "token_type_embeddings.weight", "LayerNorm.weight", "LayerNorm.bias")
OF_A_LAYER = tuple(
    f"{part}.{what}"
    for part in (
        "attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense",
        "attention.output.LayerNorm", "intermediate.dense", "output.dense", "output.LayerNorm",
    )
    for what in ("weight", "bias")
)  # fmt: skip
HEADS = (
    "cls.predictions.bias", "cls.predictions.decoder.bias", "cls.predictions.transform.dense.bias",
    "cls.seq_relationship.bias",
)  # fmt: skip
SETTINGS = {
    "model_type": "character_bert", "architectures": ["CharacterBertForPreTraining"], "hidden_size": 16,
    "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32, "max_position_embeddings": 48,
    "mlm_vocab_size": 100, "vocab_size": 100, "auto_map": {"AutoModel": "own.CharacterBertForPreTraining"},
}  # fmt: skip


def small() -> CharacterBert:
    torch.manual_seed(0)
    kept = {name: value for name, value in SETTINGS.items() if name not in ("auto_map", "architectures")}
    model = CharacterBert(CharacterBertConfig(**kept)).eval()
    with torch.no_grad():
        model.embeddings.word_embeddings._char_embedding_weights.normal_()
    return model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As on the hub: a pickle with `character_bert.` before every name, a table of places, and heads."""
    place = tmp_path_factory.mktemp("character_bert")
    held = {f"character_bert.{name}": value for name, value in small().state_dict().items()}
    held["character_bert.embeddings.position_ids"] = torch.arange(48)[None]
    torch.save(held | {name: torch.zeros(3) for name in HEADS}, place / "pytorch_model.bin")
    (place / "config.json").write_text(json.dumps(SETTINGS))
    return place


def test_names_and_size() -> None:
    with torch.device("meta"):
        model = CharacterBert(CharacterBertConfig())
    assert set(model.state_dict()) == {
        *(f"embeddings.word_embeddings.{name}" for name in OF_THE_CNN),
        *(f"embeddings.{name}" for name in BESIDE),
        *(f"encoder.layer.{layer}.{name}" for layer in range(12) for name in OF_A_LAYER),
        "pooler.dense.weight",
        "pooler.dense.bias",
    }
    filters = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
    convolutions = sum(number * (16 * wide + 1) for wide, number in filters)
    cnn = 263 * 16 + convolutions + 2 * 4096 * 2049 + 768 * 2049
    bert = 109_482_240  # BERT base, with its table of 30,522 word pieces
    assert sum(weight.numel() for weight in model.parameters()) == bert - 30_522 * 768 + cnn == 104_603_760


def test_the_cnn_by_hand() -> None:
    torch.manual_seed(1)
    cnn = CharacterCNN(5).double()
    with torch.no_grad():
        for weight in cnn.parameters():
            weight.normal_(std=0.2)
    words = ["a", "naïve", "[CLS]"]
    characters = torch.tensor([[spell(word) for word in words]])
    held = cnn.state_dict()
    for place in range(len(words)):
        embedded = held["_char_embedding_weights"][characters[0, place]]  # [50, 16]
        features = []
        for i, wide in enumerate(range(1, 8)):
            kernel, bias = held[f"char_conv_{i}.weight"], held[f"char_conv_{i}.bias"]
            windows = [embedded[start : start + wide] for start in range(LONGEST - wide + 1)]
            made = torch.stack([torch.einsum("oik,ki->o", kernel, window) + bias for window in windows])
            features.append(made.max(0).values.clamp(min=0))
        x = torch.cat(features)
        for i in range(2):
            both = held[f"_highways._layers.{i}.weight"] @ x + held[f"_highways._layers.{i}.bias"]
            gate = 1 / (1 + torch.exp(-both[2048:]))
            x = gate * x + (1 - gate) * both[:2048].clamp(min=0)
        wanted = held["_projection.weight"] @ x + held["_projection.bias"]
        with torch.no_grad():
            torch.testing.assert_close(cnn(characters)[0, place], wanted, rtol=1e-9, atol=1e-9)


def numbered(word: str) -> list[int]:
    """The authors' numbering in words: begin 258, bytes, end 259, padding 260, one more than each."""
    inside = {"[CLS]": [256], "[SEP]": [257]}.get(word) or list(word.encode()[:48])
    numbers = [260] * 50
    numbers[0] = 258
    numbers[1 : 1 + len(inside)] = inside
    numbers[1 + len(inside)] = 259
    return [number + 1 for number in numbers]


@pytest.mark.parametrize("word", ["a", "naïve", "x" * 48, "x" * 49, "é" * 40, "[CLS]", "[SEP]", "日本"])
def test_spelling(word: str) -> None:
    assert spell(word) == numbered(word)
    assert len(spell(word)) == LONGEST


def test_words_are_those_of_bert() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from transformers.models.bert.tokenization_bert_legacy import BasicTokenizer
    text = "Ça va, Monsieur O'Neill_x? It cost $3.50 — 日本 \tnaïve\n\nÅngström—(sic)…"
    words = Words()
    tokens = words(text)["input_ids"]
    assert [words.spelled[token] for token in tokens] == [
        numbered(word) for word in BasicTokenizer().tokenize(text)
    ]
    assert Words()("other words first va")["input_ids"][-1] == tokens[1]  # the same word, the same token
    framed = words("a", add_special_tokens=True)["input_ids"]
    assert [framed[0], framed[-1]] == words.all_special_ids


def test_hub_files_load_and_are_measured(folder: Path) -> None:
    loaded = package.load(str(folder))
    assert (loaded.notes, loaded.longest, loaded.tokenizer) == ((), 48, None)
    for name, value in small().state_dict().items():
        assert torch.equal(loaded.module.state_dict()[name], value), name
    data = open_data("embedded", loaded, limit=5, max_length=20)
    batch = next(iter(data))
    assert batch.inputs["input_ids"].shape == (5, 20, LONGEST)
    assert batch.counts is not None and batch.counts.sum() == 5 * 18  # neither mark counts
    table = package.observe(loaded, data, measures=["mean_cosine", "entropy"]).frame()
    assert sorted(set(table[table.kind == "layer"].layer)) == [0, 1, 2]
    assert sorted(set(table[table.kind == "attention"].layer)) == [1, 2]
    assert table.value.notna().all()
    assert (table[table.kind == "layer"].n == 5 * 18).all()


def test_padding_is_no_word_and_changes_nothing(folder: Path, tmp_path: Path) -> None:
    loaded = package.load(str(folder))
    (tmp_path / "lines.txt").write_text("one two three four five six\na b\nc d e f\n")
    tables = []
    for size in (1, 3):
        data = open_data(str(tmp_path / "lines.txt"), loaded, pack=False, batch_size=size)
        if size == 3:
            batch = next(iter(data))
            assert (batch.inputs["input_ids"][-1, 4:] == 0).all()
        tables.append(package.observe(loaded, data, measures=["mean_norm", "mean_cosine"]).frame())
    assert tables[0].n.tolist() == tables[1].n.tolist()
    assert tables[1].value.tolist() == pytest.approx(tables[0].value.tolist(), rel=1e-5, abs=1e-6)


def test_from_the_command_line(isoscope: Callable[..., Answer], folder: Path, tmp_path: Path) -> None:
    words = ("measure", folder, "--limit", "4", "--max-length", "16", "--measures", "drift,entropy")
    assert isoscope(*words, "--out", tmp_path / "run").code == 0
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    assert run["question"]["alphabet"] == "words, each of its characters"
    refused = isoscope(*words, "--tokens", "bytes", "--out", tmp_path / "other")
    assert refused.code == 2
    assert "takes words, which has no bytes; leave out --tokens" in refused.err


def test_weights(folder: Path) -> None:
    opened = open_weights(str(folder))
    assert [str(site) for site in opened.sites] == ["attention.1", "attention.2"]
    assert "no table of tokens" in opened.absent("input")


def test_transformers_has_none() -> None:
    """Where this fails, transformers has the model itself now, and arch/ may let it go."""
    assert not hasattr(transformers, "CharacterBertModel")
