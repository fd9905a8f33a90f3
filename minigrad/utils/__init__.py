"""As torch.utils."""


def __getattr__(name: str) -> object:
    """Import `checkpoint` when a program asks for it."""
    if name == "checkpoint":
        from importlib import import_module  # noqa: PLC0415

        return import_module(".checkpoint", __name__)
    msg = f"module 'minigrad.utils' has no attribute {name!r}"
    raise AttributeError(msg)
