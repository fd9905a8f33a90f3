"""Modules: values and gradients as torch's with the same state, and torch's rules for what a module owns."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref

import numpy
import pytest
import torch

import minigrad
from minigrad import func, nn
from minigrad.autograd.graph import saved_tensors_hooks
from minigrad.errors import UsageError
from minigrad.nn import functional as F
from minigrad.utils.checkpoint import checkpoint

f64 = torch.float64


def ours(x):
    """A torch tensor as a minigrad one on the tests' device."""
    made = minigrad.tensor(x.detach().numpy())
    return made.requires_grad_() if x.requires_grad else made


def theirs(x):
    return torch.from_numpy(numpy.array(x.detach().cpu().numpy()))


def same(mine, other):
    torch.testing.assert_close(theirs(mine), other.detach(), equal_nan=True)


def pair(make, seed=0):
    """The same module in both libraries: torch's values, float64."""
    torch.manual_seed(seed)
    reference = make(torch.nn).double()
    module = make(nn).double()
    module.load_state_dict({key: ours(x) for key, x in reference.state_dict().items()})
    return module, reference


def agree(module, reference, *inputs, call=lambda m, *xs: m(*xs)):
    """Outputs, gradients of inputs and of parameters, and buffers afterwards, are equal."""
    mine = [ours(x) for x in inputs]
    y, want = call(module, *mine), call(reference, *inputs)
    same(y, want)
    ct = torch.randn_like(want)
    y.backward(ours(ct))
    want.backward(ct)
    for x, other in zip(mine, inputs, strict=True):
        if other.grad is not None:
            same(x.grad, other.grad)
    for (name, p), (other_name, other) in zip(module.named_parameters(), reference.named_parameters(), strict=True):
        assert name == other_name
        same(p.grad, other.grad)
    for (name, b), (other_name, other) in zip(module.named_buffers(), reference.named_buffers(), strict=True):
        assert name == other_name
        same(b, other)


def randn(*shape):
    return torch.randn(*shape, dtype=f64, requires_grad=True)


def chances(library, rank):
    """Numbers in [0, 1) for each channel of (2, 3, ..), the same in both libraries."""
    x = torch.rand(2, 3, rank, dtype=f64, generator=torch.Generator().manual_seed(1))
    return ours(x) if library is nn else x


# ---------------------------------------------------------------- values and gradients
MODULES = {
    "Identity": (lambda nn: nn.Identity(3, x=1), (2, 3)),
    "Linear": (lambda nn: nn.Linear(3, 4), (5, 3)),
    "Linear without bias": (lambda nn: nn.Linear(3, 4, bias=False), (2, 5, 3)),
    "ReLU": (lambda nn: nn.ReLU(), (4, 3)),
    "Tanh": (lambda nn: nn.Tanh(), (4, 3)),
    "Sigmoid": (lambda nn: nn.Sigmoid(), (4, 3)),
    "GELU": (lambda nn: nn.GELU(), (4, 3)),
    "GELU tanh": (lambda nn: nn.GELU(approximate="tanh"), (4, 3)),
    "SiLU": (lambda nn: nn.SiLU(), (4, 3)),
    "ELU": (lambda nn: nn.ELU(0.5), (4, 3)),
    "LeakyReLU": (lambda nn: nn.LeakyReLU(0.2), (4, 3)),
    "Softplus": (lambda nn: nn.Softplus(2.0), (4, 3)),
    "Softmax": (lambda nn: nn.Softmax(dim=-1), (4, 3)),
    "LogSoftmax": (lambda nn: nn.LogSoftmax(dim=0), (4, 3)),
    "Dropout in eval": (lambda nn: nn.Dropout(0.5).eval(), (4, 3)),
    "Flatten": (lambda nn: nn.Flatten(), (4, 3, 2)),
    "Unflatten": (lambda nn: nn.Unflatten(1, (3, 2)), (4, 6)),
    "LayerNorm": (lambda nn: nn.LayerNorm([3, 2]), (4, 3, 2)),
    "LayerNorm of an int": (lambda nn: nn.LayerNorm(3, bias=False), (4, 3)),
    "GroupNorm": (lambda nn: nn.GroupNorm(2, 4), (3, 4, 5)),
    "BatchNorm1d": (lambda nn: nn.BatchNorm1d(3), (5, 3)),
    "BatchNorm1d of sequences": (lambda nn: nn.BatchNorm1d(3, momentum=None), (5, 3, 2)),
    "BatchNorm1d in eval": (lambda nn: nn.BatchNorm1d(3).eval(), (5, 3)),
    "BatchNorm1d without memory": (lambda nn: nn.BatchNorm1d(3, track_running_stats=False, affine=False).eval(), (5, 3)),
    "BatchNorm2d": (lambda nn: nn.BatchNorm2d(3), (2, 3, 2, 2)),
    "InstanceNorm1d": (lambda nn: nn.InstanceNorm1d(3), (2, 3, 4)),
    "InstanceNorm1d of one sample": (lambda nn: nn.InstanceNorm1d(3, affine=True), (3, 4)),
    "InstanceNorm1d with memory": (lambda nn: nn.InstanceNorm1d(3, track_running_stats=True), (2, 3, 4)),
    "Sequential": (lambda nn: nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)), (5, 3)),
    "BatchNorm3d": (lambda nn: nn.BatchNorm3d(3), (2, 3, 2, 2, 2)),
    "InstanceNorm2d": (lambda nn: nn.InstanceNorm2d(3, affine=True), (2, 3, 2, 4)),
    "InstanceNorm2d of one sample": (lambda nn: nn.InstanceNorm2d(3), (3, 2, 4)),
    "InstanceNorm3d with memory": (lambda nn: nn.InstanceNorm3d(3, affine=True, track_running_stats=True), (2, 3, 2, 2, 2)),
    "InstanceNorm3d in eval": (lambda nn: nn.InstanceNorm3d(3, track_running_stats=True).eval(), (2, 3, 2, 2, 2)),
    "LocalResponseNorm": (lambda nn: nn.LocalResponseNorm(2, alpha=0.1), (2, 4, 3)),
    "LocalResponseNorm of images": (lambda nn: nn.LocalResponseNorm(3, k=2.0), (2, 4, 3, 2)),
    "RReLU in eval": (lambda nn: nn.RReLU().eval(), (4, 3)),
    "AlphaDropout in eval": (lambda nn: nn.AlphaDropout().eval(), (4, 3)),
    "Dropout2d in eval": (lambda nn: nn.Dropout2d().eval(), (2, 3, 2, 2)),
    "MaxPool1d": (lambda nn: nn.MaxPool1d(2), (2, 3, 5)),
    "MaxPool3d": (lambda nn: nn.MaxPool3d(2, stride=1), (2, 3, 3, 3, 3)),
    "AvgPool1d": (lambda nn: nn.AvgPool1d(3, stride=2, padding=1), (2, 3, 5)),
    "AvgPool3d": (lambda nn: nn.AvgPool3d(2, ceil_mode=True), (2, 3, 3, 3, 3)),
    "AdaptiveAvgPool1d": (lambda nn: nn.AdaptiveAvgPool1d(2), (2, 3, 5)),
    "AdaptiveAvgPool3d": (lambda nn: nn.AdaptiveAvgPool3d((2, None, 1)), (2, 3, 3, 2, 3)),
    "AdaptiveMaxPool1d": (lambda nn: nn.AdaptiveMaxPool1d(2), (2, 3, 5)),
    "AdaptiveMaxPool2d": (lambda nn: nn.AdaptiveMaxPool2d((2, 3)), (2, 3, 5, 4)),
    "AdaptiveMaxPool3d": (lambda nn: nn.AdaptiveMaxPool3d(2), (2, 3, 3, 3, 3)),
    "FractionalMaxPool2d": (lambda nn: nn.FractionalMaxPool2d((2, 3), output_size=3, _random_samples=chances(nn, 2)), (2, 3, 7, 6)),
    "FractionalMaxPool2d of one sample": (
        lambda nn: nn.FractionalMaxPool2d(2, output_ratio=0.5, _random_samples=chances(nn, 2)[:1]), (3, 6, 7)),
    "FractionalMaxPool3d": (
        lambda nn: nn.FractionalMaxPool3d(2, output_size=(3, 1, 2), _random_samples=chances(nn, 3)), (2, 3, 7, 5, 6)),
    "LPPool1d": (lambda nn: nn.LPPool1d(2, 3, stride=2), (2, 3, 7)),
    "LPPool2d": (lambda nn: nn.LPPool2d(4, (2, 3), ceil_mode=True), (2, 3, 5, 6)),
    "LPPool2d of the largest": (lambda nn: nn.LPPool2d(float("inf"), 2), (2, 3, 4, 4)),
    "LPPool3d": (lambda nn: nn.LPPool3d(2, 2), (2, 3, 4, 4, 4)),
}


@pytest.mark.parametrize("name", MODULES)
def test_a_module_computes_what_torchs_does(name):
    make, shape = MODULES[name]
    agree(*pair(make), randn(*shape))


LOSSES = {
    "MSELoss": (lambda nn: nn.MSELoss(), lambda: torch.randn(4, 3, dtype=f64)),
    "L1Loss": (lambda nn: nn.L1Loss(reduction="sum"), lambda: torch.randn(4, 3, dtype=f64)),
    "SmoothL1Loss": (lambda nn: nn.SmoothL1Loss(), lambda: torch.randn(4, 3, dtype=f64)),
    "HuberLoss": (lambda nn: nn.HuberLoss(delta=0.5), lambda: torch.randn(4, 3, dtype=f64)),
    "KLDivLoss": (lambda nn: nn.KLDivLoss(reduction="batchmean"), lambda: torch.rand(4, 3, dtype=f64)),
    "BCEWithLogitsLoss": (lambda nn: nn.BCEWithLogitsLoss(), lambda: torch.rand(4, 3, dtype=f64)),
    "CrossEntropyLoss": (lambda nn: nn.CrossEntropyLoss(label_smoothing=0.1), lambda: torch.randint(3, (4,))),
    "CrossEntropyLoss none": (lambda nn: nn.CrossEntropyLoss(reduction="none"), lambda: torch.randint(3, (4,))),
    "NLLLoss": (lambda nn: nn.NLLLoss(ignore_index=1), lambda: torch.tensor([0, 1, 2, 2])),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_computes_what_torchs_does(name):
    make, target = LOSSES[name]
    torch.manual_seed(0)
    agree(*pair(make), randn(4, 3), target())


def test_a_loss_of_probabilities_computes_what_torchs_does():
    x = torch.rand(4, 3, dtype=f64).requires_grad_()
    agree(*pair(lambda nn: nn.BCELoss()), x, torch.rand(4, 3, dtype=f64))


def labels(*rows):
    return torch.tensor(rows)


def signs(*shape):
    return torch.randint(2, shape).to(f64) * 2 - 1


OF_SEVERAL = {
    "Bilinear": (lambda nn: nn.Bilinear(3, 4, 2), lambda: (randn(5, 3), randn(5, 4))),
    "Bilinear without bias": (lambda nn: nn.Bilinear(3, 4, 2, bias=False), lambda: (randn(2, 5, 3), randn(2, 5, 4))),
    "CosineSimilarity": (lambda nn: nn.CosineSimilarity(dim=-1), lambda: (randn(4, 3), randn(4, 3))),
    "PairwiseDistance": (lambda nn: nn.PairwiseDistance(p=3.0, keepdim=True), lambda: (randn(4, 3), randn(4, 3))),
    "EmbeddingBag of rows": (lambda nn: nn.EmbeddingBag(6, 3, padding_idx=1), lambda: (labels([0, 1, 4], [1, 1, 1]),)),
    "EmbeddingBag with offsets": (lambda nn: nn.EmbeddingBag(6, 3, mode="max"),
                                  lambda: (torch.tensor([0, 1, 4, 1]), torch.tensor([0, 0, 3]))),
    "EmbeddingBag to the last offset": (lambda nn: nn.EmbeddingBag(6, 3, mode="sum", include_last_offset=True),
                                        lambda: (torch.tensor([0, 1, 4, 1]), torch.tensor([0, 3, 4]), randn(4))),
    "MultiMarginLoss": (lambda nn: nn.MultiMarginLoss(p=2, margin=0.5), lambda: (randn(3, 4), torch.tensor([0, 3, 1]))),
    "MultiLabelMarginLoss": (lambda nn: nn.MultiLabelMarginLoss(reduction="sum"),
                             lambda: (randn(2, 4), labels([3, 0, -1, 1], [2, 1, 0, 3]))),
    "MultiLabelSoftMarginLoss": (lambda nn: nn.MultiLabelSoftMarginLoss(), lambda: (randn(3, 4), torch.rand(3, 4, dtype=f64))),
    "SoftMarginLoss": (lambda nn: nn.SoftMarginLoss(), lambda: (randn(3, 4), signs(3, 4))),
    "MarginRankingLoss": (lambda nn: nn.MarginRankingLoss(0.3), lambda: (randn(4), randn(4), signs(4))),
    "CosineEmbeddingLoss": (lambda nn: nn.CosineEmbeddingLoss(0.1), lambda: (randn(4, 3), randn(4, 3), signs(4))),
    "HingeEmbeddingLoss": (lambda nn: nn.HingeEmbeddingLoss(), lambda: (randn(4, 3), signs(4, 3))),
    "TripletMarginLoss": (lambda nn: nn.TripletMarginLoss(swap=True), lambda: (randn(4, 3), randn(4, 3), randn(4, 3))),
    "TripletMarginWithDistanceLoss": (lambda nn: nn.TripletMarginWithDistanceLoss(margin=0.5),
                                      lambda: (randn(4, 3), randn(4, 3), randn(4, 3))),
    "PoissonNLLLoss": (lambda nn: nn.PoissonNLLLoss(full=True), lambda: (randn(4, 3), torch.rand(4, 3, dtype=f64) * 5)),
    "GaussianNLLLoss": (lambda nn: nn.GaussianNLLLoss(), lambda: (randn(4, 3), randn(4, 3), torch.rand(4, 3, dtype=f64) + 0.1)),
    "LinearCrossEntropyLoss": (lambda nn: nn.LinearCrossEntropyLoss(3, 5, bias=True), lambda: (randn(4, 3), torch.randint(5, (4,)))),
    "LinearCrossEntropyLoss of places": (lambda nn: nn.LinearCrossEntropyLoss(3, 5, out_features=(2,), reduction="none"),
                                         lambda: (randn(4, 3), torch.randint(5, (4, 2)))),
    "MaxUnpool1d": (lambda nn: nn.MaxUnpool1d(2), lambda: (randn(1, 2, 3), labels([[0, 3, 5], [1, 2, 4]]))),
    "MaxUnpool2d": (lambda nn: nn.MaxUnpool2d(2, stride=2), lambda: (randn(1, 1, 1, 2), labels([[[1, 6]]]))),
    "MaxUnpool3d": (lambda nn: nn.MaxUnpool3d((1, 1, 2)), lambda: (randn(1, 1, 1, 1, 2), labels([[[[1, 2]]]]))),
    "MultiheadAttention with more keys": (
        lambda nn: first_of(nn.MultiheadAttention(4, 2, kdim=3, vdim=5, add_bias_kv=True, add_zero_attn=True)),
        lambda: (randn(3, 2, 4), randn(6, 2, 3), randn(6, 2, 5))),
}


def first_of(module):
    """The module, of whose results only the first is returned."""
    module.register_forward_hook(lambda _module, _args, out: out[0])
    return module


@pytest.mark.parametrize("name", OF_SEVERAL)
def test_a_module_of_several_tensors_computes_what_torchs_does(name):
    make, inputs = OF_SEVERAL[name]
    torch.manual_seed(0)
    agree(*pair(make), *inputs())


@pytest.mark.parametrize("lengths", [((5, 4, 5), (2, 3, 0)), ((5, 1, 3), (1, 1, 3))], ids=["free", "tight"])
@pytest.mark.parametrize("concatenated", [False, True])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_a_ctc_loss_of_logits_computes_what_torchs_does(lengths, concatenated, reduction):
    """Of logits: by log_probs themselves torch's derivative is another (see test_ctc_loss_is_differentiated_by_log_probs)."""
    torch.manual_seed(0)
    ends, sizes = (torch.tensor(x) for x in lengths)
    targets = torch.tensor([[1, 1, 2], [3, 2, 3], [2, 1, 3]])
    targets[torch.arange(3) >= sizes.unsqueeze(1)] = -1
    if concatenated:
        targets = torch.cat([row[:n] for row, n in zip(targets, sizes, strict=True)])

    def call(loss, x, *rest):
        return loss(x.log_softmax(-1), *rest)

    agree(*pair(lambda nn: nn.CTCLoss(reduction=reduction)), randn(5, 3, 4), targets, ends, sizes, call=call)


def test_a_sequence_that_does_not_fit_has_an_infinite_ctc_loss_and_no_gradient_with_zero_infinity():
    torch.manual_seed(0)
    x, target, lengths = randn(3, 1, 4), torch.tensor([[1, 1, 2]]), (torch.tensor([3]), torch.tensor([3]))
    assert nn.CTCLoss()(ours(x), ours(target), *map(ours, lengths)).item() == float("inf")
    agree(*pair(lambda nn: nn.CTCLoss(zero_infinity=True)), x, target, *lengths)


def test_ctc_loss_is_differentiated_by_log_probs():
    """Adding c to all log_probs of a step multiplies every alignment by exp(c), so that each step's gradients add up to -1."""
    x = minigrad.randn(5, 1, 4, dtype=minigrad.float64, requires_grad=True)
    nn.CTCLoss(reduction="sum")(x, minigrad.tensor([[1, 2]]), [5], [2]).backward()
    assert x.grad.sum((1, 2)).tolist() == pytest.approx([-1] * 5)


@pytest.mark.parametrize("options", [{"reduction": "none"}, {"ignore_index": 1}, {"reduction": "sum", "bias": True}], ids=str)
def test_a_linear_layer_and_its_loss_in_chunks_are_what_they_are_as_one(options):
    torch.manual_seed(0)
    weight = torch.rand(5, dtype=f64)
    chunks = nn.LinearCrossEntropyOptions(batch_chunk_size=3)
    module = nn.LinearCrossEntropyLoss(3, 5, weight=ours(weight), options=chunks, **options).double()
    reference = torch.nn.LinearCrossEntropyLoss(3, 5, weight=weight, **options).double()
    module.load_state_dict({key: ours(x) for key, x in reference.state_dict().items()})
    agree(module, reference, randn(7, 3), torch.tensor([0, 1, 2, 3, 4, 1, 0]))


def chunked(size):
    """The loss of a linear layer by (x, weight), so many rows at a time."""
    target = minigrad.arange(6) * 7
    return lambda x, w: F.linear_cross_entropy(x, w, target, options=nn.LinearCrossEntropyOptions(batch_chunk_size=size))


TRANSFORMS = {
    "hessian": func.hessian,
    "jacfwd of grad": lambda f: func.jacfwd(func.grad(f)),
    "vmap of grad": lambda f: lambda x, w: func.vmap(func.grad(f), in_dims=(0, None))(minigrad.stack([x, x * 2]), w),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_every_transform_goes_through_chunks_of_a_linear_layer_and_its_loss(transform):
    """Torch's are a function of their own, without second derivatives."""
    minigrad.manual_seed(0)
    x, w = (minigrad.randn(*shape, dtype=minigrad.float64) for shape in ((6, 3), (50, 3)))
    found, wanted = (TRANSFORMS[transform](chunked(size))(x, w) for size in (2, None))
    assert minigrad.allclose(found, wanted, rtol=1e-11, atol=1e-13)


def test_chunks_of_a_linear_layer_and_its_loss_keep_no_logits():
    x, w = minigrad.randn(6, 3, requires_grad=True), minigrad.randn(50, 3)
    kept = {2: [], None: []}
    for size, shapes in kept.items():
        with saved_tensors_hooks(lambda t, shapes=shapes: shapes.append(t.shape) or t, lambda t: t):
            chunked(size)(x, w)
    assert (6, 50) in kept[None]
    assert not [shape for shape in kept[2] if 50 in shape[1:]]


def test_weights_of_a_loss_are_a_buffer():
    loss = nn.CrossEntropyLoss(weight=minigrad.ones(3))
    assert [name for name, _ in loss.named_buffers()] == ["weight"]


def test_an_embedding_gives_no_gradient_to_its_padding_row():
    agree(*pair(lambda nn: nn.Embedding(5, 3, padding_idx=1)), torch.tensor([[0, 1], [4, 1]]))


def test_an_embedding_begins_with_zeros_in_its_padding_row():
    assert nn.Embedding(5, 3, padding_idx=-1).weight[4].tolist() == [0, 0, 0]


def test_a_linear_layer_begins_uniform_within_the_inverse_root_of_its_inputs():
    minigrad.manual_seed(0)
    layer = nn.Linear(100, 200)
    for x in layer.parameters():
        assert 0.08 < x.abs().max().item() <= 0.1
    assert abs(layer.weight.std().item() - 0.1 / 3 ** 0.5) < 1e-3


@pytest.mark.parametrize("options", [{}, {"batch_first": True}, {"bias": False}], ids=str)
@pytest.mark.parametrize("need_weights", [True, False])
def test_multihead_attention_computes_what_torchs_does(options, need_weights):
    module, reference = pair(lambda nn: nn.MultiheadAttention(8, 2, **options))
    mask = torch.zeros(4, 5, dtype=torch.bool)
    mask[0, 1] = mask[2, 3] = True
    q, k, v = (randn(*shape) for shape in (((3, 4, 8), (3, 5, 8), (3, 5, 8)) if options.get("batch_first") else
                                           ((4, 3, 8), (5, 3, 8), (5, 3, 8))))
    agree(module, reference, q, k, v, call=lambda m, *xs: m(
        *xs, need_weights=need_weights, attn_mask=mask if m is reference else ours(mask))[0])


def test_multihead_attention_returns_weights_of_every_head():
    module, reference = pair(lambda nn: nn.MultiheadAttention(8, 2))
    x, pad = randn(4, 3, 8), torch.tensor([[False] * 4, [False, True, False, True], [True, False, False, False]])
    _, weights = module(ours(x), ours(x), ours(x), key_padding_mask=ours(pad), average_attn_weights=False)
    same(weights, reference(x, x, x, key_padding_mask=pad, average_attn_weights=False)[1])


def test_dropout_in_training_scales_what_it_keeps():
    minigrad.manual_seed(0)
    y = nn.Dropout(0.25)(minigrad.ones(1000))
    assert sorted(set(y.tolist())) == [0.0, pytest.approx(4 / 3)]
    assert 700 < (y != 0).sum().item() < 800


def test_batch_norm_counts_a_batch_once_however_often_a_checkpoint_runs():
    plain, again = nn.BatchNorm1d(3), nn.BatchNorm1d(3)
    x = minigrad.randn(5, 3)
    plain(x).sum().backward()
    checkpoint(lambda t: again(t).sin(), x).sum().backward()
    assert again.num_batches_tracked.item() == 1
    assert (again.running_mean == plain.running_mean).all()


def test_batch_norm_refuses_another_rank():
    with pytest.raises(ValueError, match="expected 2D or 3D input"):
        nn.BatchNorm1d(3)(minigrad.ones(3))


# ---------------------------------------------------------------- parameters and buffers
def test_a_parameter_is_a_tensor_that_isinstance_knows():
    p = nn.Parameter(minigrad.ones(2))
    assert isinstance(p, nn.Parameter)
    assert isinstance(p, minigrad.Tensor)
    assert p.requires_grad
    assert p.is_leaf
    assert not isinstance(minigrad.ones(2, requires_grad=True), nn.Parameter)
    assert not isinstance(p * 1, nn.Parameter)


def test_a_parameter_lies_on_the_memory_it_was_made_of():
    x = minigrad.zeros(2)
    p = nn.Parameter(x, requires_grad=False)
    x.fill_(3)
    assert p.tolist() == [3, 3]


def test_assigning_registers_what_a_module_owns():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.p = nn.Parameter(minigrad.ones(1))
            self.b = nn.Buffer(minigrad.ones(1))
            self.t = nn.Buffer(minigrad.ones(1), persistent=False)
            self.m = nn.Linear(1, 1)
            self.x = minigrad.ones(1)

    m = M()
    assert [name for name, _ in m.named_parameters()] == ["p", "m.weight", "m.bias"]
    assert [name for name, _ in m.named_buffers()] == ["b", "t"]
    assert list(m.state_dict()) == ["p", "b", "m.weight", "m.bias"]
    assert [name for name, _ in m.named_modules()] == ["", "m"]


def test_a_name_means_what_was_assigned_last():
    m = nn.Module()
    m.x = nn.Linear(1, 1)
    m.x = nn.Parameter(minigrad.ones(1))
    assert [name for name, _ in m.named_parameters()] == ["x"]
    assert not list(m.children())
    del m.x
    assert not hasattr(m, "x")


@pytest.mark.parametrize("library", [minigrad, torch], ids=["minigrad", "torch"])
def test_what_is_no_parameter_cannot_take_a_parameters_name(library):
    m = library.nn.Linear(2, 2)
    with pytest.raises(TypeError, match=r"as parameter 'weight' \(torch.nn.Parameter or None expected\)"):
        m.weight = library.ones(2, 2)
    m.bias = None
    assert [name for name, _ in m.named_parameters()] == ["weight"]


@pytest.mark.parametrize("library", [minigrad, torch], ids=["minigrad", "torch"])
def test_assigning_before_init_is_an_error(library):
    class M(library.nn.Module):
        def __init__(self):
            self.p = library.nn.Parameter(library.ones(1))

    with pytest.raises(AttributeError, match=r"cannot assign parameters before Module.__init__\(\) call"):
        M()


@pytest.mark.parametrize("library", [minigrad, torch], ids=["minigrad", "torch"])
@pytest.mark.parametrize(("name", "text"), [("a.b", 'can\'t contain "."'), ("", "empty string"), ("forward", "already exists")])
def test_a_name_must_be_free_and_plain(library, name, text):
    with pytest.raises(KeyError) as error:
        library.nn.Module().register_parameter(name, None)
    assert text in error.value.args[0]


def test_shared_parameters_are_listed_once():
    m = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    m[1].weight = m[0].weight
    assert len(list(m.parameters())) == 3
    assert len(list(m.named_parameters(remove_duplicate=False))) == 4


def test_submodules_parameters_and_buffers_are_found_by_path():
    m = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.BatchNorm1d(2)))
    assert m.get_submodule("1.0") is m[1][0]
    assert m.get_parameter("0.weight") is m[0].weight
    assert m.get_buffer("1.0.running_mean") is m[1][0].running_mean
    with pytest.raises(AttributeError, match="no attribute '7'"):
        m.get_submodule("1.7")


def test_a_copy_of_a_module_has_parameters_of_its_own():
    m = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    for again in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert isinstance(again[0].weight, nn.Parameter)
        assert again[0].weight.requires_grad
        assert again[0].weight is not m[0].weight
        assert (again[0].weight == m[0].weight).all()
        assert list(again.state_dict()) == list(m.state_dict())


def test_a_module_is_freed_without_the_collector(no_gc):
    m = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))
    m.register_forward_hook(lambda *_: None)
    m(minigrad.ones(1, 2)).sum().backward()
    dead = weakref.ref(m[0].weight)
    del m
    assert dead() is None
    assert not gc.isenabled()


# ---------------------------------------------------------------- containers
def test_a_sequential_can_be_sliced_named_and_changed():
    m = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    assert [type(x).__name__ for x in m[:2]] == ["Linear", "ReLU"]
    assert m[-1] is m[2]
    m[1] = nn.Tanh()
    del m[0]
    assert [name for name, _ in m.named_children()] == ["0", "1"]
    named = nn.Sequential({"a": nn.ReLU(), "b": nn.Tanh()})
    assert named.b(minigrad.zeros(1)).item() == 0


def test_lists_and_dicts_of_modules_and_parameters_are_listed():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(1, 1, bias=False)])
            self.layers.append(nn.Linear(1, 1, bias=False))
            self.layers.insert(0, nn.ReLU())
            self.heads = nn.ModuleDict({"x": nn.Linear(1, 1, bias=False)})
            self.free = nn.ParameterList([minigrad.ones(1)])
            self.named = nn.ParameterDict({"w": nn.Parameter(minigrad.ones(1))})

    m = M()
    assert [name for name, _ in m.named_parameters()] == [
        "layers.1.weight", "layers.2.weight", "heads.x.weight", "free.0", "named.w"]
    assert len(m.layers) == 3
    assert list(m.heads) == ["x"]
    assert m.named["w"] is m.get_parameter("named.w")
    assert [p.item() for p in m.free] == [1]


def test_the_text_of_a_module_is_torchs():
    def make(nn):
        return nn.Sequential(
            nn.Linear(2, 3), nn.Sequential(nn.ReLU(), nn.LayerNorm(3), nn.GELU()), nn.Dropout(0.1), nn.BatchNorm1d(3),
            nn.InstanceNorm3d(2), nn.Dropout2d(), nn.AlphaDropout(inplace=True), nn.RReLU(inplace=True), nn.LocalResponseNorm(2),
            nn.LPPool1d(2, (3,), stride=2), nn.MaxUnpool2d(2), nn.MaxPool1d(2), nn.AvgPool1d(2), nn.AvgPool3d(2), nn.Bilinear(1, 2, 3),
            nn.AdaptiveMaxPool2d((2, 3)), nn.EmbeddingBag(4, 3, padding_idx=-1), nn.CosineSimilarity(), nn.PairwiseDistance(),
            nn.LinearCrossEntropyLoss(2, 3), nn.MultiMarginLoss(), nn.TripletMarginLoss(), nn.CTCLoss(),
            nn.InstanceNorm1d(2), nn.GroupNorm(1, 2), nn.Embedding(2, 3, 1), nn.Softplus(), nn.Softmax(1), nn.ReLU(True),
            nn.Flatten())

    assert repr(make(nn)) == repr(make(torch.nn))


# ---------------------------------------------------------------- state
def test_a_state_dict_shares_memory_and_loads_into_another_module():
    a, b = nn.Linear(2, 2), nn.Linear(2, 2)
    state = a.state_dict()
    assert not state["weight"].requires_grad
    assert state["weight"].data_ptr() == a.weight.data_ptr()
    assert repr(b.load_state_dict(state)) == "<All keys matched successfully>"
    assert (b.weight == a.weight).all()
    assert b.weight is not a.weight


@pytest.mark.parametrize("library", [minigrad, torch], ids=["minigrad", "torch"])
def test_loading_says_what_does_not_fit(library):
    m = library.nn.Linear(2, 3)
    with pytest.raises(RuntimeError) as error:
        m.load_state_dict({"weight": library.ones(2, 2), "more": library.ones(1)})
    text = str(error.value)
    assert text.startswith("Error(s) in loading state_dict for Linear:\n\t")
    assert 'Missing key(s) in state_dict: "bias".' in text
    assert 'Unexpected key(s) in state_dict: "more".' in text
    assert ("size mismatch for weight: copying a param with shape torch.Size([2, 2]) from checkpoint, the shape in current model "
            "is torch.Size([3, 2]).") in text
    keys = m.load_state_dict({"weight": library.ones(3, 2), "more": library.ones(1)}, strict=False)
    assert keys.missing_keys == ["bias"]
    assert keys.unexpected_keys == ["more"]


def test_loading_by_assignment_takes_the_tensors_themselves():
    m, weight = nn.Linear(2, 2, bias=False), nn.Parameter(minigrad.ones(2, 2))
    m.load_state_dict({"weight": weight}, assign=True)
    assert m.weight is weight


def test_converting_a_module_keeps_the_parameter_objects_and_integer_buffers():
    m = nn.BatchNorm1d(2)
    weight = m.weight
    m(minigrad.randn(3, 2)).sum().backward()
    assert m.double() is m
    assert m.weight is weight
    assert weight.dtype is weight.grad.dtype is m.running_mean.dtype is minigrad.float64
    assert m.num_batches_tracked.dtype is minigrad.int64
    assert m.to(minigrad.float16).weight.dtype is minigrad.float16
    assert m.float().running_var.dtype is minigrad.float32


def test_moving_a_module_moves_all_that_it_owns():
    m = nn.BatchNorm1d(2).to("sim")
    assert {x.device.type for x in [*m.parameters(), *m.buffers()]} == {"sim"}
    assert m.cpu().weight.device.type == "cpu"


def test_train_and_eval_reach_every_module():
    m = nn.Sequential(nn.Dropout(), nn.Sequential(nn.Dropout()))
    assert not any(x.training for x in m.eval().modules())
    assert all(x.training for x in m.train().modules())


def test_requires_grad_and_zero_grad_reach_every_parameter():
    m = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    m(minigrad.ones(1, 2)).sum().backward()
    m.zero_grad(set_to_none=False)
    assert all((p.grad == 0).all() for p in m.parameters())
    m.zero_grad()
    assert all(p.grad is None for p in m.parameters())
    assert not any(p.requires_grad for p in m.requires_grad_(False).parameters())


def test_apply_visits_children_first():
    seen = []
    m = nn.Sequential(nn.ReLU(), nn.Sequential(nn.Tanh()))
    m.apply(lambda x: seen.append(type(x).__name__))
    assert seen == ["ReLU", "Tanh", "Sequential", "Sequential"]


# ---------------------------------------------------------------- hooks
@pytest.mark.parametrize("library", [minigrad, torch], ids=["minigrad", "torch"])
def test_forward_hooks_run_in_order_and_may_replace(library):
    seen = []
    m = library.nn.Identity()
    m.register_forward_pre_hook(lambda mod, args: seen.append("pre") or (args[0] + 1,))
    m.register_forward_pre_hook(lambda mod, args, kwargs: seen.append("first"), prepend=True, with_kwargs=True)
    m.register_forward_hook(lambda mod, args, out: seen.append("post") or out * 10)
    last = m.register_forward_hook(lambda mod, args, kwargs, out: seen.append(args[0].item()), with_kwargs=True)
    assert m(library.tensor(1.0)).item() == 20
    last.remove()
    assert m(library.tensor(2.0)).item() == 30
    assert seen == ["first", "pre", "post", 2.0, "first", "pre", "post"]


@pytest.mark.parametrize("library", [minigrad, torch], ids=["minigrad", "torch"])
def test_a_pre_hook_with_kwargs_returns_both_or_nothing(library):
    class M(library.nn.Module):
        def forward(self, x, *, scale):
            return x * scale

    m = M()
    handle = m.register_forward_pre_hook(lambda mod, args, kwargs: (args, {"scale": 5}), with_kwargs=True)
    assert m(library.tensor(1.0), scale=2).item() == 5
    handle.remove()
    m.register_forward_pre_hook(lambda mod, args, kwargs: args, with_kwargs=True)
    with pytest.raises(RuntimeError, match="must return None or a tuple of"):
        m(library.tensor(1.0), scale=2)


@pytest.mark.parametrize("library", [minigrad, torch], ids=["minigrad", "torch"])
def test_a_hook_that_is_always_called_runs_when_forward_raises(library):
    class M(library.nn.Module):
        def forward(self, x):
            raise ZeroDivisionError

    seen, m = [], M()
    m.register_forward_hook(lambda mod, args, out: seen.append("never"))
    m.register_forward_hook(lambda mod, args, out: seen.append(out), always_call=True)
    with pytest.raises(ZeroDivisionError):
        m(1)
    assert seen == [None]


@pytest.mark.parametrize("library", [minigrad, torch], ids=["minigrad", "torch"])
def test_full_backward_hooks_see_and_replace_gradients(library):
    class M(library.nn.Module):
        def forward(self, x, other, y):
            return x * y, y

    m, seen = M(), []
    m.register_full_backward_pre_hook(lambda mod, out: seen.append([g if g is None else g.item() for g in out]) or (
        out[0] * 2, out[1]))
    m.register_full_backward_hook(lambda mod, grads, out: seen.append([g if g is None else g.item() for g in grads]) or (
        grads[0] * 10, None, grads[2]))
    x, y = (library.tensor(v, requires_grad=True) for v in (2.0, 3.0))
    a, b = m(x, "text", y)
    (a * 1 + b * 7).backward()
    assert seen == [[1.0, 7.0], [6.0, None, 11.0]]
    assert [x.grad.item(), y.grad.item()] == [60.0, 11.0]


@pytest.mark.parametrize("library", [minigrad, torch], ids=["minigrad", "torch"])
def test_a_full_backward_hook_fires_with_a_warning_where_no_input_requires_grad(library):
    m, seen = library.nn.Linear(2, 2), []
    m.register_full_backward_hook(lambda mod, grads, out: seen.append(grads))
    y = m(library.ones(1, 2)).sum()
    with pytest.warns(UserWarning, match="no inputs require gradients"):
        y.backward()
    assert seen == [(None,)]


def test_a_full_backward_hook_is_no_part_of_a_double_backward():
    m, count = nn.MSELoss(), []
    m.register_full_backward_hook(lambda *_: count.append(1))
    x = minigrad.ones(1, requires_grad=True)
    g, = minigrad.autograd.grad(m(x, minigrad.zeros(1)), x, create_graph=True)
    assert minigrad.autograd.grad(g.sum(), x)[0].tolist() == [2]
    assert count == [1]


def test_full_backward_hooks_fire_inside_grad():
    m, seen = nn.Linear(2, 1, bias=False), []
    m.register_full_backward_hook(lambda mod, grads, out: seen.append(grads[0].tolist()))
    got = minigrad.func.grad(lambda x: m(x).sum())(minigrad.ones(2))
    assert seen == [got.tolist()] == [m.weight[0].tolist()]


# ---------------------------------------------------------------- under transforms, and tools
def test_a_module_is_a_function_like_any_other_under_transforms():
    m, reference = pair(lambda nn: nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)))
    x = torch.randn(5, 3, dtype=f64)
    same(minigrad.func.vmap(minigrad.func.jacrev(m))(ours(x)), torch.func.vmap(torch.func.jacrev(reference))(x))


@pytest.mark.parametrize("name", ["xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_"])
def test_initial_values_have_torchs_spread(name):
    torch.manual_seed(0)
    minigrad.manual_seed(0)
    mine, other = minigrad.empty(200, 300), torch.empty(200, 300)
    assert getattr(nn.init, name)(mine) is mine
    getattr(torch.nn.init, name)(other)
    assert mine.std().item() == pytest.approx(other.std().item(), rel=0.02)
    if "uniform" in name:
        assert mine.abs().max().item() == pytest.approx(other.abs().max().item(), rel=0.01)


def test_constant_initial_values_are_written_with_nothing_recorded():
    w = nn.Parameter(minigrad.empty(2, 2))
    assert nn.init.eye_(w) is w
    assert w.tolist() == [[1, 0], [0, 1]]
    assert nn.init.constant_(w, 3.0).is_leaf
    assert nn.init.ones_(w).sum().item() == 4
    with pytest.raises(ValueError, match="Unsupported nonlinearity"):
        nn.init.calculate_gain("none")


def test_clipping_scales_all_gradients_by_their_common_norm():
    torch.manual_seed(0)
    values = [torch.randn(3, dtype=f64), torch.randn(2, 2, dtype=f64)]
    mine, other = [nn.Parameter(ours(v)) for v in values], [torch.nn.Parameter(v) for v in values]
    for p, q in zip(mine, other, strict=True):
        (p * p).sum().backward()
        (q * q).sum().backward()
    same(nn.utils.clip_grad_norm_(mine, 0.5), torch.nn.utils.clip_grad_norm_(other, 0.5))
    for p, q in zip(mine, other, strict=True):
        same(p.grad, q.grad)
    nn.utils.clip_grad_value_(mine, 0.01)
    assert max(p.grad.abs().max().item() for p in mine) == 0.01


def test_parameters_become_a_vector_and_come_back():
    m, n = nn.Linear(2, 3), nn.Linear(2, 3)
    vector = nn.utils.parameters_to_vector(m.parameters())
    nn.utils.vector_to_parameters(vector, n.parameters())
    assert all((a == b).all() and b.is_leaf for a, b in zip(m.parameters(), n.parameters(), strict=True))


def test_a_module_without_forward_says_so():
    with pytest.raises(NotImplementedError, match='missing the required "forward" function'):
        nn.Module()(1)


def test_an_unsupported_option_is_refused():
    with pytest.raises(RuntimeError) as error:
        nn.Embedding(2, 2, sparse=True)
    assert error.value.refusal
    assert not isinstance(error.value, UsageError)


def test_functional_is_reached_from_nn():
    assert nn.functional is F


# ---------------------------------------------------------------- functions that torch's database of samples has not
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize(("shape", "size"), [((2, 2, 3), (2, 1, 3, 4)), ((1, 3, 4), (1, 2, 2, 3, 2))], ids=["2d", "3d"])
def test_an_affine_grid_is_torchs(shape, size, align_corners):
    torch.manual_seed(0)
    theta = randn(*shape)
    mine = ours(theta)
    found, wanted = (library.affine_grid(x, size, align_corners) for library, x in ((F, mine), (torch.nn.functional, theta)))
    same(found, wanted)
    found.sin().sum().backward()
    wanted.sin().sum().backward()
    same(mine.grad, theta.grad)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_without_any_number_are_zeros(mode):
    found, wanted = (library.nn.functional.embedding_bag(library.zeros(0, dtype=library.int64), library.ones(5, 3),
                                                         library.tensor([0, 0]), mode=mode) for library in (minigrad, torch))
    same(found, wanted)


def test_rrelu_in_training_draws_a_slope_for_each_element_below_zero():
    minigrad.manual_seed(0)
    y = nn.RReLU(0.2, 0.4)(-minigrad.ones(1000))
    assert -0.4 <= y.min().item() < y.max().item() <= -0.2
    assert nn.RReLU()(minigrad.ones(3)).tolist() == [1, 1, 1]


def test_alpha_dropout_keeps_mean_and_variance():
    minigrad.manual_seed(0)
    x = minigrad.randn(100000)
    y = nn.AlphaDropout(0.3)(x)
    assert abs(y.mean().item()) < 0.02
    assert abs(y.var().item() - 1) < 0.02


def test_feature_dropout_drops_whole_channels():
    minigrad.manual_seed(0)
    for y in (nn.Dropout3d()(minigrad.ones(4, 50, 2, 2, 2)), nn.FeatureAlphaDropout()(minigrad.ones(4, 50, 2, 2, 2))):
        assert (y.flatten(2).amin(-1) == y.flatten(2).amax(-1)).all()
        assert len(set(y.flatten().tolist())) == 2


@pytest.mark.parametrize("make", [lambda lib: lib.nn.Parameter(lib.tensor([1.5, 2.5])),
                                  lambda lib: lib.nn.Buffer(lib.tensor([1.5, 2.5])),
                                  lambda lib: lib.nn.Parameter(lib.tensor([1.5, 2.5]), requires_grad=False),
                                  lambda lib: lib.nn.Parameter(lib.tensor([1.5, 2.5])).detach()],
                         ids=["a parameter", "a buffer", "a constant parameter", "no parameter any more"])
def test_a_tensor_of_a_module_is_printed_as_torchs(make):
    with minigrad.device("cpu"):
        assert repr(make(minigrad)) == repr(make(torch)).replace("1.5000, 2.5000", "1.5, 2.5")
