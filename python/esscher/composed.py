"""Measures made of others: images, products, sums and mixtures."""

from __future__ import annotations

from typing import Iterable, List, Union

from . import _esscher
from .errors import CapabilityError
from .measures import Empirical, Gaussian, Measure, measure
from .random import Stream, as_stream
from .types import Array, ArrayLike, MeasureLike


class Affine(Measure):
    """The image c + B z' of another measure: c [d], B [d,k], inner on R^k.

    >>> import esscher as es
    >>> es.Affine([1.0, 0.0], [[1.0], [2.0]], es.Rademacher(1)).mean
    array([1., 0.])
    """

    c: Array
    B: Array

    def __init__(self, c: ArrayLike, B: ArrayLike, inner: MeasureLike) -> None:
        super().__init__(_esscher.affine(c, B, inner))

    @property
    def inner(self) -> Measure:
        """The measure on R^k."""
        return measure(self.parameters["inner"])


class _Composed(Measure):
    @property
    def components(self) -> List[Measure]:
        """The measures this one is made of, with their classes."""
        return [measure(part) for part in list(self.parameters.values())[-1]]


class Product(_Composed):
    """Independent blocks side by side; dimensions add.

    >>> import esscher as es
    >>> es.Product([es.Rademacher(2), es.Sphere(3)]).dim
    5
    """

    def __init__(self, blocks: Iterable[MeasureLike]) -> None:
        super().__init__(_esscher.product(blocks))


class Sum(_Composed):
    """Sum of independent parts of one dimension, e.g. a measure plus Gaussian noise.

    >>> import esscher as es
    >>> es.Sum([es.Rademacher(1), es.Gaussian([[1.0]])]).tilted_cov([0.0])
    array([[2.]])
    """

    def __init__(self, parts: Iterable[MeasureLike]) -> None:
        super().__init__(_esscher.sum(parts))


class Mixture(_Composed):
    """Finite mixture with weights [k] (divided by their sum).

    >>> import esscher as es
    >>> cloud = [[0.1]]
    >>> two = es.Mixture([1, 1], [es.Gaussian(cloud, [-1.0]), es.Gaussian(cloud, [1.0])])
    >>> round(float(two.tilted_mean([1.0])[0]), 6)  # 0.1 + tanh(1)
    0.861594
    """

    def __init__(self, weights: ArrayLike, components: Iterable[MeasureLike]) -> None:
        super().__init__(_esscher.mixture(weights, components))

    @classmethod
    def fit(
        cls,
        tokens: ArrayLike,
        components: int,
        *,
        seed: Union[Stream, int] = 0,
        restarts: int = 3,
        iterations: int = 200,
        tolerance: float = 1e-6,
        floor: float = 1e-6,
    ) -> Mixture:
        """A mixture of Gaussians of tokens [n,d] by expectation-maximisation from k-means++ starts.

        It stops when a step raises the mean log-likelihood by less than ``tolerance`` nats, or after
        ``iterations`` steps. ``floor`` times the mean variance of the tokens is added to every covariance, which keeps
        components of few tokens invertible.

        >>> import numpy as np, esscher as es
        >>> two = 0.5 * es.Gaussian([[0.1]], [-1.0]) | 0.5 * es.Gaussian([[0.1]], [1.0])
        >>> found = es.Mixture.fit(two.sample(0, 4000), 2)
        >>> sorted(float(part.mean[0].round(1)) for part in found.components)
        [-1.0, 1.0]
        """
        points = measure(tokens)
        if not isinstance(points, Empirical) or points.parameters["weights"] is not None:
            raise CapabilityError(f"Mixture.fit: tokens are {points.name}, expected tokens [n,d] of equal weights")
        weights, means, covs = _esscher.fit_mixture(
            points.tokens, components, as_stream(seed), restarts, iterations, tolerance, floor
        )
        return cls(weights, [Gaussian(G, m) for m, G in zip(means, covs)])

    @property
    def weights(self) -> Array:
        """[k], sum 1."""
        return _esscher.weights(self)
