"""Heads of real models: are they linear in disguise, and from which prompt length on?"""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Union

import numpy as np

from . import _esscher
from .types import ArrayLike

Diagnosis = Dict[str, Any]


def diagnose(
    Q: ArrayLike,
    K: ArrayLike,
    V: ArrayLike,
    *,
    scale: Optional[float] = None,
    causal: bool = False,
    tolerance: float = 0.1,
    seed: int = 0,
) -> Diagnosis:
    """One head from the queries [m,dk], keys [n,dk] and values [n,dv] that entered its softmax.

    scale is 1/sqrt(dk) unless given. The record is a row of ``esscher heads --json``: ``verdict`` in words, and
    the numbers behind it.

    >>> import numpy as np, esscher as es
    >>> X = np.random.default_rng(0).normal(size=(400, 4))
    >>> sorted({"verdict", "tau2", "ess"} & set(es.diagnose(X, X, X, scale=0.1)))
    ['ess', 'tau2', 'verdict']
    """
    if scale is None:
        width: Any = Q
        scale = float(np.shape(width)[-1]) ** -0.5
    return _esscher.diagnose(Q, K, V, scale, causal, seed, tolerance)[0]


def diagnose_file(path: Union[str, os.PathLike[str]], *, tolerance: float = 0.1, seed: int = 0) -> List[Diagnosis]:
    """Every head of a .safetensors or .npz file, or of a folder of .npy files."""
    return _esscher.diagnose_file(os.fspath(path), seed, tolerance)
