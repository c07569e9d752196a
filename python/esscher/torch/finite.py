"""Prompts of finite length inside a graph: universal functions, D(L) and risks, all exact over the tokens."""

from __future__ import annotations

import math
from typing import Any, Optional, Tuple, Union

import numpy as np

from .. import _esscher
from ..errors import CapabilityError
from ..gradients import tables
from ..risk_gradients import RiskFunction, risk_function
from ..keywords import helpful, renamed
from ..layers import Layer, layer_heads
from ..tasks import ContextTask
from ..measures import measure
from ..rules import FlatHeads, FlatLayer, FlatRisk, hessian_times, last_rows, node_slope
from ..random import Stream
from ..types import Length, whole
from .measures import AnyLaw, Gaussian
from .tensors import Tensor, tensor_like, to_numpy, torch


class _Node(torch.autograd.Function):  # type: ignore[misc]
    """Column `which` of (H, k, dH, dk) at t = tau^2 [n]; its derivative is the column two to the right."""

    @staticmethod
    def forward(ctx: Any, t: Tensor, L: int, which: int) -> Tensor:
        ctx.save_for_backward(t)
        ctx.L, ctx.which = L, which
        return tensor_like(tables(L).at(np.maximum(to_numpy(t).ravel(), 0.0))[:, which].reshape(t.shape), t)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        (t,) = ctx.saved_tensors
        if ctx.which < 2:
            return g * _Node.apply(t, ctx.L, ctx.which + 2), None, None
        slope = node_slope(ctx.L, ctx.which, to_numpy(t).ravel())
        return g * tensor_like(slope.reshape(t.shape), t), None, None


@renamed(L="length")
def universal(length: int, t: Tensor) -> Tuple[Tensor, Tensor]:
    """(H, k), k = (M2c/t - H)/t, of so many scores of variance t = tau^2, twice differentiable in t.

    >>> import torch, esscher as es, esscher.torch as et
    >>> H, k = et.universal(100, torch.tensor(1.0, dtype=torch.float64))
    >>> abs(H.item() - es.universal(100, 1.0).H) < 1e-10
    True
    """
    x, L = t.to(torch.float64), whole("universal", "length", length)
    return _Node.apply(x, L, 0).to(t.dtype), _Node.apply(x, L, 1).to(t.dtype)


def _gaussian(law: AnyLaw) -> Tuple[Tensor, Tensor]:
    if isinstance(law, Gaussian):
        return law.moments()
    mu: Any = law
    found = _esscher.gaussian_law(measure(mu))
    if found is None:
        raise CapabilityError("finite prompts inside a graph need Gaussian tokens")
    return torch.as_tensor(found[0]), torch.as_tensor(found[1])


def _scores(
    law: AnyLaw, z: Tensor, U: Tensor, V: Optional[Tensor], score_scale: Union[float, Tensor]
) -> Tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    m, G = _gaussian(law)
    x = z.to(torch.float64)
    a = score_scale * (x @ U.to(torch.float64).T)
    W = torch.eye(G.shape[0], dtype=torch.float64) if V is None else V.to(torch.float64)
    w = a @ G
    return m, G, W, w, (a * w).sum(-1)


@helpful
def expected_output(
    law: AnyLaw, z: Tensor, length: Length, *, U: Tensor, V: Optional[Tensor] = None,
    score_scale: Union[float, Tensor] = 1.0,
) -> Tensor:
    """E[T_hat(z)] over prompts of this length = V m + (1 - H) V G U z, for queries z [..,d] and Gaussian tokens.

    >>> import torch, esscher as es, esscher.torch as et
    >>> one = torch.ones(1, dtype=torch.float64)
    >>> et.expected_output(es.Gaussian([[1.0]]), one, 100, U=torch.eye(1))
    tensor([0.9745], dtype=torch.float64)
    """
    m, _, W, w, t = _scores(law, z, U, V, score_scale)
    H = torch.zeros_like(t) if length == math.inf else universal(whole("expected_output", "length", length), t)[0]
    return ((m + (1 - H)[..., None] * w) @ W.T).to(z.dtype)


@helpful
def mean_square_error(
    law: AnyLaw, z: Tensor, length: Length, *, U: Tensor, V: Optional[Tensor] = None,
    score_scale: Union[float, Tensor] = 1.0,
) -> Tensor:
    """E|T_hat(z) - T(z)|^2 over prompts of this length at queries z [..,d]; its mean over queries is D(L).

    Gradients of first and second order in z, U, V, score_scale and the tensors of the law (Gaussian tokens).

    >>> import torch, esscher as es, esscher.torch as et
    >>> z = torch.ones(1, 1, dtype=torch.float64)
    >>> D = et.mean_square_error(es.Gaussian([[1.0]]), z, 10**6, U=torch.eye(1, dtype=torch.float64)).mean()
    >>> round(D.item() * 10**6, 5)
    5.43645
    """
    _, G, W, w, t = _scores(law, z, U, V, score_scale)
    if length == math.inf:
        return torch.zeros_like(t).to(z.dtype)
    H, k = universal(whole("mean_square_error", "length", length), t)
    Vw = w @ W.T
    return ((Vw * Vw).sum(-1) * k + torch.trace(W @ G @ W.T) * H).to(z.dtype)


# ---- risks


class _Risk(torch.autograd.Function):  # type: ignore[misc]
    """A risk of all parameters in one vector theta [p], part 0, or its gradient [p], part 1."""

    @staticmethod
    def forward(ctx: Any, theta: Tensor, f: FlatRisk, part: int) -> Tensor:
        ctx.save_for_backward(theta)
        ctx.f, ctx.part = f, part
        return tensor_like(f(to_numpy(theta))[part], theta)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        """The Hessian is symmetric, so the second part goes back by the derivative of the gradient along g."""
        (theta,) = ctx.saved_tensors
        f: FlatRisk = ctx.f
        if ctx.part == 0:
            return g * _Risk.apply(theta, f, 1), None, None
        product = hessian_times(lambda x: f(x)[1], to_numpy(theta), to_numpy(g))
        return tensor_like(product, theta), None, None


def risk(
    task: Any,
    U: Tensor,
    r: Tensor,
    length: Length,
    *,
    kind: str = "softmax",
    function: Optional[RiskFunction] = None,
    **options: Any,
) -> Tensor:
    """R_L(U, r), half the mean squared error of heads on prompts of this length.

    U [D,D] and r [D], the last row of V, are tensors of the graph; gradients of first and second order. options are those
    of ``esscher.risk_function``. In a loop make the function once and give it: its tables are kept. One head is exact
    over the tokens. H heads are U [H,D,D] and r [H,D]; their prompts are drawn, the same at every call, in single
    precision: second derivatives have about three digits.

    >>> import torch, esscher as es, esscher.torch as et
    >>> task = es.LinearRegressionTask(2)
    >>> at = es.balanced_start(task)
    >>> U, r = (torch.tensor(x, requires_grad=True) for x in at)
    >>> et.risk(task, U, r, 50).backward()
    >>> U.grad.shape, r.grad.shape
    (torch.Size([3, 3]), torch.Size([3]))
    """
    f = risk_function(task, length, kind=kind, **options) if function is None else function
    return _Risk.apply(torch.cat([U.reshape(-1), r.reshape(-1)]), FlatHeads(f, tuple(U.shape)), 0)


@helpful
def layer_risk(
    task: ContextTask, layer: Layer, length: Length, *, draws: int = 4000, engine: str = "auto",
    seed: Union[Stream, int] = 0,
) -> Tensor:
    """The risk of a ``Layer`` of tensors on a task beyond regression; gradients of first and second order.

    Exact over the tokens for one softmax head or linear ones, else over prompts that are the same at every call. draws,
    engine and seed are those of ``esscher.risk``.

    >>> import torch, esscher as es, esscher.torch as et
    >>> task = es.DenoisingTask([[1.0], [-1.0]], gamma=0.5, xi=0.5)
    >>> U = torch.tensor([[1.0]], dtype=torch.float64, requires_grad=True)
    >>> et.layer_risk(task, es.Layer(U, 0.5 * torch.ones_like(U)), es.inf).backward()
    >>> bool(U.grad < 0)      # the best one is 2
    True
    """
    D, m = task.token_dim, task.out_dim
    kinds, U, V = layer_heads(layer)
    W = torch.zeros(m, D, dtype=U[0].dtype) if layer.W is None else layer.W
    parts = [last_rows("W", W, m, D)]
    for u, v in zip(U, V):
        parts += [last_rows("U", u, D, D), last_rows("V", v, m, D)]
    f = FlatLayer(task, tuple(kinds), length, draws, engine, seed)
    return _Risk.apply(torch.cat([part.reshape(-1) for part in parts]), f, 0)
