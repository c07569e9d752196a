"""Softmax attention as an operator on measures: T[mu](z) = V m_a with a = U z."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence

import numpy as np

from . import _esscher
from .recorded import Recorded
from .grids import PARAMETERS, Shapes
from .pictures import Tiles
from .results import Result, fields_of, same, sizes
from .tables import Rows
from .types import Array, ArrayLike, MeasureLike, PromptLike


@dataclass(frozen=True)
class Gradients(Result):
    """Cotangents, each of the shape of its parameter: z [d], U [d,d], V [dv,d], K and Q [dk,d] or None.

    >>> import numpy as np, esscher as es
    >>> g = es.Attention(U=np.eye(2)).vjp(es.Gaussian(np.eye(2)), [1.0, 2.0], [1.0, 0.0])
    >>> g.z, g.K is None
    (array([1., 0.]), True)
    """

    z: Array
    U: Array
    V: Array
    K: Optional[Array] = None
    Q: Optional[Array] = None

    def _picture(self) -> Tiles:
        return Tiles.of("gradients", fields_of(self).items())

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and same(tuple(vars(self).values()), tuple(vars(other).values()))

    def __repr__(self) -> str:
        return sizes(self)


@dataclass(frozen=True)
class MultiHeadGradients(Result):
    """Cotangents of a multi-head operator: z [d] summed over heads, O [p, sum dv_h], and one entry per head.

    >>> import numpy as np, esscher as es
    >>> heads = es.MultiHead([es.Attention(U=np.eye(1))] * 2, [[1.0, 1.0]])
    >>> g = heads.vjp(es.Gaussian([[1.0]]), [1.0], [1.0])
    >>> g.z, g.O, len(g.heads)
    (array([2.]), array([[1., 1.]]), 2)
    """

    z: Array
    O: Array
    heads: List[Gradients]

    def _table(self) -> Rows:
        parts = {name: [getattr(head, name) for head in self.heads] for name in ("U", "V", "K", "Q")}
        return Rows([{"z": self.z, "O": self.O, **{name: None if any(x is None for x in found) else found for name, found in parts.items()}}])

    def _shapes(self) -> Shapes:
        return {**PARAMETERS, "O": ("output", "value")}

    def _picture(self) -> Tiles:
        heads = [(f"{name} of head {h}", part) for h, head in enumerate(self.heads) for name, part in fields_of(head).items()]
        return Tiles.of("gradients", [("z", self.z), ("O", self.O), *(pair for pair in heads if not pair[0].startswith("z"))])

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and same(tuple(vars(self).values()), tuple(vars(other).values()))

    def __repr__(self) -> str:
        return sizes(self)


class Attention(Recorded, _esscher.Attention):
    """One head. ``Attention(U=U, V=V)``, or ``Attention(K=K, Q=Q, V=V, score_scale=s)`` with U = s K'Q.

    U [d,d], V [dv,d], K and Q [dk,d]; V is the identity unless given. The same call serves a finite
    prompt (an array of tokens [n,d]) and an infinite one (any measure). Arrays of float64 or float32
    run in SIMD kernels on their own memory, float32 to about 1e-6:

    >>> import numpy as np, esscher as es
    >>> T = es.Attention(U=np.eye(2))
    >>> T(es.Gaussian(np.eye(2)), [1.0, 2.0])
    array([1., 2.])
    >>> T([[0.0, 0.0], [1.0, 1.0]], [0.0, 0.0])
    array([0.5, 0.5])
    """

    _older = {"scale": "score_scale"}

    def __init__(
        self,
        *,
        U: Optional[ArrayLike] = None,
        V: Optional[ArrayLike] = None,
        K: Optional[ArrayLike] = None,
        Q: Optional[ArrayLike] = None,
        score_scale: float = 1.0,
    ) -> None:
        super().__init__(_make(U, V, K, Q, score_scale))

    @property
    def score_scale(self) -> float:
        """s in U = s K'Q; 1 for a head given by U."""
        return self.scale if self.has_kq else 1.0

    def __call__(self, measure: PromptLike, z: ArrayLike) -> Array:
        """T[mu](z) [dv], or [n,dv] for queries z [n,d]; of a ``Prompt`` its limit."""
        return self._softmax(measure, z)

    def linear(self, measure: MeasureLike, z: ArrayLike) -> Array:
        """Linear attention T_lin[mu](z) = V (E z'z'^T) U z.

        >>> import numpy as np, esscher as es
        >>> es.Attention(U=np.eye(1)).linear([[1.0], [2.0]], [1.0])
        array([2.5])
        """
        return self._linear(measure, z)

    def vjp(self, measure: MeasureLike, z: ArrayLike, g: ArrayLike, *, linear: bool = False) -> Gradients:
        """Gradients of <g, T[mu](z)> in z, U, V (and K, Q): c = C_a V'g, zbar = U'c, Ubar = c z', Vbar = g m_a'.

        >>> import numpy as np, esscher as es
        >>> T = es.Attention(U=np.eye(2))
        >>> T.vjp(es.Gaussian(np.eye(2)), [1.0, 2.0], [1.0, 0.0]).U
        array([[1., 2.],
               [0., 0.]])
        """
        return Gradients(**self._vjp(measure, z, g, linear))

    def jacobian(self, measure: MeasureLike, z: ArrayLike, of: str = "z", *, linear: bool = False) -> Array:
        """dT/dz [dv,d], dT/dU [dv,d,d] or dT/dV [dv,dv,d], for of = "z", "U" or "V"; of T_lin with linear = True.

        >>> import numpy as np, esscher as es
        >>> es.Attention(U=2 * np.eye(1)).jacobian(es.Rademacher(1), [0.0])
        array([[2.]])
        >>> es.Attention(U=np.eye(1)).jacobian([[1.0], [2.0]], [3.0], linear=True)
        array([[2.5]])
        """
        if of not in ("z", "U", "V"):
            raise ValueError(f'jacobian: of is {of!r}, expected "z", "U" or "V"')
        J = self._jacobian(measure, z, of, linear)
        return J if of == "z" else J.reshape(J.shape[0], -1, self.dim)


def _make(
    U: Optional[ArrayLike],
    V: Optional[ArrayLike],
    K: Optional[ArrayLike],
    Q: Optional[ArrayLike],
    scale: float,
) -> _esscher.Attention:
    if U is not None and K is None and Q is None and scale == 1.0:
        return _esscher.attention_uv(U, _identity_for(U) if V is None else V)
    if U is None and K is not None and Q is not None:
        return _esscher.attention_kqv(K, Q, _identity_for(K) if V is None else V, scale)
    raise TypeError("Attention takes U and V, or K, Q, V and score_scale")


def _identity_for(matrix: Any) -> Array:
    shape = np.shape(matrix)
    return np.eye(shape[-1] if shape else 1)


class MultiHead(Recorded, _esscher.MultiHead):
    """Heads side by side and an output matrix: y = O (T_1; ...; T_H), O [p, sum dv_h].

    >>> import numpy as np, esscher as es
    >>> T = es.Attention(U=np.eye(1))
    >>> es.MultiHead([T, T], [[1.0, 1.0]])(es.Gaussian([[1.0]]), [1.0])
    array([2.])
    """

    heads: List[Attention]

    def __init__(self, heads: Sequence[Attention], O: ArrayLike) -> None:
        super().__init__(heads, O)

    def __call__(self, measure: PromptLike, z: ArrayLike) -> Array:
        """y [p], or [n,p] for queries z [n,d]."""
        return self._softmax(measure, z)

    def linear(self, measure: MeasureLike, z: ArrayLike) -> Array:
        """The same heads with linear attention."""
        return self._linear(measure, z)

    def vjp(
        self, measure: MeasureLike, z: ArrayLike, g: ArrayLike, *, linear: bool = False
    ) -> MultiHeadGradients:
        """Gradients of <g, y> in z, O and the parameters of every head."""
        found: Dict[str, Any] = self._vjp(measure, z, g, linear)
        return MultiHeadGradients(found["z"], found["O"], [Gradients(**head) for head in found["heads"]])
