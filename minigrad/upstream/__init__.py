"""checkpoint, save_on_cpu and saved_tensors_hooks for torch itself, composing with torch.func in any nesting.

    from minigrad.upstream import checkpoint, save_on_cpu

Nothing of minigrad's core is imported here, and the core never imports torch.  Outside of the calls torch is as it was.
"""

from .checkpoint import checkpoint, set_checkpoint_remat
from .effects import is_recomputing
from .hooks import saved_tensors_hooks
from .offload import save_on_cpu

__all__ = ["checkpoint", "is_recomputing", "save_on_cpu", "saved_tensors_hooks", "set_checkpoint_remat"]
