"""A number with its standard error and the engine that made it, and derivatives with theirs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Tuple

import numpy as np

from .pictures import Bars, bar
from .results import Result


@dataclass(frozen=True)
class Estimate(Result):
    """A number and how it was made; ``std_error`` is 0 and ``n`` is 0 where nothing was sampled.

    ``heavy`` is true where so few summands carry the value that its ``std_error`` is too small.

    >>> import esscher as es
    >>> e = es.mean_square_error(es.Sphere(2), es.Attention(U=[[1, 0], [0, 1]]), [1.0, 0.0], 50, engine="direct")
    >>> e.engine, e.n, e.std_error > 0, float(e) == e.value
    ('direct', 256, True, True)
    """

    value: float
    std_error: float
    n: int
    engine: str
    heavy: bool = False

    def __float__(self) -> float:
        return self.value

    def _picture(self) -> Bars:
        return Bars("estimate and 95 % interval", "engine", "value", [bar(self.engine, self.value, self.std_error)])

    def __repr__(self) -> str:
        sure = f" +- {self.std_error:.2g}" if self.std_error else ""
        return f"Estimate({self.value:.8g}{sure}, {self.engine}{', heavy' if self.heavy else ''})"


REPETITIONS = 8


def repeated(slopes: Callable[[Dict[str, Any]], List[Any]], options: Dict[str, Any]) -> Tuple[List[Any], List[Any]]:
    """Mean derivatives over independent node sets or draws, and their standard errors; None stays None."""
    found: List[List[Any]] = []
    for i in range(REPETITIONS):
        found.append(slopes({**options, "stream": options["stream"].split(1000 + i)}))
        if i == 1 and _same(found[0], found[1]):
            break  # a closed form
    parts = [None if part[0] is None else np.stack(part) for part in zip(*found)]
    means = [None if part is None else _number(part.mean(0)) for part in parts]
    errors = [None if part is None else _number(part.std(0, ddof=1) / np.sqrt(len(part))) for part in parts]
    return means, errors


def _same(one: List[Any], two: List[Any]) -> bool:
    return all(a is b if a is None else np.array_equal(a, b, equal_nan=True) for a, b in zip(one, two))


def _number(value: Any) -> Any:
    return float(value) if np.ndim(value) == 0 else value
