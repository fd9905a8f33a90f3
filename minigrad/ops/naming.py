"""A name for a value, which checkpoint policies go by: the identity, as a row. [NOTE selective-policies]

Upstream: jax.ad_checkpoint.checkpoint_name.
"""

from __future__ import annotations

from ..row import OpFunction, row
from .batching import same_bdim

named: OpFunction = row("checkpoint_name", lambda xp, x0, name: x0, view=True, vjp=(lambda ct: ct,), jvp="linear",
                        batch=same_bdim, doc="`x`, under a name.")
