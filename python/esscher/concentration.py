"""How far is a prompt of length L from its limit, and how long is long enough?"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import _esscher
from .attention import Attention
from .errors import ArgumentError
from .keywords import helpful
from .outlets import Out, outlet, without
from .progress import Progress
from .random import as_seed
from .results import Curve, Curves, Result
from .tables import Rows
from .types import ArrayLike, Length, MeasureLike, PromptLike


@dataclass(frozen=True, eq=False)
class Concentration(Result):
    """D(L) over a grid of lengths. ``rows`` and ``fits`` have the keys of ``esscher concentration --json``.

    Numbers stay numbers: an infinite constant is ``inf``, an unknown bias is ``nan``.

    >>> import numpy as np, esscher as es
    >>> mu = es.Gaussian(np.eye(2))
    >>> c = es.concentration(mu, es.Attention(U=0.5 * np.eye(2)), mu, [10, 100, 1000], metrics=["output"])
    >>> c.curve("output")["L"], c.rows[0].engine
    (array([  10,  100, 1000]), 'exact')
    >>> c.to_pandas()[["L", "value"]].shape
    (3, 2)
    """

    rows: Rows
    fits: Rows
    regime: Dict[str, Any]
    how: str

    def curve(self, metric: str = "output") -> Rows:
        """The rows of one metric, lengths increasing."""
        return Rows(row for row in self.rows if row["metric"] == metric)

    def _table(self) -> Rows:
        return self.rows

    def _axes(self) -> List[str]:
        return ["metric", "L"]

    def _picture(self) -> Curves:
        parts = {metric: self.curve(metric) for metric in dict.fromkeys(self.rows["metric"])}
        curves = [
            Curve(metric, part["L"], part["value"], [ci[0] for ci in part["ci"]], [ci[1] for ci in part["ci"]])
            for metric, part in parts.items()
        ]
        return Curves("distance from the limit", "L", "D", curves, "metric", log_x=True, log_y=True)

    def __repr__(self) -> str:
        slopes = ", ".join(f"{fit['metric']} L^{fit['slope']:.3f}" for fit in self.fits)
        if not slopes:  # too few lengths for a rate: the last row answers
            slopes = ", ".join(f"{row.metric} {row.value:.4g} at L = {row.L:g}" for row in self.rows if row.L == self.rows[-1].L)
        return f"Concentration({slopes}; {self.how})"


@dataclass(frozen=True, eq=False)
class LengthAnswer(Result):
    """The shortest length, how sure it is ("certified", "estimated", "never"), and D around it.

    >>> import esscher as es
    >>> mu = es.Gaussian([[1.0]])
    >>> answer = es.shortest_length(mu, es.Attention(U=[[0.5]]), mu, 0.01)
    >>> answer.value <= 0.01 < answer.value_before     # at the answer, and one token before
    True

    D need not fall: ``stays_below`` says whether D <= eps at all longer lengths of a grid (``None``
    where samples cannot tell), ``rises_at`` where it first does not, and ``enough_from`` the length
    from which it does.

    ``value_before`` is ``nan`` if one token is enough, ``value`` too if there is no limit to be near. The length is
    ``inf`` if none is long enough.
    """

    length: Length
    status: str
    value: float
    value_before: float
    details: Dict[str, Any]
    stays_below: Optional[bool] = None
    rises_at: Optional[int] = None
    enough_from: Optional[int] = None

    def _table(self) -> Rows:
        return Rows([{**{k: v for k, v in self.details.items() if k != "bracket"}, "length": self.length}])

    def _picture(self) -> Curves:
        """D at the answer and one token before, the bound, and what the central limit theorem predicts about it."""
        found = self.details
        eps, clt, length = found["eps"], found["clt"], float(self.length)
        points = [(length - 1, self.value_before), (length, self.value), (found["peak_length"], found["peak_value"])]
        if length == inf:
            points = [(found["searched_up_to"], self.value)]
        D = Curve("D(L) at the answer", *zip(*[(nan if L is None else L, nan if y is None else y) for L, y in points]))
        known = [L for L in (*D.x, clt) if L > 0 and L < inf] or [1.0]
        around = np.array([max(min(known) / 4, 1.0), 4 * max(known)])
        curves = [Curve("bound", around, [eps, eps])]
        if 0 < clt < inf:
            curves.append(Curve("predicted", around, clt * eps / around))
        title = f"{self.status}: L = {self.length}" if length < inf else "no length is enough"
        return Curves(title, "L", "D", [*curves, D], "curve", log_x=True, log_y=True)

    def __repr__(self) -> str:
        return f"LengthAnswer(L = {self.length}, {self.status}, D = {self.value:.6g})"


@helpful
def concentration(
    measure: PromptLike,
    attention: Attention,
    queries: Union[MeasureLike, ArrayLike],
    lengths: Iterable[Length],
    *,
    metrics: Union[str, Sequence[str]] = ("output", "grad_v", "grad_u"),
    engine: str = "auto",
    query_count: int = 512,
    replicates: int = 8,
    seed: int = 0,
    out: Out = None,
    shard: str = "",
    progress: Progress = None,
) -> Concentration:
    """D(L) = E_z E_prompt |X_hat - X|^2 for queries of a law, or queries given as points [n,d].

    Tokens are iid of a law, or those of a ``Prompt``, whose rows also have the expected ``weights`` of its parts.
    Gaussian tokens and queries need no sampling; else ``query_count`` queries with ``replicates``
    prompts each are drawn, and errors count both. ``out`` makes a run on disk, which the same call resumes, with
    report.html; ``shard`` "1/2" does a part of it; ``progress`` as in ``set_progress``.

    >>> import numpy as np, esscher as es
    >>> T = es.Attention(U=0.5 * np.eye(2))
    >>> mu = es.Gaussian(np.eye(2))
    >>> c = es.concentration(mu, T, mu, [10**6, 10**7, 10**8, 10**9], metrics=["output"])
    >>> c.regime["lambda"], round(c.fits[0]["slope"], 2)
    (0.25, -1.0)
    """
    lengths, seed = list(lengths), as_seed("concentration", seed)
    metrics = [metrics] if isinstance(metrics, str) else list(metrics)
    given = without(locals())
    with outlet("concentration", "concentration", given, out=out, shard=shard, progress=progress, seed=seed) as where:
        found = _esscher.concentration(
            measure, attention, queries, lengths, metrics, engine, query_count, replicates, seed, where
        )
    return concentration_of(found)


def concentration_of(found: Dict[str, Any]) -> Concentration:
    """A Concentration from the dictionary of the compiled module."""
    return Concentration(Rows(found["rows"]), Rows(found["fits"]), found["regime"], found["how"])


@helpful
def shortest_length(
    measure: PromptLike,
    attention: Attention,
    queries: Union[MeasureLike, ArrayLike],
    eps: Optional[float] = None,
    *,
    error: Union[None, float, str] = None,
    metric: str = "output",
    relative: bool = False,
    quantile: Optional[float] = None,
    engine: str = "auto",
    query_count: int = 512,
    replicates: int = 8,
    seed: int = 0,
) -> LengthAnswer:
    """The smallest L with D(L) <= eps (relative: eps times the mean square of the limit).

    ``error``, instead of eps, bounds the root-mean-square error as a part of the limit, 0.01 or "1%", as ``esscher length
    --error`` does: 1 % as a root is 0.01 % as a square. Queries are a law or points [n,d], as in ``concentration``; quantile q asks that a share q of the
    queries is below eps, instead of their mean.

    >>> import numpy as np, esscher as es
    >>> T, mu = es.Attention(U=0.5 * np.eye(2)), es.Gaussian(np.eye(2))
    >>> answer = es.shortest_length(mu, T, mu, 1e-3)
    >>> answer.status, answer.value <= 1e-3 < answer.value_before
    ('certified', True)
    >>> es.shortest_length(mu, T, mu, error="1%").length == es.shortest_length(mu, T, mu, 1e-4, relative=True).length
    True
    """
    bound, is_relative = _tolerance(eps, error, relative)
    found = _esscher.shortest_length(
        measure, attention, queries, bound, metric, is_relative, quantile, engine, query_count, replicates,
        as_seed("shortest_length", seed),
    )
    return LengthAnswer(
        inf if found["length"] is None else found["length"],
        found["status"],
        found["value"],
        found["value_before"],
        found,
        found["stays_below"],
        found["rises_at"],
        found["enough_from"],
    )


def _tolerance(eps: Optional[float], error: Union[None, float, str], relative: bool) -> Tuple[float, bool]:
    """A bound of the mean square, and whether it is relative to the limit."""
    if (eps is None) == (error is None):
        given = "neither eps nor error" if eps is None else "both eps and error"
        raise ArgumentError(
            f'shortest_length: {given}, expected one of them: error="1%" bounds the root-mean-square error relative to '
            "the limit, eps the mean-square error"
        )
    if eps is not None:
        return eps, relative
    if relative:
        raise ArgumentError("shortest_length: relative belongs to eps; error is relative to the limit already")
    text = str(error).strip()
    try:
        part = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        part = nan
    if not 0 < part < inf:
        raise ArgumentError(f'shortest_length: error {error!r}, expected a part of the limit > 0, such as 0.01 or "1%"')
    return part * part, True


@helpful
def asymptotic_constant(
    measure: PromptLike, attention: Attention, z: ArrayLike, *, metric: str = "output"
) -> float:
    """lim L E|X_hat - X|^2 at one query z [d], any measure or ``Prompt``; ``inf`` where Lambda(2a) is infinite.

    >>> import numpy as np, esscher as es
    >>> round(es.asymptotic_constant(es.Gaussian([[1.0]]), es.Attention(U=[[1.0]]), [1.0]), 6)  # 2 e
    5.436564
    """
    return _esscher.asymptotic_constant(metric, measure, attention, z)


@helpful
def predicted_exponent(lam: float) -> float:
    """min(1, (sqrt(1 + 4/lambda) - 1)/2): the predicted rate of D(L), a heuristic for lambda >= 1/2.

    >>> import esscher as es
    >>> es.predicted_exponent(0.5)
    1.0
    """
    return _esscher.predicted_exponent(lam)
