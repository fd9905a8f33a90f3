"""As torch.utils."""


def __getattr__(name: str) -> object:
    """Import a module when a program asks for it."""
    if name in ("checkpoint", "_pytree"):
        from importlib import import_module  # noqa: PLC0415

        return import_module(f".{name}", __name__)
    msg = f"module 'minigrad.utils' has no attribute {name!r}"
    raise AttributeError(msg)
