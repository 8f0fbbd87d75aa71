"""The papers' models by name: what each is, where its weights are, and what one vector of it is.

A name stands for a hub id wherever an address is asked for; a folder of that name on this machine comes
first. `data` needs no download; `corpus` is public data of the same kind, as `--data` takes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from isoscope.errors import IsoscopeError, chosen

GODEY, MACHINA = "godey2024", "machina2024"
TEXT, SPEECH, VISION = "text", "speech", "vision"
CORPUS = {
    TEXT: "Salesforce/wikitext@wikitext-103-raw-v1:validation:text",
    SPEECH: "openslr/librispeech_asr@clean:test:audio",
    VISION: "zh-plus/tiny-imagenet:valid:image",
}
# of Pythia step0 and int(143·i/20)·1000 for i = 1 … 20: the 21 that Machina & Mercer measured
MACHINA_STEPS = (0, *(int(143 * i / 20) * 1000 for i in range(1, 21)))
_TOKEN, _FRAME = "a token", "a frame of 20 ms"


@dataclass(frozen=True)
class Entry:
    """A model of the papers. `revisions` is a pattern of those that its training left, as sweeps take it.

    Where checkpoints are not revisions of one hub id but ids of their own, `series` is that of one, with the
    checkpoint in place of {}.
    """

    name: str
    title: str
    modality: str
    tokens: str  # sub-words, words of characters, characters, bytes, frames, patches, positions
    hub: str
    vector: str
    papers: tuple[str, ...] = (GODEY,)
    revisions: str = ""
    series: str = ""
    data: str = "embedded"

    @property
    def corpus(self) -> str:
        """Public data of this modality, as `--data` takes it."""
        return CORPUS[self.modality]


_BOTH = "a {0} of the encoder, then of the decoder, which is fed the same"
_DEEP = "a character; in the deep layers four of them"
_WIDER = "a patch, wider from stage to stage"
_MAP = "a position of the feature map"
ZOO = (
    Entry("bert", "BERT base", TEXT, "sub-words", "google-bert/bert-base-uncased", _TOKEN),
    Entry("roberta", "RoBERTa base", TEXT, "sub-words", "FacebookAI/roberta-base", _TOKEN),
    Entry("gpt2", "GPT-2", TEXT, "sub-words", "openai-community/gpt2", _TOKEN),
    Entry("t5", "T5 base", TEXT, "sub-words", "google-t5/t5-base", _BOTH.format("token")),
    Entry(
        "multiberts", "MultiBERTs, seed 0", TEXT, "sub-words", "google/multiberts-seed_0", _TOKEN,
        revisions="step_{0..200:20,300..2000:100}k", series="google/multiberts-seed_0-{}",
    ),
    Entry("character-bert", "CharacterBERT", TEXT, "words of characters", "helboukkouri/character-bert",
          "a word"),
    Entry("canine-s", "CANINE-S", TEXT, "characters", "google/canine-s", _DEEP),
    Entry("canine-c", "CANINE-C", TEXT, "characters", "google/canine-c", _DEEP),
    Entry("manta-lm", "MANTa-LM base", TEXT, "bytes", "almanach/manta-lm-base",
          "a block of bytes of the encoder, then a byte of the decoder, which is fed the same"),
    Entry("byt5", "ByT5 base", TEXT, "bytes", "google/byt5-base", _BOTH.format("byte")),
    *(
        Entry(f"pythia-{size}", f"Pythia {size}", TEXT, "sub-words", f"EleutherAI/pythia-{size}", _TOKEN,
              (MACHINA,), f"step{{{','.join(map(str, MACHINA_STEPS))}}}")
        for size in ("70m", "160m", "410m", "1b", "1.4b", "2.8b", "6.9b", "12b")
    ),
    Entry("gpt-neox-20b", "GPT-NeoX 20B", TEXT, "sub-words", "EleutherAI/gpt-neox-20b", _TOKEN, (MACHINA,)),
    Entry("falcon-7b", "Falcon 7B", TEXT, "sub-words", "tiiuae/falcon-7b", _TOKEN, (MACHINA,)),
    Entry("opt-6.7b", "OPT 6.7B", TEXT, "sub-words", "facebook/opt-6.7b", _TOKEN, (MACHINA,)),
    Entry("crystalcoder", "CrystalCoder 7B", TEXT, "sub-words", "LLM360/CrystalCoder", _TOKEN, (MACHINA,)),
    Entry("amber", "Amber 7B", TEXT, "sub-words", "LLM360/Amber", _TOKEN, (MACHINA,)),
    Entry("wav2vec2", "wav2vec 2.0 base", SPEECH, "frames", "facebook/wav2vec2-base-960h", _FRAME),
    Entry("hubert", "HuBERT base", SPEECH, "frames", "facebook/hubert-base-ls960", _FRAME),
    Entry("whisper", "Whisper base", SPEECH, "frames", "openai/whisper-base",
          f"{_FRAME} of the encoder, then a token of the decoder, which is fed what it says itself"),
    Entry("vit", "ViT base", VISION, "patches", "google/vit-base-patch16-224", "a patch"),
    Entry("beit", "BEiT base", VISION, "patches", "microsoft/beit-base-patch16-224", "a patch"),
    Entry("deit", "DeiT base", VISION, "patches", "facebook/deit-base-distilled-patch16-224", "a patch"),
    Entry("mit", "MiT-B0 (SegFormer)", VISION, "patches", "nvidia/mit-b0", _WIDER),
    Entry("cvt", "CvT-13", VISION, "patches", "microsoft/cvt-13", _WIDER),
    Entry("resnet", "ResNet-50", VISION, "positions", "microsoft/resnet-50", _MAP),
    Entry("efficientnet", "EfficientNet-B0", VISION, "positions", "google/efficientnet-b0", _MAP),
    Entry("convnext", "ConvNeXt tiny", VISION, "positions", "facebook/convnext-tiny-224", _MAP),
    Entry("van", "VAN base", VISION, "positions", "Visual-Attention-Network/van-base", _MAP),
)  # fmt: skip
NAMES = {entry.name: entry for entry in ZOO}
_NEAR = 0.75  # of two names: "pythia-70" is near "pythia-70m", "nobody/nothing" near none


def find(name: str) -> Entry:
    """The model of that name.

    >>> find("pythia-70m").hub
    'EleutherAI/pythia-70m'
    """
    return chosen("model of the papers", name, ZOO)


def hub_address(address: str, revision: str | None = None) -> tuple[str, str | None]:
    """The hub id and revision that a name of the zoo stands for; any other address, and a folder, as it is.

    >>> hub_address("bert"), hub_address("owner/model", "main")
    (('google-bert/bert-base-uncased', None), ('owner/model', 'main'))
    >>> hub_address("multiberts", "step_20k")
    ('google/multiberts-seed_0-step_20k', None)
    """
    entry = NAMES.get(address)
    if entry is None or Path(address).exists():
        return address, revision
    if entry.series and revision is not None:
        return entry.series.format(revision), None
    return entry.hub, revision


def not_here(name: str, hub: str, revision: str | None) -> IsoscopeError:
    """Say what a name of the zoo is, that its weights are not here, and how to get them."""
    get, whole = f"hf download {hub}", revision is None and hub == NAMES[name].hub
    get += f" --local-dir {name}" if whole else f" --revision {revision}" if revision else ""
    put = "put the folder here" if whole else "bring its cache here (HF_HOME says where it is)"
    how = f"run `{get}` where there is a network, and {put}."
    return IsoscopeError(
        f"'{name}' is {NAMES[name].title}, {hub} on the hub, which cannot be reached, and its weights are "
        f"not on this machine: {how}"
    )


def meant(name: str) -> str:
    """A question that names the nearest model of the papers; empty where none is near.

    >>> meant("pythia-70"), meant("nobody/nothing")
    (" Did you mean 'pythia-70m'?", '')
    """
    near = get_close_matches(name.lower(), NAMES, n=1, cutoff=_NEAR)
    return f" Did you mean '{near[0]}'?" if near else ""
