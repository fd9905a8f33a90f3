"""The methods of Tensor: functions whose first argument is the tensor.  Written out, so that a reader can jump."""

from __future__ import annotations

from importlib import import_module
from types import FunctionType
from typing import Any

from . import autograd, conversion
from .autograd import accumulated, hooks
from .autograd.inference_mode import is_inference
from .modes import published
from .ops import (
    activation,
    choice,
    complexes,
    creation,
    differences,
    distributions,
    extremes,
    forms,
    gather,
    indexing,
    inplace,
    joining,
    layout,
    linalg,
    loss,
    misc,
    norm,
    pairs,
    picking,
    pointwise,
    products,
    random,
    ranks,
    rearrange,
    reduction,
    scan,
    shape,
    softmax,
    subscript,
    transfer,
)
from .ops.inplace import in_place, in_place_view
from .subclass import inherited
from .tensor import Tensor

T: Any = Tensor


def _reversed(f: Any) -> Any:
    return lambda x, other: f(other, x)


def _where(x: Tensor, condition: Tensor, other: Any) -> Tensor:
    """Return x where the condition holds, else `other`.  Source: torch.Tensor.where."""
    return choice.where(condition, x, other)


def _polygamma(x: Tensor, n: int) -> Tensor:
    """The n-th derivative of digamma.  Source: torch.Tensor.polygamma."""
    return distributions.polygamma(n, x)


def _or_not_implemented(f: Any) -> Any:
    """`f`, that leaves what is neither tensor nor number to python: unequal, and without an order."""
    def compare(x: Tensor, other: Any) -> Any:
        try:
            return f(x, other)
        except TypeError:
            if hasattr(other, "__array__"):  # python would say unequal where the elements were meant
                raise
            return NotImplemented
    compare.__name__ = f.__name__
    return compare


def _late(name: str, module: str) -> Any:
    """A method that few programs use, whose module is imported when one does."""
    def method(x: Tensor, *args: Any, **options: Any) -> Any:
        return getattr(import_module(f".ops.{module}", __package__), name)(x, *args, **options)

    method.__name__ = name
    method.__doc__ = f"Source: torch.Tensor.{name}."
    return method


# ---------------------------------------------------------------- operators: the rows themselves, for speed
T.__add__ = T.__radd__ = pointwise.add_row
T.__sub__ = pointwise.sub_row
T.__rsub__ = _reversed(pointwise.sub_row)
T.__mul__ = T.__rmul__ = pointwise.mul
T.__truediv__ = pointwise.true_div
T.__rdiv__ = T.__rtruediv__ = lambda x, other: pointwise.reciprocal(x) * other  # what torch saves
T.__floordiv__ = pointwise.floor_divide
T.__rfloordiv__ = _reversed(pointwise.floor_divide)
T.__mod__ = pointwise.remainder
T.__rmod__ = _reversed(pointwise.remainder)
T.__pow__ = pointwise.pow
T.__rpow__ = _reversed(pointwise.pow)
T.__neg__ = pointwise.neg
T.__pos__ = lambda x: x
T.__abs__ = pointwise.abs
T.__invert__ = choice.bitwise_not
T.__and__ = T.__rand__ = choice.bitwise_and
T.__or__ = T.__ror__ = choice.bitwise_or
T.__xor__ = T.__rxor__ = choice.bitwise_xor
T.__eq__ = _or_not_implemented(choice.eq)
T.__ne__ = _or_not_implemented(choice.ne)
T.__lt__ = _or_not_implemented(choice.lt)
T.__le__ = _or_not_implemented(choice.le)
T.__gt__ = _or_not_implemented(choice.gt)
T.__ge__ = _or_not_implemented(choice.ge)

T.__iadd__ = in_place(pointwise.add_row, "add_")
T.__isub__ = in_place(pointwise.sub_row, "sub_")
T.__imul__ = in_place(pointwise.mul, "mul_")
T.__itruediv__ = in_place(pointwise.true_div, "div_")
T.__ifloordiv__ = in_place(pointwise.floor_divide, "floor_divide_")
T.__imod__ = in_place(pointwise.remainder, "remainder_")
T.__ipow__ = in_place(pointwise.pow, "pow_")
T.__iand__ = in_place(choice.bitwise_and, "bitwise_and_")
T.__ior__ = in_place(choice.bitwise_or, "bitwise_or_")
T.__ixor__ = in_place(choice.bitwise_xor, "bitwise_xor_")
T.__getitem__ = subscript.getitem
T.__setitem__ = subscript.setitem
T.__iter__ = subscript.iterate
T.__contains__ = subscript.contains

# ---------------------------------------------------------------- arithmetic, powers, functions of one number
T.add = pointwise.add
T.sub = T.subtract = pointwise.sub
T.mul = T.multiply = pointwise.mul
T.div = T.divide = pointwise.div
T.true_divide = pointwise.true_div
T.floor_divide = pointwise.floor_divide
T.remainder = pointwise.remainder
T.fmod = pointwise.fmod
T.neg = T.negative = pointwise.neg
T.conj = T.conj_physical = pointwise.conj
T.positive = pairs.positive
T.resolve_conj = T.resolve_neg = complexes.resolve_conj
T.is_conj = T.is_neg = complexes.is_conj
T.lerp = pointwise.lerp
T.addcmul = pointwise.addcmul
T.addcdiv = pointwise.addcdiv
T.pow = pointwise.pow
T.square = pointwise.square
T.reciprocal = pointwise.reciprocal
T.sqrt = pointwise.sqrt
T.rsqrt = pointwise.rsqrt
T.exp = pointwise.exp
T.exp2 = pointwise.exp2
T.expm1 = pointwise.expm1
T.log = pointwise.log
T.log2 = pointwise.log2
T.log10 = pointwise.log10
T.log1p = pointwise.log1p
T.sin = pointwise.sin
T.cos = pointwise.cos
T.tan = pointwise.tan
T.asin = pointwise.asin
T.acos = pointwise.acos
T.atan = pointwise.atan
T.atan2 = pairs.atan2
T.sinh = pointwise.sinh
T.cosh = pointwise.cosh
T.tanh = pointwise.tanh
T.asinh = pointwise.asinh
T.acosh = pointwise.acosh
T.atanh = pointwise.atanh
T.erf = pointwise.erf
T.erfc = pointwise.erfc
T.abs = T.absolute = pointwise.abs
T.sign = pointwise.sign
T.sgn = pointwise.sgn
T.floor = pointwise.floor
T.ceil = pointwise.ceil
T.trunc = pointwise.trunc
T.round = pointwise.round
T.frac = pointwise.frac
T.nan_to_num = choice.nan_to_num
T.real = property(pointwise.real)
T.imag = property(pointwise.imag)
T.sigmoid = activation.sigmoid
T.logit = activation.logit
T.relu = activation.relu

# ---------------------------------------------------------------- comparisons and choices
T.eq = choice.eq
T.ne = choice.ne
T.lt = choice.lt
T.le = choice.le
T.gt = choice.gt
T.ge = choice.ge
T.logical_and = choice.logical_and
T.logical_or = choice.logical_or
T.logical_xor = choice.logical_xor
T.logical_not = choice.logical_not
T.bitwise_and = choice.bitwise_and
T.bitwise_or = choice.bitwise_or
T.bitwise_xor = choice.bitwise_xor
T.bitwise_not = choice.bitwise_not
T.bitwise_left_shift = T.__lshift__ = choice.bitwise_left_shift
T.bitwise_right_shift = T.__rshift__ = choice.bitwise_right_shift
T.__rlshift__ = _reversed(choice.bitwise_left_shift)
T.__rrshift__ = _reversed(choice.bitwise_right_shift)
T.__ilshift__ = T.bitwise_left_shift_ = in_place(choice.bitwise_left_shift, "bitwise_left_shift_")
T.__irshift__ = T.bitwise_right_shift_ = in_place(choice.bitwise_right_shift, "bitwise_right_shift_")
T.isnan = choice.isnan
T.isinf = choice.isinf
T.isfinite = choice.isfinite
T.isposinf = choice.isposinf
T.isneginf = choice.isneginf
T.isreal = choice.isreal
T.signbit = choice.signbit
T.where = _where
T.maximum = choice.maximum
T.minimum = choice.minimum
T.clamp = T.clip = choice.clamp
T.clamp_min = choice.clamp_min
T.clamp_max = choice.clamp_max

# ---------------------------------------------------------------- the same, in place
T.add_ = in_place(pointwise.add, "add_", reads_input=False)
T.sub_ = in_place(pointwise.sub, "sub_", reads_input=False)
T.mul_ = in_place(pointwise.mul, "mul_")
T.div_ = in_place(pointwise.div, "div_")
T.true_divide_ = in_place(pointwise.true_div, "true_divide_")
T.floor_divide_ = in_place(pointwise.floor_divide, "floor_divide_")
T.remainder_ = in_place(pointwise.remainder, "remainder_")
T.fmod_ = in_place(pointwise.fmod, "fmod_")
T.neg_ = in_place(pointwise.neg, "neg_")
T.conj_physical_ = in_place(pointwise.conj, "conj_physical_", reads_input=False)
T.lerp_ = in_place(pointwise.lerp, "lerp_")
T.addcmul_ = in_place(pointwise.addcmul, "addcmul_", reads_input=False)
T.addcdiv_ = in_place(pointwise.addcdiv, "addcdiv_", reads_input=False)
T.pow_ = in_place(pointwise.pow, "pow_")
T.square_ = in_place(pointwise.square, "square_")
T.reciprocal_ = in_place(pointwise.reciprocal, "reciprocal_")
T.sqrt_ = in_place(pointwise.sqrt, "sqrt_")
T.rsqrt_ = in_place(pointwise.rsqrt, "rsqrt_")
T.exp_ = in_place(pointwise.exp, "exp_")
T.exp2_ = in_place(pointwise.exp2, "exp2_")
T.expm1_ = in_place(pointwise.expm1, "expm1_")
T.log_ = in_place(pointwise.log, "log_")
T.log2_ = in_place(pointwise.log2, "log2_")
T.log10_ = in_place(pointwise.log10, "log10_")
T.log1p_ = in_place(pointwise.log1p, "log1p_")
T.sin_ = in_place(pointwise.sin, "sin_")
T.cos_ = in_place(pointwise.cos, "cos_")
T.tan_ = in_place(pointwise.tan, "tan_")
T.asin_ = in_place(pointwise.asin, "asin_")
T.acos_ = in_place(pointwise.acos, "acos_")
T.atan_ = in_place(pointwise.atan, "atan_")
T.atan2_ = in_place(pairs.atan2, "atan2_")
T.sinh_ = in_place(pointwise.sinh, "sinh_")
T.cosh_ = in_place(pointwise.cosh, "cosh_")
T.tanh_ = in_place(pointwise.tanh, "tanh_")
T.asinh_ = in_place(pointwise.asinh, "asinh_")
T.acosh_ = in_place(pointwise.acosh, "acosh_")
T.atanh_ = in_place(pointwise.atanh, "atanh_")
T.erf_ = in_place(pointwise.erf, "erf_")
T.erfc_ = in_place(pointwise.erfc, "erfc_")
T.abs_ = in_place(pointwise.abs, "abs_")
T.sign_ = in_place(pointwise.sign, "sign_")
T.sgn_ = in_place(pointwise.sgn, "sgn_")
T.floor_ = in_place(pointwise.floor, "floor_")
T.ceil_ = in_place(pointwise.ceil, "ceil_")
T.trunc_ = in_place(pointwise.trunc, "trunc_")
T.round_ = in_place(pointwise.round, "round_", reads_input=False)
T.frac_ = in_place(pointwise.frac, "frac_")
T.nan_to_num_ = in_place(choice.nan_to_num, "nan_to_num_")
T.sigmoid_ = in_place(activation.sigmoid, "sigmoid_")
T.logit_ = in_place(activation.logit, "logit_")
T.relu_ = in_place(activation.relu, "relu_")
T.eq_ = in_place(choice.eq, "eq_")
T.ne_ = in_place(choice.ne, "ne_")
T.lt_ = in_place(choice.lt, "lt_")
T.le_ = in_place(choice.le, "le_")
T.gt_ = in_place(choice.gt, "gt_")
T.ge_ = in_place(choice.ge, "ge_")
T.logical_and_ = in_place(choice.logical_and, "logical_and_")
T.logical_or_ = in_place(choice.logical_or, "logical_or_")
T.logical_xor_ = in_place(choice.logical_xor, "logical_xor_")
T.logical_not_ = in_place(choice.logical_not, "logical_not_")
T.bitwise_and_ = in_place(choice.bitwise_and, "bitwise_and_")
T.bitwise_or_ = in_place(choice.bitwise_or, "bitwise_or_")
T.bitwise_xor_ = in_place(choice.bitwise_xor, "bitwise_xor_")
T.bitwise_not_ = in_place(choice.bitwise_not, "bitwise_not_")
T.clamp_ = T.clip_ = in_place(choice.clamp, "clamp_")
T.clamp_min_ = in_place(choice.clamp_min, "clamp_min_")
T.clamp_max_ = in_place(choice.clamp_max, "clamp_max_")

# ---------------------------------------------------------------- special functions, and functions of two numbers
T.polygamma = _polygamma
T.lgamma = distributions.lgamma
T.digamma = distributions.digamma
T.mvlgamma = distributions.mvlgamma
T.erfinv = distributions.erfinv
T.i0 = distributions.i0
T.sinc = distributions.sinc
T.hypot = pairs.hypot
T.copysign = pairs.copysign
T.heaviside = pairs.heaviside
T.logaddexp = pairs.logaddexp
T.logaddexp2 = pairs.logaddexp2
T.fmax = pairs.fmax
T.fmin = pairs.fmin
T.float_power = pairs.float_power
T.frexp = pairs.frexp
T.ldexp = pairs.ldexp
T.deg2rad = pairs.deg2rad
T.rad2deg = pairs.rad2deg
T.xlogy = loss.xlogy
T.nextafter = pairs.nextafter
T.gcd = pairs.gcd
T.lcm = pairs.lcm
T.nextafter_ = in_place(pairs.nextafter, "nextafter_")
T.gcd_ = in_place(pairs.gcd, "gcd_")
T.lcm_ = in_place(pairs.lcm, "lcm_")
T.angle = complexes.angle
T.lgamma_ = in_place(distributions.lgamma, "lgamma_")
T.digamma_ = in_place(distributions.digamma, "digamma_")
T.mvlgamma_ = in_place(distributions.mvlgamma, "mvlgamma_")
T.erfinv_ = in_place(distributions.erfinv, "erfinv_")
T.i0_ = in_place(distributions.i0, "i0_")
T.sinc_ = in_place(distributions.sinc, "sinc_")
T.hypot_ = in_place(pairs.hypot, "hypot_")
T.copysign_ = in_place(pairs.copysign, "copysign_")
T.heaviside_ = in_place(pairs.heaviside, "heaviside_")
T.float_power_ = in_place(pairs.float_power, "float_power_")
T.ldexp_ = in_place(pairs.ldexp, "ldexp_")
T.deg2rad_ = in_place(pairs.deg2rad, "deg2rad_")
T.rad2deg_ = in_place(pairs.rad2deg, "rad2deg_")
T.xlogy_ = in_place(loss.xlogy, "xlogy_")
T.polygamma_ = in_place(_polygamma, "polygamma_")

# ---------------------------------------------------------------- products of vectors and matrices
T.__matmul__ = _or_not_implemented(linalg.matmul)
T.__rmatmul__ = _reversed(linalg.matmul)
T.matmul = linalg.matmul
T.mm = linalg.mm
T.bmm = linalg.bmm
T.mv = linalg.mv
T.dot = linalg.dot
T.vdot = linalg.vdot
T.outer = T.ger = linalg.outer
T.addmm = linalg.addmm
T.baddbmm = linalg.baddbmm
T.kron = linalg.kron
T.adjoint = linalg.adjoint
T.addmv = products.addmv
T.addbmm = products.addbmm
T.addr = products.addr
T.inner = products.inner
T.cross = products.cross_of_first
T.dist = products.dist
T.renorm = products.renorm
T.addmv_ = in_place(products.addmv, "addmv_", reads_input=False)
T.addbmm_ = in_place(products.addbmm, "addbmm_", reads_input=False)
T.addr_ = in_place(products.addr, "addr_", reads_input=False)
T.renorm_ = in_place(products.renorm, "renorm_")
T.addmm_ = in_place(linalg.addmm, "addmm_", reads_input=False)
T.baddbmm_ = in_place(linalg.baddbmm, "baddbmm_", reads_input=False)

# ---------------------------------------------------------------- systems of equations and factors of matrices
T.det = _late("det", "determinants")
T.slogdet = _late("slogdet", "determinants")
T.logdet = _late("logdet", "determinants")
T.matrix_power = _late("matrix_power", "solving")
T.cholesky_solve = _late("cholesky_solve", "solving")
T.cholesky_inverse = _late("cholesky_inverse", "solving")
T.matrix_exp = _late("matrix_exp", "spectra")
T.cholesky = _late("cholesky", "formerly")
T.inverse = _late("inverse", "formerly")
T.lu = _late("lu", "formerly")
T.lu_solve = _late("lu_solve", "formerly")
T.pinverse = _late("pinverse", "formerly")
T.qr = _late("qr", "formerly")
T.svd = _late("svd", "formerly")
T.triangular_solve = _late("triangular_solve", "formerly")
T.geqrf = _late("geqrf", "reflections")
T.ormqr = _late("ormqr", "reflections")
T.orgqr = _late("orgqr", "reflections")

# ---------------------------------------------------------------- random numbers
T.bernoulli = random.bernoulli
T.multinomial = random.multinomial
T.uniform_ = random.uniform_
T.normal_ = random.normal_
T.exponential_ = random.exponential_
T.bernoulli_ = random.bernoulli_
T.random_ = random.random_

# ---------------------------------------------------------------- reductions, order, running sums
T.sum = reduction.sum
T.mean = reduction.mean
T.nansum = reduction.nansum
T.nanmean = reduction.nanmean
T.prod = reduction.prod
T.var = reduction.var
T.std = reduction.std
T.all = reduction.all
T.any = reduction.any
T.count_nonzero = reduction.count_nonzero
T.isclose = reduction.isclose
T.allclose = reduction.allclose
T.equal = reduction.equal
T.sum_to_size = reduction.sum_to_size
T.norm = norm.norm
T.logsumexp = softmax.logsumexp
T.softmax = softmax.softmax
T.log_softmax = softmax.log_softmax
T.amax = extremes.amax
T.amin = extremes.amin
T.aminmax = extremes.aminmax
T.max = extremes.max
T.min = extremes.min
T.median = extremes.median
T.kthvalue = extremes.kthvalue
T.argmax = extremes.argmax
T.argmin = extremes.argmin
T.sort = extremes.sort
T.argsort = extremes.argsort
T.topk = extremes.topk
T.cummax = extremes.cummax
T.cummin = extremes.cummin
T.mode = ranks.mode
T.nanmedian = ranks.nanmedian
T.msort = ranks.msort
T.quantile = ranks.quantile
T.nanquantile = ranks.nanquantile
T.diff = differences.diff
T.cov = differences.cov
T.corrcoef = differences.corrcoef
T.cumsum = scan.cumsum
T.cumprod = scan.cumprod
T.logcumsumexp = scan.logcumsumexp
T.cumsum_ = in_place(scan.cumsum, "cumsum_", reads_input=False)
T.cumprod_ = in_place(scan.cumprod, "cumprod_")

# ---------------------------------------------------------------- indexing
T.index_put = subscript.index_put
T.index_put_ = subscript.index_put_
T.index_select = gather.index_select
T.index_add = gather.index_add
T.index_copy = gather.index_copy
T.index_fill = gather.index_fill
T.gather = gather.gather
T.scatter = gather.scatter
T.scatter_add = gather.scatter_add
T.scatter_reduce = _late("scatter_reduce", "segments")
T.index_reduce = _late("index_reduce", "segments")
T.scatter_reduce_ = in_place(_late("scatter_reduce", "segments"), "scatter_reduce_")
T.index_reduce_ = in_place(_late("index_reduce", "segments"), "index_reduce_")
T.take = picking.take
T.take_along_dim = gather.take_along_dim
T.masked_fill = indexing.masked_fill
T.masked_fill_ = indexing.masked_fill_
T.masked_select = picking.masked_select
T.masked_scatter = picking.masked_scatter
T.nonzero = indexing.nonzero
T.nonzero_static = _late("nonzero_static", "bins")
T.unique = _late("unique", "bins")
T.unique_consecutive = _late("unique_consecutive", "bins")
T.bincount = _late("bincount", "bins")
T.histc = _late("histc", "bins")
T.argwhere = indexing.argwhere
T.index_add_ = in_place(gather.index_add, "index_add_", reads_input=False)
T.index_copy_ = in_place(gather.index_copy, "index_copy_", reads_input=False)
T.index_fill_ = in_place(gather.index_fill, "index_fill_", reads_input=False)
T.scatter_ = in_place(gather.scatter, "scatter_", reads_input=False)
T.scatter_add_ = in_place(gather.scatter_add, "scatter_add_", reads_input=False)
T.masked_scatter_ = in_place(picking.masked_scatter, "masked_scatter_", reads_input=False)
T.put = ranks.put
T.put_ = in_place(ranks.put, "put_", reads_input=False)
T.fill_diagonal_ = rearrange.fill_diagonal_

# ---------------------------------------------------------------- shapes
T.reshape = shape.reshape
T.reshape_as = rearrange.reshape_as
T.view = shape.view
T.view_as = rearrange.view_as
T.expand = shape.expand
T.expand_as = rearrange.expand_as
T.broadcast_to = rearrange.broadcast_to
T.permute = shape.permute
T.transpose = T.swapaxes = T.swapdims = shape.transpose
T.t = shape.t
T.movedim = T.moveaxis = shape.movedim
T.T = property(rearrange.numpy_T)
T.mT = property(rearrange.mT)
T.H = property(rearrange.matrix_H)
T.mH = property(linalg.adjoint)
T.unsqueeze = shape.unsqueeze
T.squeeze = shape.squeeze
T.flatten = T.ravel = shape.flatten
T.unflatten = rearrange.unflatten
T.diagonal = shape.diagonal
T.diag = rearrange.diag
T.diag_embed = rearrange.diag_embed
T.diagflat = rearrange.diagflat
T.trace = rearrange.trace
T.tril = shape.tril
T.triu = shape.triu
T.flip = shape.flip
T.fliplr = rearrange.fliplr
T.flipud = rearrange.flipud
T.roll = shape.roll
T.rot90 = rearrange.rot90
T.repeat = rearrange.repeat
T.repeat_interleave = picking.repeat_interleave
T.tile = rearrange.tile
T.narrow = joining.narrow
T.narrow_copy = forms.narrow_copy
T.select = joining.select
T.unbind = joining.unbind
T.split = T.split_with_sizes = joining.split
T.chunk = T.unsafe_chunk = joining.chunk
T.unsafe_split = joining.split
T.tensor_split = joining.tensor_split
T.hsplit = forms.hsplit
T.vsplit = forms.vsplit
T.dsplit = forms.dsplit
T.stft = _late("stft", "frames")
T.istft = _late("istft", "frames")
T.unfold = forms.unfold
T.as_strided = _late("as_strided", "strides")
T.as_strided_ = in_place_view(_late("as_strided", "strides"), "as_strided_")
T.resize_ = _late("resize_", "strides")
T.resize_as_ = _late("resize_as_", "strides")
T.as_strided_scatter = _late("as_strided_scatter", "strides")
T.new_empty_strided = _late("new_empty_strided", "strides")
T.select_scatter = forms.select_scatter
T.slice_scatter = forms.slice_scatter
T.diagonal_scatter = forms.diagonal_scatter
T.tril_ = in_place(shape.tril, "tril_", reads_input=False)
T.triu_ = in_place(shape.triu, "triu_", reads_input=False)
T.contiguous = layout.contiguous
T.is_contiguous = layout.is_contiguous

# ---------------------------------------------------------------- copies
T.detach = shape.detach
T.clone = layout.clone
T.to = transfer.to
T.cpu = transfer.cpu
T.pin_memory = transfer.pin_memory
T.is_pinned = transfer.is_pinned
T.type_as = misc.type_as
T.type = misc.type_
T.half = misc.half
T.float = misc.float
T.double = misc.double
T.cfloat = misc.cfloat
T.cdouble = misc.cdouble
T.bool = misc.bool_
T.byte = misc.byte
T.char = misc.char
T.short = misc.short
T.int = misc.int_
T.long = misc.long
T.zero_ = inplace.zero_
T.fill_ = inplace.fill_
T.copy_ = inplace.copy_
T.detach_ = inplace.detach_
T.squeeze_ = in_place_view(shape.squeeze, "squeeze_")
T.unsqueeze_ = in_place_view(shape.unsqueeze, "unsqueeze_")
T.transpose_ = in_place_view(shape.transpose, "transpose_")
T.swapaxes_ = in_place_view(shape.transpose, "swapaxes_")
T.swapdims_ = in_place_view(shape.transpose, "swapdims_")
T.t_ = in_place_view(shape.t, "t_")
T._is_view = inplace.is_view  # noqa: SLF001  torch spells it so
T._base = property(inplace.base_of)  # noqa: SLF001  torch spells it so
T.data = property(misc.get_data, misc.set_data)
T.new_full = creation.new_full
T.new_zeros = T.new_empty = creation.new_zeros
T.new_ones = creation.new_ones
T.new_tensor = creation.new_tensor

# ---------------------------------------------------------------- questions
T.ndimension = Tensor.dim
T.nelement = Tensor.numel
T.is_floating_point = misc.is_floating_point
T.is_complex = misc.is_complex
T.is_inference = is_inference
T.is_signed = misc.is_signed
T.is_nonzero = misc.is_nonzero
T.is_cuda = property(misc.is_cuda)
T.as_subclass = misc.as_subclass
T.__torch_function__ = classmethod(inherited)
T.__init_subclass__ = classmethod(misc.constructible)
T._make_subclass = staticmethod(misc.make_subclass)  # noqa: SLF001  torch spells it so
T.is_meta = property(misc.is_meta)
T.is_cpu = property(misc.is_cpu)
T.layout = misc.strided
T.storage_offset = misc.storage_offset
T.nbytes = property(misc.nbytes)
T.storage = conversion.storage
T.itemsize = property(Tensor.element_size)
T.retains_grad = property(misc.retains_grad)

# ---------------------------------------------------------------- gradients
T.backward = autograd.tensor_backward
T.grad = property(accumulated.get, accumulated.set_, accumulated.delete)
T.register_hook = hooks.register_hook
T.retain_grad = hooks.retain_grad
T.register_post_accumulate_grad_hook = hooks.register_post_accumulate_grad_hook

# ---------------------------------------------------------------- leaving minigrad
T.__repr__ = conversion.text
T.__format__ = conversion.formatted
T.__array__ = conversion.array
T.__bool__ = conversion.boolean
T.__float__ = conversion.floating
T.__int__ = conversion.integer
T.__complex__ = conversion.complex_number
T.__index__ = conversion.index
T.__dlpack__ = conversion.dlpack
T.__dlpack_device__ = conversion.dlpack_device
T.__reduce__ = conversion.reduced
T.__deepcopy__ = conversion.deepcopied
T.numpy = conversion.numpy
T.tolist = conversion.tolist
T.item = conversion.item
T.stride = conversion.stride

# ---------------------------------------------------------------- each is one call, whatever it is composed of
for _name, _f in list(vars(Tensor).items()):
    if isinstance(_f, FunctionType) and _f.__module__ != Tensor.__module__:
        if not hasattr(Tensor, _f.__name__):
            _f.__name__ = _name
        setattr(Tensor, _name, published(_f))
