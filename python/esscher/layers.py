"""In-context tasks beyond linear regression, and the layers that learn them.

A layer says W z + sum_h V_h T_h(z), where T_h is the mean of the prompt tilted by U_h z (softmax) or its second moment
times U_h z (linear). Every risk is one half of a mean squared error, summed over coordinates, or the mean of the loss
that a task asks for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from . import _esscher
from .errors import ArgumentError, DimensionError
from .keywords import known_keywords, renamed
from .outlets import Out, outlet, without
from .progress import Progress
from .prompts import Estimate
from .random import Stream, as_stream
from .recorded import Recorded
from .results import Curve, Curves, Result, compared, fields_of, register_tuple
from .tables import Rows
from .types import Array, ArrayLike, Length, as_array, whole


class _Layer(NamedTuple):
    U: Any
    V: Any
    W: Optional[Any] = None
    kinds: Union[str, Sequence[str]] = "softmax"


@register_tuple
class Layer(_Layer):
    """W z + sum_h V_h T_h(z): U [D,D] and V [m,D], or lists of them for several heads; W [m,D], 0 unless given.

    kinds: "softmax", "linear", or one word for each head. Tasks with labels have m = 1 and read the last rows of
    square matrices.

    >>> import numpy as np, esscher as es
    >>> task = es.DenoisingTask([[1.0], [-1.0]], gamma=0.5, xi=0.5)
    >>> layer = es.Layer(U=np.array([[2.0]]), V=np.array([[0.5]]))
    >>> best = es.reference_risks(task, es.inf).bayes
    >>> abs(es.risk(task, layer, es.inf).value - best.value) < 1e-12
    True
    """

    __slots__ = ()

    if not TYPE_CHECKING:  # so that a type checker still finds misspelt arguments

        def __new__(cls, *args, **kwargs):
            return super().__new__(cls, *args, **known_keywords("Layer", kwargs, cls._fields))


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
        """E[target | prompt, query] [m] from the tokens of a prompt [n,D], for tasks that have it in closed form.

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


@dataclass(frozen=True, eq=False)
class ReferenceRisks(Result):
    """Predictions that a layer is compared with: the best one, and the best maps A z + b and A z of the query.

    bayes_is_bound: the best prediction here knows the law of the tokens, which a finite prompt does not tell.

    >>> import esscher as es
    >>> found = es.reference_risks(es.DenoisingTask([[1.0], [-1.0]]), 100)
    >>> found.bayes.value < found.affine.value <= found.linear.value
    True
    >>> found
    ReferenceRisks(bayes 0.3312, affine 0.3333, linear 0.3333)
    """

    bayes: Estimate
    affine: Estimate
    linear: Estimate
    bayes_is_bound: bool

    def _table(self) -> Rows:
        named = {"bayes": self.bayes, "affine": self.affine, "linear": self.linear}
        return Rows({"prediction": name, **fields_of(found)} for name, found in named.items())

    def _axes(self) -> List[str]:
        return ["prediction"]

    def __repr__(self) -> str:
        bayes = f"bayes {'at least ' if self.bayes_is_bound else ''}{self.bayes.value:.4g}"
        return f"ReferenceRisks({bayes}, affine {self.affine.value:.4g}, linear {self.linear.value:.4g})"


@renamed(stream="seed")
def reference_risks(
    task: ContextTask, length: Length, *, draws: int = 4000, seed: Union[Stream, int] = 0
) -> ReferenceRisks:
    """Risks of the best prediction and of the best maps of the query alone, for a task beyond regression.

    >>> import esscher as es
    >>> es.reference_risks(es.SingleIndexTask(2, link="sign"), es.inf).affine.value
    0.5
    """
    _check_task("reference_risks", task)
    options = {"draws": draws, "stream": as_stream(seed)}
    bayes, affine, linear, bound = _esscher.reference_risks(task, length, options)
    return ReferenceRisks(Estimate(*bayes), Estimate(*affine), Estimate(*linear), bound)


def _check_task(where: str, task: Any) -> None:
    if not isinstance(task, ContextTask):
        raise ArgumentError(f"{where}: task is a {type(task).__name__}, expected a task beyond regression: "
                            "DenoisingTask, ClassificationTask, SingleIndexTask, PoolTask or LinearTask")


def _square(value: Any, name: str, rows: int, cols: int) -> Array:
    """[rows,cols] of a matrix with so many rows, or with more, of which the last act."""
    array = np.asarray(value, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != cols or array.shape[0] not in (rows, cols):
        expected = f"[{cols},{cols}]" if rows == cols else f"[{cols},{cols}] or [{rows},{cols}]"
        raise DimensionError(f"layer: {name} has shape {list(array.shape)}, expected {expected}")
    return array[array.shape[0] - rows :]


def _matrices(name: str, value: Any) -> List[Any]:
    """The matrices of all heads: a list of them, or the one of a single head."""
    try:
        first = value[0]
    except (TypeError, IndexError):
        raise DimensionError(f"layer: {name} is {value!r}, expected a matrix or a list of matrices") from None
    return list(value) if np.ndim(first) == 2 else [value]


def layer_heads(layer: Layer) -> Tuple[List[str], List[Any], List[Any]]:
    """Kinds, U and V of all heads, as many of each."""
    U, V = _matrices("U", layer.U), _matrices("V", layer.V)
    if len(U) != len(V):
        raise DimensionError(f"layer: V has {len(V)} matrices, U has {len(U)}")
    kinds = [layer.kinds] * len(U) if isinstance(layer.kinds, str) else list(layer.kinds)
    if len(kinds) != len(U):
        raise DimensionError(f"layer: kinds has {len(kinds)} words, U has {len(U)} matrices")
    return kinds, U, V


def layer_parts(task: ContextTask, layer: Layer) -> Tuple[Array, List[Tuple[str, Array, Array]]]:
    """W and (kind, U, V) of each head, as the compiled module takes them."""
    D, m = task.token_dim, task.out_dim
    kinds, U, V = layer_heads(layer)
    W = np.zeros((m, D)) if layer.W is None else _square(layer.W, "W", m, D)
    heads = [(k, _square(u, "U", D, D), _square(v, "V", m, D)) for k, u, v in zip(kinds, U, V)]
    return W, heads


def small_layer(task: ContextTask, kind: str, heads: int = 1) -> Layer:
    """U = V = 0.01 I of each head, where training starts unless told otherwise."""
    small = [0.01 * np.eye(task.token_dim)] * heads
    return Layer(small, small, None, kind)


def layer_of(found: Tuple[Array, List[Tuple[str, Array, Array]]]) -> Layer:
    """A Layer from what the compiled module gives."""
    W, heads = found
    kinds = [kind for kind, _, _ in heads]
    if len(heads) == 1:
        return Layer(heads[0][1], heads[0][2], W, kinds[0])
    return Layer([U for _, U, _ in heads], [V for _, _, V in heads], W, kinds)


class _LayerGradient(NamedTuple):
    risk: Estimate
    gradient: Layer
    std_error: Layer


@register_tuple
class LayerGradient(_LayerGradient, Result):
    """A risk, its derivatives in the matrices of the layer, and the standard error of each of them.

    >>> import numpy as np, esscher as es
    >>> task = es.DenoisingTask([[1.0], [-1.0]], gamma=0.5, xi=0.5)
    >>> value, slope, error = es.risk(task, es.Layer(np.array([[2.0]]), np.array([[0.5]])), es.inf, gradient=True)
    >>> bool(abs(slope.U[0, 0]) < 1e-9), float(error.U[0, 0])
    (True, 0.0)
    """

    def _table(self) -> Rows:
        parts = {"gradient": self.gradient, "std_error": self.std_error}
        return Rows({"what": name, "risk": getattr(self.risk, side), "U": part.U, "V": part.V, "W": part.W}
                    for (name, part), side in zip(parts.items(), ("value", "std_error")))

    def _axes(self) -> List[str]:
        return ["what"]

    def __repr__(self) -> str:
        return f"LayerGradient({self.risk!r}, {len(_matrices('U', self.gradient.U))} heads)"


def layer_risk(
    task: ContextTask, at: Layer, length: Length, options: Dict[str, Any], gradient: bool
) -> Union[Estimate, LayerGradient]:
    """``risk`` of a layer; with its gradient, the mean over independent nodes or draws."""
    W, heads = layer_parts(task, at)
    found = Estimate(*_esscher.layer_risk(task, W, heads, length, options))
    if not gradient:
        return found
    from .gradients import repeated

    def slopes(given: Dict[str, Any]) -> List[Any]:
        dW, parts = _esscher.layer_risk_gradient(task, W, heads, length, given)[1]
        return [dW] + [matrix for _, dU, dV in parts for matrix in (dU, dV)]

    def layer(found: List[Any]) -> Layer:
        dW, *rest = found
        return layer_of((dW, [(kind, U, V) for (kind, _, _), U, V in zip(heads, rest[::2], rest[1::2])]))

    means, errors = repeated(slopes, options)
    return LayerGradient(found, layer(means), layer(errors))


@dataclass(frozen=True, eq=False)
class Risks(Result):
    """Risks of a layer and of the references at each length: ``rows`` of L, model, risk, std_error, engine.

    ``preset(NAME).run()`` of a preset for ``icl risk`` gives it.

    >>> import esscher as es
    >>> found = es.preset("gabet-denoising-one").run({"sweep.lengths": ["inf"]})
    >>> [row.model for row in found.rows], abs(found.rows[0].risk - found.rows[1].risk) < 1e-9
    (['softmax', 'bayes', 'affine', 'linear'], True)
    """

    rows: Rows

    def _table(self) -> Rows:
        return self.rows

    def _axes(self) -> List[str]:
        return ["L", "model"]

    def _curves(self) -> Curves:
        """Finite lengths; a risk of zero has no place on a logarithm, nor a linear map that is the affine one."""
        found: Dict[str, List[Any]] = {}
        for row in self.rows:
            if np.isfinite(row.L) and row.risk > 0:
                found.setdefault(row.model, []).append(row)
        named = {model: Curve(model, [r.L for r in rows], [r.risk for r in rows]) for model, rows in found.items()}
        maps = [named.pop(model) for model in ("affine", "linear") if model in named]
        if len(maps) == 2 and maps[0].y == maps[1].y:
            maps.pop()
        curves = [*named.values(), *(curve._replace(label=f"{curve.label} map of the query") for curve in maps)]
        return Curves("risks", "L", "risk", curves, group="prediction", log_x=True, log_y=True)

    def __repr__(self) -> str:
        return "Risks(" + ", ".join(f"{row.model} L={row.L}: {row.risk:.4g}" for row in self.rows[:4]) + ")"


@dataclass(frozen=True, eq=False)
class Optimum(Result):
    """The best layers: ``rows`` one for each length, with the layer (U, V, W; u, v, w for scalars) and what it is compared with.

    >>> import esscher as es
    >>> found = es.optimum(es.DenoisingTask([[1.0], [-1.0]], gamma=0.5, xi=0.5), [es.inf], restarts=1)
    >>> round(found.rows[0].u, 3), abs(found.rows[0].risk - found.rows[0].bayes) < 1e-6
    (2.0, True)
    """

    rows: Rows

    def _table(self) -> Rows:
        return self.rows

    def _axes(self) -> List[str]:
        return ["L"]

    def _curves(self) -> Curves:
        finite = [row for row in self.rows if np.isfinite(row.L)]
        named = {"best layer": "risk", "best layer at L = inf": "limit_risk", "affine map": "affine", "bayes": "bayes"}
        curves = [Curve(label, [r.L for r in finite], [r[column] for r in finite]) for label, column in named.items()]
        return Curves("risk of the best layers", "L", "risk", curves, group="prediction", log_x=True, log_y=True)

    def __repr__(self) -> str:
        return "Optimum(" + ", ".join(f"L={row.L}: {row.risk:.4g}" for row in self.rows) + ")"


@renamed(stream="seed")
def optimum(
    task: ContextTask,
    lengths: Iterable[Length],
    *,
    family: str = "scalars",
    heads: int = 1,
    kind: str = "softmax",
    restarts: int = 4,
    draws: int = 4000,
    seed: Union[Stream, int] = 0,
    out: Out = None,
    shard: str = "",
    progress: Progress = None,
) -> Optimum:
    """The best layer of a family at each prompt length, by descent on the exact risk from several starts.

    family: "scalars" (U = u I, V = v I, W = w I), "diagonal" or "full". ``out`` makes a run on disk, which the same call
    resumes, with report.html; ``progress`` as in ``set_progress``. The layer that is best at infinite length may
    lose to an affine map of the query, while the best layer of the length does not:

    >>> import esscher as es
    >>> task = es.DenoisingTask([[1.5], [-1.5]], gamma=0.5**0.5, xi=0.5**0.5)
    >>> row = es.optimum(task, [200], restarts=1).rows[0]
    >>> row.risk < row.affine < row.limit_risk
    True
    """
    _check_task("optimum", task)
    at = list(lengths)
    if not at:
        raise ArgumentError("optimum: lengths is empty, expected at least one length")
    given = without({**locals(), "lengths": at}, "at")
    options = {"draws": draws, "stream": as_stream(seed)}
    kinds, tries = [kind] * whole("optimum", "heads", heads), whole("optimum", "restarts", restarts)
    with outlet("icl optimum", "optimum", given, out=out, shard=shard, progress=progress, seed=seed) as where:
        return Optimum(Rows(_esscher.layer_optimum(task, kinds, family, at, tries, options, where)))
