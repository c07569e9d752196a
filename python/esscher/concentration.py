"""How far is a prompt of length L from its limit, and how long is long enough?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Optional, Sequence, Union

from . import _esscher
from .attention import Attention
from .charts import Charted, Spec, lines
from .types import ArrayLike, MeasureLike


@dataclass(frozen=True)
class Concentration(Charted):
    """D(L) over a grid of lengths. ``rows`` and ``fits`` have the keys of ``esscher concentration --json``.

    Numbers stay numbers: an infinite constant is ``inf``, an unknown bias is ``nan``.

    >>> import numpy as np, esscher as es
    >>> mu = es.Gaussian(np.eye(2))
    >>> c = es.concentration(mu, es.Attention(U=0.5 * np.eye(2)), mu, [10, 100, 1000], metrics=["output"])
    >>> [row["L"] for row in c.curve("output")], c.rows[0]["engine"]
    ([10, 100, 1000], 'exact')
    """

    rows: List[Dict[str, Any]]
    fits: List[Dict[str, Any]]
    regime: Dict[str, Any]
    how: str

    def curve(self, metric: str = "output") -> List[Dict[str, Any]]:
        """The rows of one metric, lengths increasing."""
        return [row for row in self.rows if row["metric"] == metric]

    def chart(self) -> Spec:
        """D(L) over L, both logarithmic, one curve per metric."""
        rows = [{"L": r["L"], "D": r["value"], "metric": r["metric"]} for r in self.rows]
        return lines(rows, "L", "D", "metric", log_x=True, log_y=True, title="distance from the limit")

    def __repr__(self) -> str:
        slopes = ", ".join(f"{fit['metric']} L^{fit['slope']:.3f}" for fit in self.fits)
        return f"Concentration({slopes}; {self.how})"


@dataclass(frozen=True)
class LengthAnswer:
    """The shortest length, how sure it is ("certified", "estimated", "never"), and D around it.

    >>> import esscher as es
    >>> mu = es.Gaussian([[1.0]])
    >>> answer = es.shortest_length(mu, es.Attention(U=[[0.5]]), mu, 0.01)
    >>> answer.value <= 0.01 < answer.value_before     # at the answer, and one token before
    True

    D need not fall: ``stays_below`` says whether D <= eps at all longer lengths of a grid (``None``
    where samples cannot tell), ``rises_at`` where it first does not, and ``enough_from`` the length
    from which it does.

    ``value_before`` is ``nan`` if one token is enough, ``value`` too if there is no limit to be near.
    """

    length: Optional[int]
    status: str
    value: float
    value_before: float
    details: Dict[str, Any]
    stays_below: Optional[bool] = None
    rises_at: Optional[int] = None
    enough_from: Optional[int] = None


def concentration(
    measure: MeasureLike,
    attention: Attention,
    queries: Union[MeasureLike, ArrayLike],
    lengths: Iterable[int],
    *,
    metrics: Sequence[str] = ("output", "grad_v", "grad_u"),
    engine: str = "auto",
    query_count: int = 512,
    replicates: int = 8,
    seed: int = 0,
) -> Concentration:
    """D(L) = E_z E_prompt |X_hat - X|^2 for queries of a law, or queries given as points [n,d].

    Gaussian tokens and queries need no sampling; else ``query_count`` queries with ``replicates``
    prompts each are drawn, and errors count both.

    >>> import numpy as np, esscher as es
    >>> T = es.Attention(U=0.5 * np.eye(2))
    >>> mu = es.Gaussian(np.eye(2))
    >>> c = es.concentration(mu, T, mu, [10**6, 10**7, 10**8, 10**9], metrics=["output"])
    >>> c.regime["lambda"], round(c.fits[0]["slope"], 2)
    (0.25, -1.0)
    """
    found = _esscher.concentration(
        measure, attention, queries, lengths, metrics, engine, query_count, replicates, seed
    )
    return concentration_of(found)


def concentration_of(found: Dict[str, Any]) -> Concentration:
    """A Concentration from the dictionary of the compiled module."""
    return Concentration(found["rows"], found["fits"], found["regime"], found["how"])


def shortest_length(
    measure: MeasureLike,
    attention: Attention,
    queries: Union[MeasureLike, ArrayLike],
    eps: float,
    *,
    metric: str = "output",
    relative: bool = False,
    quantile: Optional[float] = None,
    engine: str = "auto",
    query_count: int = 512,
    replicates: int = 8,
    seed: int = 0,
) -> LengthAnswer:
    """The smallest L with D(L) <= eps (relative: eps times the mean square of the limit).

    Queries are a law or points [n,d], as in ``concentration``; quantile q asks that a share q of the
    queries is below eps, instead of their mean.

    >>> import numpy as np, esscher as es
    >>> T, mu = es.Attention(U=0.5 * np.eye(2)), es.Gaussian(np.eye(2))
    >>> answer = es.shortest_length(mu, T, mu, 1e-3)
    >>> answer.status, answer.value <= 1e-3 < answer.value_before
    ('certified', True)
    """
    found = _esscher.shortest_length(
        measure, attention, queries, eps, metric, relative, quantile, engine, query_count, replicates, seed
    )
    return LengthAnswer(
        found["length"],
        found["status"],
        found["value"],
        found["value_before"],
        found,
        found["stays_below"],
        found["rises_at"],
        found["enough_from"],
    )


def asymptotic_constant(
    measure: MeasureLike, attention: Attention, z: ArrayLike, *, metric: str = "output"
) -> float:
    """lim L E|X_hat - X|^2 at one query z [d], any measure; ``inf`` where Lambda(2a) is infinite.

    >>> import numpy as np, esscher as es
    >>> round(es.asymptotic_constant(es.Gaussian([[1.0]]), es.Attention(U=[[1.0]]), [1.0]), 6)  # 2 e
    5.436564
    """
    return _esscher.asymptotic_constant(metric, measure, attention, z)


def predicted_exponent(lam: float) -> float:
    """min(1, (sqrt(1 + 4/lambda) - 1)/2): the predicted rate of D(L), a heuristic for lambda >= 1/2.

    >>> import esscher as es
    >>> es.predicted_exponent(0.5)
    1.0
    """
    return _esscher.predicted_exponent(lam)
