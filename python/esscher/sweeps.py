"""A function over a grid of parameters, with the threads and the store of the program."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import os
from collections import Counter
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from . import _esscher
from .errors import ArgumentError, RuntimeFailure
from .keywords import helpful
from .outlets import Out, outlet
from .progress import Bar, Progress, listener
from .ranks import world
from .pictures import Bars, Picture, Tiles, bar
from .results import Curve, Curves, Result
from .runs import Run
from .tables import Rows
from .threads import thread_count

Point = Dict[str, Any]


@dataclass(frozen=True, eq=False)
class Sweep(Result):
    """One row per point of the grid: its parameters, then what the function gave.

    >>> import esscher as es
    >>> s = es.sweep(lambda L, tau: es.universal(L, tau).H, {"L": [10, 100], "tau": [0.5, 1.0, 2.0]})
    >>> s.rows[0].L, s.rows[0].tau, s.rows["value"].shape
    (10, 0.5, (6,))
    >>> s
    Sweep(6 points of L, tau: value)
    """

    axes: List[str]
    rows: Rows

    def _table(self) -> Rows:
        return self.rows

    def _axes(self) -> List[str]:
        return self.axes

    def _numbers(self) -> List[str]:
        return [name for name in self.rows.columns if name not in self.axes and self.rows[name].dtype.kind in "if"]

    def _picture(self) -> Picture:
        numeric = [axis for axis in self.axes if self.rows[axis].dtype.kind in "if"]
        if not self._numbers():
            return self._without_numbers()
        if not numeric:
            y = self._numbers()[0]
            bars = [bar(_place(row, self.axes), row[y], row.get("std_error") or 0.0) for row in self.rows if row[y] is not None]
            return Bars(f"{y} over {', '.join(self.axes)}", ", ".join(self.axes), y, bars)
        x, y = max(numeric, key=lambda axis: len(set(self.rows[axis]))), self._numbers()[0]
        others = [axis for axis in self.axes if axis != x]
        groups: Dict[str, List[Any]] = {}
        for row in self.rows:
            groups.setdefault(_place(row, others), []).append(row)
        curves = []
        for label, part in groups.items():
            part.sort(key=lambda row: float(row[x]))
            error = [row.get("std_error") or 0.0 for row in part]
            ys = [row[y] for row in part]
            low, high = ([v + side * e for v, e in zip(ys, error)] for side in (-2, 2))
            curve = Curve(label, [row[x] for row in part], ys)
            curves.append(curve._replace(low=low, high=high) if any(error) else curve)
        return Curves(f"{y} over {x}", x, y, curves, ", ".join(others), log_x=_wide(self.rows[x]), log_y=_wide(self.rows[y]))

    def _without_numbers(self) -> Picture:
        """Arrays as tiles, a row per point; of texts and truth values how many points have each."""
        name = next(name for name in self.rows.columns if name not in self.axes)
        values: List[Any] = [row.get(name) for row in self.rows]
        if all(isinstance(value, np.ndarray) for value in values) and len({value.shape for value in values}) == 1:
            return Tiles.of(f"{name} at each point of {', '.join(self.axes)}", [(name, [value.ravel() for value in values])])
        counts = Counter("array" if isinstance(value, np.ndarray) else str(value) for value in values)
        return Bars(f"{name} over {', '.join(self.axes)}", name, "points", [bar(label, n) for label, n in counts.items()])

    def __repr__(self) -> str:
        values = [name for name in self.rows.columns if name not in self.axes]
        return f"Sweep({len(self.rows)} points of {', '.join(self.axes)}: {', '.join(values)})"


def _place(row: Mapping[str, Any], axes: Sequence[str]) -> str:
    return ", ".join(f"{axis}={row[axis]}" for axis in axes)


def _wide(values: Any) -> bool:
    finite = values[np.isfinite(values)]
    return len(finite) > 0 and bool(finite.min() > 0) and bool(finite.max() >= 50 * finite.min())


def _values(found: Any) -> Dict[str, Any]:
    """What a function gave, as columns."""
    if dataclasses.is_dataclass(found) and not isinstance(found, type):
        found = {f.name: getattr(found, f.name) for f in dataclasses.fields(found)}
    elif hasattr(found, "_asdict"):
        found = found._asdict()
    elif not isinstance(found, Mapping):
        found = {"value": found}
    return {str(key): _plain(value) for key, value in found.items() if _fits(value)}


def _fits(value: Any) -> bool:
    return isinstance(value, (bool, int, float, str, np.generic, np.ndarray, type(None)))


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return value.item()
    return value


def _compute(function: Callable[..., Any], point: Point) -> Point:
    found = _values(function(**point))
    if not found:
        raise ArgumentError("sweep: the function gave nothing that is a number, a text or an array")
    return {**{axis: _plain(value) for axis, value in point.items()}, **found}


# The store's words for the type of a column, and its text of a row (esscher/json/rows.h).
def _column(name: str, value: Any) -> Dict[str, Any]:
    kinds = [(bool, "boolean"), (int, "integer"), (float, "real"), (str, "text"), (np.ndarray, "array")]
    kind = next((word for cls, word in kinds if isinstance(value, cls)), "real")
    return {"name": name, "type": kind, "unit": "", "meaning": "of a sweep", "optional": True, "parts": []}


def _stored(value: Any, kind: str) -> Any:
    if isinstance(value, np.ndarray):
        return [_stored(item, "real") for item in value.tolist()]
    if isinstance(value, list):
        return [_stored(item, "real") for item in value]
    if kind == "real" and isinstance(value, (int, float)):
        value = float(value)
        return value if math.isfinite(value) else repr(value)
    if kind == "integer" and isinstance(value, float) and not value.is_integer():
        raise ArgumentError(f"sweep: {value!r} in a column that held integers; give floats at every point")
    return value


def _key(point: Point) -> str:
    return ", ".join(f"{axis}={value}" for axis, value in point.items())


@helpful
def sweep(
    function: Callable[..., Any],
    grid: Mapping[str, Iterable[Any]],
    *,
    out: Out = None,
    shard: str = "",
    processes: int = 0,
    progress: Progress = None,
) -> Sweep:
    """function(**point) at every point of the grid {name: values}, as a table.

    The function may give a number, a dictionary, or a result (``Estimate``, ``Universal``): its numbers, texts and
    arrays are columns. Points are computed on the threads of the package, or in ``processes`` processes, for functions
    that spend their time in Python. ``out`` makes a run on disk: every point is kept as soon as it is there, the same
    call resumes it, and report.html shows it. ``shard`` "1/3" computes the first third of the points (on machines that
    share nothing; ``esscher runs merge`` puts the runs together). Under ``mpirun -np 4 python3 script.py`` the ranks
    compute the points of one ``out`` together, through mpi4py, and each of them gets the whole table.

    >>> import esscher as es
    >>> task = es.LinearRegressionTask(2)
    >>> at = es.block_optimum(task, es.inf)
    >>> s = es.sweep(lambda length: es.risk(task, at, length), {"length": [10, 100, 1000]})
    >>> s.rows["length"], s.rows["engine"][0]
    (array([  10,  100, 1000]), 'quadrature')
    """
    axes = {name: list(values) for name, values in grid.items()}
    if not axes or not all(axes.values()):
        raise ArgumentError("sweep: the grid is empty, expected {name: values}")
    points = [dict(zip(axes, values)) for values in itertools.product(*axes.values())]
    if out is not None:
        # Without processes a point is computed by the thread of the store that asks for it: another one would have to
        # wait for a place among the threads of the package, which the store holds.
        ask: Callable[[Point], Point] = partial(_compute, function)
        if processes > 0 and world() is not None:
            raise ArgumentError(f"sweep: processes is {processes} under mpirun, whose ranks are the processes; give 0")
        if processes <= 0:
            return Sweep(list(axes), _into_run(function, ask, points, os.fspath(out), shard, progress))
        with ProcessPoolExecutor(processes) as pool:
            elsewhere = partial(_ask, pool, function)
            return Sweep(list(axes), _into_run(function, elsewhere, points, os.fspath(out), shard, progress))
    if shard:
        raise ArgumentError(f"sweep: shard is {shard!r}, but only a run on disk has shards; give out")
    with ProcessPoolExecutor(processes) if processes > 0 else ThreadPoolExecutor(thread_count()) as executor:
        return Sweep(list(axes), _here(function, points, executor, progress))


def _ask(pool: Executor, function: Callable[..., Any], point: Point) -> Point:
    return pool.submit(_compute, function, point).result()


def _here(function: Callable[..., Any], points: List[Point], pool: Executor, progress: Progress) -> Rows:
    hears = listener(progress, "sweep")
    token = _esscher.StopToken() if isinstance(pool, ThreadPoolExecutor) else None
    calls = [partial(_compute, function, point) for point in points]
    jobs = [pool.submit(call) if token is None else pool.submit(token.call, call) for call in calls]
    try:
        for done, job in enumerate(as_completed(jobs), 1):
            job.result()
            if hears is not None:
                hears(done, len(jobs))
    except BaseException:
        for job in jobs:
            job.cancel()
        if token is not None:
            token.set()  # the calls that are running end too
        raise
    finally:
        if isinstance(hears, Bar):
            hears.close()
    return Rows([job.result() for job in jobs])


def _into_run(
    function: Callable[..., Any],
    ask: Callable[[Point], Point],
    points: List[Point],
    out: str,
    shard: str,
    progress: Progress,
) -> Rows:
    keys = [_key(point) for point in points]
    first, columns = _columns(ask, points, out)
    kinds = {column["name"]: column["type"] for column in columns}
    failures: List[BaseException] = []

    def compute(i: int) -> Tuple[Optional[str], str]:
        try:
            row = first if first is not None and i == 0 else ask(points[i])
            if not set(row) <= set(kinds):
                more = ", ".join(sorted(set(row) - set(kinds)))
                raise ArgumentError(f"sweep: at {keys[i]} the function gave {more}, which the first point did not")
            stored = {name: _stored(value, kinds[name]) for name, value in row.items() if value is not None}
            return json.dumps([stored], allow_nan=False), ""
        except BaseException as error:  # raised below, in the thread of the caller
            failures.append(error)
            return None, f"{type(error).__name__}: {error}"

    given = {"function": getattr(function, "__qualname__", type(function).__name__), "axes": list(points[0])}
    with outlet("sweep", "sweep", given, out=out, shard=shard, progress=progress) as where:
        try:
            found = _esscher.sweep(where, keys, columns, compute)
        except RuntimeFailure:
            if failures:
                raise failures[0] from None
            raise
    if found is None:
        raise RuntimeFailure(f"shard {shard} of {out} is done; the other shards are not, so there is no result yet")
    place = {key: i for i, key in enumerate(keys)}
    rows = sorted((row for row in found if row["cell"] in place), key=lambda row: place[row["cell"]])
    return Rows({name: value for name, value in row.items() if name != "cell"} for row in rows)


def _columns(
    ask: Callable[[Point], Point], points: List[Point], out: str
) -> Tuple[Optional[Point], List[Dict[str, Any]]]:
    """The columns of the run that is there; else those of the first point, which is computed for them.

    Of several ranks the first one does it, and keeps the point.
    """
    ranks = world()
    if ranks is None:
        return _own_columns(ask, points, out)
    row, columns = ranks.share(lambda: _own_columns(ask, points, out))
    return (row if ranks.rank == 0 else None), columns


def _own_columns(
    ask: Callable[[Point], Point], points: List[Point], out: str
) -> Tuple[Optional[Point], List[Dict[str, Any]]]:
    if os.path.exists(os.path.join(out, "run.sqlite")):
        stored = Run(out).document("columns")
        if stored is not None:
            return None, stored
    row = ask(points[0])
    return row, [_column(name, value) for name, value in row.items()]
