"""The best layer of a family at each prompt length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterable, List, Optional, Union

import numpy as np

from . import _esscher
from .errors import ArgumentError
from .keywords import renamed
from .layers import Layer, layer_parts
from .outlets import Out, outlet, without
from .progress import Progress
from .random import Stream, as_stream
from .results import Curve, Curves, Result
from .tables import Rows
from .tasks import ContextTask, check_task
from .types import Length, whole


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

    def _picture(self) -> Curves:
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
    family: Optional[str] = None,
    heads: int = 1,
    kind: str = "softmax",
    parametrisation: str = "UV",
    key_dim: int = 0,
    start: Optional[Layer] = None,
    restarts: int = 4,
    draws: int = 4000,
    seed: Union[Stream, int] = 0,
    out: Out = None,
    shard: str = "",
    progress: Progress = None,
) -> Optimum:
    """The best layer of a family at each prompt length, by descent on the exact risk from several starts.

    family: "scalars" (U = u I, V = v I, W = w I, unless told otherwise), "diagonal" or "full". parametrisation "KQV" or
    "KQVO" with key_dim k searches scores U = K'Q of rank k at most, in the full family. ``start`` is the first of the
    starts; it brings its heads. Rows say ``sharp`` where scores grew beyond a deviation of 16. ``out`` makes a run on
    disk, which the same call resumes, with report.html; ``progress`` as in ``set_progress``. The layer that is best at infinite length may
    lose to an affine map of the query, while the best layer of the length does not:

    >>> import esscher as es
    >>> task = es.DenoisingTask([[1.5], [-1.5]], gamma=0.5**0.5, xi=0.5**0.5)
    >>> row = es.optimum(task, [200], restarts=1).rows[0]
    >>> row.risk < row.affine < row.limit_risk
    True
    """
    check_task("optimum", task)
    at = list(lengths)
    if not at:
        raise ArgumentError("optimum: lengths is empty, expected at least one length")
    given = without({**locals(), "lengths": at}, "at")
    options = {"draws": draws, "stream": as_stream(seed)}
    kinds, tries = [kind] * whole("optimum", "heads", heads), whole("optimum", "restarts", restarts)
    parts = None if start is None else layer_parts(task, start)
    coordinates = (family or ("scalars" if parametrisation == "UV" else "full"), parametrisation,
                   whole("optimum", "key_dim", key_dim))
    with outlet("icl optimum", "optimum", given, out=out, shard=shard, progress=progress, seed=seed) as where:
        return Optimum(Rows(_esscher.layer_optimum(task, kinds, coordinates, parts, at, tries, options, where)))
