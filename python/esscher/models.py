"""Risks of heads and layers at any length, and flows at several lengths side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Literal, Sequence, Union, overload

from . import _esscher
from .attention import Attention
from .errors import ArgumentError
from .keywords import renamed
from .outlets import Out, outlet, without
from .progress import Progress
from .results import Curve, Curves, Result
from .risk_gradients import RiskGradient, readout_of, risk_gradient
from .tables import Rows
from .icl import AnyTask, Readout, Task, balanced_start, flow_options, start_of
from .layers import Layer, LayerGradient, layer_parts, layer_risk, small_layer
from .tasks import ContextTask
from .estimate import Estimate
from .random import Stream, as_stream
from .types import Length


@overload
def risk(
    task: Task, at: Union[Readout, Attention, Sequence[Readout], Layer], length: Length, *, kind: str = "softmax",
    engine: str = "auto", draws: int = 4000, seed: Union[Stream, int] = 0, gradient: Literal[False] = False,
) -> Estimate: ...
@overload
def risk(
    task: ContextTask, at: Layer, length: Length, *,
    engine: str = "auto", draws: int = 4000, seed: Union[Stream, int] = 0, gradient: Literal[True],
) -> LayerGradient: ...
@overload
def risk(
    task: AnyTask, at: Union[Readout, Attention, Sequence[Readout]], length: Length, *, kind: str = "softmax",
    engine: str = "auto", draws: int = 4000, seed: Union[Stream, int] = 0, gradient: Literal[True],
) -> RiskGradient: ...
@renamed(stream="seed")
def risk(
    task: Task,
    at: Union[Readout, Attention, Sequence[Readout], Layer],
    length: Length,
    *,
    kind: str = "softmax",
    engine: str = "auto",
    draws: int = 4000,
    seed: Union[Stream, int] = 0,
    gradient: bool = False,
) -> Union[Estimate, RiskGradient, LayerGradient]:
    """Half the mean squared error of the head (U, r) at this prompt length, by the best formula there is.

    R_L = E (r' zbar - y)^2 / 2. Gaussian regression: closed forms (the engine of the answer is "exact"), or
    quadrature over tasks and queries with exact tokens ("quadrature"; softmax, finite L). Other features and
    your own tasks (``UserTask``): the mean over ``draws`` draws of the task. engine, for a finite prompt of
    such a task: "exact" averages over prompts without drawing them, where the law of the tokens is Gaussian;
    "direct" draws every token; "auto" is exact where it can be. at may be a list of heads, whose predictions add (``train(..).heads``): several are
    simulated on ``draws`` prompts, without tokens where features are Gaussian. An ``Attention`` is the head that it is,
    read at the last row of V; its gradient has V, K and Q too.

    Tasks beyond regression (``DenoisingTask``, ``SingleIndexTask``, ``ClassificationTask``, ``PoolTask``) take a
    ``Layer`` as at: one softmax head or linear ones are exact over the tokens, other layers are drawn. Several softmax
    heads are exact too with engine="exact", which takes milliseconds for each pair of heads and query.

    With ``gradient`` the answer is a ``RiskGradient``, or a ``LayerGradient`` of a layer: the risk, its gradient, exact
    over the tokens where the risk is, and the standard errors of that gradient. An optimiser wants ``risk_function``.

    >>> import esscher as es
    >>> task = es.LinearRegressionTask(2)
    >>> at = es.block_optimum(task, es.inf)
    >>> es.risk(task, at, 100).value > es.risk(task, at, 10**6).value
    True
    """
    options = {"engine": engine, "draws": draws, "stream": as_stream(seed)}
    if isinstance(task, ContextTask) or isinstance(at, Layer):
        if not (isinstance(task, ContextTask) and isinstance(at, Layer)):
            raise ArgumentError(f"risk: a {type(task).__name__} and a {type(at).__name__} do not go together; "
                                "tasks beyond regression take a Layer, others a Readout")
        if kind != "softmax":
            raise ArgumentError(f"risk: kind is {kind!r}, but a Layer has kinds of its own: Layer(.., kinds={kind!r})")
        return layer_risk(task, at, length, options, gradient)
    head = at if isinstance(at, Attention) else None
    read = readout_of(at) if isinstance(at, Attention) else at
    found = _esscher.risk(task, [read] if isinstance(read, Readout) else read, kind, length, options)
    if not gradient:
        return Estimate(*found)
    return RiskGradient(Estimate(*found), *risk_gradient(task, read, length, kind, options, head))


@dataclass(frozen=True, eq=False)
class Comparison(Result):
    """Twin trajectories: ``rows`` one summary per model and length, ``path`` their course in time.

    >>> import esscher as es
    >>> c = es.compare(es.LinearRegressionTask(1), [100], kinds=["linear"], parametrisation="block")
    >>> c.path[0].t, c.path[0].distance, c.rows[1].status
    (0.0, 0.0, 'stationary')
    >>> c
    Comparison(infinity L=inf: ..., linear L=100: 0.0098)
    """

    rows: Rows
    lengths: Rows
    path: Rows

    def _table(self) -> Rows:
        return self.rows

    def _axes(self) -> List[str]:
        return ["model", "L"]

    def _picture(self) -> Curves:
        twins: Dict[str, List[Any]] = {}
        for p in self.path:
            twins.setdefault(f"{p['model']} L={p['L']}", []).append(p)
        curves = [Curve(name, [p["t"] for p in path], [p["distance"] for p in path]) for name, path in twins.items()]
        return Curves("distance of the twins", "t", "distance", curves, "twin", log_x=True, log_y=True)

    def __repr__(self) -> str:
        ends = ", ".join(f"{row['model']} L={row['L']}: {row['limiting_risk']:.3g}" for row in self.rows)
        return f"Comparison({ends})"


@renamed(stream="seed")
def compare(
    task: Task,
    lengths: Iterable[Length],
    *,
    start: Union[None, Readout, Layer] = None,
    kinds: Sequence[str] = ("softmax", "linear"),
    eps: Sequence[float] = (),
    parametrisation: str = "UV", family: str = "full",
    t_end: float = float("inf"), rtol: float = 1e-8, atol: float = 1e-10, stationary: float = 1e-9,
    engine: str = "auto",
    draws: int = 4000,
    seed: Union[Stream, int] = 0,
    out: Out = None,
    progress: Progress = None,
) -> Comparison:
    """Twins: flows theta' = -grad R_L(theta) from one start at each length and at infinity, side by side.

    Each row of ``rows`` tells a twin's limiting risk, sup_t |theta_L - theta_inf|, the gap of gradients
    along the infinite path and the time they stay together; ``lengths`` tells, for each eps, the
    shortest L with lim R_L <= lim R_inf + eps. Tasks may be your own (``UserTask``): then risks are
    means over ``draws`` draws, the same at every length; engine as in ``risk``. ``out`` makes a run on disk, which the
    same call resumes, with report.html; ``progress`` as in ``set_progress``.

    For tasks beyond regression (``DenoisingTask`` and so on) start is a ``Layer``, one softmax head with small matrices
    unless given, which moves in a family as in ``flow``; it has kinds of its own.

    >>> import esscher as es
    >>> task = es.LinearRegressionTask(2)
    >>> c = es.compare(task, [10, 1000], kinds=["linear"], parametrisation="block", eps=[0.1])
    >>> [(row.model, row.L, round(row.limiting_risk, 4)) for row in c.rows]
    [('infinity', inf, 0.0), ('linear', 10, 0.2308), ('linear', 1000, 0.003)]
    >>> c.lengths[0]["length"]
    27
    >>> layer = es.Layer([[0.4, 0.0], [0.0, 0.4]], [[0.3, 0.3]], kinds="linear")
    >>> c = es.compare(es.PoolTask([[1.0], [-1.0]], noise_variance=0.1), [10, 1000], start=layer)
    >>> [(row.L, round(row.limiting_risk, 3)) for row in c.rows]
    [(inf, 0.0), (10, 0.087), (1000, 0.001)]
    """
    lengths, kinds, eps = list(lengths), list(kinds), list(eps)
    given = without(locals())
    options = flow_options(given)
    with outlet("icl compare", "compare", given, out=out, progress=progress, seed=seed) as where:
        if isinstance(task, ContextTask):
            if kinds != ["softmax", "linear"]:
                raise ArgumentError(f"compare: kinds is {kinds!r}, but a Layer has kinds of its own: Layer(.., kinds=..)")
            layer = small_layer(task, "softmax") if start is None else start_of("compare", task, start, Layer)
            W, heads = layer_parts(task, layer)
            return comparison_of(_esscher.layer_compare(task, W, heads, (family, parametrisation), lengths, eps, options, where))
        at = balanced_start(task) if start is None else start_of("compare", task, start, Readout)
        found = _esscher.compare(task, at.U, at.r, lengths, kinds, eps, parametrisation, options, where)
    return comparison_of(found)


def comparison_of(found: Dict[str, Any]) -> Comparison:
    """A Comparison from the dictionary of the compiled module."""
    return Comparison(Rows(found["rows"]), Rows(found.get("lengths", [])), Rows(found.get("path", [])))
