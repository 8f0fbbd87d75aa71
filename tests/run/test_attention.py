"""Readings of attention equal those from the models' own eager probabilities, by hand, in float64.

Whatever the batches and their order; padded queries left out; the model left as it was.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest
import torch
from torch import Tensor, nn
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

import isoscope
from isoscope.run.observe import fold
from isoscope.sites import Site
from isoscope.stats.queries import Queries
from tests.models import tiny
from tests.models.test_attention_tap import build, inputs
from tests.models.test_tap import hooks
from tests.run.attending import Tutorial

NAMES = (
    "entropy",
    "normalised_entropy",
    "largest_weight",
    "sink_mass",
    "attended_distance",
    "effective_keys",
)
Given = dict[str, Tensor]


def by_hand(weight: Tensor, counts: Tensor) -> dict[str, list[float]]:
    """The readings of every head from probabilities [b, h, t, s] and the queries that count [b, t]."""
    found: dict[str, list[float]] = {name: [] for name in NAMES}
    for head in weight.double().unbind(1):
        each: dict[str, list[float]] = {name: [] for name in NAMES}
        for rows, counted in zip(head, counts, strict=True):
            visible = rows > 1e-30  # what −100 hides is e⁻¹⁰⁰ in float64
            first = int(visible[counted].any(0).int().argmax())
            for i in torch.nonzero(counted).flatten().tolist():
                p, at = rows[i][visible[i]], torch.nonzero(visible[i]).flatten()
                entropy = float(-(p * p.log()).sum())
                each["entropy"].append(entropy)
                if len(p) > 1:
                    each["normalised_entropy"].append(entropy / float(torch.tensor(float(len(p))).log()))
                each["largest_weight"].append(float(p.max()))
                each["effective_keys"].append(float(1 / (p**2).sum()))
                each["attended_distance"].append(float((p * (at - i).abs()).sum()))
                if visible[i, first]:
                    each["sink_mass"].append(float(rows[i, first]))
        for name, numbers in each.items():
            found[name].append(sum(numbers) / len(numbers))
    return found


def agrees(seen: pd.DataFrame, site: str, expected: dict[str, list[float]]) -> None:
    kind, layer = site.split(".")
    for name, numbers in expected.items():
        rows = seen[(seen.kind == kind) & (seen.layer == int(layer)) & (seen.measure == name)]
        heads = rows.dropna(subset="head").sort_values("head").value.tolist()
        assert heads == pytest.approx(numbers, rel=1e-5, abs=1e-6), f"{name} at {site}"
        whole = rows[rows["head"].isna()].value.item()
        assert whole == pytest.approx(sum(numbers) / len(numbers), rel=1e-5, abs=1e-6)


def eager(module: Any, given: Given) -> dict[str, Tensor]:
    """The probabilities by site: encoder layers first, then the decoder's."""
    slow = copy.deepcopy(module)
    slow.set_attn_implementation("eager")
    with torch.no_grad():
        out = slow(**given, output_attentions=True)
    own = [
        *(out.get("encoder_attentions") or ()),
        *(out.get("decoder_attentions") or out.get("attentions") or ()),
    ]
    found = {f"attention.{number}": weight for number, weight in enumerate(own, start=1)}
    across = out.get("cross_attentions") or ()
    start = len(own) - len(across)
    return found | {f"cross_attention.{start + i}": weight for i, weight in enumerate(across, start=1)}


def in_float64(family: str, *, padded: bool) -> tuple[Any, Given]:
    given = inputs(family, padded=padded)
    return build(family).double(), {
        name: x.double() if x.is_floating_point() else x for name, x in given.items()
    }


def look(module: nn.Module, given: Any) -> pd.DataFrame:
    return isoscope.observe(module, [given], layers="*attention.*", heads=True, **tiny.EVERY).frame()


@pytest.mark.parametrize(
    ("family", "padded"),
    [
        ("bert", True),
        ("bert", False),
        ("gpt2", True),
        ("llama", True),
        ("gpt_neox", True),
        ("modernbert", True),
        ("deberta_v2", True),
        ("t5", True),
        ("whisper", False),
        ("vit", False),
    ],
)
def test_readings_are_those_of_eager_probabilities(family: str, padded: bool) -> None:
    module, given = in_float64(family, padded=padded)
    seen, sites = look(module, given), eager(module, given)
    assert {f"{kind}.{layer}" for kind, layer in zip(seen.kind, seen.layer, strict=True)} == set(sites)
    mask = given.get("attention_mask")
    for site, weight in sites.items():
        counts = torch.ones(weight.shape[0], weight.shape[2], dtype=torch.bool)
        decoder = "decoder_input_ids" in given and (site.startswith("cross") or int(site[-1]) > 3)
        if mask is not None and not decoder:
            counts = mask.bool()
        agrees(seen, site, by_hand(weight, counts))
        rows = seen[(seen.kind + "." + seen.layer.astype(str) == site) & (seen.measure == "entropy")]
        assert set(rows.dropna(subset="head").n) == {int(counts.sum())}, "padded queries are left out"


def test_padding_on_the_left_of_a_causal_model() -> None:
    module, given = in_float64("gpt2", padded=True)
    given = {name: x.flip(1) for name, x in given.items()}
    given["position_ids"] = (given["attention_mask"].cumsum(1) - 1).clamp(min=0)
    seen = look(module, given)
    for site, weight in eager(module, given).items():
        agrees(seen, site, by_hand(weight, given["attention_mask"].bool()))
    assert (seen[seen.measure == "blind_rows"].value == 0).all()


def test_windows_as_batch() -> None:
    """Swin: two images of four windows and one; some keys are hidden by −100."""
    module, given = in_float64("swin", padded=False)
    slow, made = copy.deepcopy(module), list[Tensor]()
    slow.set_attn_implementation("eager")
    for part in slow.modules():
        if type(part).__name__ == "SwinAttention":
            part.register_forward_hook(lambda *seen: made.append(seen[2][1]))
    with torch.no_grad():
        slow(**given, output_attentions=True)
    seen = look(module, given)
    assert [len(weight) for weight in made] == [8, 8, 2, 2]
    assert any((weight < 1e-30).any() for weight in made)
    for number, weight in enumerate(made, start=1):
        agrees(seen, f"attention.{number}", by_hand(weight, torch.ones(weight.shape[::2], dtype=torch.bool)))
    assert seen[seen.measure == "score_std"].value.max() < 10, "−100 is no score"


def test_windows_of_a_picture_are_one_sequence() -> None:
    """Seven pictures of four windows each are no eight sequences, and make no pairs among themselves."""
    module = build("swin")
    x = {"pixel_values": torch.randn(7, 3, 32, 32, generator=torch.Generator().manual_seed(0))}
    seen = isoscope.observe(module, [x], layers="attention.1", heads=True)
    record = seen.records[Site("attention", 1)][Queries]
    assert isinstance(record, Queries)
    assert record.query.sequences.sum(0).tolist() == [7, 7]
    assert seen.frame().low.isna().all()


@pytest.mark.parametrize("batch_first", [True, False])
def test_encoders_of_torch(batch_first: bool) -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=batch_first)
    module = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).double().eval()
    for weight in module.parameters():
        nn.init.normal_(weight, std=0.3)
    x = torch.randn(5, 7, 16, dtype=torch.float64)
    padding = torch.arange(7) >= torch.tensor([7, 5, 7, 3, 6])[:, None]
    given = {"src": x if batch_first else x.transpose(0, 1), "src_key_padding_mask": padding}
    taken: list[Tensor] = []
    held = [each.register_forward_pre_hook(lambda _, args: taken.append(args[0])) for each in module.layers]
    with torch.no_grad():
        module(**given)
    for hook in held:
        hook.remove()
    seen = look(module, given)
    for number, (each, entered) in enumerate(zip(module.layers, taken, strict=True), start=1):
        with torch.no_grad():
            _, weight = each.self_attn(
                entered, entered, entered, key_padding_mask=padding, average_attn_weights=False
            )
        agrees(seen, f"attention.{number}", by_hand(weight, ~padding))


def test_a_number_that_hides_is_no_score() -> None:
    module = Tutorial()
    mask = (torch.arange(9) < torch.tensor([9, 4, 7])[:, None]).long()
    given = {"x": torch.randn(3, 9, 16), "attention_mask": mask}
    seen = look(module, given)
    with torch.no_grad():
        module(**given)
    for number, layer in enumerate(module.layers, start=1):
        assert isinstance(layer.weight, Tensor)
        agrees(seen, f"attention.{number}", by_hand(layer.weight, mask.bool()))
    values = seen.pivot_table(index="layer", columns="measure", values="value")
    assert (values.score_std < 5).all()
    assert (values.drift_share > 1e-3).all()


def test_heads_that_are_modules_of_their_own() -> None:
    """nanoGPT's first lesson: a list of heads. Each has its own mean query."""
    module, ids = tiny.nano().double(), tiny.ids()["input_ids"]
    seen = isoscope.observe(module, [ids], layers="attention.*", heads=True, **tiny.EVERY)
    made: list[Tensor] = []
    first = module.h[0].heads
    held = [
        part.register_forward_hook(lambda *s: made.append(s[2])) for h in first for part in (h.query, h.key)
    ]
    with torch.no_grad():
        module.eval()(ids)
    for hook in held:
        hook.remove()
    causal = torch.ones(24, 24).triu(1).bool()
    pairs = zip(made[::2], made[1::2], strict=True)
    scores = torch.stack([(q @ k.mT / 8**0.5).masked_fill(causal, -torch.inf) for q, k in pairs], 1)
    agrees(seen.frame(), "attention.1", by_hand(scores.softmax(-1), torch.ones(3, 24, dtype=torch.bool)))
    record = seen.records[Site("attention", 1)][Queries]
    assert isinstance(record, Queries)
    means = torch.stack([query.mean((0, 1)) for query in made[::2]])
    assert (record.mean_query - means).abs().max() < 1e-12


# ── queries and keys ─────────────────────────────────────────────────────────────────────────────────────


def projected(module: Any, given: Given, *parts: nn.Module, width: int) -> list[Tensor]:
    """What these projections give, [b, h, t, e]."""
    made: list[Tensor] = []
    held = [part.register_forward_hook(lambda *seen: made.append(seen[2])) for part in parts]
    with torch.no_grad():
        module(**given)
    for hook in held:
        hook.remove()
    return [x.unflatten(-1, (-1, width)).transpose(1, 2).double() for x in made]


def of_means(query: Tensor, key: Tensor, counts: Tensor) -> dict[str, list[float]]:
    q, k = (x.transpose(0, 1)[:, counts] for x in (query, key))
    pair = k.mean(1).repeat_interleave(len(q) // len(k), 0)
    one, other = q.mean(1).norm(dim=1), k.mean(1).norm(dim=1)
    product = (q.mean(1) * pair).sum(1)
    found = {
        "query_drift": one,
        "key_drift": other,
        "query_relative_drift": one / q.norm(dim=-1).mean(1),
        "key_relative_drift": other / k.norm(dim=-1).mean(1),
        "query_key_product": product,
        "query_key_cosine": product / one / pair.norm(dim=1),
    }
    return {name: numbers.tolist() for name, numbers in found.items()}


@pytest.mark.parametrize("family", ["bert", "gpt2", "t5", "vit", "llama"])
def test_means_of_queries_and_keys(family: str) -> None:
    module, given = in_float64(family, padded=family != "vit")
    mask = given.get("attention_mask", torch.ones(2, 17)).bool()
    if family == "bert":
        part = module.encoder.layer[0].attention.self
        query, key = projected(module, given, part.query, part.key, width=8)
    elif family == "gpt2":
        (both,) = projected(module, given, module.h[0].attn.c_attn, width=8)
        query, key, _ = both.chunk(3, dim=1)
    elif family == "t5":
        part = module.encoder.block[0].layer[0].SelfAttention
        query, key = projected(module, given, part.q, part.k, width=8)
    elif family == "vit":
        found = dict(module.named_modules())
        names = [next(n for n in found if n.endswith(end)) for end in ("q_proj", "k_proj")]
        query, key = projected(module, given, *(found[name] for name in names), width=8)
    else:
        part = module.layers[0].self_attn
        query, key = projected(module, given, part.q_proj, part.k_proj, width=4)
        record = isoscope.observe(module, [given], **tiny.EVERY).records[Site("attention", 1)][Queries]
        assert isinstance(record, Queries)
        before = query.transpose(0, 1)[:, mask].mean(1)
        assert (record.mean_query - before).abs().max() < 1e-9
        query, key = apply_rotary_pos_emb(query, key, *module.rotary_emb(query, torch.arange(24)[None]))
        assert key.shape[1] == 2 < query.shape[1] == 4
    agrees(look(module, given), "attention.1", of_means(query, key, mask))


# ── batches, order, and what is left behind ──────────────────────────────────────────────────────────────


def batches(given: Given, size: int, order: list[int]) -> Iterator[Given]:
    """The sequences in this order, as many at a time, each batch no longer than its longest."""
    for start in range(0, len(order), size):
        some = order[start : start + size]
        mask = given["attention_mask"][some]
        longest = int(mask.sum(1).max())
        yield {name: x[some][:, :longest] for name, x in given.items()}


@pytest.mark.parametrize(
    ("family", "dtype"),
    [("bert", torch.float32), ("llama", torch.float32), ("gpt2", torch.float64), ("t5", torch.float64)],
)
def test_neither_the_batches_nor_their_order_matter(family: str, dtype: torch.dtype) -> None:
    """To 1e-5 relative and 1e-6 absolute; in float64 to 1e-9, whatever rounding does to the model."""
    module, given = build(family).to(dtype), tiny.ids(9, 30)
    relative, absolute = (1e-5, 1e-6) if dtype == torch.float32 else (1e-9, 1e-9)
    if family == "t5":
        given["decoder_input_ids"] = given["input_ids"].flip(0)
        given["decoder_attention_mask"] = given["attention_mask"]
    whole = isoscope.observe(module, [given], layers="*attention.*", heads=True).frame()
    assert whole.value.notna().any()
    assert whole.low.notna().any()
    for size, order in ((1, [3, 0, 7, 6, 1, 8, 5, 2, 4]), (3, [*range(8, -1, -1)]), (8, [*range(9)])):
        some = isoscope.observe(
            module, batches(given, size, order), layers="*attention.*", heads=True
        ).frame()
        assert some[["kind", "layer", "head", "measure", "n"]].equals(
            whole[["kind", "layer", "head", "measure", "n"]]
        )
        for part in ("value", "null", "low", "high"):
            over = (some[part] - whole[part]).abs() - relative * whole[part].abs() - absolute
            assert over.max() <= 0, some.loc[over.idxmax()].to_dict()
            assert (some[part].isna() == whole[part].isna()).all()


@pytest.mark.parametrize("family", ["bert", "llama", "t5", "swin", "deberta_v2"])
def test_the_model_is_left_as_it_was(family: str) -> None:
    module, given = build(family), inputs(family)
    before = {name: x.clone() for name, x in module.state_dict().items()}
    with torch.no_grad():
        one = module(**given)[0]
    attached = hooks(module)
    first = isoscope.observe(module, [given], heads=True).frame()
    with torch.no_grad():
        two = module(**given)[0]
    assert torch.equal(one, two)
    assert hooks(module) == attached
    assert not module.training
    assert all(torch.equal(x, before[name]) for name, x in module.state_dict().items())
    assert all(x.grad is None for x in module.parameters())
    assert isoscope.observe(module, [given], heads=True).frame().equals(first)


@pytest.mark.parametrize("family", ["gpt2", "llama", "bert"])
def test_small_attentions_are_read_at_once(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, data = build(family).double(), inputs(family)
    several: list[int] = []
    kept = fold.Folder._fold_attention

    def spy(self: fold.Folder, places: list[fold.Place], *rest: Any) -> None:
        several.append(len(places))
        kept(self, places, *rest)

    monkeypatch.setattr(fold.Folder, "_fold_attention", spy)
    together = isoscope.observe(model, [data], heads=True).frame()
    assert max(several) > 1
    monkeypatch.setattr(fold, "ON_CPU", 0)
    alone = isoscope.observe(model, [data], heads=True).frame()
    assert several[-1] == 1
    pd.testing.assert_frame_equal(together, alone, rtol=1e-9, atol=1e-12)
