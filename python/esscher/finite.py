"""What finite prompts do on average, and how far one of length L is from its limit."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Optional, Tuple, Union, overload

import numpy as np

from . import _esscher
from .attention import Attention
from .errors import ArgumentError, CapabilityError
from .estimate import Estimate
from .gradients import PromptGradients, ScoreGradients, error_gradient, node_functions, output_gradient, score_gradients
from .keywords import helpful, renamed
from .pictures import Bar, Bars
from .random import Stream, as_stream
from .results import Result, register_tuple
from .types import Array, ArrayLike, Length, PromptLike, whole


class _ScoreFunctions(NamedTuple):
    H: float
    M1: float
    M2c: float
    free_energy: float
    entropy: float
    needle: Optional[float]
    error: float


@register_tuple
class ScoreFunctions(_ScoreFunctions, Result):
    """Functions of the scores of a prompt, with weights omega and S = sum omega s: ``universal`` of a ``Prompt``.

    ``H`` = E[sum omega^2], ``M1`` = E[S], ``M2c`` = E[(S - S_inf)^2] about the limit (``inf`` where that is infinite),
    ``free_energy`` = E[log sum e^(b+s)], ``entropy`` = E[-sum omega log omega]; ``needle`` is the expected weight of one
    more token of the given score, else None; ``error`` is the defect of E sum omega = 1.

    >>> import esscher as es
    >>> u = es.universal(3, es.Dirac([2.0]), es.Attention(U=[[1.0]]), [1.0], needle=2.0)
    >>> round(u.H, 12), round(u.free_energy, 6), round(u.needle, 12)     # 1/3, 2 + log 3, 1/4
    (0.333333333333, 3.098612, 0.25)
    """

    def _picture(self) -> Bars:
        found = {name: value for name, value in self._asdict().items() if name != "error" and value is not None}
        return Bars("functions of the scores", "function", "value", [Bar(name, value) for name, value in found.items()])

    def __repr__(self) -> str:
        shown = {name: value for name, value in self._asdict().items() if value is not None}
        return f"ScoreFunctions({', '.join(f'{name}={value:.8g}' for name, value in shown.items())})"


class _Universal(NamedTuple):
    M1: float
    M2c: float
    H: float
    M1_ratio: float
    M2c_ratio: float
    error: float


@register_tuple
class Universal(_Universal, Result):
    """What L iid scores N(0, tau^2) and their softmax weights do on average.

    S = sum omega s; ``M1`` = E[S], ``M2c`` = E[(S - tau^2)^2], ``H`` = E[sum omega^2]; the ratios are
    divided by tau^2; ``error`` bounds quadrature and rounding.

    >>> import esscher as es
    >>> u = es.universal(1, 2.0)      # one token: the prompt is frozen on it
    >>> u.M1, u.H
    (0.0, 1.0)
    """

    def _picture(self) -> Bars:
        bars = [Bar(name, value) for name, value in self._asdict().items() if name != "error"]
        return Bars("Gaussian scores", "function", "value", bars)

    def __repr__(self) -> str:
        return f"Universal({', '.join(f'{name}={value:.8g}' for name, value in self._asdict().items())})"


@overload
def universal(length: Length, tau: float, *, gradient: Literal[False] = False) -> Universal: ...
@overload
def universal(length: Length, tau: float, *, gradient: Literal[True]) -> Tuple[Universal, Universal]: ...
@overload
def universal(
    length: Length,
    tau: PromptLike,
    attention: Attention,
    z: ArrayLike,
    *,
    needle: Optional[float] = None,
    gradient: Literal[False] = False,
) -> ScoreFunctions: ...
@overload
def universal(
    length: Length, tau: PromptLike, attention: Attention, z: ArrayLike, *, gradient: Literal[True]
) -> Tuple[ScoreFunctions, ScoreGradients]: ...
@renamed(L="length")
def universal(
    length: Length,
    tau: Union[float, PromptLike],
    attention: Optional[Attention] = None,
    z: Optional[ArrayLike] = None,
    *,
    gradient: bool = False,
    needle: Optional[float] = None,
) -> Union[Universal, Tuple[Universal, Universal], ScoreFunctions, Tuple[ScoreFunctions, ScoreGradients]]:
    """The universal functions of a Gaussian prompt, at any length up to 2^63 at the same cost; 0 <= tau <= 600.

    ``universal(length, law, attention, z)``, z [d], gives those of the scores of a law of tokens or a ``Prompt``.

    >>> import esscher as es
    >>> u = es.universal(100, 1.0)
    >>> round(u.M1, 8), round(u.H, 8)
    (0.97446152, 0.02553848)

    With ``gradient`` a second one follows, the derivatives in tau, to 1e-8 of their size:

    >>> u, slope = es.universal(100, 1.0, gradient=True)
    >>> round(slope.H, 6)
    0.043632

    Of a law of tokens, where they are exact too:

    >>> T = es.Attention(U=[[1.0]])
    >>> round(es.universal(100, es.Gaussian([[1.0]]), T, [1.0]).H, 8)
    0.02553848

    Their gradients in z, U, K, Q, mean, cov and score_scale:

    >>> u, slope = es.universal(100, es.Gaussian([[1.0]]), T, [1.0], gradient=True)
    >>> round(slope.H.cov[0, 0], 6)
    0.021816
    """
    if attention is not None or z is not None or not isinstance(tau, (int, float, np.number)):
        if attention is None or z is None:
            raise ArgumentError("universal: expected attention and z beside a law of tokens")
        if gradient and needle is not None:
            raise CapabilityError("universal: the weight of a needle has no gradient; ask without a needle")
        found = ScoreFunctions(*_esscher.score_functions(tau, attention, z, length, needle))
        if not gradient:
            return found
        law: Any = tau  # a law of tokens, as the lines above have seen
        return found, score_gradients(law, attention, z, length)
    if needle is not None:
        raise ArgumentError("universal: needle is for a law of tokens, an attention and z")
    return _gaussian_universal(length, float(tau), gradient)


def _gaussian_universal(length: Length, tau: float, gradient: bool) -> Union[Universal, Tuple[Universal, Universal]]:
    found = Universal(*_esscher.universal(whole("universal", "length", length), tau))
    if not gradient:
        return found
    t, dt = tau**2, 2 * tau
    H, k, dH, dk = node_functions(length, t)
    ratio, d_ratio = H + k * t, (dH + k + t * dk) * dt  # M2c / tau^2
    slope = Universal(dt * (1 - H) - t * dH * dt, dt * ratio + t * d_ratio, dH * dt, -dH * dt, d_ratio, found.error)
    return found, slope


@overload
def expected_output(measure: PromptLike, attention: Attention, z: ArrayLike, length: Length) -> Array: ...
@overload
def expected_output(
    measure: PromptLike, attention: Attention, z: ArrayLike, length: Length, *, cotangent: ArrayLike
) -> Tuple[Array, PromptGradients]: ...
@helpful
def expected_output(
    measure: PromptLike, attention: Attention, z: ArrayLike, length: Length, *, cotangent: Optional[ArrayLike] = None
) -> Union[Array, Tuple[Array, PromptGradients]]:
    """E[T_hat(z)] [dv] over prompts of this length, of a law or a ``Prompt`` with a score law; at ``inf`` the limit.

    A ``Prompt`` without a limit has the value at which it saturates instead.

    With a cotangent g [dv] the gradients of <g, E[T_hat(z)]> follow, in z, U, V, K, Q, mean, cov and score_scale.

    A finite prompt shrinks the operator: for N(0,G) it is (1 - H) V G U z.

    >>> import numpy as np, esscher as es
    >>> T = es.Attention(U=np.eye(1))
    >>> es.expected_output(es.Gaussian([[1.0]]), T, [1.0], 100).round(8)
    array([0.97446152])
    """
    found = _esscher.expected_output(measure, attention, z, length)
    if cotangent is None:
        return found
    return found, output_gradient(measure, attention, z, length, cotangent)


@overload
def mean_square_error(
    measure: PromptLike, attention: Attention, z: ArrayLike, length: Length, *, metric: str = "output",
    engine: str = "auto", replicates: int = 256, seed: Union[Stream, int] = 0, gradient: Literal[False] = False,
) -> Estimate: ...
@overload  # nothing is drawn
def mean_square_error(
    measure: PromptLike, attention: Attention, z: ArrayLike, length: Length, *, engine: str = "auto", gradient: Literal[True]
) -> Tuple[Estimate, PromptGradients]: ...
@renamed(stream="seed")
def mean_square_error(
    measure: PromptLike,
    attention: Attention,
    z: ArrayLike,
    length: Length,
    *,
    metric: str = "output",
    engine: str = "auto",
    replicates: int = 256,
    seed: Union[Stream, int] = 0,
    gradient: bool = False,
) -> Union[Estimate, Tuple[Estimate, PromptGradients]]:
    """E|X_hat - X|^2 over prompts of this length, at one query z [d]; X is the output or a gradient.

    metric: "output", "grad_v", "grad_u", "grad_k" or "grad_q". engine: "exact" (no sampling),
    "sampled" (scores drawn, exact in law), "direct" (whole tokens), or "auto", the first that serves. With ``gradient``
    its derivatives in z, U, V, K, Q, mean, cov and score_scale follow, for the metric "output" by the exact engine.

    >>> import numpy as np, esscher as es
    >>> T = es.Attention(U=np.eye(1))
    >>> e = es.mean_square_error(es.Gaussian([[1.0]]), T, [1.0], 10**6)
    >>> round(e.value * 10**6, 5), e.std_error, e.engine
    (5.43645, 0.0, 'exact')
    """
    found = Estimate(
        *_esscher.mean_square_error(engine, metric, measure, attention, z, length, replicates, as_stream(seed))
    )
    if not gradient:
        return found
    if metric != "output" or found.engine != "exact":
        raise CapabilityError(
            f'mean_square_error: metric {metric} by the engine {found.engine} has no exact gradient; use metric="output" '
            "and a law that the exact engine serves"
        )
    return found, error_gradient(measure, attention, z, length)
