"""The operator T[mu](z) inside a graph, as a function and as a module."""

from __future__ import annotations

from typing import Any, Optional, Union

from ..attention import Attention as NumpyAttention
from ..keywords import helpful
from .measures import AnyLaw, tilted_mean
from .tensors import Tensor, to_numpy, torch


@helpful
def attention(
    law: AnyLaw,
    z: Tensor,
    *,
    U: Optional[Tensor] = None,
    V: Optional[Tensor] = None,
    K: Optional[Tensor] = None,
    Q: Optional[Tensor] = None,
    score_scale: Union[float, Tensor] = 1.0,
) -> Tensor:
    """T[mu](z) = V m_a, a = U z with U = s K'Q, for queries z [..,d]; the law is a prompt [n,d] or any measure.

    Gradients of first and second order in z, U, V, K, Q, score_scale, and in the tensors of the law.

    >>> import torch, esscher as es, esscher.torch as et
    >>> U = torch.eye(2, dtype=torch.float64, requires_grad=True)
    >>> et.attention(es.Sphere(2), torch.ones(2, dtype=torch.float64), U=U).sum().backward()
    >>> U.grad.shape
    torch.Size([2, 2])
    """
    _check_scores("attention takes U, or K and Q", U, K, Q)
    # PyTorch multiplies no half precisions on the CPU.
    kind = torch.float32 if z.dtype in (torch.float16, torch.bfloat16) else z.dtype
    keys, queries = (None if x is None else x.to(kind) for x in (K, Q))
    scores = U.to(kind) if keys is None or queries is None else keys.T @ queries  # type: ignore[union-attr]
    a = score_scale * (z.to(kind) @ scores.T)
    y = tilted_mean(law, a)
    return (y if V is None else y @ V.to(kind).T).to(z.dtype)


def _check_scores(text: str, U: Optional[Tensor], K: Optional[Tensor], Q: Optional[Tensor]) -> None:
    if (U is None) == (K is None and Q is None) or (K is None) != (Q is None):
        raise TypeError(text)


class Attention(torch.nn.Module):  # type: ignore[misc]
    """One head as a module: parameters U [d,d] and V [dv,d], or K, Q [dk,d] and V; forward(law, z).

    >>> import torch, esscher as es, esscher.torch as et
    >>> layer = et.Attention.of(es.Attention(U=[[0.5]]))
    >>> layer(es.Gaussian([[1.0]]), torch.ones(1, dtype=torch.float64)).item()
    0.5
    """

    def __init__(
        self,
        *,
        U: Optional[Tensor] = None,
        V: Optional[Tensor] = None,
        K: Optional[Tensor] = None,
        Q: Optional[Tensor] = None,
        score_scale: float = 1.0,
    ) -> None:
        super().__init__()
        _check_scores("Attention takes U and V, or K, Q, V and score_scale", U, K, Q)
        for name, value in (("U", U), ("V", V), ("K", K), ("Q", Q)):
            self.register_parameter(name, None if value is None else torch.nn.Parameter(value.detach().clone()))
        self.score_scale = score_scale

    @classmethod
    def of(cls, head: NumpyAttention, dtype: Any = None) -> Attention:
        """The module with the matrices of a head of ``esscher``."""
        kind = dtype or torch.float64
        names = ("K", "Q", "V") if head.has_kq else ("U", "V")
        given = {name: torch.as_tensor(getattr(head, name), dtype=kind) for name in names}
        return cls(**given, score_scale=head.score_scale if head.has_kq else 1.0)

    def numpy(self) -> NumpyAttention:
        """The head of ``esscher`` with the matrices of the module."""
        given = {name: to_numpy(p) for name, p in self.named_parameters()}
        return NumpyAttention(**given, **({"score_scale": self.score_scale} if self.K is not None else {}))

    def forward(self, law: AnyLaw, z: Tensor) -> Tensor:
        """T[law](z) [..,dv] for z [..,d]."""
        return attention(law, z, U=self.U, V=self.V, K=self.K, Q=self.Q, score_scale=self.score_scale)
