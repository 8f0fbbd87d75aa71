"""The weights that are read give the queries, keys and norms of the running model, whatever its layout."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn

from isoscope.lab.model.transformer import Shape, build
from isoscope.models.weights import Projections, open_weights
from isoscope.sites import Site
from tests.models import tiny, weighed

_AUTO = {
    transformers.AutoModelForCausalLM: "gpt2 gpt_neox llama opt bloom falcon_new phi3 mpt gemma gptj xlnet",
    transformers.AutoModelForMaskedLM: "bert roberta distilbert albert modernbert electra",
    transformers.AutoModelForSeq2SeqLM: "t5 bart",
    transformers.AutoModelForSpeechSeq2Seq: "whisper",
    transformers.AutoModelForCTC: "wav2vec2",
}
HEADED: dict[str, Any] = {family: auto for auto, families in _AUTO.items() for family in families.split()}
UNTIED = {"gpt_neox", "llama", "phi3", "gptj", "wav2vec2"}
UNNORMED = ("clip", "cvt", "segformer", "opt_post")  # CLIP norms what it pools, OPT projects after its norm

BARE = ("olmo", "cvt")  # norms without weights, and with a convolution between
BARE_FIRST = ("albert", "albert_groups", "electra", "opt_post", "marian", "xlnet")


def agree(found: Projections, expected: Tensor, entered: tuple[Tensor, Tensor]) -> None:
    scores = weighed.scores_from(found, *entered)
    assert scores.shape == expected.shape
    torch.testing.assert_close(scores, expected, rtol=1e-6, atol=1e-6 * float(expected.abs().max()))


@pytest.mark.parametrize("family", weighed.ALL)
def test_scores_and_norms_are_the_running_models(family: str, tmp_path: Path) -> None:
    """From disk: q·k to 1e-6 in every head, and the norm that is named is the one whose output enters."""
    module = weighed.model(family)
    module.save_pretrained(tmp_path)
    disk, live = open_weights(str(tmp_path)), open_weights(module)
    seen = weighed.run(module, weighed.inputs(family))
    assert set(disk.sites) == set(seen.attended) and disk.sites == live.sites
    entered = weighed.entering(live, seen)
    for found, named, step in zip(disk.projections(), live.projections(), disk.steps, strict=True):
        assert weighed.same(found, named)
        agree(found, weighed.scores_seen(seen.attended[found.site]), entered[found.site])
        for norm, name, x in zip(
            (found.norm, found.key_norm), (named.norm, named.key_norm), entered[found.site], strict=True
        ):
            if norm is None or name is None:
                first = family in BARE_FIRST and step.previous is None
                assert first or family in BARE or (family, step.place.cross) == ("gpt2_cross", True)
                assert step.place.cross or any("as they stand" in told for told in found.remarks)
                continue
            left = [y for y in seen.left[name.name] if y.numel() == x.numel()]
            given = [y for y in seen.entered[name.name] if y.numel() == x.numel()]
            # Swin cuts its picture into windows between the two: the same numbers in another order
            mine = [y.flatten().sort()[0] for y in left]
            at = [torch.allclose(y, x.flatten().sort()[0]) for y in mine].index(True)
            torch.testing.assert_close(
                weighed.normed(norm, given[at].double()), left[at], rtol=1e-6, atol=1e-6
            )


@pytest.mark.parametrize("family", [name for name in weighed.ALL if name not in UNNORMED])
def test_the_final_norm_gives_the_last_hidden_state(family: str) -> None:
    module = weighed.model(family)
    found = open_weights(module).final_norm()
    seen = weighed.run(module, weighed.inputs(family))
    if found is None:
        assert family in ("olmo", "beit")
        return
    last = seen.left[""][-1]
    entered = seen.entered[found.name][-1].double().reshape(-1, found.weight.numel())
    numbers = weighed.normed(found, entered)
    assert numbers.numel() == last.numel()
    torch.testing.assert_close(numbers.flatten().sort()[0], last.flatten().sort()[0], rtol=1e-6, atol=1e-6)


def test_a_wrong_cut_would_be_seen() -> None:
    """The test can fail: queries and keys exchanged, or heads in another order, give other scores."""
    module = weighed.model("gpt_neox")
    seen, live = weighed.run(module, weighed.inputs("gpt_neox")), open_weights(module)
    found = next(live.projections())
    expected, entered = (
        weighed.scores_seen(seen.attended[found.site]),
        weighed.entering(live, seen)[found.site],
    )
    agree(found, expected, entered)
    for wrong in (
        {"query": found.query.flip(0)},
        {"query_bias": None},
        {"scale": found.scale * 1.0001},
    ):
        with pytest.raises(AssertionError):
            agree(Projections(**{**vars(found), **wrong}), expected, entered)


@pytest.mark.parametrize("family", HEADED)
def test_vocabulary_matrices(family: str, tmp_path: Path) -> None:
    """Saved with its head: the projections of the body alone, and the model's own matrices in and out."""
    if family in weighed.LAYOUTS:
        module = weighed.model(family, HEADED[family])
    else:
        module = weighed.shaken(HEADED[family].from_config(weighed.model(family).config))
    if family == "bart":
        module.final_logits_bias.normal_()
    module.save_pretrained(tmp_path)
    disk, live = open_weights(str(tmp_path)), open_weights(module)
    for one, other in zip(disk.projections(), live.projections(), strict=True):
        assert weighed.same(one, other)
    assert disk.final_norm() is not None
    head = module.lm_head if family == "wav2vec2" else module.get_output_embeddings()
    bias = module.final_logits_bias[0] if family == "bart" else getattr(head, "bias", None)
    for weights in (disk, live):
        leaving, entering = weights.vocabulary("output"), weights.vocabulary("input")
        assert leaving is not None and torch.equal(leaving.matrix, head.weight)
        assert (leaving.bias is None) == (bias is None)
        assert bias is None or torch.equal(leaving.bias, bias)
        assert leaving.tied == (family not in UNTIED)
        if family == "wav2vec2":
            assert entering is None and weights.absent("input") == "the weights hold no table of tokens"
        else:
            assert entering is not None and entering.tied == leaving.tied
            assert torch.equal(entering.matrix, module.get_input_embeddings().weight) or family == "whisper"


def test_what_a_body_does_not_have(tmp_path: Path) -> None:
    weighed.model("bert").save_pretrained(tmp_path)
    weights = open_weights(str(tmp_path))
    assert weights.vocabulary("output") is None
    assert weights.absent("output") == "the weights are of BertModel, which has no vocabulary head"
    assert weights.absent("input") == ""


class Decoder(nn.Module):
    """torch's encoder and decoder, as torch has them."""

    def __init__(self, first: bool) -> None:
        super().__init__()
        with warnings.catch_warnings():  # that pre-norm has no fast path
            warnings.simplefilter("ignore")
            self.whole = nn.Transformer(16, 4, 2, 2, 32, dropout=0, norm_first=first, batch_first=True)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.whole(x, y)


@pytest.mark.parametrize("first", [False, True])
def test_torch_encoders_and_decoders(first: bool) -> None:
    module = weighed.shaken(Decoder(first))
    given = (torch.randn(2, 5, 16).double(), torch.randn(2, 7, 16).double())
    seen = weighed.run(module, {"args": given})
    weights = open_weights(module)
    assert set(weights.sites) == set(seen.attended)
    assert [str(site) for site in weights.sites[2:4]] == ["attention.3", "cross_attention.3"]
    for found, step in zip(weights.projections(), weights.steps, strict=True):
        if found.norm is None:  # the first post-norm block of each takes what the model was given
            assert not first and step.layer == 0
            x = given[step.tower.decoder]
        else:
            x = seen.left[found.norm.name][0]
            torch.testing.assert_close(weighed.normed(found.norm, seen.entered[found.norm.name][0]), x)
        y = x if found.key_norm is found.norm else seen.left[found.key_norm.name][0]
        agree(found, weighed.scores_seen(seen.attended[found.site]), (x, y))


def test_modules_without_a_config() -> None:
    """The lab's own model, and one with a module a head: heads are counted where they stand."""
    lab = weighed.shaken(build(Shape(30, width=16, layers=2, heads=4, length=20), seed=0))
    seen, weights = weighed.run(lab, {"input_ids": torch.arange(20)[None]}), open_weights(lab)
    entered = weighed.entering(weights, seen)
    for found in weights.projections():
        agree(found, weighed.scores_seen(seen.attended[found.site]), entered[found.site])
        assert found.norm is not None and found.norm.name.endswith("norm_attention")
        assert "what the scores are multiplied by is not known and taken to be 1/√e" in found.remarks
    assert weights.final_norm().name == "norm"
    assert weights.vocabulary("input").matrix.shape == weights.vocabulary("output").matrix.shape == (30, 16)
    assert not weights.vocabulary("output").tied

    nano = weighed.shaken(tiny.nano())
    weights, each = open_weights(nano), []
    seen = weighed.run(nano, {"args": (torch.arange(12)[None],)})
    assert weights.sites == tuple(Site("attention", layer) for layer in (1, 2, 3))
    for found in weights.projections():
        assert found.query.shape == found.key.shape == (2, 16, 8)
        head = nano.h[found.site.layer - 1].heads[1]
        assert torch.equal(found.query[1], head.query.weight.T)
        each.append(found.norm.name)
    assert each == ["h.0.norm_1", "h.1.norm_1", "h.2.norm_1"]


def test_two_towers_are_numbered_as_they_run() -> None:
    text = transformers.CLIPTextConfig(**weighed._SIZES)
    vision = transformers.CLIPVisionConfig(**{**weighed.modal._VIT, "num_attention_heads": 2})
    module = weighed.shaken(
        transformers.CLIPModel(
            transformers.CLIPConfig(text_config=text.to_dict(), vision_config=vision.to_dict())
        )
    )
    given = {"pixel_values": torch.randn(1, 3, 32, 32).double(), "input_ids": torch.tensor([[5, 6, 7, 2]])}
    seen, weights = weighed.run(module, given), open_weights(module)
    assert set(weights.sites) == set(seen.attended)
    entered = weighed.entering(weights, seen)
    for found in weights.projections():
        agree(found, weighed.scores_seen(seen.attended[found.site]), entered[found.site])
    assert weights.remarks == (
        "blocks are numbered through the towers in this order: vision_model.encoder.layers.# (3), "
        "text_model.encoder.layers.# (2)",
    )


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (transformers.Qwen3Config(**weighed._GROUPED), "normalised after the projection (q_norm, k_norm)"),
        (transformers.Olmo2Config(**weighed._GROUPED), "no norm with weights is known to stand in front"),
        (transformers.Gemma2Config(**weighed._GROUPED, attn_logit_softcapping=2.0), "soft-capped at 2"),
        (transformers.LlamaConfig(**weighed._GROUPED), "rotary position turns queries and keys"),
        (transformers.BloomConfig(**weighed._SMALL), "the scores also have ALiBi"),
        (transformers.AlbertConfig(**tiny._SIZES, embedding_size=8), "one set of weights, called 3 times"),
    ],
    ids=lambda given: getattr(given, "model_type", ""),
)  # fmt: skip
def test_what_the_static_form_leaves_out_is_said(config: Any, told: str) -> None:
    found = list(open_weights(transformers.AutoModel.from_config(config)).projections())
    assert all(any(told in remark for remark in each.remarks) for each in found)
    assert not any(
        told in remark for each in open_weights(tiny.model("gpt2")).projections() for remark in each.remarks
    )


def test_layers_without_rotary_position() -> None:
    config = transformers.SmolLM3Config(
        **{**weighed._GROUPED, "num_hidden_layers": 4}, no_rope_layers=[1, 1, 1, 0]
    )
    found = open_weights(transformers.AutoModel.from_config(config)).projections()
    assert [each.rotary for each in found] == [True, True, True, False]
