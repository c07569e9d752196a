"""Tensors and arrays: PyTorch itself, and the way from one to the other."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

# Without its types: they would take a type checker minutes to read.
torch: Any = import_module("torch")
Tensor = Any


def to_numpy(x: Tensor) -> Any:
    """The values of a tensor in double precision, outside the graph."""
    return x.detach().to(torch.float64).cpu().numpy()


def tensor_like(array: Any, x: Tensor) -> Tensor:
    """An array as a tensor with the dtype of x."""
    return torch.as_tensor(np.asarray(array), dtype=torch.float64).to(x.dtype)
