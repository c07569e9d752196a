"""Finite prompts: how far is a prompt of length L from its limit?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Union

from . import _esscher
from .attention import Attention
from .keywords import helpful, renamed
from .results import Result, register_tuple
from .random import Stream, as_stream
from .types import Array, ArrayLike, Length, MeasureLike, whole


@dataclass(frozen=True)
class Estimate(Result):
    """A number and how it was made; ``std_error`` is 0 and ``n`` is 0 where nothing was sampled.

    ``heavy`` is true where so few summands carry the value that its ``std_error`` is too small.

    >>> import esscher as es
    >>> e = es.mean_square_error(es.Sphere(2), es.Attention(U=[[1, 0], [0, 1]]), [1.0, 0.0], 50)
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


@register_tuple
class Universal(NamedTuple):
    """What L iid scores N(0, tau^2) and their softmax weights do on average.

    S = sum omega s; ``M1`` = E[S], ``M2c`` = E[(S - tau^2)^2], ``H`` = E[sum omega^2]; the ratios are
    divided by tau^2; ``error`` bounds quadrature and rounding.

    >>> import esscher as es
    >>> u = es.universal(1, 2.0)      # one token: the prompt is frozen on it
    >>> u.M1, u.H
    (0.0, 1.0)
    """

    M1: float
    M2c: float
    H: float
    M1_ratio: float
    M2c_ratio: float
    error: float


@helpful
def universal(L: Length, tau: float) -> Universal:
    """The universal functions of a Gaussian prompt, at any L up to 2^63 at the same cost; 0 <= tau <= 600.

    >>> import esscher as es
    >>> u = es.universal(100, 1.0)
    >>> round(u.M1, 8), round(u.H, 8)
    (0.97446152, 0.02553848)
    """
    return Universal(*_esscher.universal(whole("universal", "L", L), tau))


@helpful
def expected_output(measure: MeasureLike, attention: Attention, z: ArrayLike, length: Length) -> Array:
    """E[T_hat(z)] over prompts of this length; T[mu](z) itself at ``inf``. Gaussians and their mixtures.

    A finite prompt shrinks the operator: for N(0,G) it is (1 - H) V G U z.

    >>> import numpy as np, esscher as es
    >>> T = es.Attention(U=np.eye(1))
    >>> es.expected_output(es.Gaussian([[1.0]]), T, [1.0], 100).round(8)
    array([0.97446152])
    """
    return _esscher.expected_output(measure, attention, z, length)


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
) -> Estimate:
    """E|X_hat - X|^2 over prompts of this length, at one query z [d]; X is the output or a gradient.

    metric: "output", "grad_v", "grad_u", "grad_k" or "grad_q". engine: "exact" (no sampling),
    "sampled" (scores drawn, exact in law), "direct" (whole tokens), or "auto", the first that serves.

    >>> import numpy as np, esscher as es
    >>> T = es.Attention(U=np.eye(1))
    >>> e = es.mean_square_error(es.Gaussian([[1.0]]), T, [1.0], 10**6)
    >>> round(e.value * 10**6, 5), e.std_error, e.engine
    (5.43645, 0.0, 'exact')
    """
    found = _esscher.mean_square_error(
        engine, metric, measure, attention, z, length, replicates, as_stream(seed)
    )
    return Estimate(*found)
