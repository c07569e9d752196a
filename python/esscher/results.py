"""What every result can do: data frames, pictures, files, one line that answers."""

from __future__ import annotations

import dataclasses
import functools
import html
import io
import json
import math
import os
from typing import Any, ClassVar, Dict, List, Mapping, Type, Union

import numpy as np
import numpy.typing as npt

from . import _esscher
from .charts import Charted, Spec, frame
from .errors import FileError
from .keywords import known_keywords
from .grids import PARAMETERS, Shapes, dataset
from .pictures import Curve, Curves, Picture
from .tables import Row, Rows, flat, module

Path = Union[str, "os.PathLike[str]"]

SHOWN = 30  # rows of a table in a notebook


class Result(Charted):
    """Base of results. Frozen dataclasses below it get all of this from their fields and ``rows``."""

    _kinds: ClassVar[Dict[str, Type[Result]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        Result._kinds[cls.__name__] = cls

    def _table(self) -> Rows:
        """The rows of the data frame; the scalar fields as one row unless a result says otherwise."""
        return Rows([fields_of(self)])

    def _axes(self) -> List[str]:
        """Columns of the table that span a grid; empty if there is none."""
        return []

    def _grid(self) -> Rows:
        """The rows of the Dataset, which may have arrays that a data frame has no place for."""
        return self._table()

    def _shapes(self) -> Shapes:
        """Names of the axes of columns that are arrays."""
        return PARAMETERS

    def _picture(self) -> Picture:
        """What ``chart``, ``plot`` and notebooks draw."""
        raise NotImplementedError(f"{type(self).__name__} draws nothing")

    def to_pandas(self) -> Any:
        """A pandas DataFrame, one row per row of the result; needs pandas."""
        return self._table().to_pandas()

    def to_xarray(self) -> Any:
        """An xarray Dataset over the axes of the grid, with axes for arrays; needs pandas and xarray.

        >>> import numpy as np, esscher as es
        >>> T, mu = es.Attention(U=np.eye(2)), es.Gaussian(np.eye(2))
        >>> u, slope = es.universal(100, mu, T, [1.0, 0.0], gradient=True)
        >>> grid = slope.to_xarray()
        >>> grid["U"].dims, round(float(grid["U"].sel(function="H")[0, 0]), 4)
        (('function', 'token', 'query'), 0.0436)
        """
        rows = self._grid()
        return dataset(rows, [axis for axis in self._axes() if axis in rows.columns], self._shapes())

    def chart(self) -> Spec:
        """The picture as a Vega-Lite specification, with its data."""
        return self._picture().spec()

    def plot(self, ax: Any = None) -> Any:
        """Draws the picture with matplotlib into ``ax``, or into new axes; gives the axes back.

        >>> import esscher as es
        >>> from matplotlib.figure import Figure
        >>> answer = es.universal(100, 1.0)
        >>> answer.plot(Figure().subplots()).get_title()
        'Gaussian scores'
        """
        if ax is None:
            ax = module("matplotlib.pyplot", "plot").subplots()[1]
        self._picture().draw(ax)
        return ax

    def save(self, path: Path) -> None:
        """Writes the result as JSON; ``esscher.load`` reads the same bits back."""
        document = {"esscher": _esscher.version, "type": type(self).__name__, "fields": _encode(fields_of(self))}
        text = json.dumps(document, allow_nan=False)
        try:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text + "\n")
        except OSError as error:
            raise FileError(f"{os.fspath(path)}: {error.strerror}") from error

    def _svg(self) -> str:
        """The picture as SVG, drawn by matplotlib; "" if that is not there."""
        try:
            from matplotlib.backends.backend_svg import FigureCanvasSVG  # type: ignore[import]
            from matplotlib.figure import Figure  # type: ignore[import]
        except ImportError:
            return ""
        figure = Figure(figsize=(5.5, 3.4), layout="constrained")
        FigureCanvasSVG(figure)
        self._picture().draw(figure.subplots())
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None})
        text = file.getvalue()
        return text[text.index("<svg") :]

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Dict[str, Any]:
        # A picture without scripts beside the page: for readers that run none, and for paper.
        said = repr(self)
        text = frame(self.chart()) + f"<p>{html.escape(said)}</p>" + _html_table(self._sentences())
        bundle = {"text/html": text, "text/plain": said}
        svg = self._svg()
        return {**bundle, "image/svg+xml": svg} if svg else bundle

    def _sentences(self) -> Rows:
        """Rows of words, which a notebook shows below the picture."""
        return Rows([])


def fields_of(result: Any) -> Dict[str, Any]:
    """The fields of a result, a dataclass or a named tuple, by name."""
    if hasattr(result, "_asdict"):
        found: Dict[str, Any] = result._asdict()
        return found
    return {f.name: getattr(result, f.name) for f in dataclasses.fields(result)}


def sizes(result: Any) -> str:
    """A result of arrays on one line: numbers as they are, arrays by their norm, what is not known left out."""
    parts = []
    for name, value in fields_of(result).items():
        if isinstance(value, (float, np.ndarray)):
            label = f"|{name}|" if np.ndim(value) else name
            parts.append(f"{label} {float(np.linalg.norm(value) if np.ndim(value) else value):.4g}")
    return f"{type(result).__name__}({', '.join(parts)})"


def _html_table(rows: Rows) -> str:
    """The first rows as a table of HTML; "" if there is none."""
    if not len(rows):
        return ""
    cells = [[html.escape(f"{v:.6g}" if isinstance(v, float) else str(v)) for v in flat(row).values()] for row in rows[:SHOWN]]
    head = "".join(f"<th>{html.escape(name)}</th>" for name in flat(rows[0]))
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in line) + "</tr>" for line in cells)
    more = f"<p>and {len(rows) - SHOWN} more</p>" if len(rows) > SHOWN else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


# Values that JSON does not have are objects of one key.
def _encode(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return {"array": _encode(value.ravel().tolist()), "shape": list(value.shape), "dtype": str(value.dtype)}
    if isinstance(value, Rows):
        return {"rows": [_encode(dict(row)) for row in value]}
    if isinstance(value, Result) and not isinstance(value, tuple):
        return {"result": type(value).__name__, "fields": _encode(fields_of(value))}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {"tuple": type(value).__name__, "values": [_encode(item) for item in value]}
    if isinstance(value, (list, tuple)):
        return [_encode(item) for item in value]
    if isinstance(value, Mapping):
        return {"dict": {str(key): _encode(item) for key, item in value.items()}}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    return value


_TUPLES: Dict[str, Any] = {}


def same(one: Any, other: Any) -> bool:
    """Equality of values that may hold arrays: one truth value, where == of arrays has one per entry."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return isinstance(one, type(other)) and np.array_equal(one, other)
    if isinstance(one, (list, tuple)):
        alike = isinstance(other, (list, tuple)) and isinstance(one, tuple) == isinstance(other, tuple)
        return alike and len(one) == len(other) and all(same(a, b) for a, b in zip(one, other))
    return bool(one == other)


def compared(cls: Any) -> Any:
    """Decorator of a NamedTuple of arrays, so that == has one truth value."""
    cls.__eq__ = same
    cls.__ne__ = lambda one, other: not same(one, other)
    return cls


def _checked_new(cls: Any, make: Any) -> Any:
    """The constructor, which suggests the right keyword for a wrong one."""

    @functools.wraps(make)
    def new(kind: Any, *args: Any, **kwargs: Any) -> Any:
        return make(kind, *args, **known_keywords(cls.__name__, kwargs, cls._fields))

    return new


def _refuse(self: Any, name: str, value: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def register_tuple(cls: Any) -> Any:
    """Decorator of a NamedTuple that results hold, so that files can; it may have arrays, and it is frozen."""
    _TUPLES[cls.__name__] = cls
    if cls.__bases__ == (tuple,):  # others have a constructor of their own, or the base of one
        cls.__new__ = _checked_new(cls, cls.__new__)
    cls.__setattr__ = _refuse
    return compared(cls)


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return [_decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "array" in value:
        dtype = np.dtype(value["dtype"])
        if dtype.kind not in "biuf":
            raise ValueError(f"an array of dtype {dtype}")
        data: npt.NDArray[Any] = np.array(_decode(value["array"]), dtype=dtype)
        return data.reshape(value["shape"])
    if "rows" in value:
        return Rows([_decode(row) for row in value["rows"]])
    if "result" in value:
        return Result._kinds[value["result"]](**_decode(value["fields"]))
    if "tuple" in value:
        return _TUPLES[value["tuple"]](*[_decode(item) for item in value["values"]])
    if "dict" in value:
        return {key: _decode(item) for key, item in value["dict"].items()}
    if "float" in value:
        return float(value["float"])
    raise ValueError("an object of unknown kind")


def read_result(path: Path) -> Result:
    """The result that ``save`` wrote; FileError for anything else."""
    where = os.fspath(path)
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        kind = Result._kinds[document["type"]]
        fields = _decode(document["fields"])
        known = set(getattr(kind, "_fields", None) or (f.name for f in dataclasses.fields(kind)))
        if not isinstance(fields, dict) or set(fields) != known:
            raise ValueError(f"the fields of {document['type']} are not {', '.join(sorted(known))}")
        return kind(**fields)
    except OSError as error:
        raise FileError(f"{where}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError, MemoryError) as error:
        raise FileError(f"{where}: expected a result written by save() ({type(error).__name__}: {error})") from error


__all__ = ["Curve", "Curves", "Result", "Row", "compared", "fields_of", "read_result", "register_tuple", "same", "sizes"]
