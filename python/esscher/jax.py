"""The bridge to JAX: attention on measures, exact risks and D(L) through ``custom_vjp`` and a callback on the host.

    import jax, esscher as es, esscher.jax as ej

Importing it needs JAX (0.4 or later). First and second derivatives in reverse mode; ``jit`` and ``vmap`` work, the latter
one call after another. JAX computes in float32 unless ``jax_enable_x64`` is set; the callbacks compute in float64.
"""

from __future__ import annotations

import inspect
from functools import partial
from importlib import import_module
from typing import Any, Callable, Dict, Tuple

import numpy as np

from .gradients import risk_function, tables
from .layers import ContextTask, Layer, layer_heads
from .measures import Measure, measure
from .rules import (
    FlatRisk, cov_times, flat_layer_risk, flat_risk, hessian_times, node_slope, third_cumulant, tilted_mean_rows,
)
from .types import Length, MeasureLike, whole

jax: Any = import_module("jax")
jnp: Any = import_module("jax.numpy")

# One call after another under vmap; JAX 0.4.34 gave the option a new name and later dropped the old one.
NEW = "vmap_method" in inspect.signature(jax.pure_callback).parameters
SEQUENTIAL: Dict[str, Any] = {"vmap_method": "sequential"} if NEW else {"vectorized": False}

__all__ = ["attention", "layer_risk", "mean_square_error", "risk", "tilted_mean"]


def _host(f: Callable[..., Any], like: Any, *arguments: Any) -> Any:
    """f on the host, on float64 arrays; the answer has the shape and dtype of ``like``."""

    def call(*values: Any) -> Any:
        found = f(*[np.asarray(value, dtype=np.float64) for value in values])
        return np.asarray(found, dtype=like.dtype).reshape(like.shape)

    return jax.pure_callback(call, jax.ShapeDtypeStruct(like.shape, like.dtype), *arguments, **SEQUENTIAL)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _tilted_mean(mu: Measure, a: Any) -> Any:
    return _host(partial(tilted_mean_rows, mu), a, a)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _cov_times(mu: Measure, a: Any, v: Any) -> Any:
    return _host(partial(cov_times, mu), a, a, v)


_tilted_mean.defvjp(lambda mu, a: (_tilted_mean(mu, a), a), lambda mu, a, g: (_cov_times(mu, a, g),))
_cov_times.defvjp(
    lambda mu, a, v: (_cov_times(mu, a, v), (a, v)),
    lambda mu, kept, g: (_host(partial(third_cumulant, mu), g, *kept, g), _cov_times(mu, kept[0], g)),
)


def tilted_mean(law: MeasureLike, a: Any) -> Any:
    """m_a = grad Lambda(a) at tilts a [..,d]."""
    rows = jnp.reshape(a, (-1, a.shape[-1]))
    return jnp.reshape(_tilted_mean(measure(law), rows), a.shape)


def attention(law: MeasureLike, z: Any, U: Any, V: Any = None) -> Any:
    """T[mu](z) = V m_a, a = U z, for queries z [..,d]; differentiable in z, U and V."""
    y = tilted_mean(law, z @ U.T)
    return y if V is None else y @ V.T


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _node(L: int, which: int, t: Any) -> Any:
    return _host(lambda x: tables(L).at(np.maximum(np.ravel(x), 0.0))[:, which], t, t)


def _node_backward(L: int, which: int, t: Any, g: Any) -> Tuple[Any]:
    if which < 2:
        return (g * _node(L, which + 2, t),)
    return (g * _host(lambda x: node_slope(L, which, np.ravel(x)), t, t),)


_node.defvjp(lambda L, which, t: (_node(L, which, t), t), _node_backward)


def mean_square_error(cov: Any, z: Any, length: int, U: Any, V: Any = None) -> Any:
    """E|T_hat(z) - T(z)|^2 at queries z [..,d] for tokens N(m, cov) and any m; differentiable in cov, z, U and V."""
    W = jnp.eye(cov.shape[0]) if V is None else V
    a = z @ U.T
    w = a @ cov
    t = jnp.sum(a * w, -1)
    Vw = w @ W.T
    L = whole("mean_square_error", "length", length)
    H, k = _node(L, 0, t), _node(L, 1, t)
    return jnp.sum(Vw * Vw, -1) * k + jnp.trace(W @ cov @ W.T) * H


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _risk(f: FlatRisk, theta: Any) -> Any:
    return _host(lambda x: f(x)[0], theta[0], theta)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _risk_slope(f: FlatRisk, theta: Any) -> Any:
    return _host(lambda x: f(x)[1], theta, theta)


def _hessian(f: FlatRisk, theta: Any, v: Any) -> Any:
    return hessian_times(lambda x: f(x)[1], theta, v)


_risk.defvjp(lambda f, theta: (_risk(f, theta), theta), lambda f, theta, g: (g * _risk_slope(f, theta),))
_risk_slope.defvjp(
    lambda f, theta: (_risk_slope(f, theta), theta),
    lambda f, theta, g: (_host(partial(_hessian, f), g, theta, g),),
)


def risk(task: Any, U: Any, r: Any, length: Length, *, kind: str = "softmax", function: Any = None) -> Any:
    """R_L(U, r) of one head, U [D,D] and r [D], exact over the tokens; or of H heads, [H,D,D] and [H,D], on fixed prompts."""
    f = risk_function(task, length, kind=kind) if function is None else function
    return _risk(flat_risk(f, tuple(U.shape)), jnp.concatenate([jnp.ravel(U), jnp.ravel(r)]))


def layer_risk(task: ContextTask, layer: Layer, length: Length, **options: Any) -> Any:
    """The risk of a ``Layer`` on a task beyond regression; U [D,D] and V, W [m,D], or lists of U and V for several heads."""
    kinds, U, V = layer_heads(layer)
    W = jnp.zeros((task.out_dim, task.token_dim)) if layer.W is None else layer.W
    parts = [W] + [matrix for pair in zip(U, V) for matrix in pair]
    f = flat_layer_risk(task, kinds, length, **options)
    return _risk(f, jnp.concatenate([jnp.ravel(part) for part in parts]))
