"""Heads of a PyTorch model, replaced by windows with a tail while it runs."""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any, Iterator, Mapping, Optional, Set, Tuple, Union

import numpy as np

from .. import _esscher
from ..errors import ArgumentError, CapabilityError, FileError
from ..heads import Path
from ..keywords import helpful
from .calls import Call
from .doors import watched
from .recording import Rotary, rotary_pairs
from .tensors import Tensor, tensor_like, to_numpy, torch

Plan = Union[Mapping[str, Any], Path]


class _Replaced(torch.autograd.Function):  # type: ignore[misc]
    """Outputs that come from outside the graph: they can be used, but not differentiated."""

    @staticmethod
    def forward(ctx: Any, Q: Tensor, K: Tensor, V: Tensor, found: Tensor) -> Tensor:
        return found

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        raise CapabilityError("replace: heads with a window have no gradients; run the model under torch.no_grad()")


def parsed_plan(plan: Plan) -> Any:
    """A plan of ``esscher model --replace``, from its file or from a dictionary."""
    if isinstance(plan, Mapping):
        return _esscher.HeadPlan("plan", json.dumps(plan))
    name = os.fspath(plan)
    try:
        with open(name, encoding="utf-8") as file:
            return _esscher.HeadPlan(name, file.read())
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{name}: {error}") from None


def _outputs(call: Call, plan: Any, rotary: Optional[Rotary], met: Set[Tuple[int, int]]) -> Optional[Tensor]:
    batch, heads = call.Q.shape[:2]
    group = heads // call.K.shape[1]
    met.update((call.layer, h) for h in range(heads))
    exact = None
    found = np.empty((*call.Q.shape[:-1], call.V.shape[-1]))
    touched = False
    for h in range(heads):
        for b in range(batch):
            Q, K, V = (to_numpy(x) for x in (call.Q[b, h], call.K[b, h // group], call.V[b, h // group]))
            y = plan.outputs(call.layer, h, Q, K, V, call.scale, call.causal, rotary)
            if y is None:
                exact = to_numpy(call.output()) if exact is None else exact
                y = exact[b, h]
            elif call.rules is not None:
                raise ArgumentError(
                    f"replace: L{call.layer}.H{h}, module {call.module!r}, has {call.rules}, expected attention to all keys "
                    "or causal attention; give texts without padding"
                )
            else:
                touched = True
            found[b, h] = y
    return _Replaced.apply(call.Q, call.K, call.V, tensor_like(found, call.Q)) if touched else None


@helpful
@contextlib.contextmanager
def replace(model: Any, plan: Plan, *, rotary: Optional[Rotary] = None) -> Iterator[None]:
    """Runs heads of a model as windows with a tail (``es.WindowedHead``) while the block runs.

    ``plan`` is that of ``esscher model --replace``, as a dictionary or a file: {"default": {"window": 16, "tail":
    "finite"}, "heads": [{"layer": 0, "head": 3, "window": 32}, ..]}; heads without a window stay exact. Layers are
    numbered in the order in which their modules first call attention, as ``record`` numbers them, and ``esscher heads
    --plan BYTES`` makes a plan of a recording. Rotary tails need ``rotary``, base and pairs. Outputs are computed in
    double precision on the CPU, [b,h,m,dv], and have no gradients. Weights that a module is asked for are None. When
    the block ends, a head that the plan names and the model did not call is an ArgumentError.

    >>> import torch, esscher as es, esscher.torch as et
    >>> layer = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval()
    >>> x = torch.randn(1, 100, 8)
    >>> with torch.no_grad(), et.replace(layer, {"default": {"window": 16, "tail": "finite"}}):
    ...     y, _ = layer(x, x, x)
    >>> y.shape
    torch.Size([1, 100, 8])
    """
    known = parsed_plan(plan)
    if rotary is not None:
        rotary_pairs(rotary)
    met: Set[Tuple[int, int]] = set()
    with watched(model, lambda call: _outputs(call, known, rotary, met)):
        yield
    for layer, head in known.named():
        if (layer, head) not in met:
            raise ArgumentError(
                f"replace: the plan names layer {layer}, head {head}, which the model did not call; it called "
                f"{len({key[0] for key in met})} layers of attention"
            )
