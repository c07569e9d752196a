"""Vega-Lite charts of results, shown by Jupyter through the mime bundle; nothing else is needed."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Sequence

MIME = "application/vnd.vegalite.v5+json"
SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"

Spec = Dict[str, Any]


class Charted:
    """Base of results with a picture: ``chart()`` gives the Vega-Lite spec as a dict."""

    def chart(self) -> Spec:
        """The Vega-Lite specification, with its data."""
        raise NotImplementedError

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Dict[str, Any]:
        return {MIME: self.chart(), "text/plain": repr(self)}


class Chart(Charted):
    """Any Vega-Lite spec, to be shown.

    >>> import esscher as es
    >>> es.Chart({"mark": "bar"}).chart()
    {'mark': 'bar'}
    """

    def __init__(self, spec: Spec) -> None:
        self.spec = spec

    def chart(self) -> Spec:
        """The specification."""
        return self.spec


def lines(
    rows: Sequence[Mapping[str, Any]],
    x: str,
    y: str,
    color: str = "",
    *,
    log_x: bool = False,
    log_y: bool = False,
    title: str = "",
) -> Spec:
    """Curves of y over x, one per value of ``color``; points that a log scale cannot show are left out."""
    shown: List[Mapping[str, Any]] = [
        row for row in rows if not (log_x and row[x] <= 0) and not (log_y and row[y] <= 0)
    ]
    encoding: Spec = {"x": _axis(x, log_x), "y": _axis(y, log_y)}
    if color:
        encoding["color"] = {"field": color, "type": "nominal"}
    return {
        "$schema": SCHEMA,
        "title": title,
        "width": 420,
        "height": 260,
        "data": {"values": [dict(row) for row in shown]},
        "mark": {"type": "line", "point": True, "tooltip": True},
        "encoding": encoding,
    }


def _axis(field: str, log: bool) -> Spec:
    scale: Spec = {"type": "log"} if log else {"zero": False}
    return {"field": field, "type": "quantitative", "scale": scale}
