"""Rows of results: a sequence of rows, each a dictionary whose columns are attributes too."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Sequence, Union, overload

import numpy as np
import numpy.typing as npt

from .errors import CapabilityError


class Row(Dict[str, Any]):
    """One row: ``row["L"]`` or ``row.L``.

    >>> import esscher as es
    >>> row = es.Row(L=10, value=0.5)
    >>> row.L, row["value"]
    (10, 0.5)
    """

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the row has no column {name!r}, only {', '.join(self)}") from None


class Rows(Sequence[Row]):
    """Rows in their order: ``rows[0]`` is a row, ``rows["L"]`` the column as an array.

    >>> import esscher as es
    >>> rows = es.Rows([{"L": 10, "value": 0.5}, {"L": 20, "value": 0.25}])
    >>> rows[0].L, rows["value"], len(rows)
    (10, array([0.5 , 0.25]), 2)
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self._rows = [Row(row) for row in rows]

    @property
    def columns(self) -> List[str]:
        """Names of the columns, in the order of their first appearance."""
        return list(dict.fromkeys(name for row in self._rows for name in row))

    @overload
    def __getitem__(self, key: int) -> Row: ...
    @overload
    def __getitem__(self, key: slice) -> Rows: ...
    @overload
    def __getitem__(self, key: str) -> npt.NDArray[Any]: ...
    def __getitem__(self, key: Union[int, slice, str]) -> Any:
        if isinstance(key, str):
            if key not in self.columns:
                raise KeyError(f"no column {key!r}, only {', '.join(self.columns)}")
            return column([row.get(key) for row in self._rows])
        return Rows(self._rows[key]) if isinstance(key, slice) else self._rows[key]

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"Rows({len(self)} of {', '.join(self.columns)})"

    def to_pandas(self) -> Any:
        """A pandas DataFrame; an interval ``ci`` becomes ``ci_low`` and ``ci_high``."""
        return module("pandas", "to_pandas").DataFrame([flat(row) for row in self._rows])


def flat(row: Mapping[str, Any]) -> Dict[str, Any]:
    """A row with its interval in two columns."""
    found: Dict[str, Any] = {}
    for name, value in row.items():
        if name == "ci" and value is not None:
            found["ci_low"], found["ci_high"] = (float(end) for end in value)
        else:
            found[name] = value
    return found


def column(values: List[Any]) -> npt.NDArray[Any]:
    """Numbers as numbers, absent ones as NaN; everything else as objects."""
    numbers = all(isinstance(v, (int, float, type(None))) and not isinstance(v, bool) for v in values)
    if numbers and all(isinstance(v, int) for v in values):
        return np.array(values)
    if numbers:
        return np.array([np.nan if v is None else v for v in values], dtype=np.float64)
    if all(isinstance(v, bool) for v in values):
        return np.array(values)
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def module(name: str, where: str) -> Any:
    """An optional package; the error says what to install."""
    try:
        return import_module(name)
    except ImportError as error:
        package = f"python3-{name.partition('.')[0]}"
        raise CapabilityError(f"{where} needs the package {name} (Debian: {package})") from error
