"""Every modality through one mechanism: layers once per call, in order; vectors as docs/vectors.md says."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import isoscope
from isoscope.models.inputs import open_data
from isoscope.models.survey import survey
from isoscope.models.tap import at_rest, tap
from isoscope.sites import Site
from tests.models import modal

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:transformers")

LAYERS = {  # what each has: the blocks in the order in which they are called
    **dict.fromkeys(("vit", "deit", "beit", "dinov2", "dinov2_registers", "clip", "wav2vec2", "hubert"), 3),
    "swin": 4,
    "segformer": 6,
    "cvt": 6,
    "convnext": 5,
    "resnet": 5,
    "resnet_bottleneck": 5,
    "efficientnet": 10,
    "whisper": 6,
    "t5": 6,
    "byt5": 4,
}
POSITIONS = {  # vectors of one image or clip at layer 0 and at the last layer
    **dict.fromkeys(("vit", "deit", "beit", "dinov2", "dinov2_registers", "clip"), (16, 16)),
    "swin": (64, 16),
    "segformer": (64, 1),
    "cvt": (64, 4),
    "convnext": (64, 1),
    "resnet": (64, 1),
    "resnet_bottleneck": (64, 1),
    "efficientnet": (256, 1),
    "wav2vec2": (49, 49),
    "hubert": (49, 49),
    "whisper": (49, 24),
}


@pytest.fixture(scope="module", params=modal.ALL)
def loaded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, object]:
    folder = modal.save(request.param, tmp_path_factory.mktemp(request.param))
    return request.param, isoscope.load(str(folder))


def hidden_states(output: object) -> list[Tensor]:
    for name in ("hidden_states", "encoder_hidden_states"):
        if getattr(output, name, None) is not None:
            return list(getattr(output, name))
    return []


def test_every_layer_once_in_order_and_outputs_bit_identical(
    loaded: tuple[str, isoscope.models.source.Model],
) -> None:
    family, model = loaded
    batch = next(
        iter(open_data("embedded", model, limit=2, max_length=20 if model.takes == "text" else None))
    )
    with at_rest(model.module):
        plain = batch.call(model.module)[0]
    found = survey(model.module, batch)
    seen: list[tuple[Site, Tensor]] = []
    with (
        at_rest(model.module),
        tap(model.module, found.blocks, lambda site, x: seen.append((site, x.clone()))),
    ):
        tapped = batch.call(model.module)[0]
    assert torch.equal(plain, tapped)
    layers = [site for site, _ in seen if site.kind == "layer"]
    assert layers == [Site("layer", i) for i in range(LAYERS[family] + 1)]
    assert [tuple(x.shape) for _, x in seen] == list(found.shapes.values())
    assert len(set(found.leaves.values())) == LAYERS[family]
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.module.modules())


@pytest.mark.parametrize(
    "family", ["vit", "deit", "beit", "dinov2", "clip", "wav2vec2", "hubert", "t5", "whisper"]
)
def test_what_is_seen_is_what_transformers_reports(family: str, tmp_path: Path) -> None:
    model = isoscope.load(str(modal.save(family, tmp_path)))
    batch = next(
        iter(open_data("embedded", model, limit=2, max_length=20 if model.takes == "text" else None))
    )
    found = survey(model.module, batch)
    seen: dict[str, Tensor] = {}
    with (
        at_rest(model.module),
        tap(model.module, found.blocks, lambda site, x: seen.update({str(site): x.clone()})),
    ):
        output = model.module(**batch.inputs, output_hidden_states=True)
    told = hidden_states(output)
    same = modal.LAYERS if family in ("t5", "whisper") else modal.LAYERS + 1  # a stack's last state is normed
    for layer in range(min(same, len(told))):
        assert torch.equal(seen[f"layer.{layer}"], told[layer]), layer


@pytest.mark.parametrize("family", [*modal.IMAGES, *modal.SOUND])
def test_vectors_are_counted_as_documented(family: str, tmp_path: Path) -> None:
    model = isoscope.load(str(modal.save(family, tmp_path)))
    table = isoscope.observe(model, open_data("embedded", model, limit=5), measures=["mean_norm"]).frame()
    layers = table[table.kind == "layer"]
    assert (layers.n.iloc[0], layers.n.iloc[-1]) == tuple(5 * n for n in POSITIONS[family])
    assert table.value.notna().all()


@pytest.mark.parametrize(("family", "extra"), [("vit", 1), ("deit", 2), ("dinov2_registers", 5), ("cvt", 1)])
def test_class_and_register_tokens_count_when_asked(family: str, extra: int, tmp_path: Path) -> None:
    model = isoscope.load(str(modal.save(family, tmp_path)))
    data = open_data("embedded", model, limit=5, special=True)
    table = isoscope.observe(model, data, measures=["mean_norm"]).frame()
    assert table[table.kind == "layer"].n.iloc[-1] == 5 * (POSITIONS[family][1] + extra)


class PlainCNN(nn.Module):
    """Convolutions, norms and rectifiers one after the other, as one writes it by hand."""

    def __init__(self, norm: bool) -> None:
        super().__init__()
        parts: list[nn.Module] = []
        for inside, outside in ((3, 8), (8, 12), (12, 16)):
            parts += [
                nn.Conv2d(inside, outside, 3, padding=1),
                *([nn.BatchNorm2d(outside)] if norm else []),
                nn.ReLU(),
            ]
        self.features = nn.Sequential(*parts)
        self.head = nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.features(x).mean((2, 3)))


@pytest.mark.parametrize("norm", [True, False])
def test_a_plain_cnn_shows_every_convolution(norm: bool) -> None:
    model = PlainCNN(norm).eval()
    pictures = torch.randn(6, 3, 10, 7)
    table = isoscope.observe(
        model, [pictures], layers="layer.[1-9]", measures=["mean_norm", "mean_cosine"]
    ).frame()
    assert table.layer.tolist() == [1, 1, 2, 2, 3, 3]
    assert (table.n == 6 * 70).all()
    with torch.no_grad():
        first = model.features[:2](pictures) if norm else model.features[:1](pictures)
    by_hand = first.movedim(1, -1).reshape(-1, 8).double()
    assert table.value[0] == pytest.approx(
        float(torch.nn.functional.normalize(by_hand).sum(0).square().sum() - 420) / 420 / 419
    )
    assert table.value[1] == pytest.approx(float(by_hand.norm(dim=1).mean()))


class Bottle(nn.Module):
    """A residual block of convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Conv2d(8, 8, 1))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.inside(x)


def test_residual_blocks_written_by_hand() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Sequential(*(Bottle() for _ in range(4)))).eval()
    found = survey(model, isoscope.Batch(torch.randn(2, 3, 9, 9), None, torch.arange(2)))
    assert list(found.blocks) == [f"1.{i}" for i in range(4)]
    assert set(found.shapes.values()) == {(2, 8, 7, 7)}


@pytest.mark.parametrize("family", ["vit", "resnet", "wav2vec2", "whisper"])
def test_half_precision(family: str, tmp_path: Path) -> None:
    """Pictures and sound go in as the model has its weights; the sums are float64 all the same."""
    folder = str(modal.save(family, tmp_path))
    tables = []
    for dtype in ("float32", "bfloat16"):
        model = isoscope.load(folder, dtype=dtype)
        data = open_data("embedded", model, limit=6)
        table = isoscope.observe(model, data, measures=["mean_norm", "mean_cosine"]).frame()
        tables.append(table[(table.kind == "layer") & (table.layer == 1)])
    whole, half = tables
    assert half.n.tolist() == whole.n.tolist()
    assert half.value.tolist() == pytest.approx(whole.value.tolist(), rel=0.05, abs=0.02)
