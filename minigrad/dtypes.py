"""Element types and torch's promotion rules.

Source: torch.result_type, torch.promote_types (c10/core/ScalarType.h, aten/src/ATen/native/TypeProperties.cpp).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

BOOL, INT, FLOAT, COMPLEX = range(4)


class dtype:  # noqa: N801  torch spells it so
    """One element type; there is one object for each, compared by identity.  Source: torch.dtype."""

    __slots__ = ("category", "differentiable", "is_complex", "is_floating_point", "is_signed", "itemsize", "name")

    def __init__(self, name: str, category: int, itemsize: int) -> None:
        self.name = name
        self.category = category
        self.itemsize = itemsize
        self.is_floating_point = category == FLOAT
        self.is_complex = category == COMPLEX
        self.is_signed = name not in ("bool", "uint8")
        self.differentiable = category >= FLOAT
        """Whether a tensor of this type can require grad."""

    def __repr__(self) -> str:
        return f"minigrad.{self.name}"

    def __reduce__(self) -> str:
        return "bool_" if self.name == "bool" else self.name

    def to_complex(self) -> dtype:
        """The complex type of parts of this one; itself where there is none.  Source: torch.dtype.to_complex."""
        return {"float16": complex64, "float32": complex64, "float64": complex128}.get(self.name, self)

    def to_real(self) -> dtype:
        """The type of a complex one's parts; itself where it is not complex.  Source: torch.dtype.to_real."""
        return {"complex64": float32, "complex128": float64}.get(self.name, self)


bool_ = dtype("bool", BOOL, 1)
uint8 = dtype("uint8", INT, 1)
int8 = dtype("int8", INT, 1)
int16 = dtype("int16", INT, 2)
int32 = dtype("int32", INT, 4)
int64 = dtype("int64", INT, 8)
float16 = dtype("float16", FLOAT, 2)
float32 = dtype("float32", FLOAT, 4)
float64 = dtype("float64", FLOAT, 8)
complex64 = dtype("complex64", COMPLEX, 8)
complex128 = dtype("complex128", COMPLEX, 16)

ALL = (bool_, uint8, int8, int16, int32, int64, float16, float32, float64, complex64, complex128)
BY_NAME = {d.name: d for d in ALL}
BY_CHAR = {"?": bool_, "B": uint8, "b": int8, "h": int16, "i": int32, "l": int64, "q": int64,
           "e": float16, "f": float32, "d": float64, "F": complex64, "D": complex128}


def promote_types(a: dtype, b: dtype) -> dtype:
    """The smallest type that holds both (int with float is that float).  Source: torch.promote_types."""
    if a is b:
        return a
    low, high = sorted((a, b), key=lambda d: (d.category, d.itemsize))
    if high.category == COMPLEX and low is float64:
        return complex128
    if low.category != high.category:
        return high
    if uint8 in (low, high) and high.itemsize == 1:
        return int16
    return high


def _join(strong: dtype | None, weak: dtype | None) -> dtype | None:
    """Let `weak` change the category of `strong`, never its width."""
    if strong is None or weak is None:
        return strong or weak
    if strong.is_complex or (strong.is_floating_point and not weak.is_complex):
        return strong
    if strong.is_floating_point:
        return strong.to_complex()
    if strong is bool_ or weak.category >= FLOAT:
        return promote_types(strong, weak)
    return strong


def of_scalar(value: object, default: dtype) -> dtype:
    """The type that a python number has in promotion."""
    if isinstance(value, bool):
        return bool_
    if isinstance(value, int):
        return int64
    return default.to_complex() if isinstance(value, complex) else default


def result_type(shaped: Iterable[dtype], zero_dim: Iterable[dtype], scalars: Iterable[dtype]) -> dtype:
    """The type of an op's result: tensors with dimensions rule, then 0-d tensors, then numbers."""
    joined: dtype | None = None
    for group in (shaped, zero_dim, scalars):
        own: dtype | None = None
        for d in group:
            own = d if own is None else promote_types(own, d)
        joined = _join(joined, own)
    assert joined is not None
    return joined
