"""Models that were trained at some prompt lengths, tested at others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Mapping, Sequence, Union

import numpy as np

from .errors import ArgumentError
from .icl import Readout, Task
from .keywords import renamed
from .layers import Layer
from .models import risk
from .random import Stream
from .results import Curve, Curves, Result
from .tables import Rows
from .types import Array, Length

Model = Union[Readout, Sequence[Readout], Layer]


@dataclass(frozen=True, eq=False)
class RiskTable(Result):
    """Risks over two lengths: ``rows`` of trained, L, risk, std_error, engine; ``matrix`` [trained,tested].

    >>> import esscher as es
    >>> task = es.LinearRegressionTask(2)
    >>> models = {L: es.block_optimum(task, L) for L in (5, 50)}
    >>> found = es.risk_table(task, models, [5, 50], kind="linear")
    >>> found.matrix.round(3)
    array([[0.375, 0.164],
           [0.537, 0.057]])
    >>> found
    RiskTable(2 models at 2 lengths)
    """

    rows: Rows

    @property
    def matrix(self) -> Array:
        """Risks, one row for each model and one column for each length of test."""
        trained = len({row.trained for row in self.rows})
        return np.array([row.risk for row in self.rows]).reshape(trained, -1)

    def _table(self) -> Rows:
        return self.rows

    def _axes(self) -> List[str]:
        return ["trained", "L"]

    def _picture(self) -> Curves:
        found: Dict[Any, List[Any]] = {}
        for row in self.rows:
            if np.isfinite(row.L) and row.risk > 0:
                found.setdefault(row.trained, []).append(row)
        curves = [Curve(f"L = {at}", [r.L for r in rows], [r.risk for r in rows]) for at, rows in found.items()]
        return Curves("risk at the length of test", "L", "risk", curves, group="trained at", log_x=True, log_y=True)

    def __repr__(self) -> str:
        models, lengths = self.matrix.shape
        return f"RiskTable({models} models at {lengths} lengths)"


@renamed(stream="seed")
def risk_table(
    task: Task,
    models: Mapping[Length, Model],
    lengths: Iterable[Length],
    *,
    kind: str = "softmax",
    engine: str = "auto",
    draws: int = 4000,
    seed: Union[Stream, int] = 0,
) -> RiskTable:
    """The risk of each model at each length: trained at one length, tested at another.

    models: what was trained, by the length of its prompts, as ``flow(..).end``, ``train(..).end`` or a ``Layer``. Every
    risk is that of ``risk`` with the same options, on the same draws.

    >>> import esscher as es
    >>> task = es.ClassificationTask([[1.0], [-1.0]])
    >>> start = es.Layer([[0.3, 0], [0, 0]], [[0, 0.3]])
    >>> models = {L: es.flow(task, start, length=L, family="scalars", t_end=20, rtol=1e-3).end for L in (5, es.inf)}
    >>> found = es.risk_table(task, models, [5, es.inf])
    >>> found.matrix[0, 0] < found.matrix[1, 0], found.matrix[1, 1] < found.matrix[0, 1]
    (True, True)
    """
    tested = list(lengths)
    if not isinstance(models, Mapping):
        raise ArgumentError(f"risk_table: models is a {type(models).__name__}, expected a dict: length of training to model")
    if not models or not tested:
        raise ArgumentError("risk_table: expected at least one model and one length")
    rows = []
    for trained, model in models.items():
        for length in tested:
            found: Any = risk(task, model, length, kind=kind, engine=engine, draws=draws, seed=seed)
            rows.append({"trained": trained, "L": length, "risk": found.value, "std_error": found.std_error,
                         "engine": found.engine})
    return RiskTable(Rows(rows))
