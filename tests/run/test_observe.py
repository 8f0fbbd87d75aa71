"""What is observed: sites by glob, policies, odd data, pooled positions, facts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

import isoscope
from isoscope.data.batch import Batch, as_batch
from isoscope.errors import IsoscopeError
from tests.models import tiny
from tests.run.independent import OF_ALL


def sites(table: object) -> list[str]:
    rows = table.drop_duplicates(["kind", "layer"])  # type: ignore[attr-defined]
    return [
        kind if kind == "output" else f"{kind}.{layer}"
        for kind, layer in zip(rows.kind, rows.layer, strict=True)
    ]


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        ("*", ["layer.0", "layer.1", "layer.2", "layer.3", "output"]),
        ("layer.*", ["layer.0", "layer.1", "layer.2", "layer.3"]),
        ("output, 1", ["layer.1", "output"]),
        ("layer.[12]", ["layer.1", "layer.2"]),
    ],
)
def test_sites_by_glob(layers: str, expected: list[str]) -> None:
    rows = isoscope.observe(tiny.nano(), [tiny.ids()["input_ids"]], layers=layers, measures=["drift"]).frame()
    assert sites(rows) == expected


@pytest.mark.parametrize("layers", ["output", "7", "layer.4", "", "cross_attention.*"])
def test_selecting_nothing_lists_the_sites(layers: str) -> None:
    message = f"'{layers}' selects no site; there are: layer.0, layer.1, layer.2, layer.3, "
    message += "attention.1, attention.2, attention.3."
    with pytest.raises(IsoscopeError) as caught:
        isoscope.observe(tiny.model("bert"), [tiny.ids()], layers=layers)
    assert str(caught.value) == message


@pytest.mark.parametrize("data", [[], iter([]), ()])
def test_no_batch_at_all(data: object) -> None:
    with pytest.raises(IsoscopeError, match="the data holds no batch; there is nothing to measure"):
        isoscope.observe(tiny.model("bert"), data)  # type: ignore[arg-type]


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_data_may_run_the_model_between_batches(family: str) -> None:
    """Hooks stay on the model from batch to batch; what it does in between is not measured."""
    module = tiny.model(family)
    batches = [{"input_ids": torch.randint(5, 40, (4, 12))} for _ in range(3)]

    def from_the_model() -> Iterator[dict[str, torch.Tensor]]:
        for batch in batches:
            module(input_ids=batch["input_ids"].flip(1))
            yield batch

    one, other = (isoscope.observe(module, data).frame() for data in (batches, from_the_model()))
    assert one.drop(columns="run").equals(other.drop(columns="run"))
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())


def test_a_model_is_surveyed_on_the_front_of_a_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[torch.Size] = []
    module = tiny.model("bert")
    module.register_forward_pre_hook(
        lambda _, args, given: seen.append(given["input_ids"].shape), with_kwargs=True
    )
    ids = torch.randint(5, 40, (2, 70))
    mask = torch.ones_like(ids)
    isoscope.observe(module, [Batch({"input_ids": ids, "attention_mask": mask}, mask > 0, torch.arange(2))])
    front = seen[: seen.index(torch.Size((2, 70)))]
    assert front and set(front) == {(1, 64)}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_front_that_is_all_padding_is_surveyed_as_the_whole(dtype: torch.dtype) -> None:
    """With padding on the left, rotary position and grouped key heads; in one batch or in two."""
    module = tiny.model("llama").to(dtype)
    ids = torch.randint(5, 40, (10, 100), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(ids)
    mask[0, :80] = mask[3, :40] = 0
    given = {"input_ids": ids, "attention_mask": mask}
    whole, front = (
        isoscope.observe(module, [each], heads=True, **tiny.EVERY).frame()
        for each in (given, as_batch(given, seed=0))
    )
    assert whole.value.equals(front.value)
    halves = [{name: x[rows] for name, x in given.items()} for rows in (slice(5), slice(5, 10))]
    parts = isoscope.observe(module, halves, heads=True, **tiny.EVERY).frame()
    assert parts.value.to_numpy() == pytest.approx(whole.value.to_numpy(), rel=1e-5, abs=1e-6, nan_ok=True)


def test_an_unknown_measure_is_said_before_the_model_is_loaded() -> None:
    with pytest.raises(IsoscopeError, match="no measure is called 'mean_cosin'; did you mean 'mean_cosine'"):
        isoscope.observe("/no/such/model", measures=["mean_cosin"])


def test_counted_positions_follow_the_policies(bert: str, lines: str) -> None:
    loaded = isoscope.load(bert)

    def n(**policy: bool) -> int:
        data = isoscope.text(lines, loaded.tokenizer, pack=False, max_length=40, limit=20, **policy)
        seen = isoscope.observe(loaded, data, measures=["drift"])
        assert seen.facts["counting"] == data.policy.describe()
        return int(seen.frame().n[0])

    data = isoscope.text(lines, loaded.tokenizer, pack=False, max_length=40, limit=20)
    tokens = sum(map(len, data.sequences))
    assert n() == n(first=True) == tokens - 40
    assert n(special=True) == tokens - 20
    assert n(special=True, first=True) == tokens


@pytest.mark.parametrize("content", ["a\nb\n", "ab\n"])
def test_too_little_to_measure_is_nan_with_a_reason(bert: str, tmp_path: Path, content: str) -> None:
    """Lines of one token have no position that counts; one line of two has one."""
    (tmp_path / "few.txt").write_text(content)
    data = isoscope.text(str(tmp_path / "few.txt"), tiny.tokenizer("none"), pack=False)
    rows = isoscope.observe(bert, data).frame()
    vectors = content.count("ab")
    assert set(rows[rows.measure.isin(OF_ALL)].n) == {vectors}
    assert (rows[rows.value.isna()].note != "").all()
    assert rows[rows.measure == "mean_cosine"].value.isna().all()
    assert rows[rows.measure == "mean_norm"].value.isna().all() == (vectors == 0)


@pytest.mark.parametrize("batch_first", [True, False])
def test_torch_encoders_count_alike_whatever_their_axes(batch_first: bool) -> None:
    def encoder(first: bool) -> nn.Module:
        torch.manual_seed(0)
        layer = nn.TransformerEncoderLayer(tiny.WIDTH, 2, 32, batch_first=first)
        return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    x = torch.randn(5, 7, tiny.WIDTH, generator=torch.Generator().manual_seed(0))
    padding = torch.zeros(5, 7, dtype=torch.bool)
    padding[2:, 4:] = True
    source = x if batch_first else x.transpose(0, 1)
    inputs = {"src": source, "src_key_padding_mask": padding, "mask": torch.zeros(7, 7, dtype=torch.bool)}
    rows = isoscope.observe(encoder(batch_first), [inputs]).frame()
    assert set(rows[rows.measure.isin(OF_ALL)].n) == {35 - 9}
    plain = isoscope.observe(
        encoder(True), [Batch({"src": x, "src_key_padding_mask": padding}, ~padding, torch.arange(5))]
    )
    same = plain.frame()
    free = ~same.measure.eq("participation_ratio_split")  # its halves are chosen by key
    assert rows[free].value.tolist() == pytest.approx(same[free].value.tolist(), rel=1e-5, nan_ok=True)


def test_a_square_mask_as_long_as_the_batch_is_wide() -> None:
    """Nothing may take the mask's rows for sequences."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(tiny.WIDTH, 2, 32, batch_first=True)
    module = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    inputs = {"src": torch.randn(6, 6, tiny.WIDTH), "mask": torch.zeros(6, 6, dtype=torch.bool)}
    assert set(isoscope.observe(module, [inputs], measures=["drift"]).frame().n) == {36}


def test_canine_pools_characters(tmp_path: Path) -> None:
    """Deep layers hold one position for four characters; it counts when all around it do."""
    folder = tiny.save("canine", tmp_path / "canine")
    (tmp_path / "text.txt").write_text("characters are cheap, molecules dear. " * 12)
    loaded = isoscope.load(str(folder))
    data = isoscope.text(str(tmp_path / "text.txt"), loaded.tokenizer, max_length=64, limit=6)
    assert {len(row) for row in data.sequences} == {64}
    seen = isoscope.observe(loaded, data, measures=["mean_norm"])
    n = dict(zip(seen.frame().layer, seen.frame().n, strict=True))
    # [CLS] spoils the first two of 16 molecules, [SEP] the last two
    assert n == {0: 6 * 62, 1: 6 * 62, 2: 6 * 12, 3: 6 * 12, 4: 6 * 12, 5: 6 * 62}
    remark = "pooled 4 to 1: counts where all around it do"
    assert [note for note in seen.notes() if remark in note] == [f"layer.2 to layer.4: {remark}"]


def test_canine_counts_the_molecules_made_of_text(tmp_path: Path) -> None:
    """Molecule i holds characters 4(i−1) … 4i−1: the one with [CLS] inside must not count."""
    module = tiny.model("canine")
    ids = torch.full((2, 32), ord("a"))
    counts = torch.ones(2, 32, dtype=torch.bool)
    counts[:, 0] = False  # [CLS]
    a = isoscope.observe(module, [Batch({"input_ids": ids}, counts, torch.arange(2))], layers="2")
    made: list[torch.Tensor] = []
    with torch.no_grad(), module.encoder.layer[0].register_forward_hook(lambda *x: made.append(x[2][0])):
        module(input_ids=ids)
    text = made[0][:, 2:]  # 0 is [CLS], 1 holds it
    expected = float(text.double().norm(dim=-1).mean())
    row = a.frame().set_index("measure").loc["mean_norm"]
    assert (row.n, row.value) == (text.shape[0] * text.shape[1], pytest.approx(expected))


def test_progress_and_facts(bert: str, lines: str) -> None:
    loaded = isoscope.load(bert)
    data = isoscope.text(lines, loaded.tokenizer, pack=False, max_length=40, limit=10, batch_size=4)
    told: list[tuple[int, int | None]] = []
    seen = isoscope.observe(
        loaded, data, measures=["drift"], progress=lambda done, total: told.append((done, total))
    )
    assert told == [(4, 10), (8, 10), (10, 10)]
    assert {"model", "parameters", "data_hash", "tokens", "counting", "packed", "notes"} <= set(seen.known())
    assert seen.notes() == []


def test_what_is_not_finite_is_counted_and_left_out() -> None:
    module = tiny.nano()
    clean = isoscope.observe(module, [tiny.ids()["input_ids"]], **tiny.EVERY).frame()
    with torch.no_grad():
        module.wte.weight[tiny.PAD] = torch.nan  # the padding of these sequences: 3 + 6 positions at the end
    seen = isoscope.observe(module, [tiny.ids()["input_ids"]], measures="all", **tiny.EVERY)
    rows = seen.frame()
    at_0 = rows[(rows.layer == 0)].set_index("measure")
    assert at_0.value["not_finite"] == 9
    assert (at_0.n["drift"], at_0.n["not_finite"]) == (63, 72)
    assert not at_0.value[sorted(OF_ALL)].isna().any()
    assert any(
        "layer.0: 9 of 72 vectors have NaN or Inf, or overflow, and are left out" in note
        for note in seen.notes()
    )
    assert clean[clean.measure == "not_finite"].value.eq(0).all()
