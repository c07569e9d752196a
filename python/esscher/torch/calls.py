"""One call of attention as a model makes it: what enters the softmax, and what its mask says."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Optional

from .tensors import Tensor, torch


@dataclass(eq=False)
class Call:
    """One call: Q [b,h,m,d], K [b,g,n,d], V [b,g,n,dv] as they enter the scores; g divides h.

    ``module`` is the name of the module that calls, ``layer`` its number in the order in which modules are first called,
    ``repeat`` how often it was called before. A causal call has no mask; its m queries belong to the last m keys. Any
    other ``mask`` is added to the scores and broadcasts to [b,h,m,n]. Of a causal call, ``sliding`` is how many keys a query
    sees, its own the last. With ``softcap`` c, scores s become c tanh(s/c) before the mask; ``sink`` [h] is the score of one
    more key of value 0. ``W_O`` [out,h*dv] is the output projection of ``torch.nn.MultiheadAttention``, and of a module with
    a linear ``out_proj``, ``o_proj`` or ``c_proj``; None elsewhere.

    >>> import torch, esscher.torch as et
    >>> layer = torch.nn.MultiheadAttention(4, 2, batch_first=True)
    >>> x = torch.zeros(1, 3, 4)
    >>> with et.record(layer) as calls:
    ...     y, _ = layer(x, x, x)
    >>> calls[0].Q.shape, calls[0].causal, calls[0].output().shape
    (torch.Size([1, 2, 3, 2]), False, torch.Size([1, 2, 3, 2]))
    """

    module: str
    layer: int
    repeat: int
    Q: Tensor
    K: Tensor
    V: Tensor
    scale: float
    mask: Optional[Tensor] = None
    causal: bool = False
    W_O: Optional[Tensor] = None
    sliding: Optional[int] = None
    softcap: Optional[float] = None
    sink: Optional[Tensor] = None

    def output(self) -> Tensor:
        """The softmax outputs of the heads, [b,h,m,dv]."""
        group = self.Q.shape[1] // self.K.shape[1]
        K, V = (x.repeat_interleave(group, 1) for x in (self.K, self.V))
        scores = self.scale * self.Q @ K.transpose(-1, -2)
        if self.softcap is not None:
            scores = self.softcap * torch.tanh(scores / self.softcap)
        mask = causal_mask(scores, scores.shape[-1] - scores.shape[-2], self.sliding) if self.causal else self.mask
        scores = scores if mask is None else scores + mask
        if self.sink is None:
            return torch.softmax(scores, -1) @ V
        sink = self.sink.to(scores.dtype).reshape(1, -1, 1, 1).expand(*scores.shape[:-1], 1)
        return torch.softmax(torch.cat([scores, sink], -1), -1)[..., :-1] @ V

    @property
    def rules(self) -> Optional[str]:
        """What a window with a tail does not know of this call, in words; None for plain attention.

        >>> import torch, esscher.torch as et
        >>> et.Call("", 0, 0, *[torch.zeros(1, 1, 4, 2)] * 3, scale=1.0, softcap=30.0).rules
        'a softcap of 30.0'
        """
        if self.mask is not None:
            return f"a mask of shape {list(self.mask.shape)}"
        if self.sliding is not None:
            return f"a sliding window of {self.sliding} keys"
        if self.softcap is not None:
            return f"a softcap of {self.softcap}"
        return None if self.sink is None else "a sink logit"


def causal_mask(like: Tensor, ahead: int, sliding: Optional[int] = None) -> Tensor:
    """[m,n] for scores [..,m,n]: query i sees the keys up to i + ahead, the last ``sliding`` of them; -inf hides others."""
    zeros = torch.zeros(like.shape[-2:], dtype=like.dtype, device=like.device)
    ones = torch.ones_like(zeros, dtype=torch.bool)
    hides = ones.triu(ahead + 1) if sliding is None else ones.triu(ahead + 1) | ones.tril(ahead - sliding)
    return zeros.masked_fill(hides, -math.inf)


def additive(mask: Tensor, like: Tensor, hidden: bool) -> Tensor:
    """A mask of scores as numbers to add; a boolean one hides where it is ``hidden``."""
    if mask.dtype not in (torch.bool, torch.uint8):
        return mask.to(like.dtype)
    hides = mask.bool() if hidden else ~mask.bool()
    return torch.zeros(mask.shape, dtype=like.dtype, device=mask.device).masked_fill(hides, -math.inf)


def settle_mask(call: Call) -> None:
    """Writes what the mask says: nothing, causality, a sliding window, or itself. Models hide keys by -inf or by their least
    number. A mask says it all; without one, ``sliding`` is what the model says."""
    if call.mask is None:
        short = not call.causal or call.sliding is None or call.sliding >= call.K.shape[-2]
        call.sliding = None if short else call.sliding
        return
    call.sliding = None
    mask = call.mask[..., : call.K.shape[-2]] if call.mask.shape[-1] > 1 else call.mask
    hides = mask <= torch.finfo(mask.dtype).min / 2
    call.mask = mask.masked_fill(hides, -math.inf)
    if bool(((call.mask == 0) | hides).all()):
        shape = torch.broadcast_shapes(hides.shape, (call.Q.shape[-2], call.K.shape[-2]))
        ahead = shape[-1] - shape[-2]
        seen = int((~hides.expand(shape)).sum(-1).max())  # by the last query of a causal call
        sliding = seen if 0 < seen < shape[-1] else None
        ordered = causal_mask(torch.empty(shape), ahead, sliding) < 0
        if ahead >= 0 and bool((hides.expand(shape) == ordered).all()):
            call.causal, call.mask, call.sliding = True, None, sliding
        elif not bool(hides.any()):
            call.mask = None


def output_projection(module: Any) -> Optional[Tensor]:
    """W_O [out,in] of a module that has a linear with one of the usual names."""
    for name in ("out_proj", "o_proj", "c_proj"):
        linear = getattr(module, name, None)
        weight = getattr(linear, "weight", None)
        if weight is not None:
            # The Conv1D of GPT-2 in transformers keeps [in,out].
            return weight.T if type(linear).__name__ == "Conv1D" else weight
    return None
