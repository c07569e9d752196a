"""Attention heads of a PyTorch model: written down as they run, or replaced by windows with a tail.

    from esscher.torch_record import record, replace

    with record(model) as calls:
        model(tokens)
    calls.save("heads.safetensors")  # for es.heads

    with replace(model, {"window": 16, "tail": "finite"}):
        model(tokens)

Three doors are watched: ``torch.nn.MultiheadAttention``, ``torch.nn.functional.scaled_dot_product_attention`` (called by
that name, not imported from there before), and the attention interface of Hugging Face's transformers, if that is
loaded. Needs PyTorch 1.13 or later.
"""

from __future__ import annotations

import contextlib
import json
import math
import struct
import sys
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

import numpy as np

import torch  # type: ignore[import]

from .errors import ArgumentError
from .heads import Path, WindowedHead

Tensor = Any
Plan = Mapping[str, Any]
Attend = Callable[["Call"], Optional[Tensor]]
INTERFACE = "esscher"
PLAN_KEYS = {"window", "sinks", "heavy", "tail", "rotary_base", "rotary_pairs"}


@dataclass
class Call:
    """One call of attention: Q [b,h,m,d], K [b,g,n,d], V [b,g,n,dv] as they enter the scores, g a divisor of h."""

    name: str
    Q: Tensor
    K: Tensor
    V: Tensor
    scale: float
    mask: Optional[Tensor] = None  # additive, [m,n] or broadcast to [b,h,m,n]
    causal: bool = False
    output: Optional[Tensor] = None  # [b,h,m,dv]
    W_O: Optional[Tensor] = None  # [out,h*dv]

    def softmax(self) -> Tensor:
        group = self.Q.shape[1] // self.K.shape[1]
        K, V = (x.repeat_interleave(group, 1) for x in (self.K, self.V))
        scores = self.scale * self.Q @ K.transpose(-1, -2)
        if self.causal:
            scores = scores + causal_mask(scores)
        elif self.mask is not None:
            scores = scores + self.mask
        return torch.softmax(scores, -1) @ V


def causal_mask(scores: Tensor) -> Tensor:
    """-inf where a key comes after its query; the last query sees the last key."""
    m, n = scores.shape[-2:]
    after = torch.ones(m, n, dtype=torch.bool, device=scores.device).triu(n - m + 1)
    return torch.zeros(m, n, dtype=scores.dtype, device=scores.device).masked_fill(after, -math.inf)


def _settled(call: Call) -> Call:
    """The mask as what it says: none, causal, or itself."""
    mask = call.mask
    if mask is None:
        return call
    if mask.dtype == torch.bool:  # True: takes part
        mask = torch.zeros(mask.shape, dtype=call.Q.dtype, device=mask.device).masked_fill(~mask, -math.inf)
    mask = mask[..., : call.K.shape[-2]]
    if bool((mask == 0).all()):
        call.mask = None
    else:
        hidden = mask < -1e4
        full = hidden.expand(*torch.broadcast_shapes(hidden.shape, (call.Q.shape[-2], call.K.shape[-2])))
        wanted = causal_mask(torch.empty(full.shape[-2:])) < 0
        same = bool((full == wanted).all()) and bool((mask.masked_fill(hidden, 0) == 0).all())
        call.causal, call.mask = (True, None) if same else (call.causal, mask)
    return call


@dataclass
class Recording:
    """The calls of attention, in order; ``calls["name"]`` and ``calls[i]`` are single ones."""

    calls: List[Call] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.calls)

    def __iter__(self) -> Iterator[Call]:
        return iter(self.calls)

    def __getitem__(self, key: Any) -> Call:
        if not isinstance(key, str):
            return self.calls[key]
        found = [call for call in self.calls if call.name == key]
        if not found:
            raise ArgumentError(f"record: call {key!r}, expected one of {[call.name for call in self.calls]}")
        return found[0]

    def save(self, path: Path) -> None:
        """Writes X.Q, X.K, X.V, X.scale, X.causal and X.W_O of every call and batch entry, for ``es.heads(path)``."""
        tensors: Dict[str, Any] = {}
        for call in self.calls:
            if call.mask is not None:
                raise ArgumentError(
                    f"record: call {call.name!r} has a mask of shape {list(call.mask.shape)} that is neither empty nor "
                    "causal, expected one that a file of heads can hold"
                )
            batch = call.Q.shape[0]
            for b in range(batch):
                name = call.name if batch == 1 else f"{call.name}.b{b}"
                for letter, value in (("Q", call.Q), ("K", call.K), ("V", call.V)):
                    tensors[f"{name}.{letter}"] = value[b].detach().float().cpu().numpy()
                tensors[f"{name}.scale"] = np.array([call.scale], dtype=np.float32)
                tensors[f"{name}.causal"] = np.array([float(call.causal)], dtype=np.float32)
                if call.W_O is not None:
                    tensors[f"{name}.W_O"] = call.W_O.detach().float().cpu().numpy()
        _write_safetensors(path, tensors)


def _write_safetensors(path: Path, tensors: Mapping[str, Any]) -> None:
    header: Dict[str, Any] = {}
    parts, at = [], 0
    for name, value in tensors.items():
        data = np.ascontiguousarray(value, dtype="<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [at, at + len(data)]}
        parts.append(data)
        at += len(data)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(parts))


class _Names:
    """Names of the modules that are running, innermost last, and unique names of calls."""

    def __init__(self, model: Any) -> None:
        self.stack: List[Tuple[str, Any]] = []
        self.used: Dict[str, int] = {}
        self.handles: List[Any] = []
        for name, module in model.named_modules():
            self.handles.append(module.register_forward_pre_hook(self._enter(name)))
            self.handles.append(module.register_forward_hook(self._leave))

    def _enter(self, name: str) -> Callable[..., None]:
        return lambda module, args: self.stack.append((name or "model", module))

    def _leave(self, module: Any, args: Any, output: Any) -> None:
        self.stack.pop()

    def now(self) -> Tuple[str, Any]:
        name, module = self.stack[-1] if self.stack else ("call", None)
        count = self.used[name] = self.used.get(name, -1) + 1
        return (name if count == 0 else f"{name}.{count}"), module

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()


def _heads_of(x: Tensor) -> Tensor:
    """[b,h,n,d] of [n,d], [h,n,d] or [b,h,n,d]."""
    while x.dim() < 4:
        x = x.unsqueeze(0)
    return x


@contextlib.contextmanager
def _watched(model: Any, attend: Attend) -> Iterator[None]:
    """Calls attend at every door; what it returns replaces the output [b,h,m,dv], None leaves it."""
    names = _Names(model)
    functional = torch.nn.functional
    old_private = getattr(functional, "_scaled_dot_product_attention", None)
    old_public = getattr(functional, "scaled_dot_product_attention", None)

    def scaled(q: Tensor, k: Tensor, v: Tensor, mask: Optional[Tensor] = None, dropout_p: float = 0.0,
               is_causal: bool = False, scale: Optional[float] = None, **_: Any) -> Tensor:  # fmt: skip
        name, module = names.now()
        heads = getattr(module, "num_heads", None)
        shaped = [_heads_of(x) for x in (q, k, v)]
        flat = isinstance(module, torch.nn.MultiheadAttention) and q.dim() == 3  # [b*h,n,d]
        if flat:
            shaped = [x.reshape(-1, heads, *x.shape[1:]) for x in (q, k, v)]
            if mask is not None and mask.dim() == 3:
                mask = mask.reshape(-1, heads, *mask.shape[1:])
        call = Call(name, *shaped, scale=q.shape[-1] ** -0.5 if scale is None else scale, mask=mask, causal=is_causal)
        out_proj = getattr(module, "out_proj", None)
        call.W_O = getattr(out_proj, "weight", None)
        call = _settled(call)
        call.output = call.softmax()
        other = attend(call)
        return (call.output if other is None else other.to(q.dtype)).reshape(*q.shape[:-1], v.shape[-1])

    def private(q: Tensor, k: Tensor, v: Tensor, attn_mask: Optional[Tensor] = None, dropout_p: float = 0.0,
                need_attn_weights: bool = False, is_causal: bool = False) -> Tuple[Tensor, Tensor]:  # fmt: skip
        out = scaled(q, k, v, attn_mask, dropout_p, is_causal)
        return out, torch.empty(*q.shape[:-1], k.shape[-2], dtype=q.dtype)

    def interface(module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Optional[Tensor],
                  scaling: Optional[float] = None, dropout: float = 0.0, **kwargs: Any) -> Tuple[Tensor, None]:  # fmt: skip
        unserved = [name for name in ("softcap", "s_aux", "sliding_window") if kwargs.get(name) is not None]
        if unserved:
            raise ArgumentError(f"record: {unserved[0]} of {names.now()[0]!r}, expected plain softmax attention")
        causal = bool(kwargs.get("is_causal", getattr(module, "is_causal", False))) and attention_mask is None
        out = scaled(query, key, value, attention_mask, 0.0, causal, scaling)
        return out.transpose(1, 2), None

    changed = _slow_paths(model)
    restore_interface = _register_interface(model, interface)
    if old_private is not None:
        functional._scaled_dot_product_attention = private
    functional.scaled_dot_product_attention = scaled
    try:
        yield
    finally:
        names.remove()
        if old_private is not None:
            functional._scaled_dot_product_attention = old_private
        if old_public is None:
            del functional.scaled_dot_product_attention
        else:
            functional.scaled_dot_product_attention = old_public
        restore_interface()
        for undo in changed:
            undo()


def _slow_paths(model: Any) -> List[Callable[[], None]]:
    """PyTorch's fused layers pass by the doors: while they are watched, the plain code runs, with the same answers."""
    undo: List[Callable[[], None]] = []

    def plain(module: Any) -> None:
        def forward(*args: Any, **kwargs: Any) -> Any:
            training, dropout = module.training, module.dropout
            module.training, module.dropout = True, dropout if training else 0.0
            kwargs["need_weights"] = False
            try:
                return type(module).forward(module, *args, **kwargs)
            finally:
                module.training, module.dropout = training, dropout

        module.forward = forward
        undo.append(lambda: module.__dict__.pop("forward"))

    for module in model.modules():
        if isinstance(module, torch.nn.MultiheadAttention):
            plain(module)
        elif isinstance(module, torch.nn.TransformerEncoderLayer) and hasattr(module, "activation_relu_or_gelu"):
            old = module.activation_relu_or_gelu
            module.activation_relu_or_gelu = 0
            undo.append(lambda module=module, old=old: setattr(module, "activation_relu_or_gelu", old))
    return undo


def _register_interface(model: Any, function: Callable[..., Any]) -> Callable[[], None]:
    """Puts the function behind the attention interface of transformers, if that is loaded and the model uses it."""
    registry = getattr(sys.modules.get("transformers"), "AttentionInterface", None)
    configs = {id(m.config): m.config for m in model.modules() if hasattr(getattr(m, "config", None), "_attn_implementation")}
    if registry is None or not configs:
        return lambda: None
    registry.register(INTERFACE, function)
    old = [(config, config._attn_implementation) for config in configs.values()]
    for config, _ in old:
        config._attn_implementation = INTERFACE

    def restore() -> None:
        for config, before in old:
            config._attn_implementation = before

    return restore


@contextlib.contextmanager
def record(model: Any) -> Iterator[Recording]:
    """Writes down Q, K, V, scale, mask and W_O of every attention call of the model while the block runs."""
    recording = Recording()

    def attend(call: Call) -> None:
        recording.calls.append(call)

    with _watched(model, attend):
        yield recording


def _plan_of(plan: Plan, name: str) -> Optional[Plan]:
    """The options of one call: of its name if the plan names it, else the default; None leaves it exact."""
    named = plan.get("calls", {})
    found = named[name] if name in named else plan.get("default", None if "calls" in plan else plan)
    if found is None:
        return None
    unknown = set(found) - PLAN_KEYS
    if unknown:
        raise ArgumentError(f"replace: key {sorted(unknown)[0]!r} of a plan, expected some of {sorted(PLAN_KEYS)}")
    return dict(found)


@contextlib.contextmanager
def replace(model: Any, plan: Plan) -> Iterator[None]:
    """Runs heads as windows with a tail (``es.WindowedHead``) while the block runs.

    plan is what every head gets, {"window": 16, "tail": "finite"}, or {"default": .., "calls": {name: ..}} with names as
    record() gives them; None leaves a call exact. Heads with a mask that is neither empty nor causal are refused.
    """

    def attend(call: Call) -> Optional[Tensor]:
        options = _plan_of(plan, call.name)
        if options is None:
            return None
        if call.mask is not None:
            raise ArgumentError(f"replace: the mask of call {call.name!r}, expected none or a causal one")
        return replaced(call, options)

    with _watched(model, attend):
        yield


def replaced(call: Call, options: Plan) -> Tensor:
    """The output [b,h,m,dv] of a call with every head as a window."""
    Q, K, V = (x.detach().double().cpu().numpy() for x in (call.Q, call.K, call.V))
    batch, heads, m, dk = Q.shape
    n, group = K.shape[2], heads // K.shape[1]
    out = np.empty((batch, heads, m, V.shape[-1]))
    for b in range(batch):
        for h in range(heads):
            k, v = K[b, h // group], V[b, h // group]
            head = WindowedHead(dk, v.shape[1], score_scale=call.scale, **options)
            first = n - m if call.causal else n
            if first > 0:
                head.push(k[:first], v[:first])
            for i in range(m):
                if call.causal:
                    head.push(k[first + i], v[first + i])
                out[b, h, i] = head.attend(Q[b, h, i])
    return torch.as_tensor(out, dtype=call.Q.dtype, device=call.Q.device)
