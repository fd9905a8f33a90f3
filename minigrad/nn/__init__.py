"""Building blocks of networks.  Source: torch.nn."""

from . import functional as functional
