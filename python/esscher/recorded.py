"""Objects that remember how they were made: they give their parameters back, pickle, copy and print.

A subclass of ``Recorded`` needs nothing but an ``__init__``; its arguments are recorded when it returns.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, Callable, ClassVar, Dict, Iterator, List, Tuple

import numpy as np

from .keywords import helpful_methods, known_keywords
from .types import as_array

SMALL = 16  # numbers of an array that a repr writes out


def _kept(value: Any) -> Any:
    """An argument as it is recorded: arrays as read-only copies, which nobody can change afterwards."""
    if isinstance(value, np.generic):
        return value.item()
    if not isinstance(value, (list, tuple)) and not hasattr(value, "__array__") and not hasattr(value, "__dlpack__"):
        return value
    try:
        array = np.array(as_array(value), dtype=np.float64)
    except (TypeError, ValueError):  # a list of objects, or of arrays of several shapes
        return [_kept(item) for item in value]
    array.flags.writeable = False
    return array


def _text(value: Any) -> str:
    if isinstance(value, np.ndarray):
        if value.size <= SMALL:
            return repr(value.tolist())
        return f"<array [{','.join(str(n) for n in value.shape)}]>"
    if isinstance(value, list):
        return "[" + ", ".join(_text(item) for item in value) + "]"
    return repr(value)


def _recording(cls: type, init: Callable[..., None]) -> Callable[..., None]:
    signature = inspect.signature(init)
    names = list(signature.parameters)[1:]

    @functools.wraps(init)
    def recording(self: Any, *args: Any, **kwargs: Any) -> None:
        if type(self).__init__ is recording:
            kwargs = known_keywords(type(self).__name__, kwargs, names, self._older)
        args = tuple(list(x) if isinstance(x, Iterator) else x for x in args)
        init(self, *args, **kwargs)
        if type(self).__init__ is recording:
            bound = signature.bind(self, *args, **kwargs)
            bound.apply_defaults()
            given = {name: bound.arguments[name] for name in names if name not in self._elsewhere}
            self.__dict__["_given"] = {name: _kept(value) for name, value in given.items()}

    return recording


def _remake(cls: Any, arguments: Dict[str, Any]) -> Any:
    return cls(**arguments)


class Recorded:
    """Base: ``parameters`` are the arguments of the constructor, by name."""

    # Arguments that the object itself holds, so that they are not kept twice; read as attributes.
    _elsewhere: ClassVar[Tuple[str, ...]] = ()
    # Names of arguments that still work, and the names of today.
    _older: ClassVar[Dict[str, str]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        helpful_methods(cls)
        if "__init__" in vars(cls):
            setattr(cls, "__init__", _recording(cls, vars(cls)["__init__"]))

    @property
    def parameters(self) -> Dict[str, Any]:
        """The arguments it was made of, by name; arrays are read-only."""
        given: Dict[str, Any] = self.__dict__.get("_given", {})
        if not given and not self._elsewhere:
            return {}  # a constructor that failed
        order: List[str] = list(inspect.signature(type(self).__init__).parameters)[1:]
        return {name: given[name] if name in given else getattr(self, name) for name in order}

    if not TYPE_CHECKING:  # so that a type checker still finds misspelt attributes

        def __getattr__(self, name: str) -> Any:
            given = self.__dict__.get("_given", {})
            return given[name] if name in given else object.__getattribute__(self, name)

    def __reduce__(self) -> Any:
        others = {name: value for name, value in self.__dict__.items() if name != "_given"}
        return _remake, (type(self), self.parameters), others or None

    def __repr__(self) -> str:
        signature = inspect.signature(type(self).__init__)
        shown = [
            f"{name}={_text(value)}"
            for name, value in self.parameters.items()
            if not _is_default(value, signature.parameters[name].default)
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


def _is_default(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and not isinstance(value, np.ndarray) and value == default)
