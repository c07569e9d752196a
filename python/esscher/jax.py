"""The bridge to JAX: attention on measures, exact risks and D(L) through ``custom_vjp`` and a callback on the host.

    import jax, esscher as es, esscher.jax as ej

Names and arguments are those of ``esscher.torch``. Importing it needs JAX (0.4 or later). First and second derivatives
in reverse mode, so that a Hessian is ``jax.jacrev(jax.jacrev(f))``; ``jit`` and ``vmap`` work, the latter one call after
another. JAX computes in float32 unless ``jax_enable_x64`` is set; the callbacks compute in float64.
"""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple, Union

import numpy as np

from . import _esscher
from .errors import CapabilityError
from .gradients import tables
from .risk_gradients import RiskFunction, risk_function
from .keywords import helpful
from .layers import Layer, layer_heads
from .tasks import ContextTask
from .measures import Measure, measure
from .random import Stream
from .prompts import Prompt
from .rules import (
    FlatError, FlatHeads, FlatLayer, FlatOutput, FlatRisk, cov_times, hessian_times, last_rows, node_slope, third_cumulant,
    tilted_mean_rows,
)
from .types import Length, whole

jax: Any = import_module("jax")
jnp: Any = import_module("jax.numpy")
softmax: Any = import_module("jax.nn").softmax

# One call after another under vmap; JAX 0.4.34 gave the option a new name and later dropped the old one.
NEW = "vmap_method" in inspect.signature(jax.pure_callback).parameters
SEQUENTIAL: Dict[str, Any] = {"vmap_method": "sequential"} if NEW else {"vectorized": False}

__all__ = [
    "Empirical", "Gaussian", "attention", "expected_output", "layer_risk", "mean_square_error", "risk", "tilted_mean",
    "universal",
]

Array = Any


def __dir__() -> list[str]:
    return sorted(__all__)


@dataclass(frozen=True)
class _Host:
    """``rule(*fixed, ..)`` on float64 arrays; the answer has this shape and dtype.

    Outside of ``jit`` JAX compiles a callback for every one that does not equal an earlier one. Two of the same law and
    shape are equal, so that a second call compiles nothing.
    """

    rule: Callable[..., Any]
    fixed: Tuple[Any, ...]
    shape: Tuple[int, ...]
    dtype: Any

    def __call__(self, *values: Any) -> Any:
        found = self.rule(*self.fixed, *[np.asarray(value, dtype=np.float64) for value in values])
        return np.asarray(found, dtype=self.dtype).reshape(self.shape)


def _host(rule: Callable[..., Any], fixed: Tuple[Any, ...], like: Array, *arguments: Array) -> Array:
    """The rule on the host; the answer has the shape and dtype of ``like``."""
    call = _Host(rule, fixed, tuple(like.shape), like.dtype)
    return jax.pure_callback(call, jax.ShapeDtypeStruct(like.shape, like.dtype), *arguments, **SEQUENTIAL)


def _floating(x: Any) -> Array:
    """An array of JAX; whole numbers become floating ones, whose dtype the answers have."""
    return jnp.asarray(x) * 1.0


# ---- measures


class Gaussian(NamedTuple):
    """N(mean, cov) of arrays cov [d,d] and mean [d], with gradients in both; a pytree, which ``jit`` and ``grad`` take.

    >>> import jax, jax.numpy as jnp, esscher as es, esscher.jax as ej
    >>> slope = jax.grad(lambda cov: ej.tilted_mean(ej.Gaussian(cov), jnp.ones(1)).sum())(jnp.ones((1, 1)))
    >>> float(slope[0, 0])
    1.0
    """

    cov: Array
    mean: Optional[Array] = None

    def moments(self) -> Tuple[Array, Array]:
        """Mean and covariance."""
        G = _floating(self.cov)
        return jnp.zeros_like(G[0]) if self.mean is None else _floating(self.mean), (G + G.T) / 2

    def tilted_mean(self, a: Array) -> Array:
        """m + G a at tilts a [..,d]."""
        m, G = self.moments()
        return m + a @ G


class Empirical(NamedTuple):
    """A prompt of tokens [n,d] with equal weights, with gradients in the tokens; a pytree.

    >>> import jax.numpy as jnp, esscher.jax as ej
    >>> float(ej.Empirical(jnp.asarray([[0.0], [1.0]])).tilted_mean(jnp.zeros(1))[0])
    0.5
    """

    tokens: Array

    def tilted_mean(self, a: Array) -> Array:
        """The softmax mean at tilts a [..,d]."""
        tokens = _floating(self.tokens)
        return softmax(a @ tokens.T, axis=-1) @ tokens


AnyLaw = Union[Gaussian, Empirical, Measure, Array]


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _tilted_mean(mu: Measure, a: Array) -> Array:
    return _host(tilted_mean_rows, (mu,), a, a)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _cov_times(mu: Measure, a: Array, v: Array) -> Array:
    return _host(cov_times, (mu,), a, a, v)


_tilted_mean.defvjp(lambda mu, a: (_tilted_mean(mu, a), a), lambda mu, a, g: (_cov_times(mu, a, g),))
_cov_times.defvjp(
    lambda mu, a, v: (_cov_times(mu, a, v), (a, v)),
    lambda mu, kept, g: (_host(third_cumulant, (mu,), g, *kept, g), _cov_times(mu, kept[0], g)),
)


@helpful
def tilted_mean(law: AnyLaw, a: Array) -> Array:
    """m_a = grad Lambda(a) at tilts a [..,d]: arrays of tokens, measures of arrays, and every measure of ``esscher``.

    >>> import jax.numpy as jnp, esscher as es, esscher.jax as ej
    >>> round(float(ej.tilted_mean(es.Rademacher(1), jnp.ones(1))[0]), 4)
    0.7616
    """
    a = _floating(a)
    if isinstance(law, (Gaussian, Empirical)):
        return law.tilted_mean(a)
    if isinstance(law, jax.Array):
        return Empirical(law).tilted_mean(a)
    rows = jnp.reshape(a, (-1, a.shape[-1]))
    return jnp.reshape(_tilted_mean(measure(law), rows), a.shape)


@helpful
def attention(
    law: AnyLaw,
    z: Array,
    *,
    U: Optional[Array] = None,
    V: Optional[Array] = None,
    K: Optional[Array] = None,
    Q: Optional[Array] = None,
    score_scale: Any = 1.0,
) -> Array:
    """T[mu](z) = V m_a, a = U z with U = s K'Q, for queries z [..,d]; the law is a prompt [n,d] or any measure.

    Gradients of first and second order in z, U, V, K, Q, score_scale, and in the arrays of the law.

    >>> import jax, jax.numpy as jnp, esscher as es, esscher.jax as ej
    >>> slope = jax.grad(lambda U: ej.attention(es.Gaussian([[2.0]]), jnp.ones(1), U=U).sum())(jnp.ones((1, 1)))
    >>> float(slope[0, 0])
    2.0
    """
    if (U is None) == (K is None and Q is None) or (K is None) != (Q is None):
        raise TypeError("attention takes U, or K and Q")
    scores = _floating(U) if U is not None else _floating(K).T @ _floating(Q)
    y = tilted_mean(law, score_scale * (_floating(z) @ scores.T))
    return y if V is None else y @ _floating(V).T


# ---- prompts of finite length


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _node(L: int, which: int, t: Array) -> Array:
    return _host(_column, (L, which), t, t)


def _column(L: int, which: int, t: Any) -> Any:
    return tables(L).at(np.maximum(np.ravel(t), 0.0))[:, which]


def _slope(L: int, which: int, t: Any) -> Any:
    return node_slope(L, which, np.ravel(t))


def _node_backward(L: int, which: int, t: Array, g: Array) -> Tuple[Array]:
    return (g * (_node(L, which + 2, t) if which < 2 else _host(_slope, (L, which), t, t)),)


_node.defvjp(lambda L, which, t: (_node(L, which, t), t), _node_backward)


@helpful
def universal(length: int, t: Array) -> Tuple[Array, Array]:
    """(H, k), k = (M2c/t - H)/t, of so many scores of variance t = tau^2, twice differentiable in t.

    >>> import jax.numpy as jnp, esscher as es, esscher.jax as ej
    >>> H, k = ej.universal(100, jnp.ones(()))
    >>> abs(float(H) - es.universal(100, 1.0).H) < 1e-7
    True
    """
    x, L = _floating(t), whole("universal", "length", length)
    return _node(L, 0, x), _node(L, 1, x)


def _moments(law: AnyLaw) -> Optional[Tuple[Array, Array]]:
    """Mean and covariance; None for laws and Prompts of esscher that are not Gaussian."""
    if isinstance(law, Gaussian):
        return law.moments()
    if isinstance(law, (Empirical, jax.Array)):
        raise CapabilityError("finite prompts of arrays of tokens are in esscher.torch; expected a Gaussian or a law of esscher")
    found = None if isinstance(law, Prompt) else _esscher.gaussian_law(measure(law))
    return None if found is None else (jnp.asarray(found[0]), jnp.asarray(found[1]))


def _rows(of: Any, law: AnyLaw, z: Array, length: Length, U: Array, V: Optional[Array], score_scale: Any, *more: Any) -> Array:
    """The value of the exact engine at each query, for a law that is a constant of the graph."""
    x, u = _floating(z), score_scale * _floating(U)
    v = jnp.eye(u.shape[0], dtype=u.dtype) if V is None else _floating(V)
    f = of(law if isinstance(law, Prompt) else measure(law), length, tuple(np.shape(u)), int(v.shape[0]), *more)
    queries = jnp.reshape(x, (-1, x.shape[-1]))
    return jnp.reshape(jnp.stack([_risk(f, _flat(query, u, v)) for query in queries]), x.shape[:-1])


def _scores(m: Array, G: Array, z: Array, U: Array, V: Optional[Array], score_scale: Any) -> Tuple[Array, ...]:
    """Mean and covariance of the tokens, V, w = G a and t = a'G a."""
    a = score_scale * (_floating(z) @ _floating(U).T)
    w = a @ G
    return m, G, jnp.eye(G.shape[0], dtype=G.dtype) if V is None else _floating(V), w, jnp.sum(a * w, -1)


@helpful
def expected_output(
    law: AnyLaw, z: Array, length: Length, *, U: Array, V: Optional[Array] = None, score_scale: Any = 1.0
) -> Array:
    """E[T_hat(z)] over prompts of this length, for queries z [..,d]; V m + (1 - H) V G U z for Gaussian tokens.

    >>> import jax.numpy as jnp, esscher as es, esscher.jax as ej
    >>> round(float(ej.expected_output(es.Gaussian([[1.0]]), jnp.ones(1), 100, U=jnp.eye(1))[0]), 4)
    0.9745
    """
    moments = _moments(law)
    if moments is None:
        rows = np.shape(U)[0] if V is None else np.shape(V)[0]
        parts = [_rows(FlatOutput, law, z, length, U, V, score_scale, i) for i in range(rows)]
        return jnp.stack(parts, -1)
    m, _, W, w, t = _scores(*moments, z, U, V, score_scale)
    H = 0.0 * t if length == math.inf else universal(whole("expected_output", "length", length), t)[0]
    return (m + (1 - H)[..., None] * w) @ W.T


@helpful
def mean_square_error(
    law: AnyLaw, z: Array, length: Length, *, U: Array, V: Optional[Array] = None, score_scale: Any = 1.0
) -> Array:
    """E|T_hat(z) - T(z)|^2 over prompts of this length at queries z [..,d]; its mean over queries is D(L).

    Gradients of first and second order in z, U, V and score_scale, for every law and ``Prompt`` that the exact engine of
    ``esscher`` serves, and in the arrays of ``ej.Gaussian``.

    >>> import jax.numpy as jnp, esscher as es, esscher.jax as ej
    >>> D = ej.mean_square_error(es.Gaussian([[1.0]]), jnp.ones((1, 1)), 10**6, U=jnp.eye(1)).mean()
    >>> round(float(D) * 10**6, 2)
    5.44
    """
    moments = _moments(law)
    if length == math.inf:
        return 0.0 * jnp.sum(_floating(z), -1)
    if moments is None:
        return _rows(FlatError, law, z, length, U, V, score_scale)
    _, G, W, w, t = _scores(*moments, z, U, V, score_scale)
    H, k = universal(whole("mean_square_error", "length", length), t)
    Vw = w @ W.T
    return jnp.sum(Vw * Vw, -1) * k + jnp.trace(W @ G @ W.T) * H


# ---- risks


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _risk(f: FlatRisk, theta: Array) -> Array:
    return _host(_value, (f,), theta[0], theta)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _risk_slope(f: FlatRisk, theta: Array) -> Array:
    return _host(_gradient, (f,), theta, theta)


def _value(f: FlatRisk, x: Any) -> Any:
    return f(x)[0]


def _gradient(f: FlatRisk, x: Any) -> Any:
    return f(x)[1]


def _hessian(f: FlatRisk, x: Any, v: Any) -> Any:
    return hessian_times(partial(_gradient, f), x, v)


_risk.defvjp(lambda f, theta: (_risk(f, theta), theta), lambda f, theta, g: (g * _risk_slope(f, theta),))
_risk_slope.defvjp(
    lambda f, theta: (_risk_slope(f, theta), theta),
    lambda f, theta, g: (_host(_hessian, (f,), g, theta, g),),
)


def _flat(*parts: Any) -> Array:
    return jnp.concatenate([jnp.ravel(_floating(part)) for part in parts])


def risk(
    task: Any,
    U: Array,
    r: Array,
    length: Length,
    *,
    kind: str = "softmax",
    function: Optional[RiskFunction] = None,
    **options: Any,
) -> Array:
    """R_L(U, r) of one head, U [D,D] and r [D], exact over the tokens; or of H heads, [H,D,D] and [H,D], on fixed prompts.

    options are those of ``esscher.risk_function``. In a loop make the function once and give it: its tables are kept.

    >>> import jax, jax.numpy as jnp, esscher as es, esscher.jax as ej
    >>> task = es.LinearRegressionTask(2)
    >>> U, r = (jnp.asarray(part) for part in es.balanced_start(task))
    >>> tuple(jax.grad(lambda U: ej.risk(task, U, r, 50))(U).shape)
    (3, 3)
    """
    f = risk_function(task, length, kind=kind, **options) if function is None else function
    return _risk(FlatHeads(f, tuple(np.shape(U))), _flat(U, r))


@helpful
def layer_risk(
    task: ContextTask, layer: Layer, length: Length, *, draws: int = 4000, engine: str = "auto",
    seed: Union[Stream, int] = 0,
) -> Array:
    """The risk of a ``Layer`` on a task beyond regression; U [D,D] and V, W [m,D], or lists of U and V for several heads.

    >>> import jax, jax.numpy as jnp, esscher as es, esscher.jax as ej
    >>> task, V = es.DenoisingTask([[1.0], [-1.0]], gamma=0.5, xi=0.5), 0.5 * jnp.ones((1, 1))
    >>> slope = jax.grad(lambda U: ej.layer_risk(task, es.Layer(U, V), es.inf))(jnp.ones((1, 1)))
    >>> bool(slope[0, 0] < 0)      # the best one is 2
    True
    """
    D, m = task.token_dim, task.out_dim
    kinds, U, V = layer_heads(layer)
    parts = [jnp.zeros((m, D)) if layer.W is None else last_rows("W", layer.W, m, D)]
    for u, v in zip(U, V):
        parts += [last_rows("U", u, D, D), last_rows("V", v, m, D)]
    return _risk(FlatLayer(task, tuple(kinds), length, draws, engine, seed), _flat(*parts))
