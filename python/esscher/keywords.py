"""Wrong keyword arguments: the error names the right one, and an older name still works with a warning."""

from __future__ import annotations

import difflib
import functools
import inspect
import warnings
from typing import Any, Callable, Dict, Iterable, Mapping, Optional, Tuple, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

# What people of other libraries write, and the words of this package, of which the first that a function has is meant.
SYNONYMS: Dict[str, Tuple[str, ...]] = {
    "lr": ("learning_rate",),
    "eta": ("learning_rate",),
    "model": ("kind",),
    "models": ("kinds",),
    "stream": ("seed",),
    "random_state": ("seed",),
    "rng": ("seed",),
    "scale": ("score_scale",),
    "temperature": ("score_scale",),
    "batch_size": ("batch",),
    "n_steps": ("steps",),
    "epochs": ("steps",),
    "iterations": ("steps",),
    "n_heads": ("heads",),
    "num_heads": ("heads",),
    "wd": ("weight_decay",),
    "eps": ("epsilon",),
    "epsilon": ("eps",),
    "L": ("length", "lengths"),
    "n": ("length", "samples",),
    "covariance": ("cov",),
    "sigma": ("cov",),
    "loc": ("mean",),
    "d": ("dim",),
    "R": ("radius",),
    "r": ("radius",),
    "mu": ("mean", "measure"),
    "noise": ("noise_variance",),
    "samples": ("draws", "replicates",),
    "verbose": ("progress",),
    "callback": ("progress",),
    "directory": ("out",),
    "path": ("out",),
    "optim": ("optimizer",),
    "optimiser": ("optimizer",),
    "parametrization": ("parametrisation",),
    "grad": ("gradient",),
    "gradient": ("cotangent",),
    "query": ("z",),
    "queries": ("query_count",),
    "tau2": ("tau",),
    "lambda_": ("lam",),
}


def nearest(word: str, known: Iterable[str]) -> Optional[str]:
    """The word of ``known`` that was probably meant, or None."""
    names = list(known)
    for meant in (*SYNONYMS.get(word, ()), *(name for name in names if name.lower() == word.lower())):
        if meant in names:
            return meant
    close = difflib.get_close_matches(word, names, n=1)
    return close[0] if close else None


def unknown_keyword(where: str, word: str, known: Iterable[str]) -> TypeError:
    """The error for a keyword that does not exist."""
    names = list(known)
    meant = nearest(word, names)
    hint = f"did you mean {meant!r}?" if meant else f"it takes {', '.join(names)}"
    return TypeError(f"{where}() has no argument {word!r}; {hint}")


def known_keywords(
    where: str, given: Mapping[str, Any], known: Iterable[str], older: Mapping[str, str] = {}
) -> Dict[str, Any]:
    """The keywords as they are called today; TypeError with a suggestion for one that does not exist.

    ``older`` maps names that still work, with a DeprecationWarning, to those of today.
    """
    names, found = list(known), {}
    for word, value in given.items():
        if word not in names and word not in older:
            raise unknown_keyword(where, word, names)
        if word not in names:
            warnings.warn(f"{where}({word}=...) is now {older[word]}=...", DeprecationWarning, stacklevel=3)
        found[word if word in names else older[word]] = value
    return found


def helpful_methods(cls: type) -> None:
    """The same for all public methods that a class writes down."""
    for name, value in list(vars(cls).items()):
        plain = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
        if name.startswith("_") or not inspect.isfunction(plain) or hasattr(plain, "__wrapped__"):
            continue
        checked = helpful(plain)
        setattr(cls, name, type(value)(checked) if plain is not value else checked)


def helpful(function: F) -> F:
    """Decorator: an unknown keyword is a TypeError with a suggestion."""
    return renamed()(function)


def renamed(**older: str) -> Callable[[F], F]:
    """Decorator: the same, and these names still work: ``@renamed(stream="seed")``."""

    def decorate(function: F) -> F:
        names = [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]

        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            if not kwargs.keys() <= set(names):
                kwargs = known_keywords(function.__qualname__, kwargs, names, older)
            return function(*args, **kwargs)

        return cast(F, checked)

    return decorate
