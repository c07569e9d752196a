"""In-context linear regression: tasks, exact risks, Bayes, gradient flow.

Every risk is one half of a mean squared error. A head acts through U [d+1,d+1] and r [d+1], the last
row of V: the prediction is r' zbar, zbar the prompt's mean tilted by U (x, 0).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Protocol, Tuple, Union

import numpy as np

from . import _esscher
from .errors import ArgumentError
from .grids import Shapes
from .keywords import helpful, renamed
from .layers import Layer, layer_of, layer_parts, small_layer
from .tasks import ContextTask
from .outlets import Out, outlet, without
from .progress import Progress
from .results import Curve, Curves, Result, compared, register_tuple
from .tables import Rows
from .estimate import Estimate
from .random import Stream, as_stream
from .recorded import Recorded
from .types import Array, ArrayLike, Length, MeasureLike, whole


@register_tuple
class Readout(NamedTuple):
    """What a prediction reads of a head: U [D,D] and r [D], D = d + 1; it is r' zbar at the tilt U (x, 0).

    >>> import numpy as np, esscher as es
    >>> at = es.Readout(U=np.diag([1.0, 0.0]), r=np.array([0.0, 1.0]))
    >>> es.linear_risk(es.LinearRegressionTask(1), at, es.inf)
    0.0
    """

    U: Array
    r: Array


@compared
class Draw(NamedTuple):
    """One task: w [d], query x [d], target y, prompt tokens (x_l, y_l) [n,d+1]."""

    w: Array
    x: Array
    y: float
    prompt: Array


class LinearRegressionTask(Recorded, _esscher.LinearRegressionTask):
    """w ~ N(0, s2 I), y_l = w'x_l + noise of variance sig2, x_l of covariance Sigma, query of Sigma_q.

    cov: an integer d for the identity, or Sigma [d,d]. features: "gaussian", "rademacher", "uniform"
    or "sphere" (identity covariance, then transformed by Sigma^{1/2}).

    >>> import esscher as es
    >>> task = es.LinearRegressionTask(2, noise_variance=0.1)
    >>> task.token_covariance([1.0, 0.0])
    array([[1. , 0. , 1. ],
           [0. , 1. , 0. ],
           [1. , 0. , 1.1]])
    """

    def __init__(
        self,
        cov: Union[int, ArrayLike],
        *,
        query_cov: Optional[ArrayLike] = None,
        task_variance: float = 1.0,
        noise_variance: float = 0.0,
        query_noise: bool = False,
        features: str = "gaussian",
    ) -> None:
        sigma = np.eye(whole("LinearRegressionTask", "cov", cov)) if np.isscalar(cov) else cov
        super().__init__(sigma, query_cov, task_variance, noise_variance, query_noise, features)

    def draw(self, stream: Union[Stream, int], n: int) -> Draw:
        """One task, its query and a prompt of n tokens.

        >>> import esscher as es
        >>> es.LinearRegressionTask(2).draw(0, 5).prompt.shape
        (5, 3)
        """
        return Draw(*self._draw(as_stream(stream), whole("draw", "n", n)))


class UserTask(Protocol):
    """A task written in Python: tokens in R^D, and draws (law of tokens, query [D], target).

    The law may be any measure, also your own; a draw must depend on the stream only. Works in ``risk``,
    ``flow``, ``compare`` and ``train``:

    >>> import numpy as np, esscher as es
    >>> class Mean:
    ...     '''Tell the mean of the first coordinate; the query says nothing.'''
    ...     token_dim = 2
    ...     def draw(self, stream):
    ...         m = stream.normal(2)
    ...         return es.Gaussian(np.eye(2), m), [0.0, 0.0], m[0]
    >>> f = es.flow(Mean(), es.Readout(np.zeros((2, 2)), np.zeros(2)), draws=100)
    >>> f.end.r.round(3)
    array([1., 0.])
    """

    @property
    def token_dim(self) -> int:
        """D."""
        ...

    def draw(self, stream: Stream) -> Tuple[MeasureLike, ArrayLike, float]:
        """Law of the tokens, query [D], target; draw from the stream and from nothing else."""
        ...


AnyTask = Union[LinearRegressionTask, UserTask]

# Every task: of regression, of your own, or beyond regression.
Task = Union[AnyTask, ContextTask]


@helpful
def power_covariance(dim: int, rho: float) -> Array:
    """rho^|i-j| [dim,dim].

    >>> import esscher as es
    >>> es.power_covariance(2, 0.5)
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    return _esscher.power_covariance(whole("power_covariance", "dim", dim), rho)


@helpful
def linear_risk(
    task: LinearRegressionTask, at: Readout, length: Length, *, gradient: bool = False
) -> Union[float, Tuple[float, Readout]]:
    """Exact risk of linear attention at prompt length L, Gaussian features; with its gradient if asked.

    At ``inf`` it is the risk of softmax attention too.

    >>> import esscher as es
    >>> task = es.LinearRegressionTask(3)
    >>> best = es.block_optimum(task, es.inf)
    >>> abs(es.linear_risk(task, best, es.inf)) < 1e-12
    True
    """
    risk, slope = _esscher.linear_risk(task, at.U, at.r, length)
    return (risk, Readout(*slope)) if gradient else risk


@renamed(stream="seed")
def bayes_risk(
    task: LinearRegressionTask, length: Length, *, replicates: int = 1000, seed: Union[Stream, int] = 0
) -> Estimate:
    """Risk of the best prediction from L tokens (ridge), averaged over prompts.

    >>> import esscher as es
    >>> es.bayes_risk(es.LinearRegressionTask(3, noise_variance=0.5, query_noise=True), es.inf).value
    0.25
    """
    return Estimate(*_esscher.bayes_risk(task, length, replicates, as_stream(seed)))


@helpful
def block_optimum(task: LinearRegressionTask, length: Length) -> Readout:
    """Where the gradient flow from a balanced start ends, for linear attention trained at this length.

    >>> import esscher as es
    >>> float(es.block_optimum(es.LinearRegressionTask(1), es.inf).r[-1])
    1.0
    """
    return Readout(*_esscher.block_optimum(task, length))


@helpful
def balanced_start(task: AnyTask, alpha: Optional[float] = None) -> Readout:
    """U = alpha [[I/sqrt d, 0], [0, 0]], r = (0, alpha), tokens in R^{d+1}.

    alpha is half the theorem's bound unless given; 0.5 for your own tasks, which have no theorem.

    >>> import esscher as es
    >>> es.balanced_start(es.LinearRegressionTask(1), 0.5).r
    array([0. , 0.5])
    """
    if isinstance(task, LinearRegressionTask):
        bound = _esscher.balanced_start_bound(task)
        return Readout(*_esscher.balanced_start(task.dim, 0.5 * bound if alpha is None else alpha))
    dim = _esscher.token_dim(task)
    return Readout(*_esscher.balanced_start(dim - 1, 0.5 if alpha is None else alpha))


@dataclass(frozen=True, eq=False)
class Flow(Result):
    """A path of gradient flow: times t [n], risk [n], parameters theta [n,p], and where it ended.

    ``conserved_drift``, ``energy_defect`` and ``largest_increase`` tell what an exact flow keeps at 0. A flow of a run
    (``out``) has no theta.

    >>> import esscher as es
    >>> f = es.flow(es.LinearRegressionTask(1), t_end=1.0, times=[0.5, 1.0])
    >>> f.t, f.theta.shape, f.conserved_drift < 1e-6
    (array([0. , 0.5, 1. ]), (3, 6), True)
    """

    status: str
    t: Array
    risk: Array
    gradient_norm: Array
    theta: Optional[Array]
    end: Union[Readout, Layer]
    conserved_drift: float
    energy_defect: float
    largest_increase: float

    def _table(self) -> Rows:
        columns = zip(self.t.tolist(), self.risk.tolist(), self.gradient_norm.tolist())
        return Rows({"t": t, "risk": risk, "gradient_norm": norm} for t, risk, norm in columns)

    def _grid(self) -> Rows:
        rows = self._table()
        return rows if self.theta is None else Rows({**row, "theta": theta} for row, theta in zip(rows, self.theta))

    def _shapes(self) -> Shapes:
        return {"theta": ("parameter",)}

    def _axes(self) -> List[str]:
        return ["t"]

    def _picture(self) -> Curves:
        return Curves("risk along the gradient flow", "t", "risk", [Curve("", self.t, self.risk)], log_y=True)

    def __repr__(self) -> str:
        return f"Flow(status={self.status!r}, t={self.t[-1]:.6g}, risk={self.risk[-1]:.6g})"


@renamed(stream="seed")
def flow(
    task: Task,
    start: Union[None, Readout, Layer] = None,
    *,
    length: Length = float("inf"),
    kind: str = "softmax",
    parametrisation: str = "UV", family: str = "full",
    t_end: float = float("inf"), times: Optional[ArrayLike] = None,
    rtol: float = 1e-8, atol: float = 1e-10, stationary: float = 1e-9,
    engine: str = "auto",
    draws: int = 4000,
    seed: Union[Stream, int] = 0,
    out: Out = None,
    progress: Progress = None,
) -> Flow:
    """Gradient flow theta' = -grad R_L(theta) of the risk by CVODE, until |grad| <= stationary or t_end.

    kind: "softmax" or "linear"; at ``inf`` and Gaussian features they are the same. parametrisation:
    "block", "UV", "KQV" or "KQVO". times [n] asks for the path there, else at every step. task may be your own (``UserTask``): the risk is then the mean over
    ``draws`` draws, fixed by the seed; engine as in ``risk``. ``out`` makes a run on disk with report.html;
    ``progress`` as in ``set_progress``, of the steps that may be taken at most.

    For tasks beyond regression (``DenoisingTask`` and so on) start and end are a ``Layer``; without a start it is one
    head of ``kind`` with small matrices. family: "scalars", "diagonal" or "full", where the layer moves; the full one also
    in the parametrisations "KQV" and "KQVO" of its heads.

    >>> import esscher as es
    >>> f = es.flow(es.LinearRegressionTask(2), parametrisation="block")
    >>> f.status, bool(f.risk[-1] < 1e-12)
    ('stationary', True)
    >>> task = es.DenoisingTask([[1.5], [-1.5]], gamma=0.5, xi=0.5)
    >>> f = es.flow(task, es.Layer([[0.5]], [[0.5]]), family="scalars")
    >>> f.end.U.round(3)  # 1/(gamma^2 + xi^2)
    array([[2.]])
    """
    given = without(locals())
    options = flow_options(given)
    if times is not None:
        options["times"] = times
    with outlet("icl flow", "flow", given, out=out, progress=progress, seed=seed) as where:
        if isinstance(task, ContextTask):
            layer = small_layer(task, kind) if start is None else start_of("flow", task, start, Layer)
            W, heads = layer_parts(task, layer)
            return flow_of(_esscher.layer_flow(task, W, heads, (family, parametrisation), length, options, where))
        at = balanced_start(task) if start is None else start_of("flow", task, start, Readout)
        return flow_of(_esscher.flow(task, at.U, at.r, length, kind, parametrisation, options, where))


def flow_options(given: Mapping[str, Any]) -> Dict[str, Any]:
    """What the compiled module wants to know of a flow, from the arguments of ``flow`` or ``compare``."""
    names = ("rtol", "atol", "t_end", "stationary", "engine", "draws")
    return {**{name: given[name] for name in names}, "stream": as_stream(given["seed"])}


def start_of(where: str, task: Any, start: Any, kind: Any) -> Any:
    """The start of a flow or a training, which is a Layer or a Readout as the task asks."""
    if not isinstance(start, kind):
        raise ArgumentError(
            f"{where}: start is a {type(start).__name__}, expected a {kind.__name__} for a {type(task).__name__}")
    return start


def flow_of(found: Dict[str, Any]) -> Flow:
    """A Flow from the dictionary of the compiled module."""
    end = found["end"]
    found["end"] = layer_of(end) if isinstance(end[1], list) else Readout(*end)
    return Flow(**found)
