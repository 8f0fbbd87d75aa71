"""Every model of the papers by name: its own architecture, tiny, saved, loaded and measured; and offline."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pandas as pd
import pytest
import torch
import transformers
from huggingface_hub.utils import validate_repo_id

import isoscope as package
from isoscope.data.documents import refuse_missing
from isoscope.data.hub import column_at
from isoscope.errors import IsoscopeError
from isoscope.models.inputs import open_data
from isoscope.models.source import fingerprint
from isoscope.models.zoo import CORPUS, MACHINA_STEPS, NAMES, ZOO, find, hub_address, meant
from isoscope.sweeps.find.patterns import PYTHIA_SCHEDULE, expand
from tests.conftest import Answer
from tests.models import (
    modal,
    test_arch_character_bert,
    test_arch_crystalcoder,
    test_arch_manta,
    test_arch_van,
    tiny,
)

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:transformers")

ASKED_FOR = (  # by the papers
    "bert", "roberta", "gpt2", "t5", "character-bert", "canine-s", "canine-c", "manta-lm", "byt5",
    "multiberts", "pythia-70m", "pythia-160m", "pythia-410m", "pythia-1b", "pythia-1.4b", "pythia-2.8b",
    "pythia-6.9b", "pythia-12b", "gpt-neox-20b", "falcon-7b", "opt-6.7b", "crystalcoder", "amber",
    "wav2vec2", "hubert", "whisper", "vit", "beit", "mit", "deit", "resnet", "efficientnet", "cvt",
    "convnext", "van",
)  # fmt: skip
_PYTHIA = ("GPTNeoXModel", "neox", 3, True)
ARCHITECTURE = {  # name: the class on the hub, how a tiny one is made, its layers, whether it attends
    "bert": ("BertModel", "bert", 3, True),
    "multiberts": ("BertModel", "bert", 3, True),
    "roberta": ("RobertaModel", "roberta", 3, True),
    "gpt2": ("GPT2Model", "gpt2", 3, True),
    "t5": ("T5Model", "t5", 6, True),
    "byt5": ("T5Model", "byt5", 4, True),
    "character-bert": ("CharacterBert", "character_bert", 2, True),
    "canine-s": ("CanineModel", "canine", 5, True),  # one before the molecules, three of them, one after
    "canine-c": ("CanineModel", "canine", 5, True),
    "manta-lm": ("Manta", "manta", 5, True),
    **{name: _PYTHIA for name in NAMES if name.startswith("pythia")},
    "gpt-neox-20b": _PYTHIA,
    "falcon-7b": ("FalconModel", "falcon", 3, True),
    "opt-6.7b": ("OPTModel", "opt", 3, True),
    "crystalcoder": ("CrystalCoder", "crystalcoder", 3, True),
    "amber": ("LlamaModel", "amber", 3, True),
    "wav2vec2": ("Wav2Vec2Model", "wav2vec2", 3, True),
    "hubert": ("HubertModel", "hubert", 3, True),
    "whisper": ("WhisperModel", "whisper", 6, True),
    "vit": ("ViTModel", "vit", 3, True),
    "beit": ("BeitModel", "beit", 3, True),
    "deit": ("DeiTModel", "deit", 3, True),
    "mit": ("SegformerModel", "segformer", 6, True),
    "cvt": ("CvtModel", "cvt", 6, True),
    "resnet": ("ResNetModel", "resnet_bottleneck", 5, False),
    "efficientnet": ("EfficientNetModel", "efficientnet", 10, False),
    "convnext": ("ConvNextModel", "convnext", 5, False),
    "van": ("Van", "van", 5, False),
}
_SIZES = tiny._SIZES | tiny._ENDS
OWN: dict[str, Callable[[], transformers.PreTrainedModel]] = {  # with what sets each of them apart
    "neox": lambda: transformers.GPTNeoXModel(
        transformers.GPTNeoXConfig(**_SIZES, use_parallel_residual=True, rotary_pct=0.25)
    ),
    "falcon": lambda: transformers.FalconModel(
        transformers.FalconConfig(**_SIZES, multi_query=True, parallel_attn=True, alibi=False, bias=False)
    ),
    "opt": lambda: transformers.OPTModel(
        transformers.OPTConfig(
            **{name: value for name, value in _SIZES.items() if name != "intermediate_size"},
            ffn_dim=32,
            word_embed_proj_dim=16,
        )
    ),
    "amber": lambda: transformers.LlamaModel(transformers.LlamaConfig(**_SIZES)),
}


def save(family: str, folder: Path) -> str:
    """A tiny random model of this family as a user has it; gives the hash of its weights."""
    if family in OWN:
        torch.manual_seed(0)
        model = OWN[family]().eval()
        model.save_pretrained(folder)
        tiny.tokenizer("both" if family == "opt" else "none").save_pretrained(folder)
        return fingerprint(model)
    if family in tiny.CONFIGS:
        tiny.save(family, folder)
        return fingerprint(tiny.model(family))
    if family in modal.ALL:
        modal.save(family, folder)
        return fingerprint(modal.build(family))
    if family == "van":
        model = test_arch_van.small()
        model.save_pretrained(folder)
        transformers.ViTImageProcessorPil(size={"height": 32, "width": 32}).save_pretrained(folder)
    elif family == "manta":
        model = test_arch_manta.small()
        test_arch_manta.publish(model, folder)
    elif family == "crystalcoder":
        model = test_arch_crystalcoder.small()
        test_arch_crystalcoder.publish(model, folder)
    else:
        model = test_arch_character_bert.small()
        model.save_pretrained(folder)
    return fingerprint(model)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[str, bool, pd.DataFrame]]:
    """A family's class, whether it loaded as it was saved, and its rows; each made once."""

    @cache
    def measure(family: str) -> tuple[str, bool, pd.DataFrame]:
        folder = tmp_path_factory.mktemp(family)
        saved = save(family, folder)
        model = package.load(str(folder))
        data = open_data("embedded", model, limit=4, max_length=32 if model.takes == "text" else None)
        measures = ["mean_cosine", "relative_drift", "mean_norm"]
        attends = [] if family in ("resnet_bottleneck", "efficientnet", "convnext", "van") else ["entropy"]
        table = package.observe(model, data, measures=measures + attends).frame()
        same = fingerprint(model.module) == saved and model.notes == ()
        return type(model.module).__name__, same, table

    return measure


def test_every_model_of_the_papers_is_here() -> None:
    assert sorted(ASKED_FOR) == sorted(NAMES) == sorted(ARCHITECTURE)
    assert len(NAMES) == len(ZOO)


@pytest.mark.parametrize("name", ASKED_FOR)
def test_its_own_architecture_is_measured(
    name: str, measured: Callable[[str], tuple[str, bool, pd.DataFrame]]
) -> None:
    kind, family, layers, attends = ARCHITECTURE[name]
    found, same, table = measured(family)
    assert found == kind
    assert same, "what was saved is what is loaded, every weight of it"
    of_layers = table[table.kind == "layer"]
    assert sorted(set(of_layers.layer)) == list(range(layers + 1))
    counted = of_layers[of_layers.n > 3 * 4]  # the last map of a small picture is one position
    assert len(counted) >= 3 * layers / 2
    assert counted.value.notna().all()
    seen = set(table[table.kind.str.contains("attention")].layer)
    assert seen == (set(range(1, layers + 1)) if attends else set())


@pytest.mark.parametrize("entry", ZOO, ids=lambda entry: entry.name)
def test_every_entry_says_what_it_is(entry: object) -> None:
    found = find(entry.name)  # type: ignore[attr-defined]
    validate_repo_id(found.hub)
    assert "/" in found.hub
    assert found.title and found.tokens and found.vector
    assert set(found.papers) <= {"godey2024", "machina2024"} and found.papers
    refuse_missing(found.data)
    assert column_at(found.corpus) is not None
    assert found.modality in CORPUS


def test_checkpoints() -> None:
    for entry in ZOO:
        names = expand(entry.revisions) if entry.revisions else []
        if entry.name.startswith("pythia"):
            assert names == [f"step{step}" for step in MACHINA_STEPS]
            assert len(names) == 21 and names[-1] == "step143000"
            assert set(names) <= set(expand(PYTHIA_SCHEDULE))
        elif entry.name == "multiberts":
            assert len(names) == 29
            assert [names[0], names[1], names[-1]] == ["step_0k", "step_20k", "step_2000k"]
            assert hub_address("multiberts", names[1]) == ("google/multiberts-seed_0-step_20k", None)
        else:
            assert not names


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No network and an empty cache, in an empty folder."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.file_download.HF_HUB_CACHE", str(tmp_path / "hub"), raising=False)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


@pytest.mark.parametrize("name", ASKED_FOR)
def test_offline_one_sentence_says_how_to_get_it(name: str, offline: Path) -> None:
    with pytest.raises(IsoscopeError) as told:
        package.load(name)
    said, entry = str(told.value), find(name)
    assert said.startswith(f"'{name}' is {entry.title}, {entry.hub} on the hub, which cannot be reached")
    assert f"`hf download {entry.hub} --local-dir {name}`" in said
    assert said.count(". ") == 0 and said.endswith("put the folder here.")


@pytest.mark.parametrize("verb", ["measure", "weights"])
def test_the_command_says_the_same(verb: str, isoscope: Callable[..., Answer], offline: Path) -> None:
    answer = isoscope(verb, "pythia-70m", "--revision", "step1000")
    assert answer.code == 2
    assert "`hf download EleutherAI/pythia-70m --revision step1000` where there is a network" in answer.err
    assert "--local-dir" not in answer.err, "a folder of that name would be read as the end of training"
    assert answer.err.count("\n") == 1


def test_a_checkpoint_of_its_own_id_is_not_put_in_the_model_s_folder(offline: Path) -> None:
    with pytest.raises(IsoscopeError) as told:
        package.load("multiberts", revision="step_20k")
    assert "`hf download google/multiberts-seed_0-step_20k` where" in str(told.value)
    assert "--local-dir" not in str(told.value)


def test_a_folder_of_that_name_comes_first(offline: Path, tiny_bert: Path) -> None:
    Path("gpt2").symlink_to(tiny_bert)
    assert hub_address("gpt2", None) == ("gpt2", None)
    loaded = package.load("gpt2")
    assert (type(loaded.module).__name__, loaded.name) == ("BertModel", "gpt2")


def test_what_was_downloaded_before_is_found(
    isoscope: Callable[..., Answer], offline: Path, tiny_bert: Path
) -> None:
    home, commit = offline / "hub" / "models--google-bert--bert-base-uncased", "7" * 40
    (home / "refs").mkdir(parents=True)
    (home / "refs" / "main").write_text(commit)
    (home / "snapshots").mkdir()
    (home / "snapshots" / commit).symlink_to(tiny_bert)
    loaded = package.load("bert")
    assert (loaded.name, loaded.revision) == ("google-bert/bert-base-uncased", commit)
    measures = ("--limit", "2", "--max-length", "16", "--measures", "drift", "--out", offline / "run")
    assert isoscope("measure", "bert", *measures).code == 0
    assert isoscope("weights", "bert", "--out", offline / "weighed").code == 0


@pytest.mark.parametrize(
    ("asked", "near"),
    [("pythia-70", "pythia-70m"), ("gpt-2", "gpt2"), ("CANINE-S", "canine-s"), ("bertt", "bert")],
)
def test_near_names(asked: str, near: str, offline: Path) -> None:
    with pytest.raises(IsoscopeError, match=rf"no model '{asked}': .* Did you mean '{near}'\?$"):
        package.load(asked)


def test_names_that_are_near_none() -> None:
    for asked in ("owner/model", "/no/such/folder", "llama-3-8b", "x"):
        assert meant(asked) == ""
    with pytest.raises(IsoscopeError, match="no model of the papers is called 'berrt'; did you mean 'bert'"):
        find("berrt")
