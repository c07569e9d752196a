"""Finite prompts: how far is a prompt of length L from its limit?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Optional, Tuple, Union, overload

from . import _esscher
from .attention import Attention
from .errors import CapabilityError
from .keywords import helpful, renamed
from .results import Result, register_tuple
from .random import Stream, as_stream
from .types import Array, ArrayLike, Length, MeasureLike, whole

if TYPE_CHECKING:
    from .gradients import PromptGradients


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

    def __repr__(self) -> str:
        sure = f" +- {self.std_error:.2g}" if self.std_error else ""
        return f"Estimate({self.value:.8g}{sure}, {self.engine}{', heavy' if self.heavy else ''})"


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

    def __repr__(self) -> str:
        return f"Universal({', '.join(f'{name}={value:.8g}' for name, value in self._asdict().items())})"


@overload
def universal(L: Length, tau: float, *, gradient: Literal[False] = False) -> Universal: ...
@overload
def universal(L: Length, tau: float, *, gradient: Literal[True]) -> Tuple[Universal, Universal]: ...
@helpful
def universal(L: Length, tau: float, *, gradient: bool = False) -> Union[Universal, Tuple[Universal, Universal]]:
    """The universal functions of a Gaussian prompt, at any L up to 2^63 at the same cost; 0 <= tau <= 600.

    >>> import esscher as es
    >>> u = es.universal(100, 1.0)
    >>> round(u.M1, 8), round(u.H, 8)
    (0.97446152, 0.02553848)

    With ``gradient`` a second one follows, the derivatives in tau, to 1e-8 of their size:

    >>> u, slope = es.universal(100, 1.0, gradient=True)
    >>> round(slope.H, 6)
    0.043632
    """
    found = Universal(*_esscher.universal(whole("universal", "L", L), tau))
    if not gradient:
        return found
    from .gradients import node_functions

    t, dt = tau**2, 2 * tau
    H, k, dH, dk = node_functions(L, t)
    ratio, d_ratio = H + k * t, (dH + k + t * dk) * dt  # M2c / tau^2
    slope = Universal(dt * (1 - H) - t * dH * dt, dt * ratio + t * d_ratio, dH * dt, -dH * dt, d_ratio, found.error)
    return found, slope


@overload
def expected_output(measure: MeasureLike, attention: Attention, z: ArrayLike, length: Length) -> Array: ...
@overload
def expected_output(
    measure: MeasureLike, attention: Attention, z: ArrayLike, length: Length, *, cotangent: ArrayLike
) -> Tuple[Array, PromptGradients]: ...
@helpful
def expected_output(
    measure: MeasureLike, attention: Attention, z: ArrayLike, length: Length, *, cotangent: Optional[ArrayLike] = None
) -> Union[Array, Tuple[Array, PromptGradients]]:
    """E[T_hat(z)] [dv] over prompts of this length; T[mu](z) itself at ``inf``. Gaussians and their mixtures.

    With a cotangent g [dv] the gradients of <g, E[T_hat(z)]> follow, in z, U, V, K, Q, mean, cov and score_scale
    (Gaussian tokens).

    A finite prompt shrinks the operator: for N(0,G) it is (1 - H) V G U z.

    >>> import numpy as np, esscher as es
    >>> T = es.Attention(U=np.eye(1))
    >>> es.expected_output(es.Gaussian([[1.0]]), T, [1.0], 100).round(8)
    array([0.97446152])
    """
    found = _esscher.expected_output(measure, attention, z, length)
    if cotangent is None:
        return found
    from .gradients import output_gradient

    return found, output_gradient(measure, attention, z, length, cotangent)


@overload
def mean_square_error(
    measure: MeasureLike,
    attention: Attention,
    z: ArrayLike,
    length: Length,
    *,
    metric: str = "output",
    engine: str = "auto",
    replicates: int = 256,
    seed: Union[Stream, int] = 0,
    gradient: Literal[False] = False,
) -> Estimate: ...
@overload
def mean_square_error(
    measure: MeasureLike,
    attention: Attention,
    z: ArrayLike,
    length: Length,
    *,
    metric: str = "output",
    engine: str = "auto",
    replicates: int = 256,
    seed: Union[Stream, int] = 0,
    gradient: Literal[True],
) -> Tuple[Estimate, PromptGradients]: ...
@renamed(stream="seed")
def mean_square_error(
    measure: MeasureLike,
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
    its derivatives in z, U, V, K, Q, mean, cov and score_scale follow (Gaussian tokens, metric "output").

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
            "and Gaussian tokens"
        )
    from .gradients import error_gradient

    return found, error_gradient(measure, attention, z, length)
