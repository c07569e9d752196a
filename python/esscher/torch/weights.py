"""Weights of other models: state dicts of ``nn.MultiheadAttention`` and of four linears, in both directions."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Tuple

import numpy as np

from ..attention import Attention as NumpyAttention
from ..attention import MultiHead
from ..errors import ArgumentError, CapabilityError, DimensionError
from ..icl import Readout
from ..keywords import helpful
from ..layers import Layer
from .attention import Attention
from .tensors import Tensor, to_numpy, torch


def _split(W: Tensor, heads: int, name: str) -> Any:
    if W.shape[0] % heads:
        raise DimensionError(f"from_state_dict: {name} has {W.shape[0]} rows, which {heads} heads do not share evenly")
    return W.reshape(heads, W.shape[0] // heads, W.shape[1])


def _matrix(state: Mapping[str, Tensor], name: str) -> Any:
    if name not in state:
        raise ArgumentError(f"from_state_dict: there is no {name}; the keys are {', '.join(state)}")
    return torch.as_tensor(to_numpy(state[name]))


def _check_bias(state: Mapping[str, Tensor], name: str, what: str) -> None:
    if name in state and bool((state[name] != 0).any()):
        raise CapabilityError(f"from_state_dict: {name} is not zero, and a head of esscher has no bias of {what}")


@helpful
def from_state_dict(
    state: Mapping[str, Tensor],
    heads: int,
    *,
    names: Tuple[str, str, str, str] = ("q", "k", "v", "o"),
    score_scale: Optional[float] = None,
) -> MultiHead:
    """The heads of ``nn.MultiheadAttention`` (in_proj_weight, out_proj.weight), or of four linears.

    ``names`` are the names of the linears of Q, K, V and O, e.g. ("q_proj", "k_proj", "v_proj", "o_proj"). score_scale is
    1/sqrt(head dimension) unless given. A bias of keys changes no softmax and is dropped; other biases must be zero.

    >>> import torch, esscher.torch as et
    >>> layer = torch.nn.MultiheadAttention(4, 2, bias=False)
    >>> len(et.from_state_dict(layer.state_dict(), 2).heads)
    2
    """
    if "in_proj_weight" in state:
        E = state["in_proj_weight"].shape[1]
        q, k, v = (_matrix(state, "in_proj_weight")[i * E : (i + 1) * E] for i in range(3))
        o = _matrix(state, "out_proj.weight")
        if "in_proj_bias" in state:
            _check_bias({"in_proj_bias of queries": state["in_proj_bias"][:E]}, "in_proj_bias of queries", "queries")
            _check_bias({"in_proj_bias of values": state["in_proj_bias"][2 * E :]}, "in_proj_bias of values", "values")
        _check_bias(state, "out_proj.bias", "outputs")
    else:
        q, k, v, o = (_matrix(state, f"{name}.weight") for name in names)
        for name, what in zip((names[0], names[2], names[3]), ("queries", "values", "outputs")):
            _check_bias(state, f"{name}.bias", what)
    parts = [_split(W, heads, name) for W, name in zip((q, k, v), "QKV")]
    scale = float(parts[0].shape[1]) ** -0.5 if score_scale is None else score_scale
    single = [
        NumpyAttention(Q=parts[0][h].numpy(), K=parts[1][h].numpy(), V=parts[2][h].numpy(), score_scale=scale)
        for h in range(heads)
    ]
    return MultiHead(single, o.numpy())


@helpful
def to_state_dict(
    heads: MultiHead,
    *,
    names: Optional[Tuple[str, str, str, str]] = None,
    score_scale: Optional[float] = None,
    dtype: Any = None,
) -> Dict[str, Tensor]:
    """The inverse: weights for ``nn.MultiheadAttention``, or for four linears of these names.

    What is left of a head's score_scale beside 1/sqrt(head dimension) (or ``score_scale``) goes into Q.

    >>> import torch, esscher.torch as et
    >>> layer = torch.nn.MultiheadAttention(4, 2, bias=False)
    >>> again = et.to_state_dict(et.from_state_dict(layer.state_dict(), 2), dtype=torch.float32)
    >>> all(torch.equal(again[name], value) for name, value in layer.state_dict().items())
    True
    """
    parts: Dict[str, List[Any]] = {"Q": [], "K": [], "V": []}
    for head in heads.heads:
        K = head.K if head.has_kq else np.eye(head.dim)
        Q = head.Q if head.has_kq else head.U
        scale = float(K.shape[0]) ** -0.5 if score_scale is None else score_scale
        factor = (head.score_scale if head.has_kq else 1.0) / scale
        parts["Q"].append(Q if abs(factor - 1) < 1e-15 else factor * Q)
        parts["K"].append(K)
        parts["V"].append(head.V)
    q, k, v = (torch.as_tensor(np.concatenate(parts[name])).to(dtype or torch.float64) for name in "QKV")
    o = torch.as_tensor(np.array(heads.O)).to(dtype or torch.float64)
    if names is not None:
        return {f"{name}.weight": W for name, W in zip(names, (q, k, v, o))}
    if not q.shape == k.shape == v.shape or q.shape[0] != q.shape[1]:
        raise DimensionError(f"to_state_dict: Q, K, V are {tuple(q.shape)}, nn.MultiheadAttention has squares; give names")
    return {"in_proj_weight": torch.cat([q, k, v]), "out_proj.weight": o}


@helpful
def readouts(module: Any) -> List[Readout]:
    """What a prediction (the last coordinate of the output) reads of a module: (U, r) per head.

    Serves ``et.Attention``, ``nn.MultiheadAttention`` without biases, and modules with linears q, k, v, o and an integer
    ``heads``.

    >>> import torch, esscher.torch as et
    >>> [head.U.shape for head in et.readouts(torch.nn.MultiheadAttention(4, 2, bias=False))]
    [(4, 4), (4, 4)]
    """
    return [Readout(U, V[-1]) for U, V in _heads_of(module)]


def layer_of(module: Any) -> Layer:
    """The layer of softmax heads that a module is, for tasks beyond regression."""
    heads = _heads_of(module)
    return Layer([U for U, _ in heads], [V for _, V in heads])


def _heads_of(module: Any) -> List[Tuple[Any, Any]]:
    """U [D,D] and what a head adds to the output, O V [m,D], of each head."""
    if isinstance(module, Attention):
        head = module.numpy()
        return [(head.U, head.V)]
    count = getattr(module, "num_heads", None) or getattr(module, "heads", None)
    if count is None:
        raise ArgumentError(f"readouts: {type(module).__name__} has no num_heads; give the Trainer a function readout=")
    whole = from_state_dict(module.state_dict(), int(count))
    found, first = [], 0
    for head in whole.heads:
        width = head.output_dim
        found.append((head.U, whole.O[:, first : first + width] @ head.V))
        first += width
    return found
