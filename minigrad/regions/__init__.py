"""Checkpointed regions: how one is run again, and the variants of that."""
