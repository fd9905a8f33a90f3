"""Modules made of modules.  Source: torch.nn.modules.container."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from .module import Module
from .parameter import Parameter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class _Numbered(Module):
    """A sequence of modules, which are named by their positions."""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._of(list(self._modules.items())[index])
        return list(self)[index]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, list(self._modules)[index], module)

    def __delitem__(self, index: int | slice) -> None:
        kept = list(self)
        del kept[index]
        self._modules.clear()
        self.extend(kept)

    def _of(self, items: list[tuple[str, Module]]) -> Self:
        made = type(self).__new__(type(self))
        Module.__init__(made)
        return made.extend([module for _, module in items])

    def append(self, module: Module) -> Self:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add modules at the end."""
        for module in modules:
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> None:
        """Add a module in front of that position."""
        kept = list(self)
        kept.insert(index, module)
        self._modules.clear()
        self.extend(kept)


class Sequential(_Numbered):
    """Modules called one after the other, each with what the one before returned; numbered, or named by a dict.

    Source: torch.nn.Sequential.
    """

    def __init__(self, *modules: Any) -> None:
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], dict):
            for name, module in modules[0].items():
                self.add_module(name, module)
        else:
            self.extend(modules)

    def _of(self, items: list[tuple[str, Module]]) -> Self:
        return type(self)(dict(items))

    def forward(self, x: Any) -> Any:
        """The last module's result."""
        for module in self:
            x = module(x)
        return x


class ModuleList(_Numbered):
    """A list of modules.  Source: torch.nn.ModuleList."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__()
        self.extend(modules)


class ModuleDict(Module):
    """A dict of modules.  Source: torch.nn.ModuleDict."""

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        self.update(modules or {})

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, name: str) -> bool:
        return name in self._modules

    def __getitem__(self, name: str) -> Module:
        return self._modules[name]  # type: ignore[no-any-return]

    def __setitem__(self, name: str, module: Module) -> None:
        self.add_module(name, module)

    def __delitem__(self, name: str) -> None:
        del self._modules[name]

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._modules.keys()  # type: ignore[no-any-return]

    def values(self) -> Iterable[Module]:
        """The modules."""
        return self._modules.values()  # type: ignore[no-any-return]

    def items(self) -> Iterable[tuple[str, Module]]:
        """Names and modules."""
        return self._modules.items()  # type: ignore[no-any-return]

    def update(self, modules: Mapping[str, Module]) -> None:
        """Add named modules."""
        for name, module in modules.items():
            self[name] = module

    def pop(self, name: str) -> Module:
        """Take a module out."""
        return self._modules.pop(name)  # type: ignore[no-any-return]


class ParameterList(Module):
    """A list of parameters; tensors that are none become some.  Source: torch.nn.ParameterList."""

    def __init__(self, values: Iterable[Any] = ()) -> None:
        super().__init__()
        for x in values:
            self.append(x)

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Any]:
        return (getattr(self, name) for name in self._parameters)

    def __getitem__(self, index: int) -> Any:
        return list(self)[index]

    def append(self, x: Any) -> Self:
        """Add a parameter at the end."""
        setattr(self, str(len(self)), x if isinstance(x, Parameter) else Parameter(x, x.dtype.differentiable))
        return self


class ParameterDict(Module):
    """A dict of parameters; tensors that are none become some.  Source: torch.nn.ParameterDict."""

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        for name, x in (values or {}).items():
            self[name] = x

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __contains__(self, name: str) -> bool:
        return name in self._parameters

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def __setitem__(self, name: str, x: Any) -> None:
        setattr(self, name, x if isinstance(x, Parameter) else Parameter(x, x.dtype.differentiable))

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._parameters.keys()  # type: ignore[no-any-return]

    def values(self) -> Iterator[Any]:
        """The parameters."""
        return (self[name] for name in self)

    def items(self) -> Iterator[tuple[str, Any]]:
        """Names and parameters."""
        return ((name, self[name]) for name in self)
