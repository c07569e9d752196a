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
from ..measures import Measure, measure
from ..prompts import Prompt
from .attention import Attention
from .measures import Empirical, Gaussian, Mixture
from .tensors import Tensor, to_numpy, torch


def _split(W: Tensor, heads: int, name: str) -> Any:
    if W.shape[0] % heads:
        raise DimensionError(f"from_state_dict: {name} has {W.shape[0]} rows, which {heads} heads do not share evenly")
    return W.reshape(heads, W.shape[0] // heads, W.shape[1])


def _matrix(state: Mapping[str, Tensor], name: str) -> Any:
    if name not in state:
        raise ArgumentError(f"from_state_dict: there is no {name}; the keys are {', '.join(state)}")
    return torch.as_tensor(to_numpy(state[name]))


# A linear map with a bias is one of tokens with one more coordinate, which is 1: W x + b = [W, b] (x, 1).
_HINT = "; constant=True takes it as a matrix of one more coordinate, for tokens (x, 1)"


def _check_bias(bias: Optional[Any], name: str, what: str) -> None:
    if bias is not None and bool((bias != 0).any()):
        raise CapabilityError(f"from_state_dict: {name} is not zero, and a head of esscher has no bias of {what}{_HINT}")


def _bias(state: Mapping[str, Tensor], name: str) -> Optional[Any]:
    return _matrix(state, name) if name in state else None


def _with_bias(W: Any, b: Optional[Any]) -> Any:
    return torch.cat([W, torch.zeros(len(W), 1, dtype=W.dtype) if b is None else b[:, None]], 1)


@helpful
def from_state_dict(
    state: Mapping[str, Tensor],
    heads: int,
    *,
    names: Tuple[str, str, str, str] = ("q", "k", "v", "o"),
    score_scale: Optional[float] = None,
    constant: bool = False,
) -> MultiHead:
    """The heads of ``nn.MultiheadAttention`` (in_proj_weight, out_proj.weight), or of four linears.

    ``names`` are the names of the linears of Q, K, V and O, e.g. ("q_proj", "k_proj", "v_proj", "o_proj"). score_scale is
    1/sqrt(head dimension) unless given. A bias of keys changes no softmax and is dropped; other biases must be zero.

    With ``constant`` biases are exact: the heads act on tokens (x, 1), which ``with_constant`` makes of tokens and measures,
    and W x + b is [W, b] (x, 1). A bias of the output is what one more head says, which reads the 1.

    >>> import torch, esscher.torch as et
    >>> layer = torch.nn.MultiheadAttention(4, 2, bias=False)
    >>> len(et.from_state_dict(layer.state_dict(), 2).heads)
    2
    >>> layer = torch.nn.MultiheadAttention(4, 2)
    >>> [head.dim for head in et.from_state_dict(layer.state_dict(), 2, constant=True).heads]
    [5, 5, 5]
    """
    for name in ("bias_k", "bias_v"):
        if name in state:
            raise CapabilityError(f"from_state_dict: {name} adds a token to every prompt, which is no part of a head")
    biases: List[Optional[Any]]
    if "in_proj_weight" in state:
        E = state["in_proj_weight"].shape[1]
        matrices = list(_matrix(state, "in_proj_weight").split(E)) + [_matrix(state, "out_proj.weight")]
        packed = _bias(state, "in_proj_bias")
        biases = [None] * 3 if packed is None else list(packed.split(E))
        biases.append(_bias(state, "out_proj.bias"))
        called = ["in_proj_bias of queries", "in_proj_bias of keys", "in_proj_bias of values", "out_proj.bias"]
    else:
        matrices = [_matrix(state, f"{name}.weight") for name in names]
        called = [f"{name}.bias" for name in names]
        biases = [_bias(state, name) for name in called]
    if constant:
        matrices[:3] = [_with_bias(W, b) for W, b in zip(matrices[:3], biases)]
    else:
        for i, what in ((0, "queries"), (2, "values"), (3, "outputs")):
            _check_bias(biases[i], called[i], what)
    parts = [_split(W, heads, name) for W, name in zip(matrices, "QKV")]
    scale = float(parts[0].shape[1]) ** -0.5 if score_scale is None else score_scale
    single = [
        NumpyAttention(Q=parts[0][h].numpy(), K=parts[1][h].numpy(), V=parts[2][h].numpy(), score_scale=scale)
        for h in range(heads)
    ]
    if constant and biases[3] is not None:
        single.append(_reads_the_constant(single[0].dim))
        matrices[3] = _with_bias(matrices[3], biases[3])
    return MultiHead(single, matrices[3].numpy())


def _reads_the_constant(dim: int) -> NumpyAttention:
    return NumpyAttention(U=np.zeros((dim, dim)), V=np.eye(dim)[-1:])


def _is_the_constant(head: NumpyAttention) -> bool:
    last = np.eye(head.dim)[-1:]
    return not head.has_kq and not head.U.any() and head.V.shape == last.shape and np.array_equal(head.V, last)


@helpful
def to_state_dict(
    heads: MultiHead,
    *,
    names: Optional[Tuple[str, str, str, str]] = None,
    score_scale: Optional[float] = None,
    dtype: Any = None,
    constant: bool = False,
) -> Dict[str, Tensor]:
    """The inverse: weights for ``nn.MultiheadAttention``, or for four linears of these names.

    What is left of a head's score_scale beside 1/sqrt(head dimension) (or ``score_scale``) goes into Q. With ``constant`` the
    heads are those of tokens (x, 1), and all four maps get biases.

    >>> import torch, esscher.torch as et
    >>> layer = torch.nn.MultiheadAttention(4, 2, bias=False)
    >>> again = et.to_state_dict(et.from_state_dict(layer.state_dict(), 2), dtype=torch.float32)
    >>> all(torch.equal(again[name], value) for name, value in layer.state_dict().items())
    True
    """
    parts: Dict[str, List[Any]] = {"Q": [], "K": [], "V": []}
    single, O = list(heads.heads), np.array(heads.O)
    bias = np.zeros(len(O))
    if constant and _is_the_constant(single[-1]):
        single, O, bias = single[:-1], O[:, :-1], O[:, -1]
    for head in single:
        K = head.K if head.has_kq else np.eye(head.dim)
        Q = head.Q if head.has_kq else head.U
        scale = float(K.shape[0]) ** -0.5 if score_scale is None else score_scale
        factor = (head.score_scale if head.has_kq else 1.0) / scale
        parts["Q"].append(Q if abs(factor - 1) < 1e-15 else factor * Q)
        parts["K"].append(K)
        parts["V"].append(head.V)
    whole = [np.concatenate(parts[name]) for name in "QKV"]
    weights = [*(W[:, :-1] for W in whole), O] if constant else [*whole, O]
    biases = [*(W[:, -1] for W in whole), bias] if constant else []
    q, k, v, o, *b = (torch.as_tensor(np.ascontiguousarray(W)).to(dtype or torch.float64) for W in [*weights, *biases])
    if names is not None:
        found = {f"{name}.weight": W for name, W in zip(names, (q, k, v, o))}
        return {**found, **{f"{name}.bias": x for name, x in zip(names, b)}}
    if not q.shape == k.shape == v.shape or q.shape[0] != q.shape[1]:
        raise DimensionError(f"to_state_dict: Q, K, V are {tuple(q.shape)}, nn.MultiheadAttention has squares; give names")
    packed = {"in_proj_weight": torch.cat([q, k, v]), "out_proj.weight": o}
    return {**packed, "in_proj_bias": torch.cat(b[:3]), "out_proj.bias": b[3]} if constant else packed


@helpful
def with_constant(law: Any) -> Any:
    """Tokens (x, 1) of tokens x: of a tensor or array [..,d], of a measure of tensors, or of a measure of ``esscher``.

    Heads with biases, which ``from_state_dict(.., constant=True)`` gives, act on these; their queries are (x, 1) too.

    >>> import torch, esscher as es, esscher.torch as et
    >>> et.with_constant(torch.tensor([[2.0], [3.0]]))
    tensor([[2., 1.],
            [3., 1.]])
    >>> et.with_constant(es.Gaussian([[1.0]], [3.0])).mean
    array([3., 1.])
    """
    if isinstance(law, torch.Tensor):
        return torch.cat([law, torch.ones_like(law[..., :1])], -1)
    if isinstance(law, Gaussian):
        mean = torch.zeros(law.dim, dtype=law.cov.dtype) if law.mean is None else law.mean
        return Gaussian(torch.nn.functional.pad(law.cov, (0, 1, 0, 1)), with_constant(mean))
    if isinstance(law, Empirical):
        return Empirical(with_constant(law.tokens))
    if isinstance(law, Mixture):
        return Mixture(law.weights, [with_constant(part) for part in law.components])
    if isinstance(law, Prompt):
        raise CapabilityError("with_constant: a Prompt has groups and tokens of its own; make it of measures with the constant")
    if isinstance(law, Measure) or hasattr(law, "log_mgf"):
        mu = measure(law)
        unit = np.eye(mu.dim + 1)
        return unit[:, :-1] @ mu + unit[-1]
    array = np.asarray(law, dtype=np.float64)
    return np.concatenate([array, np.ones_like(array[..., :1])], -1)


@helpful
def readouts(module: Any, *, constant: bool = False) -> List[Readout]:
    """What a prediction (the last coordinate of the output) reads of a module: (U, r) per head.

    Serves ``et.Attention``, ``nn.MultiheadAttention``, and modules with linears q, k, v, o and an integer ``heads``. Biases must
    be zero; with ``constant`` they are a coordinate more, for tokens and queries (x, 1).

    >>> import torch, esscher.torch as et
    >>> [head.U.shape for head in et.readouts(torch.nn.MultiheadAttention(4, 2, bias=False))]
    [(4, 4), (4, 4)]
    """
    return [Readout(U, V[-1]) for U, V in _heads_of(module, constant)]


def layer_of(module: Any) -> Layer:
    """The layer of softmax heads that a module is, for tasks beyond regression."""
    heads = _heads_of(module)
    return Layer([U for U, _ in heads], [V for _, V in heads])


def has_biases(module: Any) -> bool:
    """Whether a bias of the module's attention is not zero, apart from that of keys."""
    try:
        _heads_of(module, False)
    except CapabilityError:
        return True
    return False


def _heads_of(module: Any, constant: bool = False) -> List[Tuple[Any, Any]]:
    """U [D,D] and what a head adds to the output, O V [m,D], of each head; the first one says a bias of the output too."""
    if isinstance(module, Attention):
        head = module.numpy()
        found = [(head.U, head.V)]
        if constant:
            found = [(np.pad(U, (0, 1)), np.pad(V, ((0, 0), (0, 1)))) for U, V in found]
        return found
    count = getattr(module, "num_heads", None) or getattr(module, "heads", None)
    if count is None:
        raise ArgumentError(f"readouts: {type(module).__name__} has no num_heads; give the Trainer a function readout=")
    whole = from_state_dict(module.state_dict(), int(count), constant=constant)
    found, first = [], 0
    for head in whole.heads:
        width = head.output_dim
        added = whole.O[:, first : first + width] @ head.V
        if constant and len(found) == int(count):
            found[0] = (found[0][0], found[0][1] + added)
        else:
            found.append((head.U, added))
        first += width
    return found
