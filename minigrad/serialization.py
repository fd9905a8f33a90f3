"""Tensors in files: `save` and `load`, by pickle.

What is loaded may be a stranger's, and a pickle can call anything. So unless it is told otherwise, `load` builds what holds
data and nothing else.

Source: torch.serialization.
"""

from __future__ import annotations

import pickle
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import conversion, dtypes

if TYPE_CHECKING:
    import os
    from contextlib import AbstractContextManager

    from .backend import Device

__all__ = ["load", "save"]


def save(obj: Any, f: str | os.PathLike[str] | Any, *, pickle_protocol: int = pickle.DEFAULT_PROTOCOL) -> None:
    """Write a tensor, or any nest of tensors, to a path or an open file.  Source: torch.save."""
    with _opened(f, "wb") as file:
        pickle.dump(obj, file, pickle_protocol)


def load(f: str | os.PathLike[str] | Any, map_location: str | Device | None = None, *, weights_only: bool = True) -> Any:
    """Read what `save` wrote.

    map_location: a device for all tensors, in place of those that they were saved from.
    weights_only: whether to raise UnpicklingError for what is neither tensor, dtype, device, number, text, nor a container
    of these: only such a file may come from a stranger.  Source: torch.load.
    """
    with _opened(f, "rb") as file:
        return _Reader(file, map_location, weights_only=weights_only).load()


def _opened(f: Any, mode: str) -> AbstractContextManager[Any]:
    return nullcontext(f) if hasattr(f, "read") or hasattr(f, "write") else Path(f).open(mode)


_OURS = __name__.partition(".")[0]
_DATA = {
    "collections": {"OrderedDict"}, "_codecs": {"encode"}, "numpy": {"ndarray", "dtype"},
    **{f"numpy.{core}.multiarray": {"_reconstruct", "scalar"} for core in ("core", "_core")},
    **{f"numpy.{core}.numeric": {"_frombuffer"} for core in ("core", "_core")},
    f"{_OURS}.conversion": {"_unpickled"}, f"{_OURS}.backend": {"device"},
    f"{_OURS}.dtypes": {d.__reduce__() for d in dtypes.ALL},
    f"{_OURS}.nn.parameter": {"Parameter", "Buffer", "TransientBuffer"},
}
"""What pickles of tensors name, by module."""


class _Reader(pickle.Unpickler):
    def __init__(self, file: Any, where: str | Device | None, *, weights_only: bool) -> None:
        super().__init__(file)
        self.where = where
        self.weights_only = weights_only

    def find_class(self, module: str, name: str) -> Any:
        """What a pickle calls by that name."""
        if self.weights_only and name not in _DATA.get(module, ()):
            msg = (f"the file asks for {module}.{name}, and with weights_only=True (the default) only tensors, dtypes, devices "
                   "and containers are loaded. If you trust who wrote it, load it with weights_only=False.")
            raise pickle.UnpicklingError(msg)
        found = super().find_class(module, name)
        if found is not conversion._unpickled or self.where is None:  # noqa: SLF001  it rebuilds a tensor
            return found
        return lambda array, device, *rest: found(array, str(self.where), *rest)
