"""Risks of softmax and linear attention at any length, your own tasks, and training twins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Optional, Protocol, Sequence, Tuple, Union

from . import _esscher
from .charts import Charted, Spec, lines
from .icl import LinearRegressionTask, Readout, balanced_start
from .prompts import Estimate
from .random import Stream, as_stream
from .types import ArrayLike, Length, MeasureLike


class UserTask(Protocol):
    """A task written in Python: tokens in R^D, and draws that depend on the stream only."""

    @property
    def token_dim(self) -> int: ...

    def draw(self, stream: Stream) -> Tuple[MeasureLike, ArrayLike, float]: ...


def risk(
    task: Union[LinearRegressionTask, UserTask],
    at: Readout,
    length: Length,
    *,
    kind: str = "softmax",
    draws: int = 4000,
    stream: Union[Stream, int] = 0,
) -> Estimate:
    """Half the mean squared error of the head (U, r) at this prompt length, by the best formula there is.

    Gaussian regression: closed forms, or quadrature over tasks with exact tokens (softmax, finite L).
    Other features and your own tasks (``token_dim``, ``draw(stream)`` -> (law, query, target)): ``draws``
    draws.

    >>> import esscher as es
    >>> task = es.LinearRegressionTask(2)
    >>> at = es.block_optimum(task, es.inf)
    >>> es.risk(task, at, 100).value > es.risk(task, at, 10**6).value
    True
    """
    found = _esscher.risk(task, at.U, at.r, kind, length, draws, as_stream(stream))
    return Estimate(*found)


@dataclass(frozen=True)
class Comparison(Charted):
    """Twin trajectories: ``rows`` one summary per model and length, ``path`` their course in time."""

    rows: List[Dict[str, Any]]
    lengths: List[Dict[str, Any]]
    path: List[Dict[str, Any]]

    def chart(self) -> Spec:
        """Distance of the parameters from the infinite twin, over time."""
        rows = [
            {"t": p["t"], "distance": p["distance"], "twin": f"{p['model']} L={p['L']}"}
            for p in self.path
            if p.get("distance") is not None
        ]
        return lines(rows, "t", "distance", "twin", log_x=True, log_y=True, title="distance of the twins")

    def __repr__(self) -> str:
        return f"Comparison({len(self.rows)} twins)"


def compare(
    task: LinearRegressionTask,
    lengths: Iterable[Length],
    *,
    start: Optional[Readout] = None,
    kinds: Sequence[str] = ("softmax", "linear"),
    eps: Sequence[float] = (),
    parametrisation: str = "UV",
    stream: Union[Stream, int] = 0,
) -> Comparison:
    """Gradient flows from one start at each length and at infinity, side by side; L(eps) for each eps."""
    at = balanced_start(task) if start is None else start
    found = _esscher.compare(task, at.U, at.r, lengths, kinds, eps, parametrisation, as_stream(stream))
    return comparison_of(found)


def comparison_of(found: Dict[str, Any]) -> Comparison:
    """A Comparison from the dictionary of the compiled module."""
    return Comparison(found["rows"], found.get("lengths", []), found.get("path", []))
