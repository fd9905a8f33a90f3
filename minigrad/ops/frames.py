"""Short-time Fourier transforms: a signal cut into overlapping frames, and put together from them.

    signal (..., t)  --windows every hop-->  (..., frame, n_fft)  --transform-->  (..., frequency, frame)

The way back adds the frames where they were and divides by the sum of squared windows there.

Source: torch.stft, torch.istft.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..dtypes import FLOAT
from ..errors import UsageError
from .complexes import view_as_real
from .creation import ones
from .embedding import pad
from .forms import unfold, unfold_backward
from .fourier import fftn, ifftn, irfftn, rfftn
from .indexing import one_value
from .pointwise import abs as absolute
from .pointwise import square
from .reduction import any as any_of
from .shape import basic_index, movedim, reshape, unsqueeze, widened

if TYPE_CHECKING:
    from ..tensor import Tensor


def _window(name: str, x: Tensor, n_fft: int, hop_length: int | None, win_length: int | None,
            window: Tensor | None) -> tuple[int, Tensor]:
    """The hop, and the window in the middle of n_fft elements."""
    width = n_fft if win_length is None else win_length
    hop = n_fft // 4 if hop_length is None else hop_length
    if hop <= 0:
        msg = f"{name}: expected hop_length > 0, but got hop_length={hop}"
        raise UsageError(msg)
    if not 0 < width <= n_fft:
        msg = f"{name}: expected 0 < win_length <= n_fft, but got win_length={width}"
        raise UsageError(msg)
    if window is None:
        window = ones(width, dtype=x.dtype.to_real(), device=x.device)
    if window.shape != (width,):
        msg = (f"{name}: expected a 1D window tensor of size equal to win_length={width}, but got window with size "
               f"{list(window.shape)}")
        raise UsageError(msg)
    left = (n_fft - width) // 2
    return hop, pad(window, (left, n_fft - width - left)) if width < n_fft else window


def stft(x: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Tensor | None = None,
         center: bool = True, pad_mode: str = "reflect", normalized: bool = False, onesided: bool | None = None,
         return_complex: bool | None = None) -> Tensor:
    """The frequencies of each frame of a signal, or of a batch of them: (..., frequency, frame).

    center: frames lie around their places, the ends padded; onesided: half of the frequencies, of real signals (the default);
    without return_complex parts are in a last dimension.
    Raises UsageError where the signal, the window and the lengths do not fit.  Source: torch.stft.
    """
    if not (x.dtype.category == FLOAT or x.dtype.is_complex) or x.ndim not in (1, 2):
        msg = f"stft: expected a 1D or 2D tensor of floating types, but got {x.dtype} of shape {list(x.shape)}"
        raise UsageError(msg)
    hop, window = _window("stft", x, n_fft, hop_length, win_length, window)
    whole = x.dtype.is_complex or window.dtype.is_complex
    if return_complex is None and not whole:
        msg = ("stft requires the return_complex parameter be given for real inputs, and will further require that "
               "return_complex=True")
        raise UsageError(msg)
    half = not whole if onesided is None else onesided
    if half and whole:
        msg = "Cannot have onesided output if window or input is complex"
        raise UsageError(msg)
    if center:
        wide = reshape(x, *[1] * (3 - x.ndim), *x.shape)
        x = reshape(pad(wide, (n_fft // 2, n_fft // 2), pad_mode), *x.shape[:-1], -1)
    if not 0 < n_fft <= x.shape[-1]:
        msg = f"stft: expected 0 < n_fft <= {x.shape[-1]}, but got n_fft={n_fft}"
        raise UsageError(msg)
    frames = unfold(x, -1, n_fft, hop) * window
    out = movedim((rfftn if half else fftn)(frames, dim=(-1,), norm="ortho" if normalized else None), -1, -2)
    return out if return_complex or (return_complex is None and whole) else view_as_real(out)


def istft(x: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Tensor | None = None,
          center: bool = True, normalized: bool = False, onesided: bool | None = None, length: int | None = None,
          return_complex: bool = False) -> Tensor:
    """The signal whose stft this is.

    Raises UsageError where frames leave a gap, and where spectra, window and lengths do not fit.  Source: torch.istft.
    """
    if not x.dtype.is_complex or x.ndim not in (2, 3) or not x.numel():
        msg = ("istft requires a complex-valued input tensor matching the output from stft with return_complex=True, of 2 or 3 "
               f"dimensions, but got {x.dtype} of shape {list(x.shape)}")
        raise UsageError(msg)
    hop, window = _window("istft", x, n_fft, hop_length, win_length, window)
    rows, count = x.shape[-2:]
    half = rows != n_fft if onesided is None else onesided
    if rows != (n_fft // 2 + 1 if half else n_fft):
        msg = ("istft: expected the frequency dimension (3rd to the last) of the input tensor to match n_fft / 2 + 1 when "
               f"onesided=True or n_fft without, but got {rows}")
        raise UsageError(msg)
    if return_complex and half:
        msg = "istft: cannot have onesided output if window or input is complex"
        raise UsageError(msg)
    if window.dtype.is_complex and not return_complex:
        msg = "Complex windows are incompatible with return_complex=False"
        raise UsageError(msg)
    norm = "ortho" if normalized else None
    spectra = movedim(x, -1, -2)
    if not return_complex:
        spectra = basic_index(spectra, (Ellipsis, slice(n_fft // 2 + 1)))  # the others are their conjugates
    frames = ifftn(spectra, dim=(-1,), norm=norm) if return_complex else irfftn(spectra, s=(n_fft,), dim=(-1,), norm=norm)
    frames = frames * window
    shape, end = x.shape[:-2], n_fft + hop * (count - 1)
    signal = unfold_backward(frames, shape=(*shape, end), dim=len(shape), size=n_fft, step=hop)
    weight = unfold_backward(widened(unsqueeze(square(window), 0), count, n_fft), shape=(end,), dim=0, size=n_fft, step=hop)
    start = n_fft // 2 if center else 0
    stop = start + length if length is not None else end - start if center else end
    part = (Ellipsis, slice(start, min(stop, end)))
    signal, weight = basic_index(signal, part), basic_index(weight, part)
    if one_value(weight) and bool(any_of(absolute(weight) < 1e-11)):
        msg = "istft: window overlap add min is 0: frames leave a gap where no window reaches."
        raise UsageError(msg)
    out = signal / weight
    return pad(out, (0, stop - end)) if stop > end else out
