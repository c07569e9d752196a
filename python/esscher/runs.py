"""Runs on disk, made by the program: ``esscher VERB --out DIR``."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Dict, List, Tuple, Union

import numpy as np
import numpy.typing as npt

from . import _esscher
from .charts import Charted, Spec

Row = Dict[str, Union[float, int, str, bool, None]]


@dataclass(frozen=True)
class Figure(Charted):
    """A figure of a report: its Vega-Lite spec with the data inside.

    >>> import esscher as es
    >>> figure = es.Run("rate").figures()[0]
    >>> figure.section, "encoding" in str(figure.spec)
    ('curve', True)
    """

    id: str
    section: str
    caption: str
    spec: Spec

    def chart(self) -> Spec:
        """The specification."""
        return self.spec


class Run:
    """A run opened for reading; works while another process writes it.

    After ``esscher concentration --config exp.toml --out rate``:

    >>> import esscher as es
    >>> run = es.Run("rate")
    >>> run.verb, run.progress, run.columns()["L"][:3]
    ('concentration', (3, 3), array([  10,  100, 1000]))
    >>> run.to_pandas().shape[0] == len(run.rows()) == 3
    True
    """

    def __init__(self, directory: Union[str, os.PathLike[str]]) -> None:
        self._run = _esscher.Run(os.fspath(directory))

    @property
    def directory(self) -> str:
        """Where the run is."""
        return self._run.directory

    @property
    def verb(self) -> str:
        """The verb that made it, e.g. "concentration"."""
        return self._run.verb

    @property
    def seed(self) -> int:
        """The seed of the study."""
        return self._run.seed

    @property
    def config(self) -> str:
        """The resolved configuration as TOML."""
        return self._run.config

    @property
    def progress(self) -> Tuple[int, int]:
        """(cells done, cells in all)."""
        return self._run.status()

    def rows(self) -> List[Row]:
        """Rows of all finished cells in the order of the study."""
        return self._run.rows()

    def columns(self) -> Dict[str, npt.NDArray[Any]]:
        """The rows as one array per column; a missing number is NaN."""
        rows = self.rows()
        names = list(dict.fromkeys(name for row in rows for name in row))
        return {name: _column([row.get(name) for row in rows]) for name in names}

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame; needs pandas."""
        from importlib import import_module

        return import_module("pandas").DataFrame(self.rows())

    def document(self, name: str) -> Any:
        """A JSON document beside the rows, e.g. "report"; None if there is none."""
        return self._run.document(name)

    def provenance(self) -> Dict[str, Any]:
        """When, where and how it was computed."""
        return self._run.provenance()

    def report_html(self) -> str:
        """The report as one self-contained page."""
        return self._run.report_html()

    def figures(self) -> List[Figure]:
        """The report's figures; each shows itself in Jupyter."""
        return [Figure(**figure) for figure in self._run.figures()["figures"]]

    def csv(self) -> str:
        """The rows as CSV, the same bytes as ``esscher export``."""
        return self._run.csv()

    def json(self) -> str:
        """The rows as JSON, the same bytes as ``esscher export``."""
        return self._run.json()

    def __repr__(self) -> str:
        done, total = self.progress
        return f"Run({self.directory!r}, verb={self.verb!r}, cells {done}/{total})"


def _column(values: List[Any]) -> npt.NDArray[Any]:
    if all(isinstance(v, (int, float, type(None))) and not isinstance(v, bool) for v in values):
        if all(isinstance(v, int) for v in values):
            return np.array(values)
        return np.array([np.nan if v is None else v for v in values], dtype=np.float64)
    return np.array(values, dtype=object)
