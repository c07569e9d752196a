"""Heads of real models: are they linear in disguise, and from which prompt length on?"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Optional, Sequence, Union

import numpy as np

from . import _esscher
from .errors import DimensionError
from .keywords import helpful, renamed
from .outlets import Out, outlet
from .progress import Progress
from .random import as_seed
from .results import Curve, Curves, Result
from .tables import Row, Rows
from .types import Array, ArrayLike, as_array

Path = Union[str, "os.PathLike[str]"]
COMPONENTS = (2, 4, 8, 16, 32)
WINDOWS = (8, 16, 32, 64)
# Axes that become (batch,) head, token, coordinate.
LAYOUTS = {"hnd": (0, 1, 2), "nhd": (1, 0, 2), "bhnd": (0, 1, 2, 3), "bnhd": (0, 2, 1, 3)}


def _stack(name: str, X: Any, layout: Optional[str]) -> Any:
    """[n,d] or [h,n,d] of an array in any layout; prompts of a batch are heads of their own."""
    axes = len(np.shape(X))
    if layout is None and axes != 4:
        return X
    if layout not in LAYOUTS or len(LAYOUTS[layout]) != axes:
        known = " or ".join(repr(word) for word, order in LAYOUTS.items() if len(order) == axes)
        raise DimensionError(f"heads: {name} has shape {list(np.shape(X))} and layout is {layout!r}, expected {known or '[n,d]'}")
    array = as_array(X).transpose(LAYOUTS[layout])
    return array.reshape(-1, *array.shape[-2:])


def _unstack(X: Any, heads: int) -> List[Any]:
    """The matrix of each head; keys and values may be shared by groups of queries."""
    if len(np.shape(X)) != 3:
        return [X] * heads
    if len(X) == 0 or heads % len(X) != 0:
        raise DimensionError(f"heads: {len(X)} stacked matrices, expected a divisor of the {heads} in Q")
    return [X[h * len(X) // heads] for h in range(heads)]


@dataclass(frozen=True, eq=False)
class Diagnoses(Result):
    """One row per head, with the columns of ``esscher heads --json``; a sequence of its rows.

    >>> import numpy as np, esscher as es
    >>> X = np.random.default_rng(0).normal(size=(2, 400, 4))
    >>> found = es.heads(X, X, X, score_scale=0.1, components=[])
    >>> found
    Diagnoses(head.0: linear here; head.1: linear here)
    >>> found["tau2"].shape, found[0].head, found.to_pandas().shape[0]
    ((2,), 'head.0', 2)
    """

    rows: Rows

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __getitem__(self, key: Any) -> Any:
        return self.rows[key]

    def _table(self) -> Rows:
        return self.rows

    def _axes(self) -> List[str]:
        return ["head"]

    def _picture(self) -> Curves:
        names = list(dict.fromkeys(row["verdict_kind"] for row in self.rows))
        parts = {name: [row for row in self.rows if row["verdict_kind"] == name] for name in names}
        points = [Curve(name, [r["tau2"] for r in part], [r["lin_c"] for r in part]) for name, part in parts.items()]
        return Curves("error of the limit", "tau2", "lin_c", points, "verdict", log_x=True, log_y=True, marks=True)

    def __repr__(self) -> str:
        shown = "; ".join(f"{row['head']}: {row['verdict']}" for row in list(self.rows)[:4])
        return f"Diagnoses({shown}{f'; and {len(self) - 4} more' if len(self) > 4 else ''})"


@renamed(scale="score_scale")
def heads(
    Q: Union[ArrayLike, Path],
    K: Optional[ArrayLike] = None,
    V: Optional[ArrayLike] = None,
    *,
    score_scale: Optional[float] = None,
    causal: Optional[bool] = None,
    sliding: Optional[int] = None,
    softcap: Optional[float] = None,
    sink_logit: Optional[float] = None,
    alibi: Optional[float] = None,
    mask: Optional[ArrayLike] = None,
    layout: Optional[str] = None,
    components: Sequence[int] = COMPONENTS,
    queries: Union[int, Sequence[int]] = 128,
    tolerance: float = 0.1,
    windows: Sequence[int] = WINDOWS,
    sinks: int = 1,
    heavy: int = 0,
    budgets: Sequence[int] = (),
    gap: int = -1,
    seed: int = 0,
    out: Out = None,
    shard: str = "",
    progress: Progress = None,
) -> Diagnoses:
    """One dictionary per head: ``verdict`` in words, ``verdict_kind`` for programs, and the numbers behind them.

    The keys are the columns of a run of ``esscher heads --out``. Arrays are NumPy arrays, ``mixtures``, ``cost`` and
    ``prefixes`` are lists of dictionaries. ``linear_from`` is ``math.inf`` if no prompt of up to 10^15 tokens is long
    enough; what a head does not have is None. A length is promised ("linear from L = ...") only after a test of the
    shape of the keys; its numbers are the columns ``shape_*``, None where no length is in question.

    ``heads(Q, K, V)``: the queries [m,dk], keys [n,dk] and values [n,dv] that entered a softmax, or stacked heads
    [h,m,dk], [h,n,dk], [h,n,dv], or a batch of them with its layout. ``heads(path)``: every head of a .safetensors or .npz file or of a folder of .npy
    files. Unless they are given, score_scale is that of the file or 1/sqrt(dk), and causal that of the file or False.
    The m queries of a causal head belong to the last m keys. ``sliding`` is how many keys a causal query sees, ``softcap``
    c bends scores s to c tanh(s/c), ``sink_logit`` is the score of one more key of value 0, ``alibi`` a slope of positions.
    ``mask`` [n] or [m,n], with arrays only: booleans, true where a query sees a key, or numbers to add to scores.
    ``layout``: how heads are stacked, "hnd", "nhd", "bhnd" (as PyTorch has them) or "bnhd"; four dimensions need a name.
    queries is how many queries to use, or a list of their numbers. ``window`` has one row per number of exact keys in
    ``windows`` and per tail (see :class:`WindowedHead`), ``window_verdict`` says from which window on the rest is linear.
    ``heavy`` adds rows that also keep so many keys, those that earlier queries weighed most, where a causal head has a
    query for every key.
    ``budget`` compares ways to keep the prompt in the memory of ``budgets`` keys, on queries that come ``gap`` queries after
    those that some of them are fitted to (by default an eighth of the queries, at most 64).
    ``longer_prompts`` forecasts prompts of 2, 4 and 16 times the keys, and ``forecast_test`` has the whole prompt as its
    first half forecasts it.

    >>> import numpy as np, esscher as es
    >>> X = np.random.default_rng(0).normal(size=(3, 400, 4))
    >>> [row["head"] for row in es.heads(X, X, X, score_scale=0.1, components=[2])]
    ['head.0', 'head.1', 'head.2']
    >>> row, = es.heads(X[0], X[0], X[0], score_scale=0.1)
    >>> sorted({"verdict", "tau2", "ess"} & set(row))
    ['ess', 'tau2', 'verdict']
    >>> frozen, = es.heads(X[0], X[0], X[0], score_scale=100.0, components=[])
    >>> frozen["linear_from"], frozen["best_k"]
    (inf, None)
    """
    options = {
        "components": list(components),
        "most_queries": queries if isinstance(queries, int) else 128,
        "queries": [] if isinstance(queries, int) else list(queries),
        "tolerance": tolerance,
        "windows": list(windows),
        "sinks": sinks,
        "heavy": heavy,
        "budgets": list(budgets),
        "gap": gap,
        "seed": as_seed("heads", seed),
    }
    if isinstance(Q, (str, os.PathLike)):
        Q = os.fspath(Q)
    elif K is None or V is None:
        raise TypeError("heads() needs Q, K and V, or the path of a file")
    if isinstance(Q, str) and mask is not None:
        raise TypeError("heads(path) reads masks from the file, as X.mask")
    if not isinstance(Q, str):
        Q, K, V = (_stack(name, X, layout) for name, X in zip("QKV", (Q, K, V)))
    rules = {"sliding": sliding, "softcap": softcap, "sink": sink_logit, "alibi": alibi, "mask": mask, "layout": layout}
    given: Dict[str, Any] = {**options, **rules, "Q": Q, "K": K, "V": V, "score_scale": score_scale, "causal": causal}
    with outlet("heads", "heads", given, out=out, shard=shard, progress=progress, seed=seed) as where:
        return Diagnoses(Rows(_diagnose(Q, K, V, score_scale, causal, rules, {**options, "where": where})))


def _added(mask: Any) -> Any:
    """A mask of two dimensions as numbers that are added to scores; booleans are true where a key is seen."""
    if mask is None:
        return None
    mask = np.atleast_2d(np.asarray(mask))
    return np.where(mask, 0.0, -np.inf) if mask.dtype == bool else mask.astype(float)


def _diagnose(Q: Any, K: Any, V: Any, scale: Optional[float], causal: Optional[bool], rules: Any, options: Any) -> Any:
    rules = {**rules, "mask": _added(rules["mask"])}
    if isinstance(Q, str):
        return _esscher.heads_of_file(Q, scale, causal, rules, options)
    count = len(Q) if len(np.shape(Q)) == 3 else 1
    if scale is None:
        scale = float(np.shape(Q)[-1]) ** -0.5
    return _esscher.heads_of_arrays(
        _unstack(Q, count), _unstack(K, count), _unstack(V, count), scale, bool(causal), rules, options
    )


class WindowedHead:
    """A softmax head that keeps a few keys and the moments of the others, for a loop that decodes token by token.

    Kept exactly are the first ``sinks`` keys, the last ``window - sinks`` keys, and the ``heavy`` heaviest of those that
    left the window, by their mean softmax weight over the queries since they came. ``tail`` is what stands for the rest:
    "none", "mean", "first", "gaussian", "finite" (a Gaussian tail that knows how many keys it stands for), "mixture"
    (give ``keys`` [n,dk] of an earlier prompt to fit ``components`` to), or "rotary" (a Gaussian of keys before their
    rotation; give ``rotary_base``). Memory does not grow with the prompt.

    >>> import numpy as np, esscher as es
    >>> rng = np.random.default_rng(0)
    >>> head = es.WindowedHead(4, 3, window=8)
    >>> for _ in range(100):
    ...     q, k, v = rng.normal(size=4), rng.normal(size=4), rng.normal(size=3)
    ...     out = head.step(q, k, v)
    >>> out.shape, head.count, head.exact_keys, head.state
    ((3,), 100, 8, 86)
    """

    @helpful
    def __init__(
        self,
        dk: int,
        dv: int,
        *,
        score_scale: Optional[float] = None,
        window: int = 16,
        sinks: int = 1,
        heavy: int = 0,
        tail: str = "finite",
        rotary_base: Optional[float] = None,
        rotary_pairs: str = "halves",
        first_position: int = 0,
        keys: Optional[ArrayLike] = None,
        components: int = 4,
    ) -> None:
        options = {
            "window": window,
            "sinks": sinks,
            "heavy": heavy,
            "tail": tail,
            "rotary_base": rotary_base,
            "rotary_pairs": rotary_pairs,
            "first_position": first_position,
            "keys": keys,
            "components": components,
        }
        self._head = _esscher.WindowedHead(dk, dv, float(dk) ** -0.5 if score_scale is None else score_scale, options)

    def __copy__(self) -> WindowedHead:
        """A head of its own, which goes on from the same keys."""
        other = WindowedHead.__new__(WindowedHead)
        other._head = self._head.copy()
        return other

    def __deepcopy__(self, memo: Any) -> WindowedHead:
        return self.__copy__()

    def push(self, keys: ArrayLike, values: ArrayLike) -> None:
        """One key [dk] and value [dv], or several as rows; the bits do not depend on how they come."""
        self._head.push(keys, values)

    def attend(self, query: ArrayLike) -> Array:
        """The output [dv] of one query over all keys so far."""
        return self._head.attend(query)

    def step(self, query: ArrayLike, key: ArrayLike, value: ArrayLike) -> Array:
        """One token of a decoding loop: its key and value come in, its query sees them."""
        self._head.push(key, value)
        return self._head.attend(query)

    @property
    def count(self) -> int:
        """Keys so far."""
        return self._head.count

    @property
    def exact_keys(self) -> int:
        """Keys that are kept."""
        return self._head.exact_keys

    @property
    def state(self) -> int:
        """Numbers to keep."""
        return self._head.state

    @property
    def bytes(self) -> int:
        """Bytes that this object holds for them, in double precision."""
        return self._head.bytes
