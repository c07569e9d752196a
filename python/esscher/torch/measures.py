"""Measures inside a graph: of tensors, with gradients in them, and those of ``esscher``, as constants."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Optional, Sequence, Tuple, Union

from ..composed import Mixture as NumpyMixture
from ..errors import ArgumentError, DimensionError
from ..keywords import helpful
from ..measures import Empirical as NumpyEmpirical
from ..measures import Gaussian as NumpyGaussian
from ..measures import Measure, measure
from ..rules import cov_times, third_cumulant
from .scores import Atoms, gaussian_atoms, joined, token_atoms
from .tensors import Tensor, tensor_like, to_numpy, torch


class _TiltedMean(torch.autograd.Function):  # type: ignore[misc]
    """m_a [n,d] at tilts a [n,d]."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, mu: Measure) -> Tensor:
        ctx.save_for_backward(a)
        ctx.mu = mu
        return tensor_like(mu.tilted_mean(to_numpy(a)), a)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        (a,) = ctx.saved_tensors
        return _CovTimes.apply(a, g, ctx.mu), None


class _CovTimes(torch.autograd.Function):  # type: ignore[misc]
    """C_a v [n,d] at tilts a [n,d] for v [n,d]."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, v: Tensor, mu: Measure) -> Tensor:
        ctx.save_for_backward(a, v)
        ctx.mu = mu
        return tensor_like(cov_times(mu, to_numpy(a), to_numpy(v)), a)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        a, v = ctx.saved_tensors
        slope = third_cumulant(ctx.mu, to_numpy(a), to_numpy(v), to_numpy(g))
        return tensor_like(slope, a), _CovTimes.apply(a, g, ctx.mu), None


@dataclass(frozen=True, eq=False)
class Gaussian:
    """N(mean, cov) of tensors cov [d,d] and mean [d], with gradients in both; half precisions are widened inside.

    >>> import torch, esscher.torch as et
    >>> cov = torch.eye(2).bfloat16().requires_grad_()
    >>> y = et.attention(et.Gaussian(cov), torch.ones(2), U=torch.eye(2))
    >>> y.sum().backward()
    >>> cov.grad.dtype, cov.grad.tolist()
    (torch.bfloat16, [[1.0, 1.0], [1.0, 1.0]])
    """

    cov: Tensor
    mean: Optional[Tensor] = None

    @property
    def dim(self) -> int:
        """d."""
        return int(self.cov.shape[-1])

    def moments(self) -> Tuple[Tensor, Tensor]:
        """Mean and covariance in float64, in the graph."""
        G = self.cov.to(torch.float64)
        m = torch.zeros(self.dim, dtype=torch.float64) if self.mean is None else self.mean.to(torch.float64)
        return m, (G + G.T) / 2

    def tilted_mean(self, a: Tensor) -> Tensor:
        """m + G a at tilts a [..,d]."""
        m, G = self.moments()
        return (m + a.to(torch.float64) @ G).to(a.dtype)

    def log_mgf(self, a: Tensor) -> Tensor:
        """log E e^<a,z'> at tilts a [..,d]."""
        m, G = self.moments()
        x = a.to(torch.float64)
        return (x @ m + 0.5 * ((x @ G) * x).sum(-1)).to(a.dtype)

    def atoms(self, a: Tensor, length: int) -> Atoms:
        """The law of the scores of a tilt a [d], for prompts of this length."""
        return gaussian_atoms(*self.moments(), a, length)

    def numpy(self) -> NumpyGaussian:
        """The same measure outside the graph."""
        m, G = self.moments()
        return NumpyGaussian(to_numpy(G), to_numpy(m))


@dataclass(frozen=True, eq=False)
class Empirical:
    """A prompt of tokens [n,d] with equal weights, with gradients in the tokens.

    >>> import torch, esscher.torch as et
    >>> et.Empirical(torch.tensor([[0.0], [1.0]])).tilted_mean(torch.zeros(1))
    tensor([0.5000])
    """

    tokens: Tensor

    @property
    def dim(self) -> int:
        """d."""
        return int(self.tokens.shape[-1])

    def tilted_mean(self, a: Tensor) -> Tensor:
        """The softmax mean at tilts a [..,d]."""
        z = self.tokens.to(a.dtype)
        return torch.softmax(a @ z.transpose(-1, -2), -1) @ z

    def log_mgf(self, a: Tensor) -> Tensor:
        """The logarithm of the mean of e^<a,z'> at tilts a [..,d]."""
        z = self.tokens.to(a.dtype)
        return torch.logsumexp(a @ z.transpose(-1, -2), -1) - math.log(z.shape[-2])

    def atoms(self, a: Tensor, length: int) -> Atoms:
        """The law of the scores of a tilt a [d]."""
        return token_atoms(self.tokens.to(torch.float64), a)

    def numpy(self) -> NumpyEmpirical:
        """The same measure outside the graph."""
        return NumpyEmpirical(to_numpy(self.tokens))


@dataclass(frozen=True, eq=False)
class Mixture:
    """Parts of tensors, ``Gaussian`` or ``Empirical``, with gradients in them and in their weights [k], which are divided
    by their sum.

    >>> import torch, esscher.torch as et
    >>> weights = torch.tensor([1.0, 3.0], dtype=torch.float64, requires_grad=True)
    >>> one = torch.ones(1, 1, dtype=torch.float64)
    >>> mu = et.Mixture(weights, [et.Gaussian(one, one[0]), et.Gaussian(one, -one[0])])
    >>> et.mean_square_error(mu, one, 50, U=one).sum().backward()
    >>> bool(weights.grad[0] != 0)
    True
    """

    weights: Tensor
    components: Sequence[Union[Gaussian, Empirical]]

    def __post_init__(self) -> None:
        n = len(self.components)
        for part in self.components:
            if not isinstance(part, (Gaussian, Empirical)):
                raise ArgumentError(f"Mixture: a component is a {type(part).__name__}, expected et.Gaussian or et.Empirical")
        if tuple(self.weights.shape) != (n,):
            raise DimensionError(f"Mixture: weights have shape {list(self.weights.shape)}, expected [{n}]")
        if not bool((self.weights >= 0).all()) or not bool(self.weights.sum() > 0):
            raise ArgumentError(f"Mixture: weights are {self.weights.tolist()}, expected numbers >= 0 with a positive sum")
        if len({part.dim for part in self.components}) > 1:
            raise DimensionError(f"Mixture: components have dimensions {[part.dim for part in self.components]}, expected one")

    @property
    def dim(self) -> int:
        """d."""
        return self.components[0].dim

    def shares(self) -> Tensor:
        """Weights in float64 whose sum is 1."""
        weights = self.weights.to(torch.float64)
        return weights / weights.sum()

    def tilted_mean(self, a: Tensor) -> Tensor:
        """Means of the parts by their tilted weights, at tilts a [..,d]."""
        x = a.to(torch.float64)
        logs = torch.stack([part.log_mgf(x) for part in self.components], -1)
        highest = logs.detach().max(-1, keepdim=True)[0]
        shares = self.shares() * torch.exp(logs - highest)
        means = torch.stack([part.tilted_mean(x) for part in self.components], -2)
        return ((shares / shares.sum(-1, keepdim=True))[..., None] * means).sum(-2).to(a.dtype)

    def atoms(self, a: Tensor, length: int) -> Atoms:
        """The law of the scores of a tilt a [d], for prompts of this length."""
        return joined(list(zip(self.shares(), [part.atoms(a, length) for part in self.components])))

    def numpy(self) -> NumpyMixture:
        """The same measure outside the graph."""
        return NumpyMixture(to_numpy(self.shares()), [part.numpy() for part in self.components])


AnyLaw = Union[Gaussian, Empirical, Mixture, Measure, Tensor, Any]


@helpful
def tilted_mean(law: AnyLaw, a: Tensor) -> Tensor:
    """m_a = grad Lambda(a) at tilts a [..,d]: tensors of tokens, measures of tensors, and every measure of ``esscher``.

    >>> import torch, esscher as es, esscher.torch as et
    >>> et.tilted_mean(es.Rademacher(1), torch.tensor([1.0]))
    tensor([0.7616])
    """
    if isinstance(law, (Gaussian, Empirical, Mixture)):
        return law.tilted_mean(a)
    if isinstance(law, torch.Tensor):
        return Empirical(law).tilted_mean(a)
    mu = measure(law)
    flat = a.reshape(-1, a.shape[-1])
    return _TiltedMean.apply(flat, mu).reshape(a.shape)
