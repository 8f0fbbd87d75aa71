"""The anatomy of attention against whole score matrices in float64, by position scheme; planted heads."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
import torch
import transformers
from torch import Tensor, nn

import isoscope
from isoscope.geometry import anatomy, sharpness
from isoscope.lab.variants.table import VARIANTS
from isoscope.measures.table import choose
from isoscope.models.attention.rotary import Rotation
from isoscope.models.attention.tap import Attended, attention_tap
from isoscope.models.blocks import find_blocks
from isoscope.models.tap import at_rest
from isoscope.run.observe.observation import Observation
from isoscope.sites import Site
from isoscope.stats.anatomy import Anatomy
from tests.lab.test_shown import LENGTH, sharp
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
TAKEN = {
    "without_key": ("key",),
    "without_position_and_key": ("position", "key"),
    "without_position": ("position", "query position"),
    "of_content": ("position", "key", "query position"),
}


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
    return isoscope.observe(module, data, **tiny.EVERY | options)


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


# ── planted heads ────────────────────────────────────────────────────────────────────────────────────────

WIDE, LONG, MANY = 32, 24, 32  # of a head; positions; sequences
SEPARATOR = 3  # its token


class Planted(nn.Module):
    """Blocks with one head, whose queries and keys are made to order and turned by rotary position."""

    def __init__(self, plant: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(PlantedBlock(plant) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return x


class PlantedBlock(nn.Module):
    def __init__(self, plant: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]) -> None:
        super().__init__()
        self.query, self.key = (nn.Linear(WIDE, WIDE, bias=False) for _ in range(2))
        for part in (self.query, self.key):
            nn.init.eye_(part.weight)
        self.double()
        self.plant = plant
        angle = torch.outer(torch.arange(LONG).double(), 10.0 ** -torch.linspace(0, 3, WIDE // 2).double())
        self.cos, self.sin = angle.cos(), angle.sin()

    def forward(self, x: Tensor) -> Tensor:
        """x [b, t, e + 1] is a vector for every token, and then its number."""
        planted = self.plant(x[..., :WIDE], x[..., WIDE])
        query, key = (part(each)[:, None] for part, each in zip((self.query, self.key), planted, strict=True))
        turned_query, turned_key = (turned(each, self.cos, self.sin) for each in (query, key))
        nn.functional.scaled_dot_product_attention(
            turned_query, turned_key, turned_key, is_causal=True, scale=1.0
        )
        return x * 1


def turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    one, other = x.chunk(2, dim=-1)
    return torch.cat([one * cos - other * sin, one * sin + other * cos], dim=-1)


TABLE = nn.functional.normalize(
    torch.randn(12, WIDE, generator=torch.Generator().manual_seed(3), dtype=torch.float64), dim=1
)
AXIS = nn.functional.normalize(torch.ones(WIDE, dtype=torch.float64), dim=0)
SLOW = nn.functional.one_hot(torch.tensor(WIDE - 1), WIDE).double()  # turns by a thousandth a position


def previous_token(x: Tensor, token: Tensor) -> tuple[Tensor, Tensor]:
    """The same query and key everywhere, the query's turned one position back."""
    step = 10.0 ** -torch.linspace(0, 3, WIDE // 2).double()
    back = turned(AXIS, (-step).cos(), (-step).sin())
    return (12 * back + 0.1 * x), (AXIS + 0.1 * x)


def sink(x: Tensor, token: Tensor) -> tuple[Tensor, Tensor]:
    """All queries favour what the first token alone has."""
    first = (torch.arange(x.shape[1]) == 0)[:, None]
    return 6 * SLOW + 0.3 * x, torch.where(first, 2 * SLOW, 0.3 * x)


def separator(x: Tensor, token: Tensor) -> tuple[Tensor, Tensor]:
    """All queries favour one kind of token, wherever it stands."""
    return 6 * SLOW + 0.3 * x, torch.where((token == SEPARATOR)[..., None], SLOW, 0.3 * x)


def copy(x: Tensor, token: Tensor) -> tuple[Tensor, Tensor]:
    """A query looks for its own token, in dimensions that hardly turn."""
    slow = torch.zeros(12, WIDE, dtype=torch.float64)
    slow[range(12), [*range(WIDE // 2 - 6, WIDE // 2), *range(WIDE - 6, WIDE)]] = 1
    own = x @ torch.linalg.pinv(TABLE) @ (slow - slow.mean(0))
    return 8 * own, own


def by_query(x: Tensor, token: Tensor) -> tuple[Tensor, Tensor]:
    """Half of the queries look near, the other half far, whatever stands there."""
    sign = torch.where(token % 2 == 0, 1.0, -1.0)[..., None].double()
    return 4 * sign * AXIS + 0.05 * x, AXIS.expand_as(x) + 0.05 * x


def even(x: Tensor, token: Tensor) -> tuple[Tensor, Tensor]:
    return 0.01 * x, x


KINDS = {
    previous_token: "position", sink: "key", separator: "key", copy: "content", by_query: "query position",
    even: "mixed",
}  # fmt: skip


def tokens(seed: int = 0, size: int = MANY, length: int = LONG) -> Tensor:
    random = torch.Generator().manual_seed(seed)
    numbers = torch.randint(12, (size, length), generator=random)
    return torch.cat([TABLE[numbers], numbers[..., None].double()], -1)


@pytest.mark.parametrize("plant", KINDS, ids=lambda plant: plant.__name__)
def test_planted_heads_come_out_as_planted(plant: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]) -> None:
    seen = look(Planted(plant), [tokens()])
    assert seen.facts["anatomy"] == {"means": ROTARY}
    rows = seen.frame().query("layer == 1").set_index("measure")
    layer = rows[rows["head"].isna()]
    assert set(rows.loc["attention_kind"].tag) == {KINDS[plant]}, "of the head and of the layer"
    names = [f"{part.replace(' ', '_')}_share" for part in anatomy.PARTS]
    if plant is even:
        assert rows.loc[[*names, "attention_kind"]].value.isna().all()
        assert rows.loc[names].note.str.contains("attention is even").all()
        return
    assert layer.loc[names].value.idxmax() == f"{KINDS[plant].replace(' ', '_')}_share"
    assert layer.loc[names].value.max() > 0.6
    value = layer.value
    if plant is sink:
        assert value["sink_mass"] > 0.9 and value["sink_mass_without_key"] < 0.3
        assert value["normalised_entropy_without_key"] > 0.8 > 0.2 > value["normalised_entropy"]
    if plant is copy:
        alone = value["normalised_entropy_of_content"]
        assert alone == pytest.approx(value["normalised_entropy"], abs=0.05)
    if plant is previous_token:
        assert value["normalised_entropy_without_position"] > 0.9 > value["normalised_entropy"]


def test_keys_favoured_by_all_queries_are_no_position_where_places_differ() -> None:
    """A previous-token head was read as drift by the counterfactual; its anatomy says what it is."""
    value = look(Planted(previous_token), [tokens()]).frame().set_index("measure").value
    assert value["drift_share"].max() > 0.8 and value["key_share"].max() < 0.1 < value["position_share"].min()


# ── what changes nothing, and what does ──────────────────────────────────────────────────────────────────

READ = [measure.name for measure in choose("all") if measure.stats == (Anatomy,)]


def apart(one: pd.DataFrame, other: pd.DataFrame) -> float:
    return float((one[READ] - other[READ]).abs().max(axis=None))


def blended(x: Tensor, token: Tensor) -> tuple[Tensor, Tensor]:
    """Some of every part."""
    each = zip(*(plant(x, token) for plant in (previous_token, separator, copy, by_query)), strict=True)
    query, key = (sum(of) for of in each)
    return query / 4, key / 2  # type: ignore[return-value]


def test_rotating_queries_and_keys_together_or_scaling_one_against_the_other_changes_nothing() -> None:
    plain, data = Planted(blended), [tokens()]
    rows = table(look(plain, data))
    assert rows[[name for name in READ if name.endswith("share")]].min(axis=None) > 0.005, (
        "every part is there"
    )
    for change in ("rotate", "scale"):
        other = Planted(blended)
        with torch.no_grad():
            for block in other.blocks:
                if change == "scale":
                    block.query.weight.mul_(7)
                    block.key.weight.div_(7)
                else:  # in every plane that rotary position turns, by an angle of its own
                    angle = torch.linspace(0.3, 5, WIDE // 2).double()
                    turn = turned(torch.eye(WIDE).double(), angle.cos(), angle.sin()).T
                    block.query.weight.copy_(turn @ block.query.weight)
                    block.key.weight.copy_(turn @ block.key.weight)
        assert apart(table(look(other, data)), rows) < 1e-9
    with torch.no_grad():
        other.blocks[0].query.weight.mul_(2)  # the check can fail
    assert apart(table(look(other, data)), rows) > 1e-3


@pytest.mark.parametrize("name", ["llama", "gpt2", "t5"])
def test_batch_size_and_order_change_nothing(name: str) -> None:
    module, data = model(name), given(name)
    rows = look(module, [data]).frame()
    for size, order in ((5, range(SIZE)), (4, reversed(range(SIZE)))):
        chosen = list(order)
        batches = [
            {key: x[chosen[start : start + size]] for key, x in data.items()}
            for start in range(0, SIZE, size)
        ]
        others = look(module, batches).frame()
        pd.testing.assert_frame_equal(rows, others, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", ["llama", "bloom", "bert"])
@pytest.mark.parametrize("left", [False, True])
def test_padding_changes_nothing(name: str, left: bool) -> None:
    """More padding on either side, where positions are counted from the first real token."""
    module, data = model(name), given(name, padded=False)
    rows = look(module, [data])
    longer = {}
    for key, x in data.items():
        padding = torch.full((SIZE, 3), 0 if key == "attention_mask" else tiny.PAD)
        longer[key] = torch.cat([padding, x] if left else [x, padding], 1)
    if left and name == "bert":
        longer["position_ids"] = (longer["attention_mask"].cumsum(1) - 1).clamp(min=0)
    if left and name == "llama":
        longer["position_ids"] = (longer["attention_mask"].cumsum(1) - 1).clamp(min=0)
    assert apart(table(look(module, [longer])), table(rows)) < 1e-6


def test_controls_are_what_they_say() -> None:
    """A sink that is scaled to the variance left without it fades too; a random vector leaves it there."""
    rows = look(Planted(sink), [tokens()]).frame().query("layer == 1 and head.notna()").set_index("measure")
    value = rows.value
    assert value["normalised_entropy"] < 0.1 and value["normalised_entropy_without_key"] > 0.99
    assert value["normalised_entropy_scaled_as_without_key"] > 0.99
    assert value["normalised_entropy_without_random_draws"] < 0.3 and value["random_draws_spread"] < 0.1
    biased = look(model("bloom"), [given("")]).frame().set_index("measure")
    assert biased.loc[["normalised_entropy_scaled_as_without_key"]].value.isna().all()


def test_numbers_that_were_there_before_are_the_same_with_and_without_the_anatomy() -> None:
    module, data = model("llama"), given("llama")
    whole, few = (
        look(module, [data]),
        look(module, [data], measures=["drift_share", "sink_mass_without_drift"]),
    )
    assert "anatomy" not in few.facts
    for name in ("drift_share", "sink_mass_without_drift"):
        assert torch.equal(*(torch.tensor(table(seen)[name].to_numpy()) for seen in (whole, few)))
    assert look(module, [data], measures=["key_share"]).frame().value.notna().all()


def test_without_position_the_key_share_is_the_drift_share() -> None:
    """Position and query position cancel: the counterfactual shares the rest of the variance alike."""
    rows = table(look(model("layers without position"), [given("")])).loc[("attention", 2)]
    assert rows.position_share.tolist() == rows.query_position_share.tolist() == [0.0] * 4
    share = rows.key_share / (rows.key_share + rows.content_share)
    assert share.tolist() == pytest.approx(rows.drift_share.tolist(), rel=1e-9)
    assert rows.anatomy_cross_term.tolist() == pytest.approx(rows.cross_term.tolist(), rel=1e-9)
    for left in ("without_key", "without_position_and_key", "of_content"):
        assert rows[f"sink_mass_{left}"].tolist() == rows.sink_mass_without_drift.tolist()
    assert rows.normalised_entropy_without_position.tolist() == rows.normalised_entropy.tolist()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_models_in_lower_precision(dtype: torch.dtype) -> None:
    module, data = model("llama"), given("llama")
    with torch.no_grad():
        for weight in module.parameters():
            weight.copy_(weight.to(dtype))
    exact, low = table(look(module, [data])), table(look(module.to(dtype), [data]))
    assert apart(exact, low) < (2e-4 if dtype == torch.float32 else 0.1)


@pytest.mark.parametrize("variant", ["sigmoid", *nightly("sparsemax", "sink", "softcap")])
def test_attention_that_is_no_softmax_is_weighed_by_its_own_map(variant: str) -> None:
    """The parts are those of the scores that it tells, and what is left of them goes through its own map."""
    module = sharp(next(each for each in VARIANTS if each.name == variant))
    data = {"input_ids": torch.randint(7, (SIZE, LENGTH), generator=torch.Generator().manual_seed(1))}
    found, tapped = table(look(module, [data])), attentions(module, data)
    counts = torch.ones(SIZE, LENGTH, dtype=torch.bool)
    for site, attended in tapped.items():
        assert attended.scores is not None and attended.weights_of is not None
        causal = torch.ones(SIZE, 2, LENGTH, LENGTH, dtype=torch.bool).tril()
        _, parts = oracle(replace(attended, mask=causal, scores=None), counts, AT_POSITIONS)
        scores = attended.scores.double()
        here = found.loc[(site.kind, site.layer)]
        assert here.content_share.tolist() == pytest.approx(
            anatomy.shares(scores, parts, counts)[3].tolist(), rel=1e-4
        )
        left = anatomy.without(scores, parts, TAKEN["without_key"])
        weights = attended.weights_of(left.float()).double().masked_fill(left == -math.inf, 0).abs()
        p = weights / weights.sum(-1, keepdim=True)
        largest = p.amax(-1).mean((0, 2))
        assert here.largest_weight_without_key.tolist() == pytest.approx(largest.tolist(), rel=1e-3)


@pytest.mark.parametrize("variant", ["centred", "log-length"])
def test_what_changes_queries_alone_is_no_rotary_position(variant: str) -> None:
    """The arms of a contrast are read under the same means."""
    module = sharp(next(each for each in VARIANTS if each.name == variant))
    data = {"input_ids": torch.randint(7, (SIZE, LENGTH), generator=torch.Generator().manual_seed(1))}
    assert look(module, [data]).facts["anatomy"] == {"means": AT_POSITIONS}


# ── where there is none ──────────────────────────────────────────────────────────────────────────────────


def test_few_sequences_leave_no_means_at_positions_and_few_give_no_interval() -> None:
    data = {key: x[:7] for key, x in given("").items()}
    rows = look(model("gpt2"), [data]).frame().set_index("measure")
    assert rows.loc[["key_share", "attention_kind"]].value.isna().all()
    assert rows.loc[["drift_share"]].value.notna().all()
    rows = look(model("llama"), [data]).frame().set_index("measure")
    assert rows.loc[["key_share"]].value.notna().all() and rows.loc[["key_share"]].low.isna().all()
    assert set(rows.loc["attention_kind"].tag) == {""}, "nothing is decided without an interval"


@pytest.mark.parametrize("family", ["gemma2", "deberta_v2"])
def test_scores_that_cannot_be_taken_apart_say_so(family: str) -> None:
    """A soft-cap leaves no sum of parts; further terms of the content are none of the four."""
    seen = look(build(family), [given("")])
    rows = seen.frame().set_index("measure")
    assert rows.loc[["key_share", "attention_kind"]].value.isna().all()
    assert (rows.loc[["key_share"]].note != "").all()
    assert seen.facts["anatomy"] == {"means": "cannot be had"}


def test_merged_observations_have_no_anatomy() -> None:
    module = Planted(copy)
    first, second = (look(module, [tokens(seed)]) for seed in (1, 2))
    both = first.merge(second).frame().set_index("measure")
    assert both.loc[["content_share"]].value.isna().all()
