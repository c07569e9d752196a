"""Heads of a PyTorch model, written down as they run and saved for ``esscher heads``."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from typing import Any, Dict, Iterator, List, Optional, Tuple

from .. import _esscher
from ..errors import ArgumentError
from ..heads import Path
from ..keywords import helpful
from .calls import Call
from .doors import watched
from .tensors import to_numpy

Rotary = Tuple[float, str]  # base, and "interleaved" or "halves"


class Recording(List[Call]):
    """The calls of attention of a model, in order; ``layers`` are the names of the modules that made them.

    >>> import torch, esscher.torch as et
    >>> layer = torch.nn.MultiheadAttention(4, 2, batch_first=True)
    >>> with et.record(layer) as calls:
    ...     _ = layer(*[torch.zeros(1, 3, 4)] * 3)
    >>> calls
    Recording(1 call of 1 layer: model)
    """

    @property
    def layers(self) -> List[str]:
        """Names of modules; their numbers are those of the heads in files and plans."""
        return list(dict.fromkeys(call.module for call in sorted(self, key=lambda call: call.layer)))

    def __repr__(self) -> str:
        def count(n: int, word: str) -> str:
            return f"{n} {word}" + ("" if n == 1 else "s")

        names = self.layers
        shown = ", ".join(names[:3]) + (", .." if len(names) > 3 else "")
        return f"Recording({count(len(self), 'call')} of {count(len(names), 'layer')}: {shown})"

    def save(self, path: Path, *, rotary: Optional[Rotary] = None) -> None:
        """Writes a .safetensors file for ``es.heads(path)`` and ``esscher heads``, as ``esscher model --capture`` does.

        Heads are named L0.H0, L0.H1, ..; of several texts (entries of a batch, repeated calls) each has a prefix t0.,
        t1., .. Each has Q, K, V [n,d], scale, causal and, where it is known, W_O [out,dv]. ``rotary`` is the base of rotary
        positions and their pairs, "interleaved" or "halves". A sliding window, a softcap and sink logits are written as
        such; any other mask that is neither empty nor causal as what it adds to the scores, ``mask`` [m,n].
        """
        if os.path.splitext(os.fspath(path))[1] != ".safetensors":
            raise ArgumentError(f"Recording.save: {os.fspath(path)!r}, expected a name that ends in .safetensors")
        if not self:
            raise ArgumentError("Recording.save: no call of attention was recorded, expected at least one")
        texts = {(call.repeat, b): 0 for call in self for b in range(call.Q.shape[0])}
        texts = {text: number for number, text in enumerate(sorted(texts))}
        tensors: Dict[str, Any] = {}
        for call in self:
            for b in range(call.Q.shape[0]):
                prefix = f"t{texts[call.repeat, b]}." if len(texts) > 1 else ""
                tensors.update(_tensors(call, b, prefix, rotary))
        _esscher.write_tensors(os.fspath(path), tensors)


def _tensors(call: Call, b: int, prefix: str, rotary: Optional[Rotary]) -> Dict[str, Any]:
    heads, group = call.Q.shape[1], call.Q.shape[1] // call.K.shape[1]
    out: Dict[str, Any] = {}
    for h in range(heads):
        name = f"{prefix}L{call.layer}.H{h}"
        out[f"{name}.Q"] = to_numpy(call.Q[b, h])
        out[f"{name}.K"], out[f"{name}.V"] = (to_numpy(x[b, h // group]) for x in (call.K, call.V))
        out[f"{name}.scale"], out[f"{name}.causal"] = [call.scale], [float(call.causal)]
        if call.mask is not None:
            shape = (*call.Q.shape[:3], call.K.shape[2])
            out[f"{name}.mask"] = to_numpy(call.mask.expand(shape)[b, h])
        for word, value in (("sliding", call.sliding), ("softcap", call.softcap)):
            if value is not None:
                out[f"{name}.{word}"] = [float(value)]
        if call.sink is not None:
            out[f"{name}.sink"] = [float(call.sink.flatten()[h])]
        if rotary is not None:
            out[f"{name}.rotary"] = [rotary[0], float(rotary_pairs(rotary)), 0.0, 0.0]
        width = call.V.shape[-1]
        if call.W_O is not None and call.W_O.shape[1] == heads * width:
            out[f"{name}.W_O"] = to_numpy(call.W_O[:, h * width : (h + 1) * width])
    return out


def rotary_pairs(rotary: Rotary) -> int:
    """0 for interleaved pairs, 1 for halves, as files of heads have it."""
    words = ["interleaved", "halves"]
    if rotary[1] not in words:
        raise ArgumentError(f"rotary: pairs {rotary[1]!r}, expected one of {', '.join(words)}")
    return words.index(rotary[1])


@helpful
@contextlib.contextmanager
def record(model: Any) -> Iterator[Recording]:
    """Writes down Q, K, V, scale, mask and W_O of every attention call of a model while the block runs.

    Seen are ``torch.nn.MultiheadAttention``, calls of ``torch.nn.functional.scaled_dot_product_attention`` by that name,
    and the attention interface of Hugging Face's transformers. Outputs of the first two are the model's own; behind the
    interface a plain softmax stands for the model's kernel. Tensors [b,h,n,d] are copies, outside the graph.

    >>> import torch, esscher as es, esscher.torch as et
    >>> layer = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval()
    >>> x = torch.randn(1, 100, 8)
    >>> with et.record(layer) as calls:
    ...     y = layer(x, x, x, need_weights=False)
    >>> calls.save("layer.safetensors")
    >>> [row["head"] for row in es.heads("layer.safetensors", components=[])]
    ['L0.H0', 'L0.H1']
    """
    recording = Recording()

    def attend(call: Call) -> None:
        copies = {name: getattr(call, name).detach().clone() for name in ("Q", "K", "V")}
        weights = {name: None if (w := getattr(call, name)) is None else w.detach() for name in ("W_O", "sink")}
        recording.append(dataclasses.replace(call, **copies, **weights))

    with watched(model, attend):
        yield recording
