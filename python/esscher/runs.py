"""Runs on disk, made by the program: ``esscher VERB --out DIR``."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Dict, List, Tuple, Union

import numpy.typing as npt

from . import _esscher
from .charts import Charted, Spec
from .results import read_result
from .tables import Rows


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

    def __repr__(self) -> str:
        return f"Figure({self.section}/{self.id}: {' '.join(self.caption.split())})"


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

    def rows(self) -> Rows:
        """Rows of all finished cells in the order of the study."""
        return Rows(self._run.rows())

    def columns(self) -> Dict[str, npt.NDArray[Any]]:
        """The rows as one array per column; a missing number is NaN."""
        rows = self.rows()
        return {name: rows[name] for name in rows.columns}

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame; needs pandas."""
        return self.rows().to_pandas()

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

    def __reduce__(self) -> Any:
        return Run, (self.directory,)

    def __repr__(self) -> str:
        done, total = self.progress
        return f"Run({self.directory!r}, verb={self.verb!r}, cells {done}/{total})"


def load(path: Union[str, os.PathLike[str]]) -> Any:
    """What was kept there: a result written by its ``save``, or the ``Run`` in a directory.

    >>> import esscher as es, tempfile, os
    >>> flow = es.flow(es.LinearRegressionTask(1), t_end=0.5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     flow.save(os.path.join(folder, "flow.json"))
    ...     again = es.load(os.path.join(folder, "flow.json"))
    >>> bool((again.risk == flow.risk).all())
    True
    """
    return Run(path) if os.path.isdir(path) else read_result(path)
