"""What a module owns: parameters, buffers and submodules, found by name and by path.

An attribute that is a parameter or a buffer is looked up in two steps: which tensor the module owns, and whether a
`functional_call` in force has given another one for it.  The second is part of the State, so a checkpoint's recomputation
finds the same tensors as its forward. [NOTE captured-tensors]

Source: torch.nn.Module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..state import current
from ..tensor import Tensor
from .parameter import Buffer, Parameter, TransientBuffer

if TYPE_CHECKING:
    from collections.abc import Iterator

EXPECTED = {"_parameters": "parameter '{}' (torch.nn.Parameter or None expected)",
            "_modules": "child module '{}' (torch.nn.Module or None expected)",
            "_buffers": "buffer '{}' (torch.Tensor or None expected)"}
"""The tables of a module, and how torch says that something does not belong into one."""


class Members:
    """The half of Module that owns and finds."""

    def __init__(self) -> None:
        self.__dict__.update(_parameters={}, _modules={}, _buffers={}, _not_saved=set())

    # ---------------------------------------------------------------- attributes
    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        if "_modules" in own:
            if name in own["_parameters"]:
                return self._meant(name, own["_parameters"][name])
            if name in own["_modules"]:
                return own["_modules"][name]
            if name in own["_buffers"]:
                return self._meant(name, own["_buffers"][name])
            given = self._meant(name, None)
            if given is not None:
                return given
        msg = f"'{type(self).__name__}' object has no attribute '{name}'"
        raise AttributeError(msg)

    def _meant(self, name: str, own: Tensor | None) -> Tensor | None:
        """A parameter or buffer as the State in force has it."""
        for given in reversed(current().swaps):
            if (self, name) in given:
                return given[self, name]  # type: ignore[no-any-return]
        return own

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Parameter):
            self._forget(name)
            self.register_parameter(name, value)
        elif isinstance(value, Members):
            self._forget(name)
            self.register_module(name, value)
        elif isinstance(value, Buffer):
            self._forget(name)
            self.register_buffer(name, value, persistent=not isinstance(value, TransientBuffer))
        else:
            table = next((t for t in EXPECTED if name in self.__dict__.get(t, ())), None)
            if table is None:
                object.__setattr__(self, name, value)
            elif value is None or (table == "_buffers" and isinstance(value, Tensor)):
                swapped = next((given for given in reversed(current().swaps) if (self, name) in given), None)
                if swapped is None:
                    self.__dict__[table][name] = value
                else:
                    swapped[self, name] = value
            else:
                msg = f"cannot assign '{type(value).__name__}' as {EXPECTED[table].format(name)}"
                raise TypeError(msg)

    def __delattr__(self, name: str) -> None:
        if name in self.__dict__ or not self._forget(name):
            object.__delattr__(self, name)

    def _forget(self, name: str) -> bool:
        """Take a name out of the tables, and out of the plain attributes, which are found first; whether a table had it."""
        own = self.__dict__
        own.get("_not_saved", set()).discard(name)
        own.pop(name, None)
        tables = [own[t] for t in EXPECTED if name in own.get(t, ())]
        for table in tables:
            del table[name]
        return bool(tables)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._parameters, *self._modules, *self._buffers]

    def register_parameter(self, name: str, param: Any) -> None:
        """Own a parameter, or None under a name that may get one.  Raises KeyError for a name that is taken or has dots."""
        if param is not None and not isinstance(param, Parameter):
            msg = f"cannot assign '{type(param).__name__}' object to parameter '{name}' (torch.nn.Parameter or None required)"
            raise TypeError(msg)
        self._own("_parameters", "parameter", name, param)

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Own a tensor that is no parameter; persistent: it is part of the state_dict."""
        if tensor is not None and not isinstance(tensor, Tensor):
            msg = f"cannot assign '{type(tensor).__name__}' object to buffer '{name}' (torch Tensor or None required)"
            raise TypeError(msg)
        self._own("_buffers", "buffer", name, tensor)
        if not persistent:
            self._not_saved.add(name)

    def register_module(self, name: str, module: Any) -> None:
        """Own a submodule."""
        if module is not None and not isinstance(module, Members):
            msg = f"{type(module).__name__} is not a Module subclass"
            raise TypeError(msg)
        self._own("_modules", "module", name, module)

    add_module = register_module

    def _own(self, table: str, kind: str, name: str, value: Any) -> None:
        if "_modules" not in self.__dict__:
            msg = f"cannot assign {kind}s before Module.__init__() call"
            raise AttributeError(msg)
        if not isinstance(name, str):
            msg = f"{kind} name should be a string. Got {type(name).__name__}"
            raise TypeError(msg)
        if "." in name or not name:
            msg = f'{kind} name can\'t contain "."' if name else f'{kind} name can\'t be empty string ""'
            raise KeyError(msg)
        if hasattr(self, name) and name not in self.__dict__[table]:
            msg = f"attribute '{name}' already exists"
            raise KeyError(msg)
        self.__dict__[table][name] = value

    # ---------------------------------------------------------------- by path
    def named_children(self) -> Iterator[tuple[str, Any]]:
        """Submodules of its own, each once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Any]:
        """Submodules of its own."""
        return (module for _, module in self.named_children())

    def named_modules(self, memo: set[Any] | None = None, prefix: str = "",
                      remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
        """Itself and all modules below, by path."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, _joined(prefix, name), remove_duplicate)

    def modules(self) -> Iterator[Any]:
        """Itself and all modules below."""
        return (module for _, module in self.named_modules())

    def _named(self, table: str, prefix: str, recurse: bool, remove_duplicate: bool) -> Iterator[tuple[str, Tensor]]:
        seen = set()
        modules = self.named_modules(None, prefix, remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, own in module.__dict__[table].items():
                x = module._meant(name, own)  # noqa: SLF001
                if x is not None and x not in seen:
                    if remove_duplicate:
                        seen.add(x)
                    yield _joined(path, name), x

    def named_parameters(self, prefix: str = "", recurse: bool = True,
                         remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Parameters of all modules below, by path, each once."""
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Tensor]:
        """Parameters of all modules below."""
        return (x for _, x in self.named_parameters(recurse=recurse))

    def named_buffers(self, prefix: str = "", recurse: bool = True,
                      remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Buffers of all modules below, by path, each once."""
        return self._named("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Buffers of all modules below."""
        return (x for _, x in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> Any:
        """The module of that path.  Raises AttributeError where there is none."""
        module: Any = self
        for name in target.split(".") if target else ():
            module = getattr(module, name)
            if not isinstance(module, Members):
                msg = f"`{name}` is not an nn.Module"
                raise AttributeError(msg)
        return module

    def get_parameter(self, target: str) -> Tensor:
        """The parameter of that path.  Raises AttributeError where there is none."""
        path, _, name = target.rpartition(".")
        return getattr(self.get_submodule(path), name)  # type: ignore[no-any-return]

    get_buffer = get_parameter


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
