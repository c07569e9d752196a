"""Operators on measures that read like mathematics.

    A @ mu + b            the law of A z' + b              (Affine; a Gaussian stays a Gaussian)
    mu + nu               the law of z' + z'', independent (Sum)
    0.3 * mu | 0.7 * nu   the mixture                      (Mixture)

A number times a measure is a mass, as in mathematics, and not a scaled token: the law of 2 z' is
``2 * np.eye(d) @ mu``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, List, Tuple

import numpy as np

from . import _esscher
from .errors import DimensionError
from .types import Array, ArrayLike, as_array

if TYPE_CHECKING:
    from .composed import Mixture
    from .measures import Measure


def _is_measure(value: Any) -> bool:
    return isinstance(value, _esscher.Measure) or hasattr(value, "log_mgf")


@dataclass(frozen=True, eq=False)
class Weighted:
    """A measure with a mass, a part of a mixture: ``0.3 * mu | 0.7 * nu``.

    >>> import esscher as es
    >>> 0.25 * es.Rademacher(1) | 0.75 * es.Uniform(1)
    Mixture(weights=[0.25, 0.75], components=[Rademacher(dim=1), Uniform(dim=1)])
    """

    mass: float
    measure: Measure

    def __or__(self, other: Any) -> Mixture:
        return mixture(self, other)

    __ror__ = __or__

    def _joined(self, other: Any) -> Any:
        raise TypeError(f"{self.mass:g} * mu is mu with a mass: 0.3 * mu | 0.7 * nu is a mixture, and {self.mass:g} * np.eye(d) @ mu + b "
                        "the law of scaled and moved tokens")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rmatmul__ = _joined
    __array_ufunc__ = None

    def __repr__(self) -> str:
        return f"{self.mass} * {self.measure!r}"


def parts_of(value: Any) -> List[Tuple[float, Measure]]:
    """Masses and laws that a side of | adds; a mixture adds its components."""
    from .composed import Mixture
    from .measures import measure

    if isinstance(value, Weighted):
        if isinstance(value.measure, Mixture):
            return [(value.mass * float(w), part) for w, part in zip(value.measure.weights, value.measure.components)]
        return [(value.mass, value.measure)]
    if isinstance(value, Mixture):
        return [(float(w), part) for w, part in zip(value.parameters["weights"], value.components)]
    return [(1.0, measure(value))]


def mixture(*sides: Any) -> Mixture:
    """The mixture of the parts of all sides."""
    from .composed import Mixture

    parts = [part for side in sides for part in parts_of(side)]
    return Mixture([mass for mass, _ in parts], [law for _, law in parts])


def image(mu: Measure, B: Array, c: Array) -> Measure:
    """The law of B z' + c: a Gaussian where mu is one, and never an image of an image."""
    from .composed import Affine
    from .measures import Gaussian

    if B.shape[-1] != mu.dim:
        raise DimensionError(f"A @ mu: A has shape {B.shape}, expected {mu.dim} columns")
    if isinstance(mu, Gaussian):
        return Gaussian(B @ mu.cov @ B.T, B @ mu.mean + c)
    if isinstance(mu, Affine):
        return Affine(B @ mu.c + c, B @ mu.B, mu.inner)
    return Affine(c, B, mu)


class Algebra:
    """The operators; mixed into Measure."""

    # NumPy leaves A @ mu and b + mu to the measure.
    __array_ufunc__ = None

    def __rmatmul__(self: Any, A: ArrayLike) -> Measure:
        B = np.atleast_2d(np.asarray(as_array(A), dtype=np.float64))
        return image(self, B, np.zeros(len(B)))

    def __add__(self: Any, other: Any) -> Measure:
        from .composed import Sum

        if isinstance(other, Weighted):
            return NotImplemented
        if _is_measure(other):
            return Sum([self, other])
        b = np.broadcast_to(np.asarray(as_array(other), dtype=np.float64), (self.dim,))
        return image(self, np.eye(self.dim), b)

    def __radd__(self: Any, other: Any) -> Measure:
        from .composed import Sum

        if _is_measure(other):
            return Sum([other, self])
        found: Measure = self + other
        return found

    def __sub__(self: Any, b: ArrayLike) -> Measure:
        if _is_measure(b):
            raise TypeError("mu - nu: a difference of laws is no law; mu + (-nu) is the law of z' - z''")
        found: Measure = self + -np.asarray(as_array(b), dtype=np.float64)
        return found

    def __neg__(self: Any) -> Measure:
        return image(self, -np.eye(self.dim), np.zeros(self.dim))

    def __rmul__(self: Any, mass: Any) -> Weighted:
        if not isinstance(mass, (int, float, np.floating, np.integer)) or isinstance(mass, bool) or not mass >= 0:
            raise TypeError(f"c * mu: c is {mass!r}, expected a mass >= 0; the law of A z' is A @ mu")
        return Weighted(float(mass), self)

    __mul__ = __rmul__

    def __truediv__(self: Any, other: Any) -> Any:
        raise TypeError("mu / c: a number times a measure is a mass; the law of z' / c is np.eye(d) / c @ mu")

    def __matmul__(self: Any, other: Any) -> Any:
        raise TypeError("mu @ A: a matrix stands before the law of its tokens, A @ mu")

    def __or__(self, other: Any) -> Mixture:
        return mixture(self, other)

    def __ror__(self, other: Any) -> Mixture:
        return mixture(other, self)
