"""The anatomy of attention against whole score matrices in float64, on tiny models of every position scheme."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
import torch
import transformers
from torch import Tensor, nn

import isoscope
from isoscope.geometry import anatomy, sharpness
from isoscope.models.attention.rotary import Rotation
from isoscope.models.attention.tap import Attended, attention_tap
from isoscope.models.blocks import find_blocks
from isoscope.models.tap import at_rest
from isoscope.run.observe.observation import Observation
from isoscope.sites import Site
from tests.models import tiny
from tests.models.test_attention_tap import build
from tests.tiers import nightly

ROTARY, AT_POSITIONS, ONE = (
    "means before rotary position, over all data",
    "means at each position, over the other sequences",
    "one mean for all positions, which leaves position no part",
)
_TEXT = {
    "vocab_size": tiny.VOCABULARY, "hidden_size": 32, "intermediate_size": 32, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "num_hidden_layers": 2, "pad_token_id": tiny.PAD,
    **tiny._ENDS,
}  # fmt: skip
YARN = {
    "rope_type": "yarn", "factor": 4.0, "rope_theta": 10000.0, "original_max_position_embeddings": 16
}  # fmt: skip
MADE: dict[str, Callable[[], transformers.PreTrainedConfig]] = {
    "scaled rotary": lambda: transformers.LlamaConfig(
        **_TEXT, max_position_embeddings=64, rope_parameters=YARN
    ),
    "part of the dimensions": lambda: transformers.Phi3Config(**_TEXT, partial_rotary_factor=0.5),
    "interleaved": lambda: transformers.CohereConfig(**_TEXT),
    "bases by layer, windows, norms": lambda: transformers.Gemma3TextConfig(
        **_TEXT, sliding_window=5, layer_types=["sliding_attention", "full_attention"]
    ),
    "layers without position": lambda: transformers.SmolLM3Config(**_TEXT, no_rope_layers=[1, 0]),
    "latent": lambda: transformers.DeepseekV3Config(
        **{**_TEXT, "num_attention_heads": 2, "head_dim": 4}, moe_intermediate_size=16, n_routed_experts=4,
        num_experts_per_tok=2, n_group=1, topk_group=1, first_k_dense_replace=2, kv_lora_rank=8,
        q_lora_rank=8, qk_rope_head_dim=4, qk_nope_head_dim=8, v_head_dim=8,
    ),
    "learned, decoder": lambda: transformers.OPTConfig(
        vocab_size=tiny.VOCABULARY, hidden_size=32, ffn_dim=32, num_hidden_layers=2, num_attention_heads=4,
        word_embed_proj_dim=32, max_position_embeddings=64,
    ),
    "ALiBi, packed": lambda: transformers.MptConfig(
        vocab_size=tiny.VOCABULARY, d_model=32, n_layers=2, n_heads=4
    ),
}  # fmt: skip
FORMS = {
    "llama": ROTARY, "gpt_neox": ROTARY, "qwen3": ROTARY, "modernbert": ROTARY, "bert": AT_POSITIONS,
    "gpt2": AT_POSITIONS, "t5": AT_POSITIONS, "bloom": AT_POSITIONS, "gptj": AT_POSITIONS,
    "albert": AT_POSITIONS, "bart": AT_POSITIONS,
    **dict.fromkeys(list(MADE)[:4], ROTARY), "layers without position": f"{ROTARY}, {ONE}",
    **dict.fromkeys(list(MADE)[5:], AT_POSITIONS),
}  # fmt: skip
QUICK = ("llama", "bert", "t5", "bloom", "layers without position", "part of the dimensions", "latent")
SIZE, ROWS = 12, 11


def model(name: str) -> nn.Module:
    if name not in MADE:
        made = build(name)
    else:
        torch.manual_seed(0)
        made = transformers.AutoModel.from_config(MADE[name]()).eval()
        with torch.no_grad():
            for weight in made.parameters():
                if weight.dim() >= 2 and (spread := weight.std()) < 0.1:
                    weight.mul_(0.3 / spread)
    return made if name == "modernbert" else made.double()  # which turns its queries in float32


def given(name: str, *, padded: bool = True) -> dict[str, Tensor]:
    """Token ids with padding on the right of some sequences."""
    random = torch.Generator().manual_seed(7)
    tokens = torch.randint(len(tiny.SPECIAL), tiny.VOCABULARY, (SIZE, ROWS), generator=random)
    mask = torch.ones_like(tokens)
    for row in range(0, SIZE, 4) if padded else ():
        tokens[row, ROWS - 2 :] = tiny.PAD
        mask[row, ROWS - 2 :] = 0
    found = {"input_ids": tokens, "attention_mask": mask}
    if name in ("t5", "bart"):
        found["decoder_input_ids"] = tokens.flip(0).clamp(min=3)
    return found


def look(module: nn.Module, data: Any, **options: Any) -> Observation:
    options = {"layers": "*attention.*", "heads": True, "measures": "all"} | options
    return isoscope.observe(module, data, **options)


def table(seen: Observation) -> pd.DataFrame:
    """Values by (kind, layer, head) and measure; the layer's own rows are left out."""
    rows = seen.frame().dropna(subset="head")
    return rows.pivot_table(
        index=["kind", "layer", "head"], columns="measure", values="value", dropna=False
    ).dropna(how="all")


def attentions(module: nn.Module, data: dict[str, Tensor]) -> dict[Site, Attended]:
    seen: dict[Site, Attended] = {}
    with torch.no_grad(), at_rest(module), attention_tap(module, find_blocks(module), seen.__setitem__):
        module(**data)
    return seen


def oracle(attended: Attended, counts: Tensor, form: str) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Scores [b, h, t, s], −inf where hidden, and their four parts, from whole matrices."""
    assert attended.query is not None and attended.key is not None
    query, key = attended.query.double(), attended.key.double()
    b, h, t, _ = query.shape
    s = key.shape[2]
    visible = torch.ones(b, h, t, s, dtype=torch.bool)
    added = torch.zeros(b, h, t, s, dtype=torch.float64)
    if attended.causal:
        visible &= torch.ones(t, s, dtype=torch.bool).tril()
    if attended.mask is not None and attended.mask.dtype == torch.bool:
        visible = visible & attended.mask
    elif attended.mask is not None:
        visible = visible & (attended.mask > -1e8)
        added = torch.where(visible, attended.mask.double(), 0.0)
    if form == AT_POSITIONS:
        rows = counts if not attended.cross else torch.ones(b, t, dtype=torch.bool)
        shown = (visible & rows[:, None, :, None]).any(1).any(1)
        mean, key_mean = others(query, rows), others(key, shown)
    else:
        assert attended.unrotated is not None and attended.unrotated_key is not None
        assert attended.rotate is not None and attended.rotate_key is not None
        before = attended.unrotated.double(), attended.unrotated_key.double()
        means = (x.transpose(0, 1)[:, counts].mean(1) for x in before)
        mean, key_mean = (
            turn(x) for turn, x in zip((attended.rotate, attended.rotate_key), means, strict=True)
        )
    copies = h // key.shape[1]
    key, key_mean = (x.repeat_interleave(copies, 1) for x in (key, key_mean))
    scores = attended.scale * query @ key.mT + added
    return scores.masked_fill(~visible, -math.inf), anatomy.parts(
        query, key, mean, key_mean, attended.scale, added
    )


def others(vectors: Tensor, counts: Tensor) -> Tensor:
    """The mean at every position over the other sequences; of padding on the right alone."""
    weighed = vectors * counts[:, None, :, None]
    total, number = weighed.sum(0), counts.double().sum(0)[None, None, :, None]
    return (total - weighed) / (number - counts[:, None, :, None].double())


def usable(counts: Tensor) -> Tensor:
    """Rows whose position at least 7 other sequences have."""
    return counts & (counts.sum(0) - counts.long() >= 7)


@pytest.mark.parametrize("name", [*QUICK, *nightly(*(name for name in FORMS if name not in QUICK))])
def test_every_scheme_of_positions_reads_as_whole_matrices_do(name: str) -> None:
    module, data = model(name), given(name)
    seen = look(module, [data])
    assert seen.facts["anatomy"] == {"means": FORMS[name]}
    found, tapped = table(seen), attentions(module, data)
    mask = data["attention_mask"].bool()
    near = {"rel": 2e-4, "abs": 1e-6} if name == "modernbert" else {"rel": 1e-6, "abs": 1e-9}
    assert {(site.kind, site.layer) for site in tapped} == {(kind, layer) for kind, layer, _ in found.index}
    for site, attended in tapped.items():
        assert attended.query is not None
        turned = isinstance(attended.rotate, Rotation) and isinstance(attended.rotate_key, Rotation)
        form = ROTARY if turned else AT_POSITIONS if AT_POSITIONS in FORMS[name] else ONE
        decoder = attended.cross or (site.layer or 0) > {"t5": 3, "bart": 2}.get(name, 99)
        counts = torch.ones_like(mask) if decoder and name in ("t5", "bart") else mask
        scores, parts = oracle(attended, counts, form)
        shown = scores != -math.inf
        apart = (torch.stack(parts).sum(0) - scores)[shown].abs().max()
        assert apart < 1e-5 * scores[shown].abs().max(), "the parts add up to the score"
        rows = usable(counts) if form == AT_POSITIONS else counts
        shares = anatomy.shares(scores, parts, rows)
        here = found.loc[(site.kind, site.layer)]
        for part, expected in zip(anatomy.PARTS, shares, strict=True):
            value = here[f"{part.replace(' ', '_')}_share"]
            assert value.tolist() == pytest.approx(expected.tolist(), **near), (site, part)
        assert here.anatomy_cross_term.tolist() == pytest.approx((1 - shares.sum(0)).tolist(), abs=1e-4)
        for suffix, taken in TAKEN.items():
            left = anatomy.without(scores, parts, taken)
            for measure in ("normalised_entropy", "largest_weight", "sink_mass"):
                expected = getattr(sharpness, measure)(left, rows)
                assert here[f"{measure}_{suffix}"].tolist() == pytest.approx(expected.tolist(), **near), (
                    site, measure, suffix,
                )  # fmt: skip


TAKEN = {
    "without_key": ("key",),
    "without_position_and_key": ("position", "key"),
    "without_position": ("position", "query position"),
    "of_content": ("position", "key", "query position"),
}
