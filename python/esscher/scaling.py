"""What temperature does a long prompt need?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Iterable, List, Optional, Sequence, Tuple, Union

from . import _esscher
from .attention import Attention
from .errors import ArgumentError
from .keywords import helpful
from .outlets import Out, outlet, without
from .progress import Progress
from .random import as_seed
from .results import Curve, Curves, Result
from .tables import Rows
from .types import ArrayLike, MeasureLike

Scores = Union[float, Tuple[MeasureLike, Attention, ArrayLike]]


@dataclass(frozen=True, eq=False)
class Scaling(Result):
    """The softmax weights of long prompts along a schedule; ``rows`` have the keys of ``esscher scaling --json``.

    ``events`` say where the needle's weight falls below one half or rises above it, and where the weights freeze
    on few tokens or thaw. ``retrieval_length`` is the length from which on the needle weighs less than one half, None
    if there is none up to 1e15.

    >>> import esscher as es
    >>> s = es.scaling(1.0, [100, 1e4], schedule="sqrt-log", c=2.0, draws=0)
    >>> [row.phase for row in s.rows]
    ['frozen', 'frozen']
    """

    rows: Rows
    events: Rows
    schedule: str
    retrieval_length: Optional[float]

    def _table(self) -> Rows:
        return self.rows

    def _axes(self) -> List[str]:
        return ["L"]

    def _picture(self) -> Curves:
        rows = self.rows
        return Curves(
            f"concentration of the weights, {self.schedule}",
            "L",
            "E sum of squared weights",
            [Curve("exact", rows["L"], rows["H"]), Curve("predicted", rows["L"], rows["crossover_H"])],
            "value",
            log_x=True,
            log_y=True,
        )

    def __repr__(self) -> str:
        last = self.rows[-1]
        return f"Scaling({self.schedule}; at L = {last['L']:g}: {last['phase']}, {last['ess']:.4g} effective tokens)"


@dataclass(frozen=True, eq=False)
class KeptFactors(Result):
    """Factors that keep a quantity constant, and the published forms nearest to them.

    >>> import esscher as es
    >>> kept = es.kept_factors(1.5, "ess", train=4096, lengths=[8192, 65536])
    >>> [round(row.factor, 3) for row in kept.rows]
    [1.149, 1.521]
    """

    rows: Rows
    families: Rows
    quantity: str
    train: float

    def _table(self) -> Rows:
        return self.rows

    def _axes(self) -> List[str]:
        return ["L"]

    def _picture(self) -> Curves:
        known = [row for row in self.rows if row["factor"] is not None]
        curve = Curve("exact", [row["L"] for row in known], [row["factor"] for row in known])
        return Curves(f"factor that keeps the {self.quantity}", "L", "factor", [curve], log_x=True)

    def __repr__(self) -> str:
        near = f"; nearest {self.families[0]['family']}" if len(self.families) else ""
        return f"KeptFactors({self.quantity} of L = {self.train:g}, {len(self.rows)} lengths{near})"


@dataclass(frozen=True, eq=False)
class TokenLaw(Result):
    """A token law of the literature beside its limit formulas: ``rows`` have the keys of ``esscher scaling --json``.

    ``preset(NAME).run()`` of a preset for ``scaling`` gives it. ``kind`` is "equiangular" or "sphere".

    >>> import esscher as es
    >>> found = es.preset("chen-2510.05554").run({"tokens.lengths": [10**15]})
    >>> max(abs(row.predicted_inner_product - row.inner_product) for row in found.rows) < 1e-4
    True
    """

    rows: Rows
    kind: str

    def _table(self) -> Rows:
        return self.rows

    def _axes(self) -> List[str]:
        return ["L", "gamma" if self.kind == "equiangular" else "kappa"]

    def _picture(self) -> Curves:
        """The two shortest prompts and the longest over the parameter, beside the limit."""
        if self.kind == "equiangular":
            x, y, title = "gamma", "inner_product", "inner product of new tokens"
        else:
            x, y, title = "kappa", "H", "E sum of squared weights"
        lengths = sorted(set(self.rows["L"]))
        curves = []
        for L in sorted({*lengths[:2], lengths[-1]}):
            rows = [row for row in self.rows if row.L == L]
            curves.append(Curve(f"L = {L:g}", [row[x] for row in rows], [row[y] for row in rows]))
        curves.append(Curve("limit", [row[x] for row in rows], [row["predicted_" + y] for row in rows]))
        return Curves(f"{self.kind} tokens", x, title, curves, group="tokens", log_x=x == "kappa")

    def __repr__(self) -> str:
        return f"TokenLaw({self.kind}, {len(self.rows)} rows)"


def _lengths(lengths: Optional[Iterable[float]], log_lengths: Optional[Iterable[float]]) -> List[float]:
    if (lengths is None) == (log_lengths is None):
        raise ArgumentError("scaling: give either lengths or log_lengths")
    found = [float(n) for n in lengths] if lengths is not None else [math.exp(x) for x in log_lengths or ()]
    for n in found:
        if not (1 < n <= 1e300):
            raise ArgumentError(f"scaling: a length is {n}, expected numbers above 1 and up to 1e300")
    return found


@helpful
def scaling(
    scores: Scores,
    lengths: Optional[Iterable[float]] = None,
    *,
    log_lengths: Optional[Iterable[float]] = None,
    schedule: str = "constant",
    c: Optional[float] = None,
    train: Optional[float] = None,
    table: Sequence[Tuple[float, float]] = (),
    formula: str = "",
    needle: float = 0.0,
    draws: int = 1001,
    seed: int = 0,
    out: Out = None,
    shard: str = "",
    progress: Progress = None,
) -> Scaling:
    """The weights of prompts whose scores are multiplied by a schedule.

    ``scores`` is the deviation of Gaussian scores, or ``(measure, attention, z)``. ``needle`` is how far the score
    of one more token lies above the mean, at factor 1. ``log_lengths`` reach beyond every number of tokens. ``out`` makes
    a run on disk, which the same call resumes, with report.html; ``progress`` as in ``set_progress``.

    >>> import esscher as es
    >>> found = es.scaling(2.0, [1e3, 1e7], schedule="qwen", train=4096, needle=12, draws=0)
    >>> [event.change for event in found.events]
    ['thaws', 'dilutes']
    """
    at, seed, table = _lengths(lengths, log_lengths), as_seed("scaling", seed), list(table)
    given = without({**locals(), "lengths": at}, "log_lengths", "at")
    with outlet("scaling", "scaling", given, out=out, shard=shard, progress=progress, seed=seed) as where:
        found = _esscher.scaling(scores, at, schedule, c, train, table, formula, needle, draws, seed, where)
    return Scaling(Rows(found["rows"]), Rows(found["events"]), found["schedule"], found["retrieval_length"])


@helpful
def kept_factors(
    scores: Scores,
    quantity: str,
    *,
    train: float,
    lengths: Optional[Iterable[float]] = None,
    log_lengths: Optional[Iterable[float]] = None,
    needle: float = 0.0,
) -> KeptFactors:
    """The smallest factor at each length that keeps "ess", "entropy" or "needle" as it is at ``train`` tokens.

    A factor is ``None`` where none up to 100 does.

    >>> import esscher as es
    >>> kept = es.kept_factors(1.5, "needle", train=4096, lengths=[65536], needle=6.0)
    >>> abs(kept.rows[0].value / kept.rows[0].target - 1) < 1e-9
    True
    """
    found = _esscher.kept_factors(scores, quantity, float(train), _lengths(lengths, log_lengths), needle)
    return KeptFactors(Rows(found["rows"]), Rows(found["families"]), quantity, float(train))
