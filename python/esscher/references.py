"""Risks that a layer is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Union

from . import _esscher
from .estimate import Estimate
from .keywords import renamed
from .random import Stream, as_stream
from .pictures import Bars, bar
from .results import Result, fields_of
from .tables import Rows
from .tasks import ContextTask, check_task
from .types import Length


@dataclass(frozen=True, eq=False)
class ReferenceRisks(Result):
    """Predictions that a layer is compared with: the best one, and the best maps A z + b and A z of the query.

    bayes_by: how the best prediction was found, "known law", "formula", "quadrature", "chains" or "bound". A bound
    knows the law of the tokens, which a finite prompt does not tell (bayes_is_bound). Beside chains the standard error
    has half the gap between chains that start at the law of the prompt and chains that do not know it. Of prompts
    beyond 4096 tokens (formulas: 2^20) the first ones are read, and half of what these tokens cost is part of the error.

    >>> import esscher as es
    >>> found = es.reference_risks(es.DenoisingTask([[1.0], [-1.0]]), 100)
    >>> found.bayes.value < found.affine.value <= found.linear.value
    True
    >>> found
    ReferenceRisks(bayes 0.3312, affine 0.3333, linear 0.3333)
    """

    bayes: Estimate
    affine: Estimate
    linear: Estimate
    bayes_by: str

    @property
    def bayes_is_bound(self) -> bool:
        """Whether the best prediction here knows more than the prompt tells."""
        return self.bayes_by == "bound"

    def _table(self) -> Rows:
        named = {"bayes": self.bayes, "affine": self.affine, "linear": self.linear}
        return Rows({"prediction": name, **fields_of(found)} for name, found in named.items())

    def _axes(self) -> List[str]:
        return ["prediction"]

    def _picture(self) -> Bars:
        bars = [bar(row.prediction, row.value, row.std_error) for row in self._table()]
        return Bars("risks of the references", "prediction", "risk", bars)

    def _sentences(self) -> Rows:
        return self._table()

    def __repr__(self) -> str:
        bayes = f"bayes {'at least ' if self.bayes_is_bound else ''}{self.bayes.value:.4g}"
        return f"ReferenceRisks({bayes}, affine {self.affine.value:.4g}, linear {self.linear.value:.4g})"


@renamed(stream="seed")
def reference_risks(
    task: ContextTask, length: Length, *, draws: int = 4000, seed: Union[Stream, int] = 0
) -> ReferenceRisks:
    """Risks of the best prediction and of the best maps of the query alone, for a task beyond regression.

    >>> import esscher as es
    >>> es.reference_risks(es.SingleIndexTask(2, link="sign"), es.inf).affine.value
    0.5
    """
    check_task("reference_risks", task)
    options = {"draws": draws, "stream": as_stream(seed)}
    bayes, affine, linear, by = _esscher.reference_risks(task, length, options)
    return ReferenceRisks(Estimate(*bayes), Estimate(*affine), Estimate(*linear), by)
