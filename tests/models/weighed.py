"""Tiny models of many layouts, and what their queries and keys are: seen while they run, in float64."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
import transformers
from torch import Tensor, nn

from isoscope.models.attention.tap import Attended, attention_tap
from isoscope.models.blocks import find_blocks
from isoscope.models.tap import at_rest
from isoscope.models.weights import Norm, Projections, Weights
from isoscope.sites import Site
from tests.models import modal, tiny
from tests.models.test_attention_tap import MORE, PICTURES

with warnings.catch_warnings():  # they compile with torch.jit.script, which is deprecated
    warnings.simplefilter("ignore")
    import transformers.models.deberta.modeling_deberta
    import transformers.models.gpt_bigcode.modeling_gpt_bigcode

_V = tiny.VOCABULARY
_SIZES = {**tiny._SIZES, **tiny._ENDS, "num_attention_heads": 4, "num_hidden_layers": 2}
_GROUPED = {**_SIZES, "num_key_value_heads": 2}
_SEQ = {
    "vocab_size": _V, "d_model": 16, "encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 2,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "max_position_embeddings": 64,
    "pad_token_id": tiny.PAD, "decoder_start_token_id": tiny.SEP, "init_std": 0.3,
    "forced_eos_token_id": None, **tiny._ENDS,
}  # fmt: skip
_SMALL = {"vocab_size": _V, "hidden_size": 16, "n_layer": 2, "n_head": 4, **tiny._ENDS}
_FALCON = {**_SIZES, "ffn_hidden_size": 32}
_GPT = {"vocab_size": _V, "n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": 64, **tiny._ENDS}
Config = Callable[[], transformers.PreTrainedConfig]

LAYOUTS: dict[str, Config] = {
    **{name: tiny.CONFIGS[name] for name in tiny.CONFIGS if name not in ("canine", "deberta_v2")},
    "deberta_v2": lambda: transformers.DebertaV2Config(**tiny._SIZES, relative_attention=False),
    **{name: MORE[name] for name in ("bart", "xlnet", "gptj", "bloom")},
    "gemma2": lambda: transformers.Gemma2Config(
        **_GROUPED, head_dim=8, query_pre_attn_scalar=7, attn_logit_softcapping=None
    ),
    "gpt2_scaled": lambda: transformers.GPT2Config(**_GPT, scale_attn_by_inverse_layer_idx=True),
    "gpt2_unscaled": lambda: transformers.GPT2Config(**_GPT, scale_attn_weights=False),
    "gpt2_cross": lambda: transformers.GPT2Config(**_GPT, add_cross_attention=True),
    "gpt_neo": lambda: transformers.GPTNeoConfig(
        vocab_size=_V, hidden_size=16, num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]],
        max_position_embeddings=64, **tiny._ENDS,
    ),
    "falcon_new": lambda: transformers.FalconConfig(**_FALCON, new_decoder_architecture=True, num_kv_heads=2),
    "falcon_multi_query": lambda: transformers.FalconConfig(**_FALCON, multi_query=True),
    "falcon_alibi": lambda: transformers.FalconConfig(
        **_FALCON, multi_query=False, alibi=True, parallel_attn=False, bias=True
    ),
    "opt": lambda: transformers.OPTConfig(**_SIZES, ffn_dim=32),
    "opt_post": lambda: transformers.OPTConfig(
        **_SIZES, ffn_dim=32, do_layer_norm_before=False, word_embed_proj_dim=8
    ),
    "phi3": lambda: transformers.Phi3Config(**_GROUPED),
    "phi": lambda: transformers.PhiConfig(**_GROUPED),
    "mistral": lambda: transformers.MistralConfig(**_GROUPED, head_dim=6),
    "qwen2": lambda: transformers.Qwen2Config(**_GROUPED),
    "gemma": lambda: transformers.GemmaConfig(**_GROUPED, head_dim=8),
    "granite": lambda: transformers.GraniteConfig(**_GROUPED, attention_multiplier=0.3),
    "stablelm": lambda: transformers.StableLmConfig(**_GROUPED, partial_rotary_factor=0.5),
    "starcoder2": lambda: transformers.Starcoder2Config(**_GROUPED),
    "cohere": lambda: transformers.CohereConfig(**_GROUPED),
    "nemotron": lambda: transformers.NemotronConfig(**_GROUPED, head_dim=4),
    "olmo": lambda: transformers.OlmoConfig(**_GROUPED, clip_qkv=8.0),
    "mpt": lambda: transformers.MptConfig(
        vocab_size=_V, d_model=16, n_heads=4, n_layers=2, max_seq_len=64, **tiny._ENDS
    ),
    "gpt_bigcode": lambda: transformers.GPTBigCodeConfig(**_GPT, multi_query=True),
    "gpt_bigcode_many": lambda: transformers.GPTBigCodeConfig(**_GPT, multi_query=False),
    "codegen": lambda: transformers.CodeGenConfig(**_GPT, rotary_dim=4, n_ctx=64),
    "deberta": lambda: transformers.DebertaConfig(**tiny._SIZES, relative_attention=False),
    "electra": lambda: transformers.ElectraConfig(**tiny._SIZES, embedding_size=8),
    "roberta_pre": lambda: transformers.RobertaPreLayerNormConfig(**tiny._SIZES),
    "distilbert": lambda: transformers.DistilBertConfig(
        vocab_size=_V, dim=16, n_layers=2, n_heads=4, hidden_dim=32, max_position_embeddings=64
    ),
    "esm": lambda: transformers.EsmConfig(**tiny._SIZES, position_embedding_type="rotary", mask_token_id=4),
    "albert_groups": lambda: transformers.AlbertConfig(
        **{**tiny._SIZES, "num_hidden_layers": 4}, embedding_size=8, num_hidden_groups=2, inner_group_num=2
    ),
    "clip_text": lambda: transformers.CLIPTextConfig(**_SIZES),
    "mbart": lambda: transformers.MBartConfig(**_SEQ),
    "marian": lambda: transformers.MarianConfig(**_SEQ),
    "pegasus": lambda: transformers.PegasusConfig(**_SEQ),
    "wav2vec2_stable": lambda: transformers.Wav2Vec2Config(**modal._SPEECH, do_stable_layer_norm=True),
}  # fmt: skip
MODULES = tuple(
    name for name in modal.ALL if name not in ("convnext", "resnet", "resnet_bottleneck", "efficientnet")
)
ALL = (*LAYOUTS, *MODULES)
SPOKEN = ("whisper", "wav2vec2", "hubert", "wav2vec2_stable")
DECODED = ("t5", "byt5", "bart", "mbart", "marian", "pegasus")


def model(family: str, auto: Any = transformers.AutoModel) -> Any:
    """A random model with norms and biases that are far from one and zero."""
    torch.manual_seed(0)
    made = modal.build(family) if family in modal.ALL else auto.from_config(LAYOUTS[family]())
    return shaken(made)


def shaken(module: nn.Module) -> Any:
    """Every parameter moved: ones, zeros and tiny weights would hide which is which."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, weight in module.named_parameters():
            moved = torch.randn(weight.shape, generator=generator)
            weight.add_(moved * 0.3) if weight.dim() < 2 else weight.copy_(moved * 0.25)
            if name.endswith((".rel_attn.r", ".rel_attn.seg_embed")):  # XLNet's terms that are not of content
                weight.zero_()
    return module.eval()


def inputs(family: str) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(5)
    if family in PICTURES:
        return {"pixel_values": torch.randn(1, 3, 32, 32, generator=generator).double()}
    if family == "whisper":
        heard = torch.randn(1, 80, 200, generator=generator).double()
        return {"input_features": heard, "decoder_input_ids": torch.randint(4, 40, (1, 7))}
    if family in SPOKEN:
        return {"input_values": torch.randn(1, 3000, generator=generator).double()}
    given = {"input_ids": tiny.ids(2, 11)["input_ids"].clamp(min=5)}
    if family in ("gptj", "codegen"):  # their rotation is a table: at position 0 it turns by nothing
        given["position_ids"] = torch.zeros_like(given["input_ids"])
    if family in DECODED:
        given["decoder_input_ids"] = given["input_ids"].flip(0)[:, :7]
    if family == "gpt2_cross":
        given["encoder_hidden_states"] = torch.randn(2, 5, 16, generator=generator).double()
    return given


@dataclass(frozen=True)
class Run:
    """One run: what each attention saw, and what entered and left every module, by call."""

    attended: dict[Site, Attended]
    entered: dict[str, list[Tensor]]
    left: dict[str, list[Tensor]]


def run(module: nn.Module, given: Mapping[str, Any]) -> Run:
    """Run a copy of the model in float64, nothing turned by its position, and keep what it shows."""
    twin = copy.deepcopy(module).double().eval()
    for name, buffer in twin.named_buffers():
        if name.endswith("inv_freq"):
            buffer.zero_()
    seen = Run({}, {}, {})

    def note(name: str) -> Callable[..., None]:
        def hook(part: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
            taken = [x for x in (*args, *kwargs.values()) if isinstance(x, Tensor) and x.is_floating_point()]
            first = output if isinstance(output, Tensor) else output[0] if len(output) else None
            seen.entered.setdefault(name, []).append(taken[0].detach() if taken else torch.empty(0))
            seen.left.setdefault(name, []).append(first if isinstance(first, Tensor) else torch.empty(0))

        return hook

    def call() -> object:
        return twin(*given["args"]) if "args" in given else twin(**given)

    with at_rest(twin):
        blocks = find_blocks(twin, call)
        with ExitStack() as hooks:
            for name, part in twin.named_modules():
                hooks.enter_context(part.register_forward_hook(note(name), with_kwargs=True))
            with attention_tap(twin, blocks, lambda site, found: seen.attended.setdefault(site, found)):
                call()
    return seen


def entering(weights: Weights, seen: Run) -> dict[Site, tuple[Tensor, Tensor]]:
    """What entered the projections of queries and of keys at each site, [b, t, d]; `weights` are live."""
    found, calls = {}, dict.fromkeys(seen.entered, 0)
    for step in weights.steps:
        pair = []
        names = (*step.place.query[:1], *step.place.key[:1])
        for module in dict.fromkeys(name.rpartition(".")[0] for name in names):
            entered = seen.entered[module][calls[module]]
            entered = entered.transpose(0, 1) if step.place.cut == "headed" else entered  # XLNet: time first
            pair.append(entered.flatten(1, -2) if entered.dim() > 3 else entered)
            calls[module] += 1
        found[step.site] = (pair[0], pair[-1])
    return found


def scores_seen(seen: Attended) -> Tensor:
    """The scores of the running model without its mask, [b, h, t, s]."""
    if seen.query is None or seen.key is None:  # XLNet: the rest of the scores is zero
        assert seen.scores is not None
        return seen.scores.double()
    key = seen.key.double().repeat_interleave(seen.query.shape[1] // seen.key.shape[1], 1)
    return seen.scale * seen.query.double() @ key.mT


def scores_from(found: Projections, queries: Tensor, keys: Tensor) -> Tensor:
    """The scores that these weights give of what enters, from the definition."""
    q = torch.einsum("btd,hde->bhte", queries, found.query.double())
    k = torch.einsum("btd,hde->bhte", keys, found.key.double())
    q = q if found.query_bias is None else q + found.query_bias.double()[:, None]
    k = k if found.key_bias is None else k + found.key_bias.double()[:, None]
    return found.scale * q @ k.repeat_interleave(q.shape[1] // k.shape[1], 1).mT


def normed(norm: Norm, x: Tensor) -> Tensor:
    """What the norm makes of x, from the definition."""
    x = x - x.mean(-1, keepdim=True) if norm.kind == "LayerNorm" else x
    x = norm.weight.double() * x / (x.square().mean(-1, keepdim=True) + norm.eps).sqrt()
    return x if norm.bias is None else x + norm.bias.double()


def same(one: Projections, other: Projections) -> bool:
    """Whether two readings agree bit for bit, but for the names of norms."""
    pairs = [
        (getattr(one, name), getattr(other, name)) for name in ("query", "key", "query_bias", "key_bias")
    ]
    for mine, its in ((one.norm, other.norm), (one.key_norm, other.key_norm)):
        if mine and its and (mine.kind, mine.eps, mine.place) != (its.kind, its.eps, its.place):
            return False
        pairs += [(mine and mine.weight, its and its.weight), (mine and mine.bias, its and its.bias)]
    tensors = all(
        (a is None and b is None) or (a is not None and b is not None and torch.equal(a, b)) for a, b in pairs
    )
    return tensors and (one.site, one.scale, one.rotary) == (other.site, other.scale, other.rotary)
