"""In-context tasks beyond regression of one law: what is drawn for every prompt, and what is to be told of it."""

from __future__ import annotations

from typing import Any, Callable, Dict, NamedTuple, Optional, Union

import numpy as np

from . import _esscher
from .errors import ArgumentError, DimensionError
from .random import Stream, as_stream
from .recorded import Recorded
from .results import compared
from .types import Array, ArrayLike, as_array, whole


def _columns(where: str, name: str, value: ArrayLike) -> int:
    shape = as_array(value).shape
    if len(shape) != 2:
        raise DimensionError(f"{where}: {name} has shape {list(shape)}, expected two axes")
    return int(shape[1])


def _check_means(where: str, means: Optional[ArrayLike], means_law: str) -> None:
    """Means are given, or a law draws them: never both, never neither."""
    if means is None and means_law == "fixed":
        raise ArgumentError(f"{where}: means is None, expected [K,d], or means_law \"gaussian\" or \"sphere\"")
    if means is not None and means_law in ("gaussian", "sphere"):
        raise ArgumentError(f"{where}: means_law is {means_law!r}, which draws means, expected \"fixed\" beside means")


@compared
class ContextDraw(NamedTuple):
    """One draw of a task beyond regression: query z [D], target [m], E[target | law, z] [m] and a prompt [n,D].

    >>> import esscher as es
    >>> es.PoolTask([[1.0], [-1.0]]).draw(0, 5).prompt.shape
    (5, 2)
    """

    query: Array
    target: Array
    expected: Array
    prompt: Array


class _Task(Recorded, _esscher.ContextTask):
    """What every task beyond regression does."""

    def draw(self, stream: Union[Stream, int], n: int) -> ContextDraw:
        """A law, a query, its target, what a predictor that knows the law expects of it, and a prompt of n tokens."""
        return ContextDraw(*self._draw(as_stream(stream), whole("draw", "n", n)))

    def posterior_mean(self, prompt: ArrayLike, query: ArrayLike) -> Array:
        """E[target | prompt, query] [m] from the tokens of a prompt [n,D], for tasks whose law changes with the prompt.

        It is a formula or a quadrature where there is one (see ReferenceRisks), and the mean of 4000 steps of a Markov
        chain otherwise.

        >>> import esscher as es
        >>> task = es.PoolTask([[1.0], [-1.0]], noise_variance=0.1)
        >>> task.posterior_mean([[1.0, 0.9], [2.0, 2.1]], [3.0, 0.0]).round(6)
        array([3.])
        """
        return self._posterior_mean(prompt, query)


class DenoisingTask(_Task):
    """Clean points of a mixture sum_k pi_k N(m_k, gamma^2 I); tokens and query have noise of deviation xi, the target has none.

    means [K,d]; or means_law "gaussian" or "sphere" with dim, components and mean_scale (deviation or radius): means
    are then drawn anew for every prompt.

    >>> import esscher as es
    >>> es.DenoisingTask([[1.0, 0.0], [-1.0, 0.0]], gamma=0.5, xi=0.5).token_dim
    2
    """

    def __init__(
        self,
        means: Optional[ArrayLike] = None,
        *,
        weights: Optional[ArrayLike] = None,
        gamma: float = 1.0,
        xi: float = 1.0,
        means_law: str = "fixed",
        dim: int = 1,
        components: int = 2,
        mean_scale: float = 1.0,
    ) -> None:
        _check_means("DenoisingTask", means, means_law)
        given: Dict[str, Any] = {
            "means": means, "weights": weights, "gamma": gamma, "xi": xi, "means_law": means_law,
            "dim": whole("DenoisingTask", "dim", dim),
            "components": whole("DenoisingTask", "components", components), "mean_scale": mean_scale,
        }
        super().__init__("denoising", given)


class ClassificationTask(_Task):
    """Two Gaussian classes of labels +1 and -1: tokens (x, y), query (x, 0), target y.

    means [2,d], the first of +1; or means_law "gaussian" or "sphere" with dim and mean_scale, drawn for every prompt.
    cov [d,d], the identity unless given. loss "squared", or "logistic" for risks that are means of log(1 + e^(-y out)).

    >>> import esscher as es
    >>> task = es.ClassificationTask([[1.0], [-1.0]])
    >>> round(es.reference_risks(task, es.inf).affine.value, 6)
    0.25
    """

    def __init__(
        self,
        means: Optional[ArrayLike] = None,
        *,
        cov: Optional[ArrayLike] = None,
        weights: Optional[ArrayLike] = None,
        means_law: str = "fixed",
        dim: int = 1,
        mean_scale: float = 1.0,
        loss: str = "squared",
    ) -> None:
        _check_means("ClassificationTask", means, means_law)
        size = whole("ClassificationTask", "dim", dim) if means is None else _columns("ClassificationTask", "means", means)
        super().__init__("classification", {
            "means": means, "cov": np.eye(size) if cov is None else cov, "weights": weights,
            "means_law": means_law, "dim": size, "components": 2, "mean_scale": mean_scale, "loss": loss,
        })


class SingleIndexTask(_Task):
    """Labels g(w'x) + noise with w anew for every prompt: tokens (x, y), query (x, 0), target g(w'x).

    cov: an integer d for the identity, or Sigma [d,d]. link: a word ("sign", "probit", "tanh", "relu", "sin", "erf",
    "polynomial" with coefficients), or a function of an array with its kinks. index_law: w ~ N(0, task_variance I)
    ("gaussian"), or uniform on the sphere of radius sqrt(task_variance) ("sphere").

    >>> import esscher as es
    >>> es.SingleIndexTask(2, link="sign").token_dim
    3
    """

    def __init__(
        self,
        cov: Union[int, ArrayLike],
        *,
        link: Union[str, Callable[[Array], ArrayLike]] = "tanh",
        coefficients: Optional[ArrayLike] = None,
        kinks: Optional[ArrayLike] = None,
        index_law: str = "gaussian",
        task_variance: float = 1.0,
        noise_variance: float = 0.0,
        query_noise: bool = False,
    ) -> None:
        sigma = np.eye(whole("SingleIndexTask", "cov", cov)) if np.isscalar(cov) else cov
        super().__init__("single_index", {
            "cov": sigma, "link": link, "coefficients": coefficients, "kinks": kinks, "index_law": index_law,
            "task_variance": task_variance, "noise_variance": noise_variance, "query_noise": query_noise,
        })


class PoolTask(_Task):
    """Linear regression whose w is one of a pool [M,d]: tokens (x, w'x + noise), query (x, 0), target w'x.

    >>> import esscher as es
    >>> task = es.PoolTask([[1.0], [-1.0]], noise_variance=0.5)
    >>> long, short = es.reference_risks(task, 50).bayes, es.reference_risks(task, 1).bayes
    >>> long.value < short.value
    True
    """

    def __init__(
        self,
        pool: ArrayLike,
        *,
        weights: Optional[ArrayLike] = None,
        cov: Optional[ArrayLike] = None,
        noise_variance: float = 0.0,
        query_noise: bool = False,
    ) -> None:
        super().__init__("pool", {
            "pool": pool, "weights": weights, "cov": np.eye(_columns("PoolTask", "pool", pool)) if cov is None else cov,
            "noise_variance": noise_variance, "query_noise": query_noise,
        })


class LinearTask(_Task):
    """Linear regression with its own law of w, or with features whose covariance each prompt draws.

    cov [d,d], or the dimension d, is the mean covariance of the features. task_cov [d,d] is that of w, task_variance I
    unless given; it may be singular (low rank). With nonzero = k only k entries of w, at random places, are not 0.
    cov_law "scale" multiplies cov by a log-normal number of mean 1 whose logarithm has the deviation scale_deviation,
    and "wishart" draws a Wishart matrix of that mean with so many degrees of freedom, 2 d unless given.

    >>> import esscher as es
    >>> dense, sparse = es.LinearTask(4, noise_variance=0.1), es.LinearTask(4, nonzero=1, noise_variance=0.1)
    >>> es.reference_risks(sparse, 6).bayes.value < 0.25 * es.reference_risks(dense, 6).bayes.value
    True
    """

    def __init__(
        self,
        cov: Union[ArrayLike, int],
        *,
        task_cov: Optional[ArrayLike] = None,
        task_variance: float = 1.0,
        nonzero: Optional[int] = None,
        cov_law: str = "fixed",
        scale_deviation: float = 0.5,
        degrees: Optional[int] = None,
        noise_variance: float = 0.0,
        query_noise: bool = False,
    ) -> None:
        sigma = np.eye(whole("LinearTask", "cov", cov)) if np.isscalar(cov) else np.asarray(cov, dtype=np.float64)
        super().__init__("linear", {
            "cov": sigma, "task_cov": task_variance * np.eye(len(sigma)) if task_cov is None else task_cov,
            "nonzero": 0 if nonzero is None else nonzero, "cov_law": cov_law, "scale_deviation": scale_deviation,
            "degrees": 0 if degrees is None else degrees, "noise_variance": noise_variance, "query_noise": query_noise,
        })


ContextTask = _esscher.ContextTask


def check_task(where: str, task: Any) -> None:
    if not isinstance(task, ContextTask):
        raise ArgumentError(f"{where}: task is a {type(task).__name__}, expected a task beyond regression: "
                            "DenoisingTask, ClassificationTask, SingleIndexTask, PoolTask or LinearTask")
