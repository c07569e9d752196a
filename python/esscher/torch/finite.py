"""Prompts of finite length inside a graph: universal functions, D(L) and risks, all exact over the tokens."""

from __future__ import annotations

import math
from typing import Any, Callable, Optional, Tuple, Union

import numpy as np

from .. import _esscher
from ..gradients import tables
from ..risk_gradients import RiskFunction, risk_function
from ..keywords import helpful, renamed
from ..layers import Layer, layer_heads
from ..tasks import ContextTask
from ..measures import measure
from ..prompts import Prompt
from ..rules import FlatError, FlatHeads, FlatLayer, FlatOutput, FlatRisk, hessian_times, last_rows, node_slope
from ..random import Stream
from ..types import Length, whole
from .measures import AnyLaw, Empirical, Gaussian, Mixture, tilted_mean
from .scores import atoms_error, atoms_output
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


def _gaussian(law: AnyLaw) -> Optional[Tuple[Tensor, Tensor]]:
    """Mean and covariance; None for tokens that are not Gaussian."""
    if isinstance(law, Gaussian):
        return law.moments()
    if isinstance(law, (Empirical, Mixture, Prompt, torch.Tensor)):
        return None
    mu: Any = law
    found = _esscher.gaussian_law(measure(mu))
    return None if found is None else (torch.as_tensor(found[0]), torch.as_tensor(found[1]))


class _Given:
    """Queries x [..,d], U with the scale of the scores, V, and tilts a [..,d], all in float64."""

    def __init__(
        self, law: AnyLaw, z: Tensor, U: Tensor, V: Optional[Tensor], score_scale: Union[float, Tensor]
    ) -> None:
        self.law: Any = Empirical(law) if isinstance(law, torch.Tensor) else law
        self.x, self.U = z.to(torch.float64), score_scale * U.to(torch.float64)
        self.V = torch.eye(U.shape[0], dtype=torch.float64) if V is None else V.to(torch.float64)
        self.a = self.x @ self.U.T

    def rows(self, of_one: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        """of_one(x, a) for each query x [d] and its tilt a [d]."""
        d = self.x.shape[-1]
        found = [of_one(x, a) for x, a in zip(self.x.reshape(-1, d), self.a.reshape(-1, self.a.shape[-1]))]
        if not found:
            return torch.zeros(self.x.shape[:-1], dtype=torch.float64)
        return torch.stack(found).reshape(*self.x.shape[:-1], *found[0].shape)

    def error(self, length: Length) -> Tensor:
        """E|T_hat - T|^2 where tokens are not Gaussian."""
        L = whole("mean_square_error", "length", length)
        law, V = self.law, self.V
        if isinstance(law, (Empirical, Mixture)):
            return self.rows(lambda x, a: atoms_error(law.atoms(a, L), V, law.tilted_mean(a), L))
        f = FlatError(law if isinstance(law, Prompt) else measure(law), L, tuple(self.U.shape), len(V))
        return self.rows(lambda x, a: _Risk.apply(self._flat(x), f, 0))

    def output(self, length: Length) -> Tensor:
        """E T_hat where tokens are not Gaussian."""
        law, V = self.law, self.V
        if isinstance(law, (Empirical, Mixture)):
            L = whole("expected_output", "length", length)
            return self.rows(lambda x, a: atoms_output(law.atoms(a, L), L)) @ V.T
        fixed: Any = law if isinstance(law, Prompt) else measure(law)
        parts = [FlatOutput(fixed, length, tuple(self.U.shape), len(V), i) for i in range(len(V))]
        return self.rows(lambda x, a: torch.stack([_Risk.apply(self._flat(x), f, 0) for f in parts]))

    def _flat(self, x: Tensor) -> Tensor:
        return torch.cat([x, self.U.reshape(-1), self.V.reshape(-1)])


@helpful
def expected_output(
    law: AnyLaw, z: Tensor, length: Length, *, U: Tensor, V: Optional[Tensor] = None,
    score_scale: Union[float, Tensor] = 1.0,
) -> Tensor:
    """E[T_hat(z)] over prompts of this length, for queries z [..,d]; V m + (1 - H) V G U z for Gaussian tokens.

    Laws and derivatives are those of ``mean_square_error``.

    >>> import torch, esscher as es, esscher.torch as et
    >>> one = torch.ones(1, dtype=torch.float64)
    >>> et.expected_output(es.Gaussian([[1.0]]), one, 100, U=torch.eye(1))
    tensor([0.9745], dtype=torch.float64)
    """
    given, moments = _Given(law, z, U, V, score_scale), _gaussian(law)
    if length == math.inf and not isinstance(law, Prompt):
        return (tilted_mean(law, given.a) @ given.V.T).to(z.dtype)
    if moments is None:
        return given.output(length).to(z.dtype)
    m, G = moments
    w = given.a @ G
    H = universal(whole("expected_output", "length", length), (given.a * w).sum(-1))[0]
    return ((m + (1 - H)[..., None] * w) @ given.V.T).to(z.dtype)


@helpful
def mean_square_error(
    law: AnyLaw, z: Tensor, length: Length, *, U: Tensor, V: Optional[Tensor] = None,
    score_scale: Union[float, Tensor] = 1.0,
) -> Tensor:
    """E|T_hat(z) - T(z)|^2 over prompts of this length at queries z [..,d]; its mean over queries is D(L).

    Gradients of first and second order in z, U, V and score_scale, for every law and ``Prompt`` that the exact engine of
    ``esscher`` serves, and in the tensors of ``et.Gaussian``, ``et.Empirical`` and ``et.Mixture``. Tokens of an ``Empirical``
    are drawn with replacement. Laws of ``esscher`` that are not Gaussian have their second derivatives by differences
    of exact values, which takes seconds beyond a few coordinates.

    >>> import torch, esscher as es, esscher.torch as et
    >>> z = torch.ones(1, 1, dtype=torch.float64)
    >>> D = et.mean_square_error(es.Gaussian([[1.0]]), z, 10**6, U=torch.eye(1, dtype=torch.float64)).mean()
    >>> round(D.item() * 10**6, 5)
    5.43645
    """
    given, moments = _Given(law, z, U, V, score_scale), _gaussian(law)
    if length == math.inf:
        return torch.zeros(z.shape[:-1], dtype=z.dtype)
    if moments is None:
        return given.error(length).to(z.dtype)
    G, W = moments[1], given.V
    w = given.a @ G
    H, k = universal(whole("mean_square_error", "length", length), (given.a * w).sum(-1))
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
