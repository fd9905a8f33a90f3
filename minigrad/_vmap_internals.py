"""vmap under the name of torch's first one.  Source: torch._vmap_internals."""

from __future__ import annotations

from .func import vmap as _vmap

__all__ = ["_vmap"]
