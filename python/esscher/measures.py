"""Laws of tokens, seen through Lambda(a) = log E exp(<a, z'>).

Every measure has ``dim``, ``cardinality`` (tokens of a prompt, else ``inf``), ``mean``,
``second_moment()``, ``log_mgf(a)``, ``tilted_mean(a)``, ``tilted_cov(a)``, ``tilted_cov_times(a, v)``,
``sample(stream, n)`` and ``sub_gaussian()``. ``log_mgf`` and ``tilted_mean`` also take many tilts
``a [n,d]`` at once.

Measures give their ``parameters`` back, pickle, copy, and combine by operators (``algebra.py``).
"""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Union

import numpy as np

from . import _esscher
from .algebra import Algebra
from .errors import ArgumentError
from .means import HasMean
from .random import Stream, as_stream
from .recorded import Recorded
from .types import Array, ArrayLike, MeasureLike, covariance, whole


class Measure(Algebra, HasMean, Recorded, _esscher.Measure):
    """Base of all measures. ``esscher.measure(x)`` makes one of an array or of your own object.

    Lambda(a) = log E exp(<a, z'>) is ``log_mgf``; m_a = grad Lambda [d] is ``tilted_mean``, C_a = its
    Hessian [d,d] ``tilted_cov``; tilts a [d], for the first two also [n,d].

    >>> import numpy as np, esscher as es
    >>> mu = es.Rademacher(2)
    >>> mu.dim, mu.cardinality, mu.mean, mu.tilted_cov([0.0, 0.0]).tolist()
    (2, inf, array([0., 0.]), [[1.0, 0.0], [0.0, 1.0]])
    >>> mu.tilted_mean([[0.0, 0.0], [1.0, -1.0]]).round(3).tolist()     # tanh
    [[0.0, 0.0], [0.762, -0.762]]

    ``parameters`` are the arguments of the constructor. ``A @ mu + b``, ``mu + nu`` and
    ``0.3 * mu | 0.7 * nu`` are images, sums and mixtures:

    >>> (2 * np.eye(2)) @ mu + [1.0, 0.0]
    Affine(c=[1.0, 0.0], B=[[2.0, 0.0], [0.0, 2.0]], inner=Rademacher(dim=2))
    """

    def __init__(self, other: _esscher.Measure) -> None:
        super().__init__(other)

    def sample(self, stream: Union[Stream, int], n: int) -> Empirical:
        """n iid tokens as a prompt; token l depends on the stream and l only.

        >>> import esscher as es
        >>> prompt = es.Rademacher(2).sample(7, 3)
        >>> prompt.cardinality, prompt.dim
        (3, 2)
        """
        return Empirical._wrap(self._sample(as_stream(stream), whole("sample", "n", n)))


def measure(value: MeasureLike) -> Measure:
    """A Measure of anything that can be one: a measure, tokens [n,d], or your own object.

    Your object needs ``dim``, ``log_mgf(a)``, ``tilted_mean(a)``, ``tilted_cov(a)`` and
    ``sample(stream, n)`` -> [n,d]; ``mean``, ``second_moment``, ``tilted_cov_times`` and
    ``sub_gaussian`` are optional. It is accepted everywhere a measure is.

    >>> import esscher as es
    >>> es.measure([[0.0, 1.0], [2.0, 3.0]]).mean
    array([1., 2.])
    """
    if isinstance(value, Measure):
        return value
    found = _esscher.measure(value)
    if hasattr(value, "log_mgf"):
        return _Own(value)
    return Empirical._wrap(found)


class _Own(Measure):
    """A measure written in Python, as ``measure`` gives it back."""

    def __init__(self, value: Any) -> None:
        super().__init__(_esscher.measure(value))

    def __repr__(self) -> str:
        return f"measure({self.parameters['value']!r})"


class Empirical(Measure):
    """A finite prompt: tokens [n,d] with weights [n] (equal unless given).

    Lambda(a) = log sum p_l exp(<a, z_l>), m_a = the softmax mean.

    >>> import esscher as es
    >>> prompt = es.Empirical([[0.0], [1.0]])
    >>> round(float(prompt.tilted_mean([1.0])[0]), 6)
    0.731059
    """

    _elsewhere = ("tokens",)

    def __init__(self, tokens: ArrayLike, weights: Optional[ArrayLike] = None) -> None:
        super().__init__(_esscher.empirical(tokens, weights))

    @classmethod
    def fit(cls, tokens: ArrayLike) -> Empirical:
        """The tokens [n,d] themselves, each with mass 1/n.

        >>> import esscher as es
        >>> es.Empirical.fit([[0.0], [1.0]])
        Empirical(tokens=[[0.0], [1.0]])
        """
        return cls(tokens)

    @classmethod
    def _wrap(cls, measure: _esscher.Measure) -> Empirical:
        self = cls.__new__(cls)
        _esscher.Measure.__init__(self, measure)
        self.__dict__["_given"] = {"weights": None}
        return self

    @property
    def tokens(self) -> Array:
        """[n,d], read-only, shares the memory of the measure."""
        return _esscher.tokens(self)

    @property
    def weights(self) -> Array:
        """[n], sum 1."""
        return _esscher.weights(self)

    def tilted_weights(self, a: ArrayLike) -> Array:
        """Softmax weights [n] at the tilt a.

        >>> import esscher as es
        >>> es.Empirical([[0.0], [1.0]]).tilted_weights([0.0])
        array([0.5, 0.5])
        """
        return _esscher.tilted_weights(self, a)


class Gaussian(Measure):
    """N(mean, cov), cov [d,d] PSD and possibly singular, or a number and dim; centred unless mean [d] is given.

    Lambda(a) = <a,m> + a'Ga/2, m_a = m + Ga, C_a = G.

    >>> import esscher as es
    >>> es.Gaussian([[2.0, 0.0], [0.0, 1.0]]).tilted_mean([1.0, 1.0])
    array([2., 1.])
    >>> es.Gaussian(0.1, dim=2).cov.tolist()
    [[0.1, 0.0], [0.0, 0.1]]
    """

    def __init__(self, cov: ArrayLike, mean: Optional[ArrayLike] = None, *, dim: Optional[int] = None) -> None:
        super().__init__(_esscher.gaussian(covariance("gaussian", cov, mean, dim), mean))

    @property
    def cov(self) -> Array:
        """The covariance [d,d]."""
        return covariance("gaussian", self.parameters["cov"], None, self.dim)

    @classmethod
    def fit(cls, tokens: ArrayLike) -> Gaussian:
        """The most likely Gaussian of tokens [n,d]: their mean, and their covariance divided by n.

        >>> import esscher as es
        >>> es.Gaussian.fit([[0.0], [2.0]])
        Gaussian(cov=[[1.0]], mean=[1.0])
        """
        points = _esscher.measure(tokens)
        m = points._mean()
        return cls(points.second_moment() - np.outer(m, m), m)


class Rademacher(Measure):
    """Coordinates +-1 with probability 1/2: Lambda(a) = sum log cosh a_i.

    >>> import esscher as es
    >>> round(float(es.Rademacher(1).log_mgf([1.0])), 6)
    0.433781
    """

    def __init__(self, dim: int) -> None:
        super().__init__(_esscher.rademacher(whole("rademacher", "dim", dim)))


class Uniform(Measure):
    """Coordinates uniform on [-1, 1]: Lambda(a) = sum log(sinh a_i / a_i).

    >>> import esscher as es
    >>> round(float(es.Uniform(1).tilted_mean([1.0])[0]), 6)
    0.313035
    """

    def __init__(self, dim: int) -> None:
        super().__init__(_esscher.uniform(whole("uniform", "dim", dim)))


class Laplace(Measure):
    """Coordinates of density e^{-|x|/b}/2b; needs |a_i| < 1/b, not sub-Gaussian.

    >>> import esscher as es
    >>> es.Laplace(1, 1.0).log_mgf([2.0])
    Traceback (most recent call last):
    ...
    esscher.errors.DomainError: laplace: a[0] is 2, expected |a| < 1/b = 1 (the log-MGF is infinite outside)
    """

    b: float

    def __init__(self, dim: int, b: float = 1.0) -> None:
        super().__init__(_esscher.laplace(whole("laplace", "dim", dim), b))


class Sphere(Measure):
    """Uniform on the sphere of radius R in R^d: Lambda(a) = log 0F1(; d/2; R^2|a|^2/4).

    >>> import esscher as es
    >>> round(float(es.Sphere(3).log_mgf([1.0, 0.0, 0.0])), 6)  # log sinh(1)
    0.161439
    """

    radius: float

    def __init__(self, dim: int, radius: float = 1.0) -> None:
        super().__init__(_esscher.sphere(whole("sphere", "dim", dim), radius))


class Ball(Measure):
    """Uniform on the ball of radius R in R^d.

    >>> import esscher as es
    >>> round(es.Ball(2).sub_gaussian(), 6)
    0.5
    """

    radius: float

    def __init__(self, dim: int, radius: float = 1.0) -> None:
        super().__init__(_esscher.ball(whole("ball", "dim", dim), radius))


class Categorical(Measure):
    """One-hot tokens with probabilities probs [d] (divided by their sum).

    >>> import esscher as es
    >>> es.Categorical([1, 1, 2]).mean
    array([0.25, 0.25, 0.5 ])
    """

    def __init__(self, probs: ArrayLike) -> None:
        super().__init__(_esscher.categorical(probs))

    @property
    def probs(self) -> Array:
        """[d], sum 1."""
        return _esscher.weights(self)


class Dirac(Measure):
    """All mass on one point [d].

    >>> import esscher as es
    >>> es.Dirac([1.0, 2.0]).tilted_mean([5.0, 0.0])
    array([1., 2.])
    """

    def __init__(self, point: ArrayLike) -> None:
        super().__init__(_esscher.dirac(point))


class Elliptical(Measure):
    """Scale mixture of Gaussians: the covariance is ``scales[i] * cov`` with probability ``weights[i]``.

    Lambda(a) = <a,m> + log sum p_i exp(w_i a'Ga/2).

    >>> import esscher as es
    >>> law = es.Elliptical([[1.0]], scales=[0.5, 2.0])
    >>> float(law.tilted_cov([0.0])[0, 0])
    1.25
    """

    def __init__(
        self,
        cov: ArrayLike,
        scales: ArrayLike,
        weights: Optional[ArrayLike] = None,
        mean: Optional[ArrayLike] = None,
    ) -> None:
        super().__init__(_esscher.elliptical(cov, scales, weights, mean))

    @classmethod
    def gamma(
        cls, cov: ArrayLike, shape: float, bound: float, mean: Optional[ArrayLike] = None
    ) -> Elliptical:
        """The factor is a gamma law of mean 1 and this shape, cut off at ``bound``, at 64 Gauss nodes.

        >>> import esscher as es
        >>> round(float(es.Elliptical.gamma([[1.0]], shape=2.0, bound=6.0).second_moment()[0, 0]), 6)
        0.999558
        """
        scales, weights = _esscher.gamma_scales(shape, bound)
        return cls(cov, scales, weights, mean)


class Student(Measure):
    """Student tokens with nu degrees of freedom; ``cov`` is the covariance of the Gaussian inside.

    Lambda is infinite, so prompts have no limit; finite prompts are served.

    >>> import esscher as es
    >>> law = es.Student(5, [[1.0]])
    >>> float(law.second_moment()[0, 0].round(6))
    1.666667
    >>> law.log_mgf([1.0])
    Traceback (most recent call last):
    ...
    esscher.errors.DomainError: student: Lambda(a) is infinite at every tilt a with Ga != 0, because the tails of nu = 5 are polynomial; such prompts have no limit, finite ones are served
    """

    def __init__(self, nu: float, cov: ArrayLike, mean: Optional[ArrayLike] = None) -> None:
        super().__init__(_esscher.student(nu, cov, mean))


class SingleIndex(Measure):
    """Tokens (x, y) with x ~ N(0, cov) [d] and y = link(index . x) + noise.

    ``link`` is "sign", "probit", "tanh", "relu", "sin", "erf", "polynomial" (with ``coefficients``
    c0, c1, c2) or a function of an array, smooth between its ``kinks`` and of at most linear growth.

    >>> import numpy as np, esscher as es
    >>> law = es.SingleIndex([[1.0]], [1.0], link="sign")
    >>> round(float(law.tilted_mean([0.5, 0.0])[1]), 6)     # 2 Phi(0.5) - 1
    0.382925
    >>> own = es.SingleIndex([[1.0]], [1.0], link=np.abs, kinks=[0.0])
    >>> round(float(own.mean[1]), 6)                        # sqrt(2/pi)
    0.797885
    """

    def __init__(
        self,
        cov: ArrayLike,
        index: ArrayLike,
        link: Union[str, Callable[[Array], ArrayLike]] = "tanh",
        noise_variance: float = 0.0,
        coefficients: Optional[ArrayLike] = None,
        kinks: Optional[ArrayLike] = None,
    ) -> None:
        super().__init__(_esscher.single_index(cov, index, link, noise_variance, coefficients, kinks))


class Stationary(Measure):
    """A stationary Gaussian sequence of tokens, each with the Gaussian law ``of``.

    Give ``autocorrelation`` = [r1, r2, ..] (0 beyond), or ``ar``: a number or numbers (coefficients of
    an autoregression), a matrix [d,d], or matrices [p,d,d]. A sample is a stretch of the sequence. The
    limit is that of independent tokens; engines that need those refuse it.

    >>> import numpy as np, esscher as es
    >>> G = np.array([[1.0, 0.3], [0.3, 0.5]])
    >>> head = es.Attention(U=np.eye(2), V=[[1.0, 0.5], [0.0, 2.0]])
    >>> tokens = es.Stationary(es.Gaussian(G), ar=0.8)
    >>> round(es.asymptotic_constant(tokens, head, [0.7, -0.4]), 2)     # independent: 5.63
    40.11
    """

    def __init__(
        self, of: MeasureLike, autocorrelation: Optional[ArrayLike] = None, ar: Optional[ArrayLike] = None
    ) -> None:
        if (autocorrelation is None) == (ar is None):
            raise ArgumentError("Stationary: expected one of autocorrelation and ar")
        matrices = None
        if ar is not None:
            given = np.asarray(ar, dtype=np.float64)
            unit = np.eye(measure(of).dim)
            if given.ndim < 2:
                matrices = [x * unit for x in np.atleast_1d(given)]
            else:
                matrices = [given] if given.ndim == 2 else list(given)
        super().__init__(_esscher.stationary(of, autocorrelation, matrices))

    @classmethod
    def fit(cls, tokens: ArrayLike) -> Stationary:
        """Mean, covariance and autocorrelations of tokens [n,d] in their order.

        >>> import numpy as np, esscher as es
        >>> walk = es.Stationary(es.Gaussian([[1.0]]), ar=0.6).sample(1, 4000).tokens
        >>> bool(abs(es.Stationary.fit(walk).autocovariances()[1][0, 0] - 0.6) < 0.15)
        True
        """
        found = _esscher.stationary_fit(tokens)
        lags = _esscher.autocovariances(found)
        size = float(np.trace(lags[0]))
        r = [float(np.trace(G)) / size if size > 0 else 0.0 for G in lags[1:]]
        return cls(Gaussian(lags[0], found._mean()), autocorrelation=r)

    def autocovariances(self) -> List[Array]:
        """G_0, G_1, .. [d,d] with G_k = Cov(z_0, z_k)."""
        return _esscher.autocovariances(self)
