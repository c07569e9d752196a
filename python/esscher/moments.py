"""What self-attention does to the law of the tokens: mean and covariance of its outputs."""

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
class OutputMoments(Result):
    """Distances of mean and covariance from their limit by length (``rows``), their rates (``fits``) and the horizon
    H = |G^{1/2} U G^{1/2}| of Bohbot et al.

    >>> import numpy as np, esscher as es
    >>> found = es.output_moments(es.Gaussian(np.eye(2)), es.Attention(U=0.3 * np.eye(2)), [100, 200, 400], replicates=20)
    >>> found.horizon, found.rows[0].moment, bool(found.fits[0].slope < 0)
    (0.3, 'mean', True)
    """

    rows: Rows
    fits: Rows
    horizon: float

    def _table(self) -> Rows:
        return self.rows

    def _axes(self) -> List[str]:
        return ["moment", "L"]

    def _picture(self) -> Curves:
        curves = []
        for moment in ("mean", "covariance"):
            part = [row for row in self.rows if row["moment"] == moment]
            low, high = ([row["value"] + side * row["std_error"] for row in part] for side in (-2, 2))
            curves.append(Curve(moment, [row["L"] for row in part], [row["value"] for row in part], low, high))
        title = f"moments of self-attention, H = {self.horizon:.3g}"
        return Curves(title, "L", "distance from the limit", curves, "moment", log_x=True, log_y=True)

    def __repr__(self) -> str:
        rates = ", ".join(f"{fit['moment']} L^{fit['slope']:.3f} +- {fit['std_error']:.2g}" for fit in self.fits)
        return f"OutputMoments(H = {self.horizon:.4g}{'; ' if rates else ''}{rates})"


@helpful
def output_moments(
    measure: MeasureLike,
    attention: Attention,
    lengths: Iterable[Length],
    *,
    replicates: int = 16,
    seed: int = 0,
    progress: Progress = None,
) -> OutputMoments:
    """E|m_n - m| and E|S_n - S|_F: mean and covariance of the outputs of n tokens that attend to each other.

    Tokens are Gaussian, for which the limit is known. ``replicates`` prompts are drawn at every length, and every token
    is a query, so the cost grows like the square of the length. ``progress`` as in ``set_progress``.

    >>> import numpy as np, esscher as es
    >>> mu, head = es.Gaussian(0.1 * np.eye(5)), es.Attention(U=2.0 * np.eye(5))
    >>> es.output_moments(mu, head, [50, 100], replicates=4).to_pandas().shape
    (4, 4)
    """
    counts = [whole("output_moments", "lengths", L) for L in lengths]
    prompts, seed = whole("output_moments", "replicates", replicates), as_seed("output_moments", seed)
    with outlet("concentration", "output_moments", {}, progress=progress) as where:
        found = _esscher.output_moments(measure, attention, counts, prompts, seed, where)
    return OutputMoments(Rows(found["rows"]), Rows(found["fits"]), found["horizon"])
