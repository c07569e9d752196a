"""Pictures of results, each for a chart and for matplotlib alike: curves, bars and tiles."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt

from .charts import AXES, SCHEMA, WORDS, Spec, lines

Numbers = Union[Sequence[float], npt.NDArray[Any]]

TILES = 64  # of a panel on each side; larger matrices show the largest entry of each block
SURE = 1.96  # standard errors on either side of an estimate


class Picture:
    """What a result draws: ``spec`` as Vega-Lite and ``draw`` with matplotlib."""

    def spec(self) -> Spec:
        """As Vega-Lite, with its data."""
        raise NotImplementedError

    def draw(self, ax: Any) -> None:
        """Into matplotlib axes."""
        raise NotImplementedError


class Curve(NamedTuple):
    """One curve of a picture: x [n], y [n], and a band low [n], high [n] where errors are known."""

    label: str
    x: Numbers
    y: Numbers
    low: Optional[Numbers] = None
    high: Optional[Numbers] = None


# Curves of formulas, which are dashed over what was computed.
_PREDICTIONS = ("limit", "predicted")


def _shades(labels: List[str]) -> Dict[str, Tuple[float, float, float]]:
    """Prompt lengths are ordered, so their curves get shades of one colour, and what is predicted is black."""
    lengths = [label for label in labels if label.startswith("L = ")]
    light, dark = (0.62, 0.79, 0.88), (0.03, 0.19, 0.42)
    out = {label: (0.0, 0.0, 0.0) for label in labels if label in _PREDICTIONS}
    for i, label in enumerate(lengths):
        share = i / (len(lengths) - 1) if len(lengths) > 1 else 1.0
        r, g, b = (a + share * (z - a) for a, z in zip(light, dark))
        out[label] = (r, g, b)
    return out


@dataclasses.dataclass(frozen=True, eq=False)
class Curves(Picture):
    """y over x, one curve per label."""

    title: str
    x: str
    y: str
    curves: List[Curve]
    group: str = ""
    log_x: bool = False
    log_y: bool = False
    marks: bool = False  # points, which no line joins

    def spec(self) -> Spec:
        """As Vega-Lite."""
        rows: List[Dict[str, Any]] = [
            {
                self.x: float(x),
                self.y: float(y),
                **({self.group: c.label} if self.group else {}),
                **({"low": float(c.low[i]), "high": float(c.high[i])} if c.low is not None and c.high is not None else {}),
            }
            for c in self.curves
            for i, (x, y) in enumerate(zip(c.x, c.y))
            if math.isfinite(x) and math.isfinite(y)
        ]
        banded = any(c.low is not None and c.high is not None for c in self.curves)
        return lines(
            rows,
            self.x,
            self.y,
            self.group,
            marks=self.marks,
            low="low" if banded else "",
            high="high" if banded else "",
            log_x=self.log_x,
            log_y=self.log_y,
            title=self.title,
        )

    def draw(self, ax: Any) -> None:
        """Into matplotlib axes."""
        shades = _shades([c.label for c in self.curves])
        for c in self.curves:
            x, y = np.asarray(c.x, dtype=np.float64), np.asarray(c.y, dtype=np.float64)
            shown = np.isfinite(x) & np.isfinite(y) & ((x > 0) | (not self.log_x)) & ((y > 0) | (not self.log_y))
            style = "o" if self.marks else "--" if c.label in _PREDICTIONS else ".-"
            label = WORDS.get(c.label, c.label)
            (line,) = ax.plot(x[shown], y[shown], style, label=label, color=shades.get(c.label))
            if c.low is not None and c.high is not None:
                low, high = (np.asarray(side, dtype=np.float64)[shown] for side in (c.low, c.high))
                ax.fill_between(x[shown], low, high, alpha=0.2, color=line.get_color(), linewidth=0)
        ax.set_xlabel(AXES.get(self.x, self.x))
        ax.set_ylabel(AXES.get(self.y, self.y))
        ax.set_title(self.title)
        if self.log_x:
            ax.set_xscale("log")
        if self.log_y:
            ax.set_yscale("log")
        if self.group and len(self.curves) > 1:
            ax.legend(title=self.group)


class Bar(NamedTuple):
    """One bar: its name, its height, and the ends of a 95 % interval where an error is known."""

    label: str
    value: float
    low: Optional[float] = None
    high: Optional[float] = None


def bar(label: str, value: float, std_error: float = 0.0) -> Bar:
    """A bar with the interval of an estimate; an error of zero has none.

    >>> from esscher.pictures import bar
    >>> bar("risk", 1.0), bar("risk", 1.0, 0.1).low
    (Bar(label='risk', value=1.0, low=None, high=None), 0.804)
    """
    if not std_error > 0 or not math.isfinite(std_error):
        return Bar(label, float(value))
    return Bar(label, float(value), float(value - SURE * std_error), float(value + SURE * std_error))


@dataclasses.dataclass(frozen=True, eq=False)
class Bars(Picture):
    """Numbers side by side, each under its name; what is not finite is left out."""

    title: str
    category: str
    y: str
    bars: List[Bar]

    def _shown(self) -> List[Bar]:
        return [b for b in self.bars if math.isfinite(b.value)]

    def spec(self) -> Spec:
        """As Vega-Lite."""
        rows = [{self.category: b.label, self.y: b.value, "low": b.low, "high": b.high} for b in self._shown()]
        described: Spec = {
            "kind": "bar",
            "data": "rows",
            "category": self.category,
            "category_title": self.category,
            "y": {"column": self.y, "title": AXES.get(self.y, self.y), "log": False},
        }
        if any(b.low is not None for b in self.bars):
            described.update(low="low", high="high")
        return {
            "$schema": SCHEMA,
            "title": self.title,
            "width": 480,
            "height": 300,
            "data": {"values": rows},
            "datasets": {"rows": rows},
            "mark": {"type": "bar", "tooltip": True},
            "encoding": {
                "x": {"field": self.category, "type": "nominal", "sort": None, "axis": {"labelAngle": 0}},
                "y": {"field": self.y, "type": "quantitative", "title": AXES.get(self.y, self.y)},
            },
            "usermeta": {"esscher": described},
        }

    def draw(self, ax: Any) -> None:
        """Into matplotlib axes."""
        shown = self._shown()
        at = np.arange(len(shown))
        ax.bar(at, [b.value for b in shown], width=0.6)
        for i, b in enumerate(shown):
            if b.low is not None and b.high is not None:
                ax.plot([i, i], [b.low, b.high], color="black", linewidth=1.4)
        ax.axhline(0.0, color="black", linewidth=0.8)
        ax.set_xticks(at)
        crowded = sum(len(b.label) for b in shown) > 40
        ax.set_xticklabels([b.label for b in shown], **({"rotation": 20, "ha": "right"} if crowded else {}))
        ax.set_xlim(-0.75, max(len(shown), 1) - 0.25)
        ax.set_xlabel(self.category)
        ax.set_ylabel(AXES.get(self.y, self.y))
        ax.set_title(self.title)


class Panel(NamedTuple):
    """One matrix of a picture and its name."""

    label: str
    values: npt.NDArray[Any]


def _thinned(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """At most TILES rows and columns, each tile with the entry of largest size of its block."""
    found = values
    for axis, n in enumerate(values.shape):
        if n > TILES:
            starts = np.linspace(0, n, TILES + 1).astype(int)[:-1]
            top, low = np.maximum.reduceat(found, starts, axis), np.minimum.reduceat(found, starts, axis)
            found = np.where(top >= -low, top, low)
    return found


@dataclasses.dataclass(frozen=True, eq=False)
class Tiles(Picture):
    """Matrices as tiles, orange below zero and blue or purple above; each has its largest entry as the end of its scale."""

    title: str
    panels: List[Panel]

    @classmethod
    def of(cls, title: str, arrays: Iterable[Tuple[str, Any]]) -> Tiles:
        """One panel per array by name: numbers and vectors are rows, stacks [H,..] have a panel per head, None has none."""
        panels: List[Panel] = []
        for name, value in arrays:
            if value is None:
                continue
            array = np.asarray(value, dtype=np.float64)
            if array.ndim > 2:
                panels += [Panel(f"{name} of head {h}", part) for h, part in enumerate(array)]
            else:
                panels.append(Panel(name, np.atleast_2d(array)))
        return cls(title, [panel for panel in panels if panel.values.size])

    def _scaled(self) -> List[Tuple[str, npt.NDArray[Any], npt.NDArray[Any]]]:
        """Labels with the largest size, entries, and entries as shares of it."""
        found = []
        for label, values in self.panels:
            shown = _thinned(values)
            sizes = np.abs(shown[np.isfinite(shown)])
            largest = float(sizes.max()) if sizes.size else 0.0
            share = np.full(shown.shape, np.nan) if not sizes.size else shown / largest if largest else np.zeros(shown.shape)
            found.append((f"{label}, up to {largest:.3g}" if sizes.size else f"{label}, unknown", shown, share))
        return found

    def spec(self) -> Spec:
        """As Vega-Lite."""
        rows = [
            {"parameter": label, "row": i, "column": j, "entry": float(shown[i, j]), "share": float(share[i, j])}
            for label, shown, share in self._scaled()
            for i in range(shown.shape[0])
            for j in range(shown.shape[1])
            if math.isfinite(shown[i, j])
        ]
        share = "share of the largest entry"
        return {
            "$schema": SCHEMA,
            "title": self.title,
            "data": {"values": rows},
            "datasets": {"rows": rows},
            "mark": {"type": "rect", "tooltip": True},
            "encoding": {
                "x": {"field": "column", "type": "ordinal"},
                "y": {"field": "row", "type": "ordinal"},
                "color": {"field": "share", "type": "quantitative", "title": share,
                          "scale": {"domain": [-1, 1], "domainMid": 0, "scheme": "blueorange", "reverse": True}},
                "facet": {"field": "parameter", "type": "nominal", "sort": None, "title": None, "columns": 3},
            },
            "usermeta": {"esscher": {
                "kind": "heatmap", "data": "rows", "x": "column", "y": "row", "panel": "parameter", "diverging": True,
                "value": {"column": "share", "title": share, "log": False}, "tooltip": ["parameter", "row", "column", "entry"],
            }},
        }

    def draw(self, ax: Any) -> None:
        """Into matplotlib axes: panels side by side, at most four in a row."""
        scaled = self._scaled()
        columns = max(1, min(4, len(scaled)))
        image = None
        top = 0.0
        for first in range(0, len(scaled), columns):
            row = scaled[first : first + columns]
            extents = [_extent(share.shape) for _, _, share in row]
            for k, ((label, _, share), (width, height)) in enumerate(zip(row, extents)):
                left = 1.3 * k
                image = ax.imshow(share, cmap="PuOr", vmin=-1, vmax=1, interpolation="nearest", aspect="equal",
                                  extent=(left, left + width, top + height, top))
                ax.text(left, top - 0.04, label.replace(", ", "\n", 1), fontsize="small", va="bottom")
            top += max(height for _, height in extents) + 0.45
        ax.set_xlim(-0.1, 1.3 * columns - 0.2)
        ax.set_ylim(max(top - 0.3, 0.9), -0.45)
        ax.set_xticks([])
        ax.set_yticks([])
        ax.set_xlabel("column")
        ax.set_ylabel("row")
        ax.set_title(self.title)
        if image is not None:
            ax.figure.colorbar(image, ax=ax, label="share of the largest entry")


def _extent(shape: Tuple[int, ...]) -> Tuple[float, float]:
    """Width and height of a panel: square tiles in a unit square, none of them taller than half of it."""
    rows, columns = shape
    tile = min(1.0 / max(rows, columns), 0.5)
    return columns * tile, rows * tile
