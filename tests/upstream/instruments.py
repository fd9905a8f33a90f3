"""What tests of the port count with."""

from __future__ import annotations

import weakref

import torch
from torch.func import grad

from minigrad.upstream.private import is_wrapped, unwrapped


class Alive:
    """How many of the noted tensors' memories are still there."""

    def __init__(self):
        self.refs = []

    def note(self, x):
        base = x
        while is_wrapped(base):
            base = unwrapped(base)
        self.refs.append(weakref.ref(base.untyped_storage()))
        return x

    @property
    def count(self):
        return sum(r() is not None for r in self.refs)


class Counted:
    """A function that counts its calls."""

    def __init__(self, f):
        self.f = f
        self.calls = 0

    def __call__(self, *args, **kwargs):
        self.calls += 1
        return self.f(*args, **kwargs)


def chain(n, note=lambda x: x):
    """n sins."""
    def f(x):
        for _ in range(n):
            x = note(x.sin())
        return x

    return f


def nth(order, f):
    """grad, that often."""
    for _ in range(order):
        f = grad(lambda x, f=f: f(x).sum())
    return f


def T(values):
    return torch.tensor(values, dtype=torch.float64)
