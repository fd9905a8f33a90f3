"""Mixed precision under torch's names.  Source: torch.amp."""

from .autocast_mode import (
    autocast as autocast,
)
from .autocast_mode import (
    custom_bwd as custom_bwd,
)
from .autocast_mode import (
    custom_fwd as custom_fwd,
)
from .autocast_mode import (
    is_autocast_available as is_autocast_available,
)

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
