"""Orthogonal factors and functions of matrices: QR, eigenvalues, singular values, pseudo-inverse, exponential.

Factors are unique up to signs or phases only: a derivative means something where what comes of them does not depend on these.

Upstream: linalg_qr, _linalg_eigh, _linalg_svd, linalg_pinv, linalg_matrix_exp in derivatives.yaml; FunctionsManual.cpp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import UsageError
from ..row import OpFunction, row
from ..tensor import Tensor
from .batching import leading
from .definite import half
from .elimination import dagger, solved
from .extremes import amax
from .factors import columns_from, corner, solve_triangle
from .joining import cat
from .linalg import adjoint, matmul
from .misc import finfo
from .norm import matrix_norm
from .pointwise import abs as absolute
from .pointwise import imag, real
from .rearrange import diag_embed
from .reduction import sum as sum_over
from .reduction import total_of
from .shape import basic_index, detach, diagonal, squeeze, tril, triu, unsqueeze, widened
from .solving import inv, matrices, squares

if TYPE_CHECKING:
    from ..backend import Array


class QR(NamedTuple):
    """What qr returns.  Source: torch.return_types.linalg_qr."""

    Q: Tensor
    R: Tensor


class Eigen(NamedTuple):
    """What eigh returns.  Source: torch.return_types.linalg_eigh."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class SVD(NamedTuple):
    """What linalg.svd returns.  Source: torch.return_types.linalg_svd."""

    U: Tensor
    S: Tensor
    Vh: Tensor


# ---------------------------------------------------------------- A = Q R
def _qr_kernel(xp: Any, x0: Array, mode: str) -> tuple[Array, Array]:
    if mode == "r":
        return xp.empty(0, x0.dtype), xp.linalg.qr(x0, "r")
    return tuple(xp.linalg.qr(x0, mode))


def _differentiable(r: Tensor, mode: str) -> None:
    if mode == "r":
        msg = ("The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, "
               "mode='reduced') if you are going to require derivatives")
        raise UsageError(msg)
    if mode == "complete" and r.shape[-2] > r.shape[-1]:
        msg = "The QR decomposition is not differentiable when mode='complete' and nrows > ncols"
        raise UsageError(msg)


def _qr_vjp(ct: list[Any], out0: Tensor, out1: Tensor, mode: str) -> list[Tensor]:
    """A is Q R1, and beside it Q R2 where it is wider than high."""
    _differentiable(out1, mode)
    g_q, g_r = ct
    k = out1.shape[-2]
    wide = out1.shape[-1] > k
    r1 = corner(out1, k, k)
    inner = total_of(None if g_r is None else matmul(corner(g_r, k, k), adjoint(r1)),
                     None if g_q is None else -matmul(adjoint(out0), g_q))
    if wide and g_r is not None:
        inner = inner - matmul(columns_from(out1, k), adjoint(columns_from(g_r, k)))
        g_q = total_of(g_q, matmul(out0, matmul(columns_from(out1, k), adjoint(columns_from(g_r, k)))))
    inner = adjoint(half(adjoint(triu(inner))))
    g = total_of(matmul(out0, inner + adjoint(inner)), g_q)
    g = solve_triangle(adjoint(r1), g, upper=False, left=False, unit=False)
    if not wide:
        return [g]
    return [cat([g, matmul(out0, columns_from(out1 * 0 if g_r is None else g_r, k))], -1)]


def _qr_jvp(dx: list[Any], out0: Tensor, out1: Tensor, mode: str) -> tuple[Tensor, Tensor]:
    _differentiable(out1, mode)
    k, dx0 = out1.shape[-2], dx[0]
    moved = solve_triangle(corner(out1, k, k), corner(dx0, dx0.shape[-2], k), upper=True, left=False, unit=False)
    inner = matmul(adjoint(out0), moved)
    turned = adjoint(half(_sym(inner)))
    d_q, d_r = moved - matmul(out0, turned), matmul(turned, corner(out1, k, k))
    if out1.shape[-1] > k:
        beside = matmul(adjoint(out0), columns_from(dx0, k)) + matmul(adjoint(d_q), matmul(out0, columns_from(out1, k)))
        d_r = cat([d_r, beside], -1)
    return d_q, d_r


_qr: OpFunction = row("linalg_qr", _qr_kernel, outs=2, saves=("out0", "out1"), vjp=_qr_vjp, jvp=_qr_jvp, batch=leading)


def qr(A: Tensor, mode: str = "reduced") -> QR:  # noqa: N803  torch's name
    """Q and R of A = Q R, Q unitary, R upper triangular; mode: "reduced", "complete", or "r" for R alone.

    Source: torch.linalg.qr.
    """
    if mode not in ("reduced", "complete", "r"):
        msg = f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        raise UsageError(msg)
    return QR(*_qr(matrices("linalg.qr", A), mode=mode))


# ---------------------------------------------------------------- A = V diag(l) Vᴴ
def eigen_gaps(values: Tensor) -> Tensor:
    """Of each pair the difference, 1 on the diagonal."""
    gaps = unsqueeze(values, -2) - unsqueeze(values, -1)
    return gaps + diag_embed(values * 0 + 1)


def off_diagonal(x: Tensor) -> Tensor:
    """`x` with zeros on the diagonal."""
    return triu(x, 1) + tril(x, -1)


def scaled_columns(x: Tensor, values: Tensor) -> Tensor:
    """The columns of x, each times a number."""
    return x * unsqueeze(values, -2)


def _eigh_kernel(xp: Any, x0: Array, uplo: str) -> tuple[Array, Array]:
    return tuple(xp.linalg.eigh(x0, uplo))


def _eigh_vjp(ct: list[Any], out0: Tensor, out1: Tensor) -> list[Any]:
    g_l, g_v = ct
    if g_v is None:
        return [matmul(scaled_columns(out1, g_l), adjoint(out1))]
    inner = off_diagonal(_skew(matmul(adjoint(out1), g_v))) * 0.5 / eigen_gaps(out0)
    if g_l is not None:
        inner = inner + diag_embed(g_l)
    return [matmul(matmul(out1, inner), adjoint(out1))]


def _eigh_jvp(dx: list[Any], out0: Tensor, out1: Tensor) -> tuple[Tensor, Tensor]:
    inner = matmul(adjoint(out1), matmul(dx[0], out1))
    return real(diagonal(inner, 0, -2, -1)), matmul(out1, off_diagonal(inner) / eigen_gaps(out0))


_eigh: OpFunction = row("_linalg_eigh", _eigh_kernel, outs=2, saves=("out0", "out1"), vjp=_eigh_vjp, jvp=_eigh_jvp,
                        batch=leading, node="LinalgEighBackward0")


def eigh(A: Tensor, UPLO: str = "L") -> Eigen:  # noqa: N803
    """Eigenvalues, in ascending order, and eigenvectors of Hermitian matrices, of which one triangle is read.

    Source: torch.linalg.eigh.
    """
    if UPLO.upper() not in ("L", "U"):
        msg = f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}"
        raise UsageError(msg)
    return Eigen(*_eigh(squares("linalg.eigh", A), uplo=UPLO.upper()))


def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:  # noqa: N803
    """The eigenvalues that eigh gives.  Source: torch.linalg.eigvalsh."""
    return eigh(A, UPLO)[0]


# ---------------------------------------------------------------- A = U diag(s) Vᴴ
def _svd_kernel(xp: Any, x0: Array, full: bool) -> tuple[Array, Array, Array]:
    return tuple(xp.linalg.svd(x0, full_matrices=full))


def _skew(x: Tensor) -> Tensor:
    return x - adjoint(x)


def _sym(x: Tensor) -> Tensor:
    return x + adjoint(x)


def _first(x: Tensor, k: int) -> Tensor:
    """The first k columns."""
    return basic_index(x, (Ellipsis, slice(k))) if x.shape[-1] > k else x


def _thin(u: Tensor, s: Tensor, vh: Tensor) -> tuple[Tensor, Tensor]:
    """U and V, with as many columns as there are singular values."""
    k = s.shape[-1]
    return _first(u, k), _first(adjoint(vh), k)


def _thin_cotangent(g: Tensor, u: Tensor, k: int) -> Tensor:
    """What the first k columns get, which the others turn with, to stay orthogonal to them."""
    if u.shape[-1] == k:
        return g
    return _first(g, k) - matmul(columns_from(u, k), matmul(adjoint(columns_from(g, k)), _first(u, k)))


def _full_tangent(d: Tensor, u: Tensor, k: int) -> Tensor:
    return d if u.shape[-1] == k else cat([d, -matmul(_first(u, k), matmul(adjoint(d), columns_from(u, k)))], -1)


def _svd_vjp(ct: list[Any], out1: Tensor, out0: Tensor, out2: Tensor) -> list[Any]:
    g_u, g_s, g_vh = ct
    (u, v), s = _thin(out0, out1, out2), out1
    if g_u is g_vh is None:
        return [matmul(scaled_columns(u, g_s), adjoint(v))]
    k = s.shape[-1]
    g_u = None if g_u is None else _thin_cotangent(g_u, out0, k)
    g_v = None if g_vh is None else _thin_cotangent(adjoint(g_vh), adjoint(out2), k)
    turned_u = None if g_u is None else _skew(matmul(adjoint(u), g_u))
    turned_v = None if g_v is None else _skew(matmul(adjoint(v), g_v))
    gaps, column = eigen_gaps(s * s), unsqueeze(s, -1)
    inner = total_of(None if turned_u is None else scaled_columns(off_diagonal(turned_u) / gaps, s),
                     None if turned_v is None else column * (off_diagonal(turned_v) / gaps),
                     None if g_s is None else diag_embed(g_s),
                     None if turned_u is None or not u.dtype.is_complex else
                     diag_embed(diagonal(turned_u, 0, -2, -1) / (s * 2)))
    g = matmul(inner, adjoint(v))
    if v.shape[-2] > k and g_v is not None:
        rest = g_v - matmul(v, matmul(adjoint(v), g_v))
        g = g + adjoint(rest) / column
    g = matmul(u, g)
    if u.shape[-2] > k and g_u is not None:
        rest = g_u - matmul(u, matmul(adjoint(u), g_u))
        g = g + matmul(scaled_columns(rest, 1 / s), adjoint(v))
    return [g]


def _svd_jvp(dx: list[Any], out1: Tensor, out0: Tensor, out2: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    (u, v), s = _thin(out0, out1, out2), out1
    k, gaps, column = s.shape[-1], eigen_gaps(s * s), unsqueeze(s, -1)
    inner = matmul(adjoint(u), matmul(dx[0], v))
    d_u, d_v = (off_diagonal(_sym(x)) / gaps for x in (scaled_columns(inner, s), column * inner))
    if inner.dtype.is_complex:
        d_u = d_u + diag_embed(imag(diagonal(inner, 0, -2, -1)) * 1j / s)
    d_u, d_v = matmul(u, d_u), matmul(v, d_v)
    if u.shape[-2] > k:
        moved = scaled_columns(matmul(dx[0], v), 1 / s)
        d_u = d_u + moved - matmul(u, matmul(adjoint(u), moved))
    if v.shape[-2] > k:
        moved = scaled_columns(matmul(adjoint(dx[0]), u), 1 / s)
        d_v = d_v + moved - matmul(v, matmul(adjoint(v), moved))
    return _full_tangent(d_u, out0, k), real(diagonal(inner, 0, -2, -1)), adjoint(_full_tangent(d_v, adjoint(out2), k))


_svd: OpFunction = row("_linalg_svd", _svd_kernel, outs=3, saves=("out1", "out0", "out2"), vjp=_svd_vjp, jvp=_svd_jvp,
                       batch=leading, node="LinalgSvdBackward0")


def svd(A: Tensor, full_matrices: bool = True) -> SVD:  # noqa: N803
    """U, S and Vh of A = U diag(S) Vh, singular values in descending order.  Source: torch.linalg.svd."""
    return SVD(*_svd(matrices("linalg.svd", A), full=full_matrices))


def svdvals(A: Tensor) -> Tensor:  # noqa: N803
    """The singular values, in descending order.  Source: torch.linalg.svdvals."""
    return svd(A, full_matrices=False)[1]


# ---------------------------------------------------------------- the pseudo-inverse
def _pinv_kernel(xp: Any, x0: Array, x1: Any, x2: Any, hermitian: bool) -> Array:
    if hermitian:
        s, u = xp.linalg.eigh(x0)
        vh = dagger(u)
    else:
        u, s, vh = xp.linalg.svd(x0, full_matrices=False)
    sizes, (atol, rtol) = xp.abs(s), [x[..., None] if isinstance(x, type(x0)) and x.ndim else x for x in (x1, x2)]
    small = sizes <= xp.maximum(atol, rtol * xp.max(sizes, axis=-1, keepdims=True)) if s.shape[-1] else sizes > 0
    return xp.matmul(dagger(vh), xp.where(small, 0, 1 / xp.where(small, 1, s))[..., None] * dagger(u)).astype(x0.dtype)


def _kernel_part(x: Tensor, p: Tensor, y: Tensor) -> Tensor:
    """(1 - x p) y."""
    return y - matmul(x, matmul(p, y))


def _pinv_vjp(ct: Tensor, out: Tensor, x0: Tensor) -> Tensor:
    """Source: Golub and Pereyra, The differentiation of pseudo-inverses and nonlinear least squares problems (1973)."""
    ph, gp, pg = adjoint(out), matmul(adjoint(ct), out), matmul(out, adjoint(ct))
    return (matmul(_kernel_part(x0, out, gp), ph) + matmul(ph, adjoint(_kernel_part(adjoint(x0), ph, adjoint(pg))))
            - matmul(ph, matmul(ct, ph)))


def _pinv_jvp(dx: Tensor, out: Tensor, x0: Tensor) -> Tensor:
    ph, dh = adjoint(out), adjoint(dx)
    first = matmul(out, matmul(ph, adjoint(_kernel_part(adjoint(out), adjoint(x0), dx))))
    last = _kernel_part(out, x0, matmul(matmul(dh, ph), out))
    return first + last - matmul(out, matmul(dx, out))


_pinv: OpFunction = row("linalg_pinv", _pinv_kernel, saves=("x0", "out"), batch=leading,
                        vjp=(_pinv_vjp, None, None), jvp=(_pinv_jvp, None, None))


def _tolerances(x: Tensor, atol: Any, rtol: Any) -> tuple[Any, Any]:
    """Both, for each matrix where they are tensors; a rtol of machine precision where neither is given."""
    if rtol is None:
        rtol = 0.0 if atol is not None else max(x.shape[-2:]) * finfo(x.dtype).eps
    atol = 0.0 if atol is None else atol
    return tuple(widened(detach(t), x.shape[:-2]) if isinstance(t, Tensor) else t for t in (atol, rtol))  # type: ignore[return-value]


def pinv(A: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Tensor:  # noqa: N803
    """The Moore-Penrose inverse; singular values up to atol, or rtol times the largest, count as 0.

    rtol: max(m, n) times the distance of 1 to the next number, without; 0 where atol is given.  Both may be tensors, of a
    number for each matrix.  Source: torch.linalg.pinv.
    """
    atol, rtol = _tolerances(matrices("linalg.pinv", A), atol, rcond if rtol is None else rtol)
    return _pinv(A, atol, rtol, hermitian=hermitian)  # type: ignore[no-any-return]


def matrix_rank(A: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Tensor:  # noqa: N803
    """How many singular values are larger than atol and than rtol times the largest.  Source: torch.linalg.matrix_rank."""
    atol, rtol = _tolerances(matrices("linalg.matrix_rank", A), atol if tol is None else tol, rtol)
    sizes = absolute(eigvalsh(A)) if hermitian else svdvals(A)
    if not sizes.shape[-1]:
        return sum_over(sizes > 0, -1)
    atol, rtol = (unsqueeze(t, -1) if isinstance(t, Tensor) else t for t in (atol, rtol))
    return sum_over((sizes > amax(sizes, -1, keepdim=True) * rtol) & (sizes > atol), -1)


# ---------------------------------------------------------------- the exponential
PADE = (64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600, 670442572800,
        33522128640, 1323241920, 40840800, 960960, 16380, 182, 1)
"""Source: Higham, The scaling and squaring method for the matrix exponential revisited (2005), (2.3)."""


def _exp_kernel(xp: Any, x0: Array) -> Array:
    """A rational function of A / 2 ** s, squared s times; s is each matrix's own."""
    if not x0.size:
        return x0.copy()
    norm = xp.max(xp.sum(xp.abs(x0), axis=-2), axis=-1)
    norm = xp.where(xp.isfinite(norm), norm, 0)  # what is not finite stays so without a power
    squarings = xp.maximum(xp.ceil(xp.log2(xp.where(norm == 0, 1, norm) / 2)), 0)[..., None, None]
    a = (x0 / 2 ** squarings).astype(x0.dtype)
    eye = xp.eye(a.shape[-1], dtype=a.dtype)
    b = [c / PADE[0] for c in PADE]
    a2 = xp.matmul(a, a)
    a4 = xp.matmul(a2, a2)
    a6 = xp.matmul(a2, a4)
    odd = xp.matmul(a, xp.matmul(a6, b[13] * a6 + b[11] * a4 + b[9] * a2) + b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * eye)
    even = xp.matmul(a6, b[12] * a6 + b[10] * a4 + b[8] * a2) + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * eye
    out = solved(xp, even - odd, even + odd)
    for k in range(int(squarings.max())):
        out = xp.where(k < squarings, xp.matmul(out, out), out)
    return out


def _along(x: Tensor, direction: Tensor) -> Tensor:
    """The derivative of exp(x) along a direction: the corner of the exponential of [[x, direction], [0, x]].

    Source: Mathias, A chain rule for matrix functions and applications (1996).
    """
    n, scale = x.shape[-1], _size(direction)
    block = cat([cat([x, direction / scale], -1), cat([x * 0, x], -1)], -2)
    return basic_index(_matrix_exp(block), (Ellipsis, slice(n), slice(n, None))) * scale  # type: ignore[no-any-return]


def _size_kernel(xp: Any, x0: Array) -> Array:
    sizes = xp.max(xp.abs(x0), axis=(-2, -1), keepdims=True) if x0.shape[-1] else xp.ones((*x0.shape[:-2], 1, 1))
    return xp.where(sizes == 0, 1, sizes).astype(x0.dtype)


_size: OpFunction = row("largest_element", _size_kernel, vjp=None, jvp=None, batch=leading)
"""What a direction is divided by, so that the exponential is scaled for x and not for it: any number would do."""

_matrix_exp: OpFunction = row("linalg_matrix_exp", _exp_kernel, saves=("x0",), batch=leading,
                              vjp=(lambda ct, x0: _along(adjoint(x0), ct),), jvp=(lambda dx, x0: _along(x0, dx),))


def matrix_exp(A: Tensor) -> Tensor:  # noqa: N803
    """The exponential of square matrices.  Source: torch.linalg.matrix_exp."""
    return _matrix_exp(squares("linalg.matrix_exp", A))  # type: ignore[no-any-return]


# ---------------------------------------------------------------- the condition
def cond(A: Tensor, p: float | str | None = None) -> Tensor:  # noqa: N803
    """The norm of A times that of its inverse; for None, 2 and -2 from the singular values.  Source: torch.linalg.cond."""
    matrices("linalg.cond", A)
    if p in (None, 2, -2):
        s = svdvals(A)
        large, small = s[..., :1], s[..., -1:]
        return squeeze(small / large if p == -2 else large / small, -1)
    squares("linalg.cond", A)
    return matrix_norm(A, p) * matrix_norm(inv(A), p)
