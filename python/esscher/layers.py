"""In-context tasks beyond linear regression, and the layers that learn them.

A layer says W z + sum_h V_h T_h(z), where T_h is the mean of the prompt tilted by U_h z (softmax) or its second moment
times U_h z (linear). Every risk is one half of a mean squared error, summed over coordinates, or the mean of the loss
that a task asks for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from . import _esscher
from .errors import DimensionError
from .keywords import known_keywords
from .estimate import Estimate, repeated
from .pictures import Tiles
from .results import Curve, Curves, Result, register_tuple
from .tables import Rows
from .tasks import ContextTask
from .types import Array, Length


class _Layer(NamedTuple):
    U: Any
    V: Any
    W: Optional[Any] = None
    kinds: Union[str, Sequence[str]] = "softmax"


@register_tuple
class Layer(_Layer):
    """W z + sum_h V_h T_h(z): U [D,D] and V [m,D], or lists of them for several heads; W [m,D], 0 unless given.

    kinds: "softmax", "linear", or one word for each head. Tasks with labels have m = 1 and read the last rows of
    square matrices.

    >>> import numpy as np, esscher as es
    >>> task = es.DenoisingTask([[1.0], [-1.0]], gamma=0.5, xi=0.5)
    >>> layer = es.Layer(U=np.array([[2.0]]), V=np.array([[0.5]]))
    >>> best = es.reference_risks(task, es.inf).bayes
    >>> abs(es.risk(task, layer, es.inf).value - best.value) < 1e-12
    True
    """

    __slots__ = ()

    if not TYPE_CHECKING:  # so that a type checker still finds misspelt arguments

        def __new__(cls, *args, **kwargs):
            return super().__new__(cls, *args, **known_keywords("Layer", kwargs, cls._fields))


def _square(value: Any, name: str, rows: int, cols: int) -> Array:
    """[rows,cols] of a matrix with so many rows, or with more, of which the last act."""
    array = np.asarray(value, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != cols or array.shape[0] not in (rows, cols):
        expected = f"[{cols},{cols}]" if rows == cols else f"[{cols},{cols}] or [{rows},{cols}]"
        raise DimensionError(f"layer: {name} has shape {list(array.shape)}, expected {expected}")
    return array[array.shape[0] - rows :]


def _matrices(name: str, value: Any) -> List[Any]:
    """The matrices of all heads: a list of them, or the one of a single head."""
    try:
        first = value[0]
    except (TypeError, IndexError):
        raise DimensionError(f"layer: {name} is {value!r}, expected a matrix or a list of matrices") from None
    return list(value) if np.ndim(first) == 2 else [value]


def layer_heads(layer: Layer) -> Tuple[List[str], List[Any], List[Any]]:
    """Kinds, U and V of all heads, as many of each."""
    U, V = _matrices("U", layer.U), _matrices("V", layer.V)
    if len(U) != len(V):
        raise DimensionError(f"layer: V has {len(V)} matrices, U has {len(U)}")
    kinds = [layer.kinds] * len(U) if isinstance(layer.kinds, str) else list(layer.kinds)
    if len(kinds) != len(U):
        raise DimensionError(f"layer: kinds has {len(kinds)} words, U has {len(U)} matrices")
    return kinds, U, V


def layer_parts(task: ContextTask, layer: Layer) -> Tuple[Array, List[Tuple[str, Array, Array]]]:
    """W and (kind, U, V) of each head, as the compiled module takes them."""
    D, m = task.token_dim, task.out_dim
    kinds, U, V = layer_heads(layer)
    W = np.zeros((m, D)) if layer.W is None else _square(layer.W, "W", m, D)
    heads = [(k, _square(u, "U", D, D), _square(v, "V", m, D)) for k, u, v in zip(kinds, U, V)]
    return W, heads


def small_layer(task: ContextTask, kind: str, heads: int = 1) -> Layer:
    """U = V = 0.01 I of each head, where training starts unless told otherwise."""
    small = [0.01 * np.eye(task.token_dim)] * heads
    return Layer(small, small, None, kind)


def layer_of(found: Tuple[Array, List[Tuple[str, Array, Array]]]) -> Layer:
    """A Layer from what the compiled module gives."""
    W, heads = found
    kinds = [kind for kind, _, _ in heads]
    if len(heads) == 1:
        return Layer(heads[0][1], heads[0][2], W, kinds[0])
    return Layer([U for _, U, _ in heads], [V for _, _, V in heads], W, kinds)


class _LayerGradient(NamedTuple):
    risk: Estimate
    gradient: Layer
    std_error: Layer


@register_tuple
class LayerGradient(_LayerGradient, Result):
    """A risk, its derivatives in the matrices of the layer, and the standard error of each of them.

    >>> import numpy as np, esscher as es
    >>> task = es.DenoisingTask([[1.0], [-1.0]], gamma=0.5, xi=0.5)
    >>> value, slope, error = es.risk(task, es.Layer(np.array([[2.0]]), np.array([[0.5]])), es.inf, gradient=True)
    >>> bool(abs(slope.U[0, 0]) < 1e-9), float(error.U[0, 0])
    (True, 0.0)
    """

    def _table(self) -> Rows:
        parts = {"gradient": self.gradient, "std_error": self.std_error}
        return Rows({"what": name, "risk": getattr(self.risk, side), "U": part.U, "V": part.V, "W": part.W}
                    for (name, part), side in zip(parts.items(), ("value", "std_error")))

    def _axes(self) -> List[str]:
        return ["what"]

    def _picture(self) -> Tiles:
        slope = self.gradient
        U, V = (_matrices(name, part) for name, part in (("U", slope.U), ("V", slope.V)))
        parts = {"U": U, "V": V}
        many = len(U) > 1
        heads = [(f"{name} of head {h}" if many else name, part[h]) for h in range(len(U)) for name, part in parts.items()]
        return Tiles.of(f"derivatives of the risk {self.risk.value:.4g}", [*heads, ("W", slope.W)])

    def __repr__(self) -> str:
        return f"LayerGradient({self.risk!r}, {len(_matrices('U', self.gradient.U))} heads)"


def layer_risk(
    task: ContextTask, at: Layer, length: Length, options: Dict[str, Any], gradient: bool
) -> Union[Estimate, LayerGradient]:
    """``risk`` of a layer; with its gradient, the mean over independent nodes or draws."""
    W, heads = layer_parts(task, at)
    found = Estimate(*_esscher.layer_risk(task, W, heads, length, options))
    if not gradient:
        return found
    def slopes(given: Dict[str, Any]) -> List[Any]:
        dW, parts = _esscher.layer_risk_gradient(task, W, heads, length, given)[1]
        return [dW] + [matrix for _, dU, dV in parts for matrix in (dU, dV)]

    def layer(found: List[Any]) -> Layer:
        dW, *rest = found
        return layer_of((dW, [(kind, U, V) for (kind, _, _), U, V in zip(heads, rest[::2], rest[1::2])]))

    means, errors = repeated(slopes, options)
    return LayerGradient(found, layer(means), layer(errors))


@dataclass(frozen=True, eq=False)
class Risks(Result):
    """Risks of a layer and of the references at each length: ``rows`` of L, model, risk, std_error, engine.

    ``preset(NAME).run()`` of a preset for ``icl risk`` gives it.

    >>> import esscher as es
    >>> found = es.preset("gabet-denoising-one").run({"sweep.lengths": ["inf"]})
    >>> [row.model for row in found.rows], abs(found.rows[0].risk - found.rows[1].risk) < 1e-9
    (['softmax', 'bayes', 'affine', 'linear'], True)
    """

    rows: Rows

    def _table(self) -> Rows:
        return self.rows

    def _axes(self) -> List[str]:
        return ["L", "model"]

    def _picture(self) -> Curves:
        """Finite lengths; a risk of zero has no place on a logarithm, nor a linear map that is the affine one."""
        found: Dict[str, List[Any]] = {}
        for row in self.rows:
            if np.isfinite(row.L) and row.risk > 0:
                found.setdefault(row.model, []).append(row)
        named = {model: Curve(model, [r.L for r in rows], [r.risk for r in rows]) for model, rows in found.items()}
        maps = [named.pop(model) for model in ("affine", "linear") if model in named]
        if len(maps) == 2 and maps[0].y == maps[1].y:
            maps.pop()
        curves = [*named.values(), *(curve._replace(label=f"{curve.label} map of the query") for curve in maps)]
        return Curves("risks", "L", "risk", curves, group="prediction", log_x=True, log_y=True)

    def __repr__(self) -> str:
        return "Risks(" + ", ".join(f"{row.model} L={row.L}: {row.risk:.4g}" for row in self.rows[:4]) + ")"
