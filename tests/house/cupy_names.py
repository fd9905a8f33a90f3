"""What kernels may use of the array namespace: names that cupy has, too (docs.cupy.dev/en/stable/reference/comparison.html)."""

NAMES = set("""
abs absolute add all any arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argsort argwhere array asarray
ascontiguousarray asnumpy bincount bitwise_and bitwise_or bitwise_xor broadcast_to ceil clip concatenate conjugate copy copysign cos cosh cumprod cumsum
diagonal dot einsum empty empty_like equal exp exp2 expm1 eye finfo flip floor floor_divide fmod frexp full greater greater_equal imag invert isfinite isinf
isnan left_shift less less_equal linspace log log10 log1p log2 logaddexp logical_and logical_not logical_or logical_xor matmul max maximum mean min minimum
moveaxis multiply nan nan_to_num nansum negative not_equal power prod real reciprocal remainder repeat result_type right_shift rint roll round searchsorted
sign sin sinh sqrt squeeze stack subtract sum swapaxes take take_along_axis tan tanh tile transpose tril triu true_divide trunc vdot where zeros
from_dlpack angle complex64 cross expand_dims fmax fmin gcd hypot isneginf isposinf isreal lcm lib logaddexp2 nextafter signbit split square
zeros_like fft linalg ones
""".split())  # noqa: SIM905

METHODS = {"add.reduce", "add.at", "lib.stride_tricks.as_strided", "fft.fftn", "fft.ifftn", "fft.irfftn", "fft.rfftn",
           "linalg.cholesky", "linalg.eig", "linalg.eigh", "linalg.inv", "linalg.qr", "linalg.solve", "linalg.svd"}
"""Methods of its functions that cupy has; reduce and accumulate are there for sums and products only."""

OWN = {"cuda"}
"""What only cupy has, for gpu.py."""
