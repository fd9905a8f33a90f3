"""Where the public names live: each is imported when a program first asks for it.

`__init__.pyi` writes them out, as the imports that they are; static tools read that file, and so does this one.

Source: lazy_loader's attach_stub (Scientific Python's SPEC 1).
"""

from __future__ import annotations

import re
from _thread import RLock  # as threading has it, without its import
from importlib import import_module
from typing import Any

FINDING = RLock()
"""Held while a name is found: two threads that first ask for names would wait for each other's files, or make a method twice.

No file of minigrad asks for such a name while it is imported, so who waits here holds no file.
"""

_WORDS = re.compile(r"^from (\S+)|(\w+) as (\w+)|^(\w+) = (\w+)", re.MULTILINE)


def _read(stub: str) -> dict[str, tuple[str, str]]:
    """Of every name the module it is imported from, and the name it has there."""
    homes = {}
    for start, original, name, other, known in _WORDS.findall(stub):
        if start:
            module = start
        elif name:
            homes[name] = module, original
        else:
            homes[other] = homes[known]
    return homes


def held(module: str, name: str) -> Any:
    """What a module of the package holds under a name."""
    if module == ".":
        return import_module(f".{name}", __package__)
    return getattr(import_module(module, __package__), name)


def published(f: Any) -> Any:
    """A function as programs call it."""
    from . import modes  # noqa: PLC0415  not before there is a function

    return modes.published(f)


_INSTEAD = {
    "minigrad.bfloat16": "numpy, which holds its arrays, has none: use float16 or float32.",
    "minigrad.compile": "an op runs where it is called: leave the call out, or look at what runs with "
                        "minigrad.fx.experimental.proxy_tensor.make_fx.",
    "minigrad.optim": "it is about gradients alone: write the step, `with minigrad.no_grad(): p -= lr * p.grad`.",
    "minigrad.autograd.set_multithreading_enabled": "a backward runs in the thread that asked for it: leave the call out.",
    "minigrad.func.debug_unwrap": "a tensor shows its layers where it is printed: use print(x).",
}
"""Why some names of torch are not here, and what to do."""


def absent(module: str, name: str) -> AttributeError:
    """The error of a name that a module has not."""
    instead = _INSTEAD.get(f"{module}.{name}")
    return AttributeError(f"module {module!r} has no attribute {name!r}" if instead is None else
                          f"{module} has no {name}, because {instead}")


_loader: Any = __spec__.loader
_text = _loader.get_data(f"{__file__.rpartition('names')[0]}__init__.pyi").decode()
METHODS, OTHERS = map(_read, _text.split("- functions alone\n"))
"""The functions that are methods of Tensor, too, and the other names."""
