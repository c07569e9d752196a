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
from typing import List, NamedTuple, Optional, Tuple

import numpy as np

from . import _esscher
from .attention import Attention
from .law_gradients import Pulled, Subject, error_slopes, output_slopes, score_slopes
from .measures import measure as as_measure
from .pictures import Tiles
from .results import Result, fields_of, sizes
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

    def _picture(self) -> Tiles:
        return Tiles.of("derivatives in every parameter", fields_of(self).items())

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

    def _picture(self) -> Tiles:
        found = [(name, getattr(self, name).U) for name in SCORE_FUNCTIONS]
        return Tiles.of("functions of the scores, derivatives in U", found)

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
