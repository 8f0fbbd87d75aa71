"""Penalties: their values and gradients against naive definitions, on the lab's models and on others'."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable
from dataclasses import replace
from statistics import mean, stdev
from weakref import ref

import pytest
import torch
import transformers
from torch import Tensor, nn

import isoscope
from isoscope.errors import IsoscopeError
from isoscope.geometry import spectrum
from isoscope.lab.model.norms import NORMS
from isoscope.lab.model.transformer import Shape, Transformer, build
from isoscope.lab.penalties.cosreg import CosReg, mean_of_cosines
from isoscope.lab.penalties.entropy import MOST, EntropyTarget
from isoscope.lab.penalties.istar import IStar, isoscore_star
from isoscope.lab.penalties.locater import LocAteR
from isoscope.lab.penalties.table import PENALTIES, Penalty, parse
from isoscope.lab.variants.table import VARIANTS
from isoscope.models.weights import open_weights
from tests.lab.test_learning import KEYS, VALUES, recall
from tests.models import tiny
from tests.tiers import nightly

Loss = Callable[[Transformer, torch.Generator], Tensor]
SMALL = Shape(7, width=8, layers=2, heads=2, length=6)
WRITTEN = ("locater=.3,target=1,keep=.7", "cosreg=2", "istar=.5", "entropy=3,target=.4")
every = pytest.mark.parametrize("written", WRITTEN)


def ids(size: int = 3, length: int = 6, seed: int = 0) -> Tensor:
    return torch.randint(7, (size, length), generator=torch.Generator().manual_seed(seed))


def rough(shape: Shape = SMALL, seed: int = 0) -> Transformer:
    """A model in float64 whose weights are large, norms and all."""
    model, random = build(shape, seed).double(), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.5 * torch.randn(weight.shape, generator=random, dtype=torch.float64))
    return model


def of(penalty: Penalty, model: nn.Module, *given: Tensor, **named: Tensor) -> Tensor:
    with penalty.watch(model):
        model(*given, **named)
    return penalty(model)


def test_every_penalty_is_tried_here():
    assert {written.split("=")[0] for written in WRITTEN} == {line.name for line in PENALTIES}


# ── gradients ────────────────────────────────────────────────────────────────────────────────────────────


class Penalised(nn.Module):
    """A model that gives its penalty."""

    def __init__(self, model: nn.Module, penalty: Penalty) -> None:
        super().__init__()
        self.model, self.penalty = model, penalty

    def forward(self, *given: Tensor) -> Tensor:
        return of(self.penalty, self.model, *given)


@every
@pytest.mark.parametrize("attention", ["softmax", "sigma", "differential", "sigmoid", "entmax"])
def test_gradients_equal_finite_differences(written: str, attention: str):
    shape = Shape(5, width=4, layers=1, heads=1, length=4, attention=attention)
    counts = torch.tensor([[1, 1, 1, 1], [0, 1, 1, 1]])
    module = Penalised(rough(shape).eval(), parse(written))
    names = [name for name, _ in module.named_parameters()]

    def value(*weights: Tensor) -> Tensor:
        given = ids(2, 4) % 5, counts
        return torch.func.functional_call(module, dict(zip(names, weights, strict=True)), given)

    weights = tuple(weight.detach().clone().requires_grad_() for weight in module.parameters())
    assert torch.autograd.gradcheck(value, weights, atol=1e-6, fast_mode=True)
    grads = torch.autograd.grad(value(*weights), weights, allow_unused=True)
    assert any(grad is not None and grad.abs().max() > 1e-4 for grad in grads)


# ── values ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("norm", [norm.name for norm in NORMS])
def test_locater_is_of_the_whole_matrices(norm: str):
    model = rough(Shape(7, width=8, layers=2, heads=2, length=6, norm=norm))
    sizes, traces = [], []
    for number, block in enumerate(model.blocks):
        gain = torch.ones(8, dtype=torch.float64)
        if norm == "post" and number:
            gain = model.blocks[number - 1].after_mlp.weight
        elif norm not in ("post", "none"):
            gain = block.norm_attention.weight
        for head in (slice(0, 4), slice(4, 8)):
            left, right = (part.weight[head].T for part in (block.attention.query, block.attention.key))
            whole = torch.diag(gain) @ left @ right.T @ torch.diag(gain) / 2  # 1/√4
            sizes.append(whole.square().sum() / 8)
            traces.append((whole.trace() - 1.5) ** 2)
    expected = 0.2 * sum(sizes) / 4 + 0.7 * sum(traces) / 4
    torch.testing.assert_close(LocAteR(0.2, 1.5, keep=0.7)(model), expected)


def test_locater_sees_what_sigma_reparam_makes_of_its_weights():
    model = rough(Shape(7, width=8, layers=1, heads=2, length=6, attention="sigma"))
    before = LocAteR(1.0, 0.0, keep=0.0)(model)
    with torch.no_grad():
        model.blocks[0].attention.query.gain.mul_(3)
    torch.testing.assert_close(LocAteR(1.0, 0.0, keep=0.0)(model), 9 * before)


def test_locater_follows_the_weights_it_found():
    model, penalty = rough(), LocAteR(1.0, 1.0)
    before = penalty(model)
    with torch.no_grad():
        model.blocks[0].attention.key.weight.mul_(2)
    assert not torch.equal(before, penalty(model))
    torch.testing.assert_close(penalty(model), LocAteR(1.0, 1.0)(model))


def test_cosreg_is_the_sum_of_cosines_of_all_pairs():
    model = rough()
    for penalty, table in ((CosReg(2.0), model.tokens), (CosReg(2.0, output=True), model.head)):
        rows = list(table.weight)
        pairs = [nn.functional.cosine_similarity(x, y, 0) for x in rows for y in rows if x is not y]
        torch.testing.assert_close(penalty(model), 2 * sum(pairs) / 49)


def test_cosreg_leaves_rows_of_zeros_alone():
    table = torch.randn(5, 3, dtype=torch.float64)
    table[2] = 0
    table.requires_grad_()
    found = mean_of_cosines(table)
    torch.testing.assert_close(found, mean_of_cosines(table[[0, 1, 3, 4]]))
    found.backward()
    assert not table.grad[2].any() and table.grad.isfinite().all()


@pytest.mark.parametrize("shape", [(40, 5), (5, 40)])
@pytest.mark.parametrize("counts", [False, True])
def test_isoscore_star_is_that_of_the_measure(shape: tuple[int, int], counts: bool):
    points = torch.randn(shape, dtype=torch.float64) * torch.rand(shape[1], dtype=torch.float64) + 3
    there = torch.arange(shape[0]) % 3 > 0 if counts else None
    expected = spectrum.isoscore_star(points if there is None else points[there])
    assert float(isoscore_star(points, there)) == pytest.approx(expected, abs=1e-12)


def test_istar_is_the_mean_over_layers_of_what_counts():
    model, counts = rough(), torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0], [1, 1, 0, 0, 0, 0]])
    seen = isoscope.observe(
        model,
        [{"input_ids": ids(), "attention_mask": counts}],
        measures=["isoscore_star"],
        layers="layer.*",
        **tiny.EVERY,
    )
    table = seen.frame()
    layers = table[table.layer > 0].value
    assert len(layers) == 2
    for strength in (0.5, -0.5):
        found = float(of(IStar(strength), model, ids(), counts).detach())
        assert found == pytest.approx(strength * (1 - layers).mean(), abs=1e-6)


@pytest.mark.parametrize("attention", [variant.name for variant in VARIANTS if variant.name != "convolution"])
@pytest.mark.parametrize("causal", [True, False])
def test_the_entropy_is_that_of_the_measure(attention: str, causal: bool):
    model = rough(Shape(7, width=8, layers=2, heads=2, length=6, attention=attention, causal=causal)).eval()
    counts = torch.tensor([[1, 1, 1, 1, 1, 1], [0, 0, 0, 1, 1, 1], [1, 1, 0, 0, 0, 0]])
    for given in ({"input_ids": ids()}, {"input_ids": ids(), "attention_mask": counts}):
        penalty = EntropyTarget(3.0, 0.4)
        found = float(of(penalty, model, **given).detach())
        seen = isoscope.observe(
            model, [given], measures=["normalised_entropy"], layers="*attention.*", **tiny.EVERY
        )
        rows = seen.frame()
        kind = "mixed_attention" if attention == "differential" else "attention"
        expected = rows[rows.kind == kind].value
        assert [float(x.detach()) for x in penalty.entropies(model).values()] == pytest.approx(
            list(expected), abs=1e-5
        )
        assert found == pytest.approx(3 * ((expected - 0.4) ** 2).mean(), abs=1e-5)


def test_the_entropy_is_of_the_first_sequences():
    model = rough()
    many = ids(MOST + 5)
    torch.testing.assert_close(
        of(EntropyTarget(1.0, 0.5), model, many), of(EntropyTarget(1.0, 0.5), model, many[:MOST])
    )


# ── invariances ──────────────────────────────────────────────────────────────────────────────────────────


def test_what_leaves_a_penalty_as_it_is():
    model = rough()
    locater, cosreg = LocAteR(0.3, 1.0), CosReg(1.0)
    before = locater(model), cosreg(model)
    with torch.no_grad():
        attention = model.blocks[0].attention  # a change of basis inside a head: q·k stays as it is
        turn = torch.linalg.qr(torch.randn(4, 4, dtype=torch.float64)).Q
        for part in (attention.query, attention.key):
            part.weight[:4] = turn @ part.weight[:4]
        model.tokens.weight.mul_(torch.rand(7, 1) + 0.1)  # the length of word vectors
    torch.testing.assert_close((locater(model), cosreg(model)), before)
    points = torch.randn(30, 6, dtype=torch.float64)
    turn = torch.linalg.qr(torch.randn(6, 6, dtype=torch.float64)).Q
    torch.testing.assert_close(isoscore_star(7 * points @ turn - 4), isoscore_star(points))


def spectra(model: nn.Module) -> tuple[Tensor, Tensor, Tensor]:
    """tr W, ‖W‖_F² and the variance of the spectrum of every head, as the measures have them."""
    found = [
        isoscope.qk_spectrum(
            each.query, each.key, scale=each.scale, gamma=None if each.norm is None else each.norm.weight
        )
        for each in open_weights(model).projections()
    ]
    names = ("trace", "frobenius_square", "variance")
    trace, square, variance = (torch.cat([getattr(each, name) for each in found]) for name in names)
    return trace, square, variance


# ── other people's models ────────────────────────────────────────────────────────────────────────────────


@every
@pytest.mark.parametrize("how", ["sdpa", "eager"])
@pytest.mark.parametrize("kind", ["gpt2", "bert", "llama"])
def test_models_of_transformers_take_all_four(written: str, how: str, kind: str):
    config = tiny.CONFIGS[kind]()
    config._attn_implementation = how
    classes = {"gpt2": transformers.GPT2LMHeadModel, "bert": transformers.BertForMaskedLM}
    torch.manual_seed(0)
    model = classes.get(kind, transformers.LlamaForCausalLM)(config).eval()
    penalty, mask = parse(written), torch.tensor([[1] * 9, [1] * 5 + [0] * 4])
    given = {"input_ids": torch.randint(5, tiny.VOCABULARY, (2, 9)), "attention_mask": mask}
    for _ in range(2):  # found, then known
        model.zero_grad()
        value = of(penalty, model, **given)
        value.backward()
        touched = {name for name, weight in model.named_parameters() if weight.grad is not None}
        assert touched and value.isfinite()
        grads = [weight.grad for weight in model.parameters() if weight.grad is not None]
        assert all(grad.isfinite().all() for grad in grads)
    if written.startswith("entropy"):
        seen = isoscope.observe(
            model, [given], measures=["normalised_entropy"], layers="attention.*", **tiny.EVERY
        )
        expected = list(seen.frame().value)
        assert [float(x.detach()) for x in penalty.entropies(model).values()] == pytest.approx(
            expected, abs=1e-4
        )
        assert any("attn" in name or "attention" in name for name in touched)
    if written.startswith("locater"):
        trace, square, _ = spectra(model)
        expected = 0.3 * square.mean() / tiny.WIDTH + 0.7 * (trace - 1).square().mean()
        assert float(value.detach()) == pytest.approx(float(expected), rel=1e-4)


# ── in training ──────────────────────────────────────────────────────────────────────────────────────────


def text(size: int, random: torch.Generator) -> Tensor:
    """Sequences in which a token follows from the one before, mostly."""
    rows = [torch.randint(7, (size,), generator=random)]
    for _ in range(8):
        follows = (3 * rows[-1] + 1) % 7
        chance = torch.randint(7, (size,), generator=random)
        rows.append(torch.where(torch.rand(size, generator=random) < 0.8, follows, chance))
    return torch.stack(rows, 1)


def next_token(model: Transformer, random: torch.Generator) -> Tensor:
    rows = text(16, random)
    return nn.functional.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())


def recalled(model: Transformer, random: torch.Generator) -> Tensor:
    given, answer = recall(32, random)
    return nn.functional.cross_entropy(model(given)[:, -1], answer)


def trained(
    shape: Shape, penalty: Penalty, seed: int, steps: int, rate: float = 1e-2, loss_of: Loss = next_token
) -> Transformer:
    model, random = build(shape, seed), torch.Generator().manual_seed(seed)
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0)
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = rate * min(1, (step + 1) / 20, 3 * (1 - step / steps))
        with penalty.watch(model):
            loss = loss_of(model, random)
        optimiser.zero_grad()
        (loss + penalty(model)).backward()
        optimiser.step()
    return model.eval()


@pytest.mark.nightly
def test_locater_keeps_the_trace_and_narrows_the_spectrum():
    shape = Shape(
        KEYS + VALUES, width=24, layers=1, heads=2, length=KEYS + 1, vectors=True, outputs=VALUES
    )  # on a task that needs attention: where none is needed, W stays near 0 and any target widens it
    changes = []
    for seed in range(5):
        plain, kept = (
            spectra(trained(shape, penalty, seed, steps=150, rate=2e-2, loss_of=recalled))
            for penalty in (LocAteR(0.0, target=1.0, keep=0.0), LocAteR(1.0, target=1.0, keep=10.0))
        )
        assert ((kept[0] - 1).abs() <= 0.05).all()
        assert ((plain[0] - 1).abs() > 0.05).any()
        changes.append(math.log(kept[2].mean() / plain[2].mean()))
    half = 2.776 * stdev(changes) / 5**0.5  # 97.5 % of t with 4 degrees of freedom
    assert mean(changes) + half < 0


@pytest.mark.parametrize(
    ("attention", "target"),
    [
        ("softmax", 0.8),
        ("differential", 0.4),
        *nightly(*((name, 0.4) for name in ("softmax", "qk-norm", "sigmoid", "sparsemax"))),
    ],
)
def test_attention_is_as_sharp_as_it_is_told_to_be(attention: str, target: float):
    shape = Shape(7, width=16, layers=1, heads=2, length=8, attention=attention)
    penalty = EntropyTarget(20.0, target)
    model = trained(shape, penalty, seed=0, steps=150, rate=2e-2)
    with penalty.watch(model), torch.no_grad():
        model(text(16, torch.Generator().manual_seed(99))[:, :-1])
    found = [float(entropy) for entropy in penalty.entropies(model).values()]
    assert found == pytest.approx([target], abs=0.03)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_istar_and_cosreg_go_where_their_sign_says(sign: float):
    shape = Shape(7, width=8, layers=1, heads=2, length=8)
    rows = text(16, torch.Generator().manual_seed(99))[:, :-1]
    for penalty in (IStar(sign), CosReg(sign)):
        plain = trained(shape, replace(penalty, strength=0.0), 0, steps=40)
        pushed = trained(shape, penalty, 0, steps=40)
        change = of(penalty, pushed, rows) - of(penalty, plain, rows)
        assert float(change.detach()) < -0.02


# ── what is refused ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("penalty", [IStar(1.0), EntropyTarget(1.0, 0.5)], ids=["istar", "entropy"])
def test_what_flows_must_be_watched_and_not_compiled(penalty: Penalty):
    model = build(SMALL, seed=0)
    model(ids())
    with pytest.raises(IsoscopeError, match=r"inside `with penalty\.watch\(model\):`"):
        penalty(model)
    with penalty.watch(model):
        pass
    with pytest.raises(IsoscopeError, match="in the last forward of Transformer"):
        penalty(model)
    with pytest.raises(IsoscopeError, match="compiled"), penalty.watch(torch.compile(model, backend="eager")):
        pass
    with penalty.watch(model):
        model(ids())
    assert not [part for part in model.modules() if part._forward_hooks or part._forward_pre_hooks]


def test_weights_need_no_watching_and_may_be_compiled():
    model = rough()
    compiled = torch.compile(model, backend="eager")
    for penalty in (LocAteR(1.0, 1.0), CosReg(1.0)):
        torch.testing.assert_close(penalty(compiled), penalty(model))
        assert not penalty.watches


def test_what_is_computed_again_in_the_backward_pass_is_not_counted():
    model, penalty = rough(), IStar(1.0)
    expected = of(penalty, model, ids())
    for block in model.blocks:
        plain = block.forward
        block.forward = lambda *given, plain=plain: torch.utils.checkpoint.checkpoint(
            plain, *given, use_reentrant=False
        )
    with penalty.watch(model):
        loss = model(ids()).sum()
        (loss + penalty(model)).backward()
    torch.testing.assert_close(penalty(model), expected)


def test_a_model_without_attention_or_tokens_is_told_so():
    convolution = build(Shape(7, width=8, layers=1, heads=2, length=6, attention="convolution"), seed=0)
    with pytest.raises(IsoscopeError, match="entropy saw no attention in the last forward of Transformer"):
        of(EntropyTarget(1.0, 0.5), convolution, ids())
    frames = build(Shape(3, width=8, layers=1, heads=2, length=6, vectors=True), seed=0)
    with pytest.raises(IsoscopeError, match="cosreg needs the input vocabulary of Transformer"):
        CosReg(1.0)(frames)


def test_a_penalty_holds_no_model():
    penalties = [parse(written) for written in WRITTEN]
    model = build(SMALL, seed=0)
    for penalty in penalties:
        of(penalty, model, ids())
    gone = ref(model)
    del model
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("locater=.1,target=1", LocAteR(0.1, 1.0)),
        (" locater = 1e-2 , target = -2 , keep=3", LocAteR(0.01, -2.0, 3.0)),
        ("cosreg=-1", CosReg(-1.0)),
        ("cosreg=1,output=1", CosReg(1.0, output=True)),
        ("istar=-.5", IStar(-0.5)),
        ("entropy=5,target=.3", EntropyTarget(5.0, 0.3)),
    ],
)
def test_penalties_are_read_as_they_are_written(written: str, expected: Penalty):
    assert parse(written) == expected


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ("locator=1", "no penalty is called 'locator'; did you mean 'locater'? There are: cosreg, "),
        ("locater", "locater needs a strength: write locater=0.1,target=1."),
        ("locater=.1", "locater needs target (tr W of every head, in units of a score): write locater=0.1,"),
        ("locater=.1,targt=1", "no parameter of locater is called 'targt'; did you mean 'target'?"),
        ("locater=.1,target=one", "target=one in a penalty is no number; write locater=0.1,target=1."),
        ("locater=.1,target", "target= in a penalty is no number"),
        ("locater=nan,target=1", "locater=nan in a penalty is no number"),
        ("locater=.1,target=1,target=2", "gives target twice"),
        ("locater=-1,target=1", "strength and keep are at least 0; got -1 and 1."),
        ("entropy=1,target=1.5", "entropy's target is from 0 (on one key) to 1 (on all alike); got 1.5."),
        ("istar=1,shrinkage=2", "istar's shrinkage is from 0 to 1; got 2."),
        ("", "no penalty is called ''"),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(written: str, sentence: str):
    with pytest.raises(IsoscopeError) as refused:
        parse(written)
    assert sentence in str(refused.value)


def test_the_table_says_what_each_takes():
    for line in PENALTIES:
        assert line.formula and line.says and set(line.needs) <= set(line.parameters)
        maker: Callable[..., Penalty] = line.build
        fields = set(maker.__dataclass_fields__) - {"strength", "watches"}
        assert {name for name in fields if not name.startswith("_")} == set(line.parameters)
        assert isinstance(parse(line.example), line.build)
