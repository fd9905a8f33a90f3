"""minigrad: an autograd engine and transforms in which checkpoint and save_on_cpu compose with everything.

The public names are torch's; `__init__.pyi` writes them out.  Start reading at docs/reading.md.
"""

import gc

_collecting = gc.isenabled()
gc.disable()  # a collection here would only cost time, and nothing that is imported is garbage

from . import methods as methods
from . import names
from .tensor import Tensor as Tensor

__version__ = "0.1.0"
_NAMES = names.METHODS | names.OTHERS
__all__ = [name for name in _NAMES if name[0] != "_"]
del tensor  # noqa: F821  the module: `tensor` is a function, which is found like any other

if _collecting:
    gc.enable()


def __getattr__(name: str) -> object:
    """Import a public name when a program first asks for it."""
    if name in _NAMES:
        with names.FINDING:
            globals()[name] = found = names.published(names.held(*_NAMES[name]))
        return found
    raise names.absent(__name__, name)


def __dir__() -> list[str]:
    return [*globals(), *_NAMES]
