"""Exact gradients of finite prompts, as NumPy arrays.

For Gaussian tokens N(m, G), a = U z, t = a'Ga, w = Ga and the universal functions H and k = (M2c/t - H)/t of (L, t):

    E[T_hat]       = V m + (1 - H) V w
    E|T_hat - T|^2 = |V w|^2 k + tr(V G V') H

Their derivatives follow by the chain rule from dH/dt and dk/dt, which the tables of the package have to 1e-9. Other laws
are in law_gradients.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union, overload

import numpy as np

from . import _esscher
from .attention import Attention
from .icl import AnyTask, Readout
from .keywords import helpful
from .law_gradients import Pulled, Subject, error_slopes, output_slopes, score_slopes
from .measures import measure as as_measure
from .random import Stream, as_stream
from .results import Result, fields_of, register_tuple, sizes
from .tables import Rows
from .types import Array, ArrayLike, Length, PromptLike, as_array, whole


@dataclass(frozen=True, eq=False)
class PromptGradients(Result):
    """Derivatives of a number in every parameter: query z [d], U [d,d], V [dv,d], K and Q [dk,d] (None for a head that
    was given by U), mean [d] and cov [d,d] (symmetric) of the tokens, and the score_scale, the inverse temperature.

    A law that is not Gaussian is moved by its mean and stretched about it, without a turn, so that its shape stays; cov is
    None where the covariance is singular. A ``Prompt`` has neither.

    >>> import numpy as np, esscher as es
    >>> T, mu = es.Attention(U=[[1.0]]), es.Gaussian([[1.0]])
    >>> value, slope = es.mean_square_error(mu, T, [1.0], 10, gradient=True)
    >>> bool(slope.cov[0, 0] > 0), slope.K is None
    (True, True)
    """

    z: Array
    U: Array
    V: Array
    K: Optional[Array]
    Q: Optional[Array]
    mean: Optional[Array]
    cov: Optional[Array]
    score_scale: float

    def __repr__(self) -> str:
        return sizes(self)


@lru_cache(maxsize=32)
def tables(L: int) -> _esscher.NodeTables:
    """The tables of one length, kept for the next call."""
    return _esscher.NodeTables(L)


def node_functions(L: Length, t: float) -> Tuple[float, float, float, float]:
    """(H, k, dH/dt, dk/dt) at t = tau^2; zeros at infinite length."""
    if L == float("inf"):
        return 0.0, 0.0, 0.0, 0.0
    H, k, dH, dk = tables(whole("gradient", "length", L)).at([t])[0]
    return float(H), float(k), float(dH), float(dk)


Heads = Union[Readout, Sequence[Readout]]


class _Law(NamedTuple):
    m: Array
    G: Array
    a: Array
    w: Array
    t: float
    u: Tuple[float, float, float, float]


def _law(measure: PromptLike, attention: Attention, z: Array, length: Length) -> Optional[_Law]:
    """What the formulas need; None for tokens that are not Gaussian, and for a Prompt."""
    law = None if isinstance(measure, _esscher.Prompt) else _esscher.gaussian_law(as_measure(measure))
    if law is None:
        return None
    m, G = law
    a = attention.U @ z
    w = G @ a
    t = float(a @ w)
    return _Law(m, G, a, w, t, node_functions(length, t))


def _gradients(
    attention: Attention, z: Array, V: Array, cov: Optional[Array], mean: Optional[Array], a: Array,
    direct: Optional[Array] = None,
) -> PromptGradients:
    """Pulls the derivative in the tilt back to the query, unless that is known directly, and to the parameters of the scores."""
    K = Q = None
    if attention.has_kq:
        s = attention.score_scale
        K = s * np.outer(attention.Q @ z, a)
        Q = s * np.outer(attention.K @ a, z)
    slope = float(a @ (attention.U @ z)) / attention.score_scale
    by_z = attention.U.T @ a if direct is None else direct
    return PromptGradients(by_z, np.outer(a, z), V, K, Q, mean, None if cov is None else (cov + cov.T) / 2, slope)


def _pulled(attention: Attention, z: Array, found: Pulled) -> PromptGradients:
    return _gradients(attention, z, found.V, found.cov, found.mean, found.a, found.z)


def error_gradient(measure: PromptLike, attention: Attention, z: ArrayLike, length: Length) -> PromptGradients:
    """Of E|T_hat - T|^2."""
    query = np.asarray(as_array(z), dtype=np.float64)
    law, V = _law(measure, attention, query, length), attention.V
    if law is None:
        return _pulled(attention, query, error_slopes(Subject(measure, attention, query), length))
    H, k, dH, dk = law.u
    Vw = V @ law.w
    p, s = float(Vw @ Vw), float(np.trace(V @ law.G @ V.T))
    w_bar, t_bar = 2 * k * (V.T @ Vw), p * dk + s * dH
    a_bar = law.G @ (w_bar + 2 * t_bar * law.a)
    cov = np.outer(w_bar, law.a) + t_bar * np.outer(law.a, law.a) + H * (V.T @ V)
    V_bar = 2 * k * np.outer(Vw, law.w) + 2 * H * (V @ law.G)
    return _gradients(attention, query, V_bar, cov, np.zeros_like(law.m), a_bar)


def output_gradient(
    measure: PromptLike, attention: Attention, z: ArrayLike, length: Length, cotangent: ArrayLike
) -> PromptGradients:
    """Of <cotangent, E[T_hat]>."""
    query, g = (np.asarray(as_array(x), dtype=np.float64) for x in (z, cotangent))
    law, V = _law(measure, attention, query, length), attention.V
    if law is None:
        return _pulled(attention, query, output_slopes(Subject(measure, attention, query), length, g))
    H, _, dH, _ = law.u
    w_bar, t_bar = (1 - H) * (V.T @ g), -float(g @ (V @ law.w)) * dH
    a_bar = law.G @ (w_bar + 2 * t_bar * law.a)
    cov = np.outer(w_bar, law.a) + t_bar * np.outer(law.a, law.a)
    V_bar = np.outer(g, law.m + (1 - H) * law.w)
    return _gradients(attention, query, V_bar, cov, V.T @ g, a_bar)


@dataclass(frozen=True, eq=False)
class ScoreGradients(Result):
    """Derivatives of the functions of scores, ``universal`` of a law or a ``Prompt``, in every parameter of law and head.

    >>> import numpy as np, esscher as es
    >>> u, slope = es.universal(100, es.Gaussian(np.eye(2)), es.Attention(U=np.eye(2)), [1.0, 0.0], gradient=True)
    >>> slope.H.U.round(4)
    array([[0.0436, 0.    ],
           [0.    , 0.    ]])
    """

    H: PromptGradients
    M1: PromptGradients
    M2c: PromptGradients
    free_energy: PromptGradients
    entropy: PromptGradients

    def _table(self) -> Rows:
        return Rows({"function": name, **fields_of(getattr(self, name))} for name in SCORE_FUNCTIONS)

    def _axes(self) -> List[str]:
        return ["function"]

    def __repr__(self) -> str:
        return f"ScoreGradients({', '.join(SCORE_FUNCTIONS)})"


SCORE_FUNCTIONS = ("H", "M1", "M2c", "free_energy", "entropy")


def score_gradients(measure: PromptLike, attention: Attention, z: ArrayLike, length: Length) -> ScoreGradients:
    """Of the functions of the scores of L tokens. Those of Gaussian scores N(<a,m>, t) are f(t), two with <a,m> added to it:

    M1 = t(1 - H), M2c = t(H + kt), d/dt E[log sum e^s] = (1 - H)/2, entropy = free energy - M1.
    """
    query = np.asarray(as_array(z), dtype=np.float64)
    given = _law(measure, attention, query, length)
    if given is None:
        found = score_slopes(Subject(measure, attention, query), length)
        return ScoreGradients(*[_pulled(attention, query, one) for one in found])
    law, t, (H, k, dH, dk) = given, given.t, given.u
    by_t = {
        "H": dH, "M1": 1 - H - t * dH, "M2c": H + 2 * k * t + t * dH + t * t * dk,
        "free_energy": (1 - H) / 2, "entropy": t * dH - (1 - H) / 2,
    }

    def of(name: str) -> PromptGradients:
        shift = 1.0 if name in ("M1", "free_energy") else 0.0
        a_bar = 2 * by_t[name] * law.w + shift * law.m
        cov = by_t[name] * np.outer(law.a, law.a)
        return _gradients(attention, query, np.zeros_like(attention.V), cov, shift * law.a, a_bar)

    return ScoreGradients(**{name: of(name) for name in SCORE_FUNCTIONS})


@dataclass(frozen=True, eq=False)
class RiskSlopes(Result):
    """Derivatives of a risk in every parameter, or their standard errors: U [D,D] and r [D] of the head, the
    score_scale (the inverse temperature, 1 at U), and of the task noise_variance, task_variance, prompt_cov [d,d] and
    query_cov [d,d] (symmetric). Of H heads U is [H,D,D], r [H,D] and score_scale [H].

    A head that was given as an ``Attention`` has V [dv,D] too, whose last row is read, and K and Q [dk,D] if it has them;
    they are None else.

    Derivatives in the task are None where it has no formula: several heads, tasks of your own, features that are not
    Gaussian, and the engine "direct". Those in task_variance and query_cov are nan at finite length where these are singular.

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
        by_task = _esscher.task_gradient(task, kind, length, given, at.U, at.r)
        factors = [None] * 3 if head is None else _in_factors(head, U, r)
        return [U, r, float(np.sum(U * at.U)) / scale, *(by_task or [None] * 4), *factors]

    def of_several(given: Dict[str, Any]) -> List[Any]:
        heads: Sequence[Any] = at
        U, r = (np.stack(part) for part in zip(*_esscher.HeadsRiskFunction(task, kind, length, given)(heads)[1]))
        return [U, r, np.array([np.sum(slope * head.U) for slope, head in zip(U, heads)]), *[None] * 4]

    means, errors = repeated(of_one if isinstance(at, Readout) else of_several, options)
    return RiskSlopes(*means), RiskSlopes(*errors)


def _same(one: List[Any], two: List[Any]) -> bool:
    return all(a is b if a is None else np.array_equal(a, b, equal_nan=True) for a, b in zip(one, two))


def _number(value: Any) -> Any:
    return float(value) if np.ndim(value) == 0 else value
