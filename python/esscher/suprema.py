"""The error of a finite prompt at its worst query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterable, List

from . import _esscher
from .attention import Attention
from .keywords import helpful
from .outlets import outlet
from .progress import Progress
from .random import as_seed
from .results import Curve, Curves, Result
from .tables import Rows
from .types import Length, MeasureLike, whole


@dataclass(frozen=True, eq=False)
class SupErrors(Result):
    """E sup |T_hat(z) - T(z)| over |z| <= radius by length: ``rows`` of L, value, std_error, ci, resolution and points.

    ``value`` is attained; the supremum exceeds it by at most ``resolution``.

    >>> import numpy as np, esscher as es
    >>> found = es.sup_error(es.Sphere(2), es.Attention(U=np.eye(2)), 1.0, [50, 500], replicates=8)
    >>> found.rows[0].value > found.rows[1].value, found.to_pandas().shape[0]
    (True, 2)
    """

    rows: Rows
    radius: float

    def _table(self) -> Rows:
        return self.rows

    def _axes(self) -> List[str]:
        return ["L"]

    def _picture(self) -> Curves:
        rows = self.rows
        curve = Curve("", rows["L"], rows["value"], [ci[0] for ci in rows["ci"]], [ci[1] for ci in rows["ci"]])
        return Curves(f"error at the worst query, |z| <= {self.radius:g}", "L", "error", [curve], log_x=True, log_y=True)

    def __repr__(self) -> str:
        shown = ", ".join(f"L={row.L}: {row.value:.4g}" for row in self.rows[:4])
        return f"SupErrors(|z| <= {self.radius:g}; {shown}{', ..' if len(self.rows) > 4 else ''})"


@helpful
def sup_error(
    measure: MeasureLike,
    attention: Attention,
    radius: float,
    lengths: Iterable[Length],
    *,
    replicates: int = 64,
    tolerance: float = 0.02,
    max_points: int = 20000,
    seed: int = 0,
    progress: Progress = None,
) -> SupErrors:
    """The mean over drawn prompts of the largest |T_hat(z) - T(z)| over all queries with |z| <= radius.

    The supremum of each of ``replicates`` prompts is found by branch and bound, up to ``tolerance`` of it or until
    ``max_points`` queries were looked at; what is left is the ``resolution``. The rank of U is at most 3.

    >>> import numpy as np, esscher as es
    >>> es.sup_error(es.Rademacher(1), es.Attention(U=[[1.0]]), 2.0, [100], replicates=8)
    SupErrors(|z| <= 2; L=100: 0.08536)
    """
    counts = [whole("sup_error", "lengths", L) for L in lengths]
    with outlet("concentration", "sup_error", {}, progress=progress) as where:
        rows = _esscher.sup_error(
            measure, attention, float(radius), counts, whole("sup_error", "replicates", replicates), tolerance,
            whole("sup_error", "max_points", max_points), as_seed("sup_error", seed), where,
        )
    return SupErrors(Rows(rows), float(radius))
