"""Central differences of order 8, for derivatives that have no formula.

The functions are analytic on the scale of the step, so the error is that of rounding, about 1e-11 of their size.
"""

from __future__ import annotations

from typing import Any, Callable

STENCIL = ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280))


def along(f: Callable[[float], Any], step: float) -> Any:
    """f'(0)."""
    return sum(c * (f(j * step) - f(-j * step)) for j, c in STENCIL) / step
