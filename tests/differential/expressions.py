"""Expressions, one a line, over the tensors below.  Each is compared in value, dtype, gradients and saved tensors.

    x y (2, 3)   r (3,)   c (2, 1)   s ()   v w (4,)   m (3, 4)  n (4, 2)   q (3, 3)   a (2, 3, 4)  b (2, 4, 2)   e (0, 3)
    p (2, 3) positive    u (2, 3) in (0, 1)    d (2, 3) with ties    z zz (2, 3) complex    h (2, 3) float32    g (2, 3) float16
    i (2, 3) int64    j (2,) int64 in 0..1    l (2, 3) int64 in 0..2    k (2, 3) bool    o (3,) int32

Everything floating requires grad and is double precision, where not said otherwise.
"""

import numpy as np

SHAPES = {"x": (2, 3), "y": (2, 3), "r": (3,), "c": (2, 1), "s": (), "v": (4,), "w": (4,), "m": (3, 4), "n": (4, 2),
          "q": (3, 3), "a": (2, 3, 4), "b": (2, 4, 2), "e": (0, 3)}


def arrays():
    rng = np.random.default_rng(20)
    found = {name: rng.standard_normal(shape) for name, shape in SHAPES.items()}
    found["p"] = rng.uniform(0.5, 3, (2, 3))
    found["u"] = rng.uniform(0.05, 0.95, (2, 3))
    found["d"] = np.array([[1.0, -2.0, 1.0], [0.0, 3.0, 3.0]])
    found["z"], found["zz"] = (rng.standard_normal((2, 3)) + 1j * rng.standard_normal((2, 3)) for _ in "ab")
    found["h"] = rng.standard_normal((2, 3)).astype("float32")
    found["g"] = rng.standard_normal((2, 3)).astype("float16")
    found["i"] = np.array([[3, -1, 2], [0, 5, -4]])
    found["j"] = np.array([1, 0])
    found["l"] = np.array([[0, 2, 1], [2, 2, 0]])
    found["k"] = np.array([[True, False, True], [False, True, True]])
    found["o"] = np.array([1, 2, 3], "int32")
    return found


ARITHMETIC = """
x + y
x + r
c + r
x + s
s + s
x + 2
2.5 - x
x - y
x * y
x * r
c * r
x * 3
3 / x
x / y
x / 2
i / 2
x // 0.7
i // 2
i % 3
x % 0.7
-x
+x
abs(x)
x ** 2
x ** 0.5
p ** 0.5
p ** x
2 ** x
x ** s
i ** 2
x ** 0
x ** 1
x ** -1
t.add(x, y, alpha=2)
t.sub(x, y, alpha=0.5)
t.mul(x, s)
t.div(x, y, rounding_mode="floor")
t.div(x, y, rounding_mode="trunc")
t.div(i, 2, rounding_mode="trunc")
t.true_divide(i, 3)
t.remainder(x, y)
t.fmod(x, y)
t.fmod(i, 3)
t.lerp(x, y, 0.3)
t.lerp(x, y, u)
t.addcmul(x, y, r, value=0.5)
t.addcdiv(x, y, p, value=2)
x @ m
r @ m
m @ v
v @ w
t.pow(x, 3)
t.pow(p, x)
t.pow(2, x)
t.square(x)
h * 2
h + s
h * x
g * 2.5
i + 1.5
k + 1
k * x
h + i
o + i
e + r
e * 2
x.add(y).mul(r).sub(1)
z * zz
z + x
z / zz
z ** 2
z * 2
z.abs()
z.conj() * z
z.real
z.imag
(z * zz).real
t.conj(z)
"""

POINTWISE = """
x.sin()
x.cos()
x.tan()
u.asin()
u.acos()
x.atan()
x.sinh()
x.cosh()
x.tanh()
x.asinh()
(p + 1).acosh()
u.atanh()
x.exp()
x.exp2()
x.expm1()
p.log()
p.log2()
p.log10()
p.log1p()
p.sqrt()
p.rsqrt()
x.reciprocal()
x.erf()
x.erfc()
x.sigmoid()
x.abs()
d.abs()
x.sign()
d.sign()
x.sgn()
z.sgn()
x.floor()
x.ceil()
x.trunc()
x.round()
t.round(x, decimals=1)
x.frac()
x.relu()
d.relu()
u.logit()
t.logit(u, eps=0.3)
t.atan2(x, y)
t.nan_to_num(x / (x * 0))
t.xlogy(x, p)
i.sin()
k.exp()
h.exp()
h.tanh()
g.sigmoid()
z.sin()
z.exp()
z.tanh()
z.sqrt()
z.log()
z.reciprocal()
s.exp()
e.exp()
i.abs()
i.sign()
i.neg()
i.sqrt()
x.square()
x.clamp(-0.5, 0.5)
x.clamp(min=0)
x.clamp(max=0.1)
d.clamp(min=1.0)
d.clamp(0.0, 1.0)
x.clamp(min=y)
x.clamp(y, p)
t.clamp_min(x, 0.2)
t.clamp_max(x, r)
i.clamp(0, 3)
i.clamp(min=0.5)
t.maximum(x, y)
t.minimum(x, y)
t.maximum(d, d * 1)
t.maximum(x, r)
t.maximum(i, l)
t.where(k, x, y)
t.where(k, x, 0.0)
t.where(k, 1.0, r)
t.where(k, x, s)
t.where(k, i, x)
t.where(k, 1, 2)
x.where(k, y)
t.angle(t.tensor([-0.0, 0.0, -1.0]))
t.lgamma(t.tensor([-float("inf"), float("inf"), -2.0, 0.5]))
F.hardtanh(t.tensor([1, 200], dtype=t.uint8), 0, 3)
t.ldexp(g.detach(), i)
t.ldexp(s.detach(), t.tensor(200))
t.special.xlog1py(g * 0, i.to(t.uint8))
t.tensor([1j, 0, 1]).bool()
v.ger(w)
x.hardshrink(0.3)
x.prelu(r)
x.clone().multiply_(y).subtract_(2).divide_(p).absolute_().negative_()
t.is_signed(i.to(t.uint8))
"""

COMPARISONS = """
x == y
x != y
x < y
x <= 0
d >= 1
x > r
i == 2
k == True
z == zz
x.eq(x)
t.lt(i, 1.5)
t.isnan(x / 0)
t.isinf(x / 0)
t.isfinite(x)
k & ~k
k | k
k ^ True
i & 3
i | 1
i ^ 5
~i
~k
t.logical_and(k, x)
t.logical_or(k, i)
t.logical_xor(k, k)
t.logical_not(x)
t.bitwise_and(i, l)
t.isclose(x, x + 1e-9)
t.allclose(x, x + 1e-9)
t.equal(x, x)
t.equal(x, y)
t.where(k, i, np.int64(3))
t.where(k, x, np.float32(3))
t.result_type(i, np.int64(3))
i.to(t.int8).clamp(-100, 100)
t.masked_fill(i, k, 1.5)
t.masked_fill(k, k, 2j)
"""

REDUCTIONS = """
x.sum()
x.sum(0)
x.sum(-1)
x.sum((0, 1))
x.sum(1, keepdim=True)
x.sum(dim=(0,), keepdim=True)
t.sum(a, dim=(0, 2))
t.sum(a, dim=[])
i.sum()
k.sum()
k.sum(0)
h.sum()
h.sum(dtype=t.float64)
s.sum()
s.sum(0)
e.sum()
e.sum(0)
e.sum(1)
z.sum()
x.mean()
x.mean(0)
x.mean((0, 1), keepdim=True)
a.mean(-1)
h.mean()
z.mean()
e.mean(0)
x.prod()
x.prod(0)
d.prod()
d.prod(1)
d.prod(1, keepdim=True)
i.prod()
e.prod()
x.var()
x.var(0)
x.var(dim=1, unbiased=False)
x.var(dim=1, correction=0, keepdim=True)
x.std()
x.std(1)
x.std(dim=(0, 1), correction=0)
t.var_mean(x, dim=1)
t.std_mean(x)
z.var()
x.nansum()
(x / (x > 0)).nansum(0)
t.nanmean(x, dim=0)
x.amax()
x.amax(1)
d.amax((0, 1))
d.amin(1, keepdim=True)
t.aminmax(x)
t.aminmax(d, dim=1)
x.max()
x.max() * float("inf")
x.nanmedian() * float("inf")
x.amax() * float("inf")
d.max()
d.min()
x.max(1)
d.max(1)
d.max(dim=1, keepdim=True)
x.min(0)
x.max(y)
i.max()
i.max(1)
x.median()
x.median(1)
d.median(1)
x.argmax()
d.argmax(1)
d.argmax(dim=1, keepdim=True)
x.argmin(0)
x.kthvalue(2, 1)
x.all()
k.all()
k.any(1)
k.all(0, keepdim=True)
x.any((0, 1))
e.all()
e.any()
t.count_nonzero(d)
t.count_nonzero(d, 1)
x.norm()
x.norm(1)
x.norm(dim=1)
x.norm(3, dim=0)
x.norm(float("inf"))
x.norm(p=2, dim=1, keepdim=True)
t.norm(z)
(x * 0).norm()
x.logsumexp(1)
x.logsumexp((0, 1))
x.softmax(1)
x.softmax(0)
x.log_softmax(-1)
t.softmax(h, 1)
t.softmax(h, 1, dtype=t.float64)
s.softmax(0)
x.cumsum(1)
x.cumsum(0)
i.cumsum(1)
k.cumsum(0)
x.cumprod(1)
d.cumprod(1)
x.logcumsumexp(1)
x.cummax(1)
d.cummax(1)
d.cummin(0)
x.sort()
x.sort(0, descending=True)
x.sort(dim=1, descending=False)
x.argsort(1)
x.topk(2)
x.topk(1, dim=0, largest=False)
t.trace(q)
t.gradient(t.tensor([2.0, float("nan"), -float("inf"), 2.0]))
t.gradient(x, spacing=0.5, dim=1)
t.zeros(0).median()
t.zeros(0, 2).nanmedian()
"""

SHAPES_ = """
x.reshape(3, 2)
x.reshape(-1)
x.reshape((6,))
x.reshape(1, -1, 2)
x.view(6)
x.flatten()
a.flatten(1)
a.flatten(0, 1)
x.t()
x.T
a.mT
s.mT
x.transpose(0, 1)
x.transpose(-1, 0)
a.permute(2, 0, 1)
a.permute((1, 0, 2))
t.permute(a, (0, 2, 1))
a.movedim(0, 2)
t.movedim(a, (0, 1), (1, 2))
t.movedim(t.tensor(2.0), 0, -1)
t.moveaxis(a, 0, -1)
t.swapaxes(a, 0, 1)
x.unsqueeze(0)
x.unsqueeze(-1)
c.squeeze()
c.squeeze(1)
x.squeeze(0)
c.squeeze((0, 1))
s.unsqueeze(0)
r.expand(2, 3)
c.expand(2, 4)
c.expand(-1, 3)
r.expand(4, 2, 3)
s.expand(2)
r.expand_as(x)
r.broadcast_to((2, 3))
t.broadcast_to(c, (2, 5))
t.broadcast_tensors(c, r)
x.repeat(2, 1)
r.repeat(2, 3)
t.tile(x, (2,))
x.repeat_interleave(2)
x.repeat_interleave(2, 1)
t.repeat_interleave(x, t.tensor([1, 2]), 0)
x.flip(0)
x.flip(0, 1)
s.flip(0)
t.flip(x, (1,))
t.fliplr(x)
t.flipud(x)
t.rot90(x)
x.roll(1)
x.roll(1, 1)
t.roll(x, (1, -1), (0, 1))
t.roll(x, (1, 1), (1, 1))
q.tril()
q.triu(1)
q.tril(-1)
q.diagonal()
m.diagonal(1)
a.diagonal(0, 0, 2)
t.diag(r)
t.diag(q)
t.diag(m, 1)
t.diag_embed(x)
t.diagflat(r)
t.cat([x, y])
t.cat([x, y], 1)
t.cat((x, c), dim=-1)
t.cat([x, h])
t.cat([x, i])
t.cat([x, e])
t.stack([x, y])
t.stack([x, y], 1)
t.stack((x, y), dim=-1)
t.hstack([x, y])
t.vstack([r, r])
t.dstack([x, y])
t.column_stack([r, r])
x.split(1)
x.split([1, 2], 1)
x.chunk(2, 1)
e.chunk(2)
t.tensor_split(v, 3)
x.unbind()
x.unbind(1)
x.narrow(1, 0, 2)
x.select(1, 2)
x.select(0, -1)
t.atleast_2d(r)
t.atleast_3d(x)
t.meshgrid(r, v, indexing="ij")
x.unflatten(1, (3, 1))
x.clone()
x.detach()
x.contiguous()
x.t().contiguous()
x.to(t.float32)
h.to(t.float64)
h.double()
x.float()
x.half()
x.long()
i.to(t.float32)
x.to(t.complex128)
k.to(t.float64)
x.type_as(h)
x.bool()
t.linalg.diagonal(a)
t.linalg.diagonal(a, offset=1)
t.linalg.diagonal(a, dim1=0, dim2=1)
x.repeat_interleave(1).data_ptr() == x.data_ptr()
x.repeat_interleave(0)
t.zeros(7, 2).fill_diagonal_(3, wrap=True)
t.zeros(3, 2).fill_diagonal_(3, True)
F.adaptive_max_pool1d(x.detach(), 0)
F.adaptive_max_pool2d(a.detach(), (2, 0), return_indices=True)
"""

INDEXING = """
x[0]
x[-1]
x[0, 1]
x[:, 1]
x[:, 1:]
x[::1, ::2]
x[..., 0]
x[None]
x[:, None]
x[0, ..., None]
a[1, :, 2]
a[:, 1:3, ::2]
x[j]
x[:, j]
x[j, j]
x[[0, 1, 1]]
x[[0, 1], [1, 2]]
x[k]
x[k[:, 0]]
a[:, j]
a[j, :, j]
a[j, j]
a[:, j, None]
x[j[:, None], j]
x[0, j]
a[0, j]
x[t.tensor(1)]
x[i > 100]
x.index_select(0, j)
x.index_select(1, j)
t.gather(x, 1, l)
t.gather(x, 0, l.clamp(max=1))
t.take_along_dim(x, l, 1)
t.take(x, l)
x.scatter(1, l[:, :1], y)
x.scatter(1, l[:, :2], 2.5)
x.scatter_add(1, l, y)
x.index_add(0, j, y)
x.index_add(1, j, y[:, :2], alpha=2)
x.index_copy(0, j, y)
x.index_fill(1, j, 0.5)
x.masked_fill(k, 0.0)
x.masked_fill(k, s)
x.masked_select(k)
x.masked_scatter(k, y)
x.index_put((j,), r)
x.index_put((j, j), s)
x.index_put((j,), y, accumulate=True)
t.nonzero(k)
k.nonzero(as_tuple=True)
t.argwhere(d)
F.one_hot(l)
F.one_hot(l, 4)
F.embedding(l, q)
F.embedding(l, q, padding_idx=2)
"""

PRODUCTS = """
x @ q
t.mm(x, m)
t.matmul(x, m)
t.matmul(a, b)
t.matmul(a, v)
t.matmul(a, n)
t.matmul(r, m)
t.matmul(q, a)
t.matmul(v, b)
t.bmm(a, b)
t.mv(m, v)
t.dot(v, w)
t.vdot(v, w)
t.outer(r, v)
t.addmm(c, x, m)
t.addmm(s, x, m, beta=0.5, alpha=2)
t.baddbmm(b[:, :3], a, b)
t.einsum("ij,jk->ik", x, m)
t.einsum("ij->ji", x)
t.einsum("ii->i", q)
t.einsum("ii", q)
t.einsum("bij,bjk->bik", a, b)
t.einsum("i,j->ij", r, v)
t.einsum("ij,ij->", x, y)
t.einsum("...ij,jk->...ik", a, n)
t.tensordot(x, m, 1)
t.tensordot(a, b, dims=([2], [1]))
t.kron(x, c)
z @ zz.T
z.T.conj() @ zz
t.vdot(z[0], zz[0])
h @ h.T
e @ m
e.T @ e
x.mm(q).mm(m)
t.einsum(x, [0, 1], m, [1, 2])
t.einsum(x, [0, 1], m, [1, 2], [0, 2])
t.einsum(a, [..., 0], [...])
t.einsum(x, [27, 0])
t.matrix_exp(t.tensor([[1.0, float("nan")], [0.0, 1.0]]))
t.fft.fftfreq(5)
t.fft.fftfreq(4, 0.5, dtype=t.float64)
t.fft.rfftfreq(5, d=2.0)
"""

NETWORKS = """
F.relu(x)
F.relu(d)
F.leaky_relu(x)
F.leaky_relu(x, 0.2)
F.elu(x)
F.elu(x, 0.5)
F.selu(x)
F.gelu(x)
F.gelu(x, approximate="tanh")
F.silu(x)
F.mish(x)
F.softplus(x)
F.softplus(x, 2.0, 1.0)
F.softsign(x)
F.logsigmoid(x)
F.hardtanh(x)
F.hardtanh(d, -1.0, 1.0)
F.relu6(x * 5)
F.threshold(x, 0.1, 0.5)
F.sigmoid(x)
F.tanh(x)
F.softmax(x, dim=1)
F.log_softmax(x, dim=0)
F.softmin(x, dim=1)
F.linear(x, q)
F.linear(x, q, r)
F.linear(a.mT, q, r)
F.linear(r, q)
F.mse_loss(x, y)
F.mse_loss(x, y, reduction="sum")
F.mse_loss(x, y, reduction="none")
F.l1_loss(x, y)
F.smooth_l1_loss(x, y)
F.smooth_l1_loss(x, y, beta=0.5, reduction="none")
F.huber_loss(x, y, delta=0.5)
F.cross_entropy(x, j)
F.cross_entropy(x, j, reduction="none")
F.cross_entropy(x, j, label_smoothing=0.1)
F.cross_entropy(x, u)
F.nll_loss(F.log_softmax(x, 1), j)
F.nll_loss(F.log_softmax(x, 1), j, ignore_index=1)
F.nll_loss(F.log_softmax(x, 1), j, weight=r.detach().abs(), reduction="sum")
F.binary_cross_entropy(u, u.detach() * 0.5)
F.binary_cross_entropy(u, k.double())
F.binary_cross_entropy_with_logits(x, u)
F.binary_cross_entropy_with_logits(x, u, pos_weight=p.detach())
F.kl_div(x, u, reduction="sum")
F.kl_div(x, u, reduction="batchmean", log_target=True)
F.layer_norm(x, (3,))
F.layer_norm(x, (3,), r, r)
F.layer_norm(a, (3, 4), m)
F.group_norm(a, 3)
F.group_norm(a, 1, r, r)
F.batch_norm(x, None, None, training=True)
F.batch_norm(a, None, None, r, r, training=True)
F.batch_norm(x, r.detach() * 1, r.detach().abs(), r, r)
F.instance_norm(a)
F.rms_norm(x, (3,))
F.normalize(x)
F.normalize(x, p=1, dim=0)
F.cosine_similarity(x, y)
F.pad(x, (1, 2))
F.pad(x, (1, 0, 0, 2), value=0.5)
F.pad(x, (-1, 1))
F.scaled_dot_product_attention(a, a, a)
F.scaled_dot_product_attention(a, a, a, is_causal=True)
F.scaled_dot_product_attention(a, a, a, attn_mask=q.detach())
F.scaled_dot_product_attention(a, a, a, attn_mask=q.detach() > 0)
F.dropout(x, 0.0)
F.dropout(x, 0.5, training=False)
F.mse_loss(x, y, weight=p)
F.mse_loss(x, y, weight=p, reduction="sum")
F.l1_loss(x, y, weight=p.detach(), reduction="none")
F.l1_loss(x, y, weight=p.detach())
"""

CREATION = """
t.tensor([1, 2])
t.tensor([1.5, 2])
t.tensor([True, False])
t.tensor(2.5)
t.tensor([1j])
t.tensor([[1, 2], [3, 4]], dtype=t.float64)
t.zeros(2, 3)
t.zeros((2, 3), dtype=t.int32)
t.ones(2)
t.full((2,), 1.5)
t.full((2,), 2)
t.full((2,), True)
t.eye(3)
t.eye(2, 3)
t.arange(5)
t.arange(1, 2, 0.25)
t.arange(5, 0, -2)
t.linspace(0, 1, 5)
t.zeros_like(x)
t.ones_like(i)
t.full_like(h, 3)
t.empty(0, 3)
x.new_zeros(2)
x.new_ones((2, 2))
h.new_full((2,), 1.5)
x.new_tensor([1, 2])
t.tensor([1.0], requires_grad=True)
t.as_tensor([1, 2])
x.shape
x.size(0)
x.size()
x.numel()
x.dim()
x.ndim
len(x)
x.dtype
x.is_floating_point()
i.is_floating_point()
x.is_complex()
x.is_contiguous()
x.t().is_contiguous()
x.stride()
x.t().stride()
x.element_size()
x[0, 0].item()
i.tolist()
bool(k[0, 0])
int(i[0, 0])
t.is_tensor(x)
t.promote_types(t.int32, t.float32)
t.result_type(i, 1.5)
t.result_type(h, x)
t.broadcast_shapes((2, 1), (3,))
t.finfo(t.float32).eps
t.get_default_dtype()
t.tensor([np.float64(1), 2])
t.tensor([[np.int8(1)], [2]])
t.tensor([np.float32([1, 2]), np.float32([3, 4])])
t.tensor([x[0, 0], 2])
t.tensor([1.5, -2], dtype=t.int8)
t.full((2,), -1, dtype=t.uint8)
t.linspace(0, 1j, 3)
t.zeros(size=(2, 3))
t.ones(size=[2])
x.new_zeros(size=(2,))
t.randn(size=(2, 3)).shape
t.randint(high=1, size=(2,))
t.randint(low=4, high=5, size=[2, 1])
"""

FAMILIES = {"arithmetic": ARITHMETIC, "pointwise": POINTWISE, "comparisons": COMPARISONS, "reductions": REDUCTIONS,
            "shapes": SHAPES_, "indexing": INDEXING, "products": PRODUCTS, "networks": NETWORKS, "creation": CREATION}
EXPRESSIONS = [line for text in FAMILIES.values() for line in text.strip().splitlines()]

ERRORS = """
x + v                                  | must match the size of tensor b
t.mm(x, x)                             | cannot be multiplied
x @ x                                  | cannot be multiplied
x.reshape(4)                           | is invalid for input of size 6
x.reshape(-1, -1)                      |
x.view(7)                              | is invalid for input of size
x.sum(2)                               | Dimension out of range
x.sum((0, 0))                          | appears multiple times
x.transpose(0, 5)                      | Dimension out of range
x.expand(3, 3)                         | must match the existing size
x.expand(3)                            | must be greater or equal
x.squeeze(4)                           | Dimension out of range
x.unsqueeze(4)                         | Dimension out of range
x.permute(0)                           |
t.cat([])                              | expected a non-empty list of Tensors
t.cat([x, m])                          |
t.cat([s, s])                          | cannot be concatenated
t.stack([x, m])                        | stack expects each tensor to be equal size
x[2]                                   | out of bounds
x[0, 3]                                | out of bounds
x[0, 0, 0]                             | too many indices
x[t.tensor([5])]                       | out of bounds
x[k[:, :2]]                            |
x[1.5]                                 |
i.mean()                               | could not infer output dtype
k - k                                  | is not supported
-k                                     | is not supported
z < zz                                 |
t.maximum(z, z)                        | not implemented for complex
x & y                                  |
x.item()                               | cannot be converted to Scalar
bool(x)                                | is ambiguous
int(x)                                 |
len(s)                                 | len() of a 0-d tensor
x.numpy()                              | requires grad
t.tensor([1, 2], requires_grad=True)   | can require gradients
i.requires_grad_()                     |
x.sin().requires_grad_(False)          | you can only change requires_grad flags of leaf
x.backward()                           | grad can be implicitly created only for scalar outputs
x.detach().sum().backward()            | does not require grad
x.add_(1)                              | a leaf Variable that requires grad
i.add_(1.5)                            | can't be cast to the desired output type
r.sin().add_(x)                        | doesn't match the broadcast shape
x.max(dim=5)                           | Dimension out of range
e.max()                                |
e.argmax()                             |
x.topk(9)                              | out of range
x.kthvalue(9)                          | out of range
x.split([1, 1], 1)                     | split_with_sizes expects split_sizes to sum exactly
x.split([4, -1], 1)                    | only non-negative entries
x.split(0)                             |
x.chunk(0)                             | chunk expects `chunks` to be greater than 0, got: 0
x.tensor_split(0)                      | number of sections must be larger than 0, got 0
s.chunk(2)                             | chunk expects at least a 1-dimensional tensor
s.split(1)                             | split expects at least a 1-dimensional tensor
s.flatten(1)                           | Dimension out of range
s.unflatten(0, (1, 1))                 | Dimension specified as 0 but tensor has no dimensions
s.roll(1, 0)                           | Dimension specified as 0 but tensor has no dimensions
x.narrow(1, 2, 5)                      | exceeds dimension size
x.select(0, 7)                         | out of range
x.gather(1, j)                         | same number of dimensions
x.gather(1, l + 5)                     | out of bounds
x.index_select(0, l)                   |
x.masked_fill(i, 0.0)                  | only supports boolean masks
t.where(i, x, y)                       | expected condition to be a boolean tensor
t.bmm(x, x)                            |
t.dot(x, x)                            | 1D
t.dot(v, r)                            |
t.einsum("ij,jk", x, x)                |
t.pow(i, -1)                           | Integers to negative integer powers are not allowed
t.i_am_no_op(x)                        |
F.cross_entropy(x, j + 7)              |
F.nll_loss(x, j, weight=r)             | is not differentiable with respect to argument
F.layer_norm(x, (4,))                  | normalized_shape
F.embedding(l + 9, q)                  | index out of range in self
F.one_hot(i)                           | Class values must be non-negative
F.binary_cross_entropy(x, u)           | between 0 and 1
x.clamp()                              | At least one of 'min' or 'max' must not be None
t.div(x, y, rounding_mode="up")        | rounding_mode
x.grad_fn.next_functions               |
t.tensor(["a"])                        |
t.from_numpy(3)                        |
t.arange(1, 0)                         |
t.func.grad(lambda x: x)(x)            | scalar
t.func.vmap(lambda x: x)(x, x, x)      |
t.func.vmap(lambda x: x.item())(x)     |
t.func.vmap(lambda x: x, in_dims=3)(x) | in_dim
t.func.vmap(lambda x: 1)(x)            | must only return Tensors
t.func.vmap(lambda x, y: x + y)(x, m)  | same size
t.func.vmap(lambda: x)()               | no inputs
t.func.jvp(lambda x: x, (x,), (m,))    |
t.func.jvp(lambda x: x, x, y)          |
t.func.vjp(lambda x: x, x)[1](m)       |
t.func.grad(lambda x: x.sum(), 3)(x)   | argnum
t.func.grad(lambda x: 1.0)(x)          | to return a
t.func.jacrev(lambda x: 1.0)(x)        |
t.autograd.grad(x.sum(), y)            | appears to not have been used in the graph
t.autograd.grad(x.sum(), i)            | does not require grad
t.autograd.backward([x.sum()], inputs=[])  | cannot be empty
x.register_hook(3) if False else i.register_hook(print)  | doesn't require gradient
i.retain_grad()                        |
t.utils.checkpoint.checkpoint(lambda x: x.sin(), x, use_reentrant=False, determinism_check="what").sum().backward() |
t.det(x)                               | A must be batches of square matrices
t.slogdet(x)                           | A must be batches of square matrices
t.logdet(x)                            | A must be batches of square matrices
x.quantile(2.0)                        | q must be in the range [0, 1]
x.repeat_interleave(-1)                | Repeats must be non-negative
t.tensor([1, float("nan")]).histc(3)   | is not finite
t.tensor([1.0, 2.0]).histc(3, 2, 1)    | max must be larger than min
t.full((2,), 300, dtype=t.uint8)       | without overflow
t.full_like(x, 1j)                     | without overflow
t.tensor([300], dtype=t.uint8)         | without overflow
t.tensor(float("nan"), dtype=t.int64)  | without overflow
i.to(t.int8).clamp(0, 255)             | without overflow
t.masked_fill(i, k, float("nan"))      | without overflow
x.detach().fill_(2j)                   | without overflow
x.detach().fill_(r.detach())           | only supports 0-dimension value tensor
x.index_put((k[:1],), s)               | The shape of the mask [1, 3] at index 0
x.index_put((k,), y)                   | cannot be broadcast to indexing result of shape
F.hardtanh(t.tensor([1], dtype=t.uint8))  | cannot do hardtanh on an unsigned type with negative limits
F.layer_norm(i, (3,))                  | "LayerNormKernelImpl" not implemented
t.nanmean(i)                           | expected input to have floating point or complex dtype
F.embedding(l, q, padding_idx=9)       | Padding_idx must be within num_embeddings
t.fft.fft(x, -1)                       | Invalid number of data points (-1) specified
t.einsum(x, [0, 60])                   | is not within the valid range [0, 52)
t.stack([])                            | stack expects a non-empty TensorList
F.mse_loss(x, y, weight=r)             | Weights and input must have the same size
F.group_norm(i, 1)                     | not implemented for
F.batch_norm(i, None, None, training=True)  | not implemented for
t.zeros(2).exponential_(-1)            | expects lambda > 0.0
t.randint(low=3, high=3, size=(2,))    | expects 'from' to be less than 'to'
"""
