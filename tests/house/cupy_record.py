"""Write down what an installed cupy has: `python -m tests.house.cupy_record`, after `pip install cupy-cuda12x`; no GPU is needed.

For each name that numpy has too: of a ufunc the kinds of element that it has a loop for, of another function its parameters.
"""

from __future__ import annotations

import inspect
import json
import warnings
from functools import reduce
from pathlib import Path

import numpy as np

PATH = Path(__file__).with_name("cupy_interface.json")
NAMESPACES = ("fft", "linalg", "lib.stride_tricks")
OWN = ("asnumpy",)
"""What numpy has not, and kernels need."""
CLASSES = ("cuda.Device", "cuda.Stream", "cuda.Event", "cuda.MemoryPointer", "ndarray")
HELPERS = ("cuda.get_elapsed_time", "cuda.runtime.getDeviceCount")
CHARS = set("?bBhHiIlLqQefdFD")


def parameters(function):
    """The names of a function's parameters, an = after those that may be left out; None where python cannot say."""
    try:
        found = inspect.signature(function).parameters.values()
    except ValueError:
        return None
    mark = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    said = []
    for p in found:
        if p.kind is p.KEYWORD_ONLY and "*" not in said and not any(s.startswith("*") for s in said):
            said.append("*")
        said.append(mark.get(p.kind, "") + p.name + ("" if p.default is p.empty else "="))
    return " ".join(said)


def loops(ufunc):
    """Its loops over kinds of element that numpy has, in the order in which they are tried."""
    return " ".join(t for t in ufunc.types if set(t) - set("->") <= CHARS)


def interface():
    """Everything, by name."""
    import cupy
    import cupyx.scipy.special

    def at(path):
        return reduce(getattr, path.split("."), cupy)

    def described(of, names):
        for name in names:
            found = getattr(of, name)
            if isinstance(found, cupy.ufunc):
                ufuncs[prefix + name] = loops(found)
            elif callable(found) and not isinstance(found, type):
                functions[prefix + name] = parameters(found)
            elif not inspect.ismodule(found):
                others.append(prefix + name)

    ufuncs, functions, others = {}, {}, []
    prefix = ""
    described(cupy, [n for n in dir(cupy) if not n.startswith("_") and (hasattr(np, n) or n in OWN)])
    for space in NAMESPACES:
        prefix = space + "."
        described(at(space), [n for n in dir(at(space)) if not n.startswith("_")])
    prefix, special = "special.", cupyx.scipy.special
    described(special, [n for n in dir(special) if isinstance(getattr(special, n), cupy.ufunc)])
    helpers = [*((name, at(name)) for name in HELPERS), ("cupyx.empty_pinned", cupyx.empty_pinned), ("cupyx.errstate", cupyx.errstate)]
    return {"version": cupy.__version__, "ufuncs": ufuncs, "functions": functions, "others": sorted(others),
            "helpers": {name: parameters(found) for name, found in helpers},
            "classes": {name: sorted(n for n in dir(at(name)) if not n.startswith("__pyx")) for name in CLASSES}}


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = interface()
    PATH.write_text(json.dumps(found, indent=0) + "\n")
    print(f"cupy {found['version']}: {len(found['ufuncs'])} ufuncs, {len(found['functions'])} functions")
