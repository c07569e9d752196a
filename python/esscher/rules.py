"""Derivatives that the bridges to PyTorch and JAX share, as NumPy functions. Third cumulants and Hessians of risks have no
formula; they are differences (differences.py)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Tuple, Union

import numpy as np

from . import _esscher
from .differences import STENCIL, along
from .errors import DimensionError
from .attention import Attention
from .finite import expected_output, mean_square_error
from .gradients import error_gradient, output_gradient, tables
from .risk_gradients import RiskFunction
from .icl import Readout
from .tasks import ContextTask
from .measures import Measure
from .random import Stream, as_stream
from .types import Array, Length

# A risk and its gradient as a function of all parameters in one vector.
FlatRisk = Callable[[Array], Tuple[float, Array]]


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


def _heads(x: Array, shape: Tuple[int, ...]) -> Union[Readout, List[Readout]]:
    size = math.prod(shape)
    U, r = x[:size].reshape(shape), x[size:].reshape(shape[:-1])
    return Readout(U, r) if U.ndim == 2 else [Readout(*head) for head in zip(U, r)]


@dataclass(frozen=True)
class FlatHeads:
    """The risk as a function of U, of this shape, [D,D] or [H,D,D], followed by r."""

    f: RiskFunction
    shape: Tuple[int, ...]

    def __call__(self, x: Array) -> Tuple[float, Array]:
        at = _heads(x, self.shape)
        value, slope = self.f.gradient(at)
        pairs = [slope] if isinstance(slope, Readout) else slope
        return value, np.concatenate([pair.U.ravel() for pair in pairs] + [pair.r for pair in pairs])


def last_rows(name: str, x: Any, rows: int, cols: int) -> Any:
    """The last rows of a matrix of any library, which act."""
    shape = tuple(x.shape)
    if len(shape) != 2 or shape[1] != cols or shape[0] not in (rows, cols):
        raise DimensionError(f"layer_risk: {name} has shape {list(shape)}, expected [{rows},{cols}]")
    return x[shape[0] - rows :]


@dataclass(frozen=True)
class FlatLayer:
    """The risk of a layer as a function of W [m,D], followed by U [D,D] and V [m,D] of each head."""

    task: ContextTask
    kinds: Tuple[str, ...]
    length: Length
    draws: int = 4000
    engine: str = "auto"
    seed: Union[Stream, int] = 0

    def __call__(self, x: Array) -> Tuple[float, Array]:
        D, m = self.task.token_dim, self.task.out_dim
        shapes = [(m, D)] + [(D, D), (m, D)] * len(self.kinds)
        ends = np.cumsum([rows * cols for rows, cols in shapes])[:-1]
        W, *rest = (part.reshape(shape) for part, shape in zip(np.split(x, ends), shapes))
        heads = list(zip(self.kinds, rest[::2], rest[1::2]))
        options: Dict[str, Any] = {"engine": self.engine, "draws": self.draws, "stream": as_stream(self.seed)}
        value, (dW, slopes) = _esscher.layer_risk_gradient(self.task, W, heads, self.length, options)
        parts = [dW] + [matrix for _, dU, dV in slopes for matrix in (dU, dV)]
        return value, np.concatenate([part.ravel() for part in parts])


class _Both:
    """A value, and a gradient that is computed when it is asked for."""

    def __init__(self, value: Callable[[], float], gradient: Callable[[], Array]) -> None:
        self._parts = (value, gradient)

    def __getitem__(self, part: int) -> Any:
        return self._parts[part]()

    def __iter__(self) -> Iterator[Any]:
        return (part() for part in self._parts)


@dataclass(frozen=True)
class FlatError:
    """E|T_hat - T|^2 as a function of z [d], followed by U [d,d] and V [dv,d]."""

    law: Any
    length: Length
    shape: Tuple[int, ...]
    rows: int

    def _at(self, x: Array) -> Tuple[Attention, Array]:
        d, (rows, cols) = self.shape[0], self.shape
        z, U, V = np.split(x, [cols, cols + rows * cols])
        return Attention(U=U.reshape(rows, cols), V=V.reshape(self.rows, d)), z

    def _value(self, head: Attention, z: Array) -> float:
        return mean_square_error(self.law, head, z, self.length, engine="exact").value

    def _slope(self, head: Attention, z: Array) -> Any:
        return error_gradient(self.law, head, z, self.length)

    def __call__(self, x: Array) -> Any:
        head, z = self._at(x)

        def gradient() -> Array:
            slope = self._slope(head, z)
            return np.concatenate([slope.z, slope.U.ravel(), slope.V.ravel()])

        return _Both(lambda: self._value(head, z), gradient)


@dataclass(frozen=True)
class FlatOutput(FlatError):
    """Entry ``which`` of E T_hat as a function of the same."""

    which: int

    def _value(self, head: Attention, z: Array) -> float:
        return float(expected_output(self.law, head, z, self.length)[self.which])

    def _slope(self, head: Attention, z: Array) -> Any:
        return output_gradient(self.law, head, z, self.length, np.eye(self.rows)[self.which])
