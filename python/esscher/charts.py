"""Charts of results. A notebook shows them by itself: in Jupyter, JupyterLab, VS Code and pages of
nbconvert, without a network, drawn by the same code as the reports."""

from __future__ import annotations

import html
import json
import re
from typing import Any, Dict, List, Mapping, Sequence

from . import _esscher

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"

Spec = Dict[str, Any]

# What a legend calls the values of a column.
WORDS = {
    "grad_v": "gradient in V",
    "grad_u": "gradient in U",
    "grad_k": "gradient in K",
    "grad_q": "gradient in Q",
    "bayes": "Bayes",
    "infinity": "infinite prompt",
}

# What an axis calls a column.
AXES = {
    "L": "prompt length L",
    "D": "mean-square error D(L)",
    "t": "training time t",
    "tau2": "score variance τ²",
    "lin_c": "error of the Gaussian limit",
    "gamma": "γ",
    "kappa": "κ",
    "E sum of squared weights": "mean of Σω²",
    "step": "training step",
    "E H": "E H, the mean of Σω²",
}

_MODEL = re.compile(r"^(\w+) L=(\w+)$")


class Charted:
    """Base of results with a picture: ``chart()`` gives the Vega-Lite spec as a dict."""

    def chart(self) -> Spec:
        """The Vega-Lite specification, with its data."""
        raise NotImplementedError

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Dict[str, Any]:
        return {"text/html": frame(self.chart(), repr(self)), "text/plain": repr(self)}


class Chart(Charted):
    """Any Vega-Lite spec, to be shown.

    >>> import esscher as es
    >>> es.Chart({"mark": "bar"})
    Chart(bar)
    """

    def __init__(self, spec: Spec) -> None:
        self.spec = spec

    @classmethod
    def lines(cls, rows: Sequence[Mapping[str, Any]], x: str, y: str, color: str = "", **options: Any) -> Chart:
        """Curves of y over x, one per value of ``color``, drawn as in the reports; options as log_x, title, x_title.

        Options are ``marks``, ``low``, ``high``, ``log_x``, ``log_y``, ``title``, ``x_title`` and ``y_title``.

        >>> import esscher as es
        >>> es.Chart.lines([{"L": 10, "D": 0.1}, {"L": 100, "D": 0.01}], "L", "D", log_x=True, log_y=True, title="error")
        Chart(error)
        """
        return cls(lines(rows, x, y, color, **options))

    def chart(self) -> Spec:
        """The specification."""
        return self.spec

    def __repr__(self) -> str:
        return f"Chart({title_of(self.spec)})"


def title_of(spec: Spec) -> str:
    """What a picture is about, in one line: its title, or its kind of mark.

    >>> from esscher.charts import title_of
    >>> title_of({"title": "training loss", "mark": "line"}), title_of({"mark": {"type": "line"}})
    ('training loss', 'line')
    """
    title = spec.get("title")
    if isinstance(title, dict):
        title = title.get("text")
    if not title:
        mark = spec.get("mark")
        title = mark.get("type") if isinstance(mark, dict) else mark
    return " ".join(str(title or "layers").split())


def page(spec: Spec) -> str:
    """A page of HTML that draws one specification and needs nothing else: write it to a file, send it on."""
    return _esscher.chart_page(json.dumps(_finite(spec)))


def frame(spec: Spec, said: str = "") -> str:
    """The page inside a frame, so that scripts and styles of a notebook cannot touch it. A reader that strips frames, as
    JupyterLab does in a notebook that it does not trust, shows what is ``said`` in words, and why."""
    said = f"{said}. " if said else ""
    return (
        f'<iframe srcdoc="{html.escape(page(spec))}" title="{html.escape(title_of(spec))}" '
        'style="width: 100%; height: 500px; border: 0" loading="lazy" onload="this.nextElementSibling.remove()"></iframe>'
        f"<p>{html.escape(said)}Trust this notebook to see the picture.</p>"
    )


def lines(
    rows: Sequence[Mapping[str, Any]],
    x: str,
    y: str,
    color: str = "",
    *,
    marks: bool = False,
    low: str = "",
    high: str = "",
    log_x: bool = False,
    log_y: bool = False,
    title: str = "",
    x_title: str = "",
    y_title: str = "",
) -> Spec:
    """Curves of y over x, one per value of ``color``, with bands from ``low`` to ``high``.

    Names such as "L = 100" are ordered: they get shades in numeric order and labels at the ends of
    their lines. Names such as "softmax L=100" get a shade by length and a dash by model. ``marks``
    draws points that no line joins. Points that a log scale cannot show are left out, and the picture
    says so.
    """
    shown: List[Dict[str, Any]] = [dict(row) for row in rows]
    dash = ""
    if color:
        models = [_MODEL.match(str(row[color])) for row in shown]
        for row, model in zip(shown, models):
            row[color] = WORDS.get(str(row[color]), row[color])
            if all(models) and model is not None:
                dash = "model"
                row[dash], row[color] = model[1], f"L = {'∞' if model[2] == 'inf' else model[2]}"
    encoding: Spec = {"x": _axis(x, log_x, x_title), "y": _axis(y, log_y, y_title)}
    if color:
        encoding["color"] = {"field": color, "type": "nominal", "title": None}
    if dash:
        encoding["strokeDash"] = {"field": dash, "type": "nominal", "title": None}
    described: Spec = {
        "kind": "scatter" if marks else "curve",
        "data": "rows",
        "x": {"column": x, "title": x_title or AXES.get(x, x), "log": log_x},
        "y": {"column": y, "title": y_title or AXES.get(y, y), "log": log_y},
        "points": len(shown) <= 60,
    }
    if color:
        described["series"] = color
    if dash:
        described["dash"] = dash
    if low and high:
        described.update(low=low, high=high)
    return {
        "$schema": SCHEMA,
        "title": title,
        "width": 480,
        "height": 300,
        "data": {"values": [row for row in shown if _drawable(row, x, log_x) and _drawable(row, y, log_y)]},
        "datasets": {"rows": shown},
        "mark": {"type": "point", "tooltip": True} if marks else {"type": "line", "point": True, "tooltip": True},
        "encoding": encoding,
        "usermeta": {"esscher": described},
    }


def _drawable(row: Mapping[str, Any], column: str, log: bool) -> bool:
    return row[column] is not None and (not log or row[column] > 0)


def _axis(field: str, log: bool, title: str) -> Spec:
    scale: Spec = {"type": "log"} if log else {"zero": False}
    return {"field": field, "type": "quantitative", "scale": scale, "title": title or AXES.get(field, field)}


def _finite(value: Any) -> Any:
    """JSON has neither nan nor infinity: both become null, which no chart draws."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value
