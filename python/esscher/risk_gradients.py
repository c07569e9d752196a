"""Gradients of risks as NumPy arrays: with standard errors, and as one function for optimisers."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union, overload

import numpy as np

from . import _esscher
from .attention import Attention
from .estimate import repeated
from .icl import AnyTask, LinearRegressionTask, Readout
from .keywords import helpful
from .random import Stream, as_stream
from .pictures import Tiles
from .results import Result, fields_of, register_tuple, sizes
from .tables import Rows
from .task_slopes import task_slopes
from .types import Array, Length

Heads = Union[Readout, Sequence[Readout]]

TASK_SLOPES = 7  # their prompts are others than those of the derivatives in the heads


@dataclass(frozen=True, eq=False)
class RiskSlopes(Result):
    """Derivatives of a risk in every parameter, or their standard errors: U [D,D] and r [D] of the head, the
    score_scale (the inverse temperature, 1 at U), and of the task noise_variance, task_variance, prompt_cov [d,d] and
    query_cov [d,d] (symmetric). Of H heads U is [H,D,D], r [H,D] and score_scale [H].

    A head that was given as an ``Attention`` has V [dv,D] too, whose last row is read, and K and Q [dk,D] if it has them;
    they are None else.

    Derivatives in the task come from a formula for one head on Gaussian features. For several heads, other features and the
    engine "direct" they are averages over at most ``draws`` prompts, drawn token by token. They are None for tasks of your own,
    for prompts too long to be drawn (64 of them have more than 2^25 numbers), and for softmax at infinite length on features
    that are not Gaussian. Those in variances and covariances are nan where these are singular, but for closed forms.

    >>> import esscher as es
    >>> task = es.LinearRegressionTask(2, noise_variance=0.1)
    >>> value, slope, error = es.risk(task, es.block_optimum(task, 50), 50, gradient=True)
    >>> slope.noise_variance > 0, slope.query_cov.shape, error.score_scale < 0.01
    (True, (2, 2), True)
    """

    U: Array
    r: Array
    score_scale: Any
    noise_variance: Optional[float]
    task_variance: Optional[float]
    prompt_cov: Optional[Array]
    query_cov: Optional[Array]
    V: Optional[Array] = None
    K: Optional[Array] = None
    Q: Optional[Array] = None

    def _picture(self) -> Tiles:
        found = fields_of(self)
        return Tiles.of("derivatives of a risk", found.items())

    def __repr__(self) -> str:
        return sizes(self)


class _RiskGradient(NamedTuple):
    risk: Any
    gradient: RiskSlopes
    std_error: RiskSlopes


@register_tuple
class RiskGradient(_RiskGradient, Result):
    """A risk, its derivatives in the head and in the task, and the standard error of each of them.

    >>> import esscher as es
    >>> task = es.LinearRegressionTask(2)
    >>> value, slope, error = es.risk(task, es.balanced_start(task), 50, gradient=True)
    >>> slope.U.shape, bool((error.U < 1e-2).all())
    ((3, 3), True)
    """

    def _table(self) -> Rows:
        parts = {"gradient": self.gradient, "std_error": self.std_error}
        return Rows({"what": name, "risk": getattr(self.risk, side), **fields_of(part)}
                    for (name, part), side in zip(parts.items(), ("value", "std_error")))

    def _axes(self) -> List[str]:
        return ["what"]

    def _picture(self) -> Tiles:
        return dataclasses.replace(self.gradient._picture(), title=f"derivatives of the risk {self.risk.value:.4g}")

    def __repr__(self) -> str:
        return f"RiskGradient({self.risk!r}, {self.gradient!r})"


class RiskFunction:
    """R_L as one differentiable function of (U, r): ``f(at)`` and ``f.gradient(at)``, made by ``risk_function``.

    at may be a list of heads, whose predictions add; the gradient is then a list too.

    >>> import esscher as es
    >>> task = es.LinearRegressionTask(2)
    >>> f = es.risk_function(task, 50)
    >>> value, slope = f.gradient(es.balanced_start(task))
    >>> value == f(es.balanced_start(task)), slope.r.shape
    (True, (3,))
    """

    def __init__(self, task: AnyTask, length: Length, kind: str, options: Dict[str, Any], near: Sequence[Readout]) -> None:
        self._arguments = (task, length, kind, options, near)
        self._one: Optional[_esscher.RiskFunction] = None
        self._several: Optional[_esscher.HeadsRiskFunction] = None

    @overload
    def gradient(self, at: Readout) -> Tuple[float, Readout]: ...
    @overload
    def gradient(self, at: Sequence[Readout]) -> Tuple[float, List[Readout]]: ...
    def gradient(self, at: Heads) -> Tuple[float, Any]:
        """The risk and its gradient."""
        task, length, kind, options, near = self._arguments
        if isinstance(at, Readout):
            self._one = self._one or _esscher.RiskFunction(task, kind, length, options, near)
            value, slope = self._one(at.U, at.r)
            return value, Readout(*slope)
        self._several = self._several or _esscher.HeadsRiskFunction(task, kind, length, options)
        value, slopes = self._several(at)
        return value, [Readout(*slope) for slope in slopes]

    def __call__(self, at: Heads) -> float:
        """The risk."""
        return self.gradient(at)[0]

    def __reduce__(self) -> Any:
        return RiskFunction, self._arguments

    def __repr__(self) -> str:
        task, length, kind, _, _ = self._arguments
        return f"risk_function({task!r}, {length!r}, kind={kind!r})"


@helpful
def risk_function(
    task: AnyTask,
    length: Length,
    *,
    kind: str = "softmax",
    engine: str = "auto",
    draws: int = 4000,
    near: Union[None, Readout, Sequence[Readout]] = None,
    seed: Union[Stream, int] = 0,
) -> RiskFunction:
    """R_L(U, r) with its exact gradient, for optimisers: closed form, fixed nodes or fixed draws.

    One head, or a list of heads, which is averaged over ``draws`` fixed prompts.
    The gradient is that of the function itself, so a descent along it never meets noise. ``near`` names heads that the
    function will be asked for: the nodes are then widened towards their sharp queries. If all of them are of block form
    (U without its last row and column but for the corner), the function treats every head it is asked for as one.

    >>> import numpy as np, esscher as es
    >>> task = es.LinearRegressionTask(1)
    >>> f = es.risk_function(task, 20)
    >>> at = es.balanced_start(task, 0.5)
    >>> for _ in range(100):
    ...     value, slope = f.gradient(at)
    ...     at = es.Readout(at.U - 0.2 * slope.U, at.r - 0.2 * slope.r)
    >>> f(at) < value < f(es.balanced_start(task, 0.5))
    True
    """
    heads = [near] if isinstance(near, Readout) else list(near or [])
    return RiskFunction(task, length, kind, {"engine": engine, "draws": draws, "stream": as_stream(seed)}, heads)


def readout_of(head: Attention) -> Readout:
    """What a prediction reads of a head: U and the last row of V."""
    return Readout(head.U, head.V[-1])


def _in_factors(head: Attention, U: Array, r: Array) -> List[Any]:
    """The derivatives in V, K and Q from those in U and r."""
    V = np.zeros_like(head.V)
    V[-1] = r
    if not head.has_kq:
        return [V, None, None]
    return [V, head.score_scale * head.Q @ U.T, head.score_scale * head.K @ U]


def risk_gradient(
    task: AnyTask, at: Heads, length: Length, kind: str, options: Dict[str, Any], head: Optional[Attention] = None
) -> Tuple[RiskSlopes, RiskSlopes]:
    """The derivatives of a risk and their standard errors; those of ``head`` too, if ``at`` is its readout."""
    scale = 1.0 if head is None else head.score_scale

    def of_one(given: Dict[str, Any]) -> List[Any]:
        assert isinstance(at, Readout)
        U, r = _esscher.RiskFunction(task, kind, length, given, [])(at.U, at.r)[1]
        by_task = _esscher.task_gradient(task, kind, length, given, at.U, at.r) or in_task([at], given)
        factors = [None] * 3 if head is None else _in_factors(head, U, r)
        return [U, r, float(np.sum(U * at.U)) / scale, *by_task, *factors]

    def of_several(given: Dict[str, Any]) -> List[Any]:
        heads: Sequence[Any] = at
        U, r = (np.stack(part) for part in zip(*_esscher.HeadsRiskFunction(task, kind, length, given)(heads)[1]))
        return [U, r, np.array([np.sum(slope * head.U) for slope, head in zip(U, heads)]), *in_task(heads, given)]

    def in_task(heads: Sequence[Readout], given: Dict[str, Any]) -> Sequence[Any]:
        if not isinstance(task, LinearRegressionTask):
            return [None] * 4
        found = task_slopes(task, heads, kind, length, given["draws"], given["stream"].split(TASK_SLOPES))
        return found or [None] * 4

    means, errors = repeated(of_one if isinstance(at, Readout) else of_several, options)
    return RiskSlopes(*means), RiskSlopes(*errors)
