"""The op table: rows, one family a file, and composites written in rows."""


def __getattr__(name: str) -> object:
    """Import `aten`, the rows by torch's names, when a program asks for it."""
    if name == "aten":
        from importlib import import_module  # noqa: PLC0415

        return import_module(".aten", __name__)
    msg = f"module 'minigrad.ops' has no attribute {name!r}"
    raise AttributeError(msg)
