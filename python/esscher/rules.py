"""Derivatives that the bridges to PyTorch and JAX share, as NumPy functions."""

from __future__ import annotations

import math
from typing import Any, Callable

import numpy as np

from .gradients import tables
from .measures import Measure
from .types import Array

# Central differences of order 8, for the derivatives that have no formula: third cumulants, and Hessians of risks. The
# functions are analytic on the scale of the step, so the error is that of rounding, about 1e-11 of their size.
STENCIL = ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280))


def along(f: Callable[[float], Any], step: float) -> Any:
    """f'(0)."""
    return sum(c * (f(j * step) - f(-j * step)) for j, c in STENCIL) / step


def tilted_mean_rows(mu: Measure, a: Array) -> Array:
    """m_a [n,d] at tilts a [n,d]."""
    return mu.tilted_mean(a)


def cov_times(mu: Measure, a: Array, v: Array) -> Array:
    """C_a v [n,d] at tilts a [n,d] for v [n,d]."""
    return np.stack([mu.tilted_cov_times(x, y) for x, y in zip(a, v)])


def third_cumulant(mu: Measure, a: Array, v: Array, w: Array) -> Array:
    """grad_a <w, C_a v> [n,d], the derivative of C_a v along w."""
    return np.stack([_third(mu, *row) for row in zip(a, v, w)])


def _third(mu: Measure, a: Array, v: Array, w: Array) -> Array:
    size = float(np.linalg.norm(w))
    if size == 0.0:
        return np.zeros_like(a)
    spread = math.sqrt(max(float(np.trace(mu.tilted_cov(a))) / len(a), 1e-300))
    step = 0.02 / max(spread, 1e-3)
    found: Array = size * along(lambda h: mu.tilted_cov_times(a + h * w / size, v), step)
    return found


def node_slope(L: int, which: int, t: Array) -> Array:
    """Derivative in t = tau^2 [n] of a column of the tables (gradients.py)."""
    step = np.minimum(0.02 * np.maximum(t, 0.05), t / 4.0 + 1e-12)
    at = tables(L).at
    parts = [c * (at(t + j * step)[:, which] - at(np.maximum(t - j * step, 0.0))[:, which]) for j, c in STENCIL]
    found: Array = np.sum(parts, axis=0) / step
    return found


def hessian_times(gradient: Callable[[Array], Array], x: Array, v: Array, step: float = 2e-3) -> Array:
    """The derivative of a gradient at x [p] along v [p]."""
    size = float(np.linalg.norm(v))
    if size == 0.0:
        return np.zeros_like(x)
    found: Array = size * along(lambda h: gradient(x + h * v / size), step)
    return found
