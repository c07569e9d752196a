"""The three doors through which models of PyTorch call attention, and a watch that stands at all of them.

    torch.nn.MultiheadAttention                          its forward, in the plain and in the fused form
    torch.nn.functional.scaled_dot_product_attention     called by that name, not imported from there before
    the attention interface of Hugging Face's transformers, if it is loaded and the model uses it
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from ..errors import ArgumentError
from .calls import Call, additive, causal_mask, output_projection, settle_mask
from .tensors import Tensor, torch

# Gets every call. What it returns, [b,h,m,dv], replaces the output of the heads; None leaves it.
Attend = Callable[[Call], Optional[Tensor]]
INTERFACE = "esscher"


class Watch:
    """Knows which modules of a model are running, and hands their calls of attention to ``attend``."""

    def __init__(self, model: Any, attend: Attend) -> None:
        self.attend = attend
        self.running: List[List[Any]] = []  # name, module, calls so far; the innermost last
        self.layers: Dict[Tuple[str, int], int] = {}
        self.repeats: Dict[int, int] = {}
        self.inside = False  # one door calls another
        self.hooks: List[Any] = []
        for name, module in model.named_modules():
            self.hooks.append(module.register_forward_pre_hook(self._enter(name or "model", module is model)))
            self.hooks.append(module.register_forward_hook(self._leave))

    def _enter(self, name: str, outermost: bool) -> Callable[[Any, Any], None]:
        def enter(module: Any, args: Any) -> None:
            if outermost:  # a pass that failed did not leave its modules
                self.running.clear()
            self.running.append([name, module, 0])

        return enter

    def _leave(self, module: Any, args: Any, output: Any) -> None:
        self.running.pop()

    def remove(self) -> None:
        """Takes the hooks off the model."""
        for hook in self.hooks:
            hook.remove()

    @property
    def idle(self) -> bool:
        """True where a call is not one of this model, or is part of one that has been seen."""
        return self.inside or not self.running

    def see(
        self,
        Q: Tensor,
        K: Tensor,
        V: Tensor,
        scale: Optional[float],
        mask: Optional[Tensor],
        causal: bool = False,
        dropout: float = 0.0,
        **rules: Any,
    ) -> Optional[Tensor]:
        """Names the call and asks ``attend``; ``rules`` are fields of a ``Call``."""
        name, module, number = self.running[-1]
        self.running[-1][2] += 1
        layer = self.layers.setdefault((name, number), len(self.layers))
        repeat = self.repeats[layer] = self.repeats.get(layer, -1) + 1
        known = Q.shape[-1] ** -0.5 if scale is None else float(scale)
        call = Call(name if number == 0 else f"{name}.{number}", layer, repeat, Q, K, V, known, mask, causal, **rules)
        call.W_O = output_projection(module)
        settle_mask(call)
        found = self.attend(call)
        if found is not None and dropout > 0:
            raise ArgumentError(f"replace: module {name!r} drops weights with probability {dropout}, expected model.eval()")
        return found


# ---- torch.nn.MultiheadAttention


def _projected(module: Any, inputs: List[Tensor]) -> List[Tensor]:
    """Q, K, V [b,h,n,d] of inputs [b,n,E], with the keys that the module adds."""
    if module.in_proj_weight is not None:
        weights = module.in_proj_weight.chunk(3)
    else:
        weights = (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)
    biases = (None, None, None) if module.in_proj_bias is None else module.in_proj_bias.chunk(3)
    Q, K, V = (torch.nn.functional.linear(x, W, b) for x, W, b in zip(inputs, weights, biases))
    if module.bias_k is not None:
        K, V = (torch.cat([x, b.expand(len(x), 1, -1)], 1) for x, b in ((K, module.bias_k), (V, module.bias_v)))
    if module.add_zero_attn:
        K, V = (torch.cat([x, torch.zeros_like(x[:, :1])], 1) for x in (K, V))
    return [x.reshape(*x.shape[:2], module.num_heads, -1).transpose(1, 2) for x in (Q, K, V)]


def _joint_mask(Q: Tensor, K: Tensor, attn_mask: Optional[Tensor], padding: Optional[Tensor]) -> Optional[Tensor]:
    """Both masks of the module as one to add; keys that the module adds are seen by every query."""
    parts = []
    if attn_mask is not None:
        part = additive(attn_mask, Q, hidden=True)
        parts.append(part.reshape(*Q.shape[:2], *part.shape[1:]) if part.dim() == 3 else part)
    if padding is not None:
        part = additive(padding, Q, hidden=True)
        parts.append(part.reshape(Q.shape[0], 1, 1, -1))
    if not parts:
        return None
    whole = parts[0] if len(parts) == 1 else parts[0] + parts[1]
    return torch.nn.functional.pad(whole, (0, K.shape[-2] - whole.shape[-1]))


def _multihead_door(watch: Watch, module: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    def forward(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Optional[Tensor] = None,
        need_weights: bool = True,
        attn_mask: Optional[Tensor] = None,
        *more: Any,
        **options: Any,
    ) -> Any:
        given = (query, key, value, key_padding_mask, need_weights, attn_mask, *more)
        if watch.idle:
            return original(*given, **options)
        lone, last = query.dim() == 2, module.batch_first
        inputs = [x.unsqueeze(0) if lone else x if last else x.transpose(0, 1) for x in (query, key, value)]
        Q, K, V = _projected(module, inputs)
        mask = _joint_mask(Q, K, attn_mask, key_padding_mask)
        found = watch.see(Q, K, V, None, mask, dropout=module.dropout if module.training else 0.0)
        if found is None:
            watch.inside = True
            try:
                return original(*given, **options)
            finally:
                watch.inside = False
        y = module.out_proj(found.to(query.dtype).transpose(1, 2).flatten(2))
        return (y[0] if lone else y if last else y.transpose(0, 1)), None

    return forward


# Attributes that make PyTorch's encoders call the plain forward of their attention instead of a fused kernel.
_PLAIN = (
    ("TransformerEncoderLayer", "activation_relu_or_gelu", 0),
    ("TransformerEncoder", "enable_nested_tensor", False),
    ("TransformerEncoder", "use_nested_tensor", False),
)


@contextlib.contextmanager
def _multihead(watch: Watch, model: Any) -> Iterator[None]:
    with contextlib.ExitStack() as undo:
        for module in model.modules():
            for kind, name, plain in _PLAIN:
                if isinstance(module, getattr(torch.nn, kind)) and hasattr(module, name):
                    undo.callback(setattr, module, name, getattr(module, name))
                    setattr(module, name, plain)
            if isinstance(module, torch.nn.MultiheadAttention):
                own = vars(module).get("forward")
                undo.callback(vars(module).pop if own is None else vars(module).__setitem__, "forward", own)
                module.forward = _multihead_door(watch, module, module.forward)
        yield


# ---- torch.nn.functional.scaled_dot_product_attention


def _with_heads(x: Tensor) -> Tensor:
    """[b,h,n,d] of [n,d], [h,n,d] or [b,h,n,d]."""
    return x.reshape(*(1,) * (4 - x.dim()), *x.shape)


@contextlib.contextmanager
def _functional(watch: Watch) -> Iterator[None]:
    home, name = torch.nn.functional, "scaled_dot_product_attention"
    original: Any = getattr(home, name, None)
    if original is None:  # PyTorch 1.13
        yield
        return

    def door(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Optional[Tensor] = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: Optional[float] = None,
        **options: Any,
    ) -> Tensor:
        if not watch.idle and query.dim() <= 4:
            Q, K, V = (_with_heads(x) for x in (query, key, value))
            mask = None if attn_mask is None else additive(attn_mask, Q, hidden=False)
            if is_causal:  # PyTorch aligns the first query with the first key
                mask = causal_mask(torch.empty(Q.shape[-2], K.shape[-2], dtype=Q.dtype, device=Q.device), 0)
            found = watch.see(Q, K, V, scale, mask, dropout=dropout_p)
            if found is not None:
                return found.to(query.dtype).reshape(*query.shape[:-1], value.shape[-1])
        if scale is not None:
            options["scale"] = scale
        return original(query, key, value, attn_mask, dropout_p, is_causal, **options)

    setattr(home, name, door)
    try:
        yield
    finally:
        setattr(home, name, original)


# ---- the attention interface of transformers


# What models hand over beside the mask, and the field of a Call that it is.
_INTERFACE_RULES = {"sliding_window": "sliding", "softcap": "softcap", "s_aux": "sink"}


def _interface_door(watch: Watch) -> Callable[..., Tuple[Tensor, None]]:
    def door(
        module: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Optional[Tensor] = None,
        scaling: Optional[float] = None,
        dropout: float = 0.0,
        is_causal: Optional[bool] = None,
        **options: Any,
    ) -> Tuple[Tensor, None]:
        if options.get("position_bias") is not None:
            raise ArgumentError(f"record: position_bias of {type(module).__name__}, expected attention without it")
        rules = {field: options.get(word) for word, field in _INTERFACE_RULES.items()}
        mask = None if attention_mask is None else additive(attention_mask, query, hidden=False)
        causal = mask is None and bool(getattr(module, "is_causal", True) if is_causal is None else is_causal)
        found = None if watch.idle else watch.see(query, key, value, scaling, mask, causal, dropout, **rules)
        if found is None:
            if dropout > 0:
                raise ArgumentError(f"record: dropout {dropout} of {type(module).__name__}, expected model.eval()")
            scale = query.shape[-1] ** -0.5 if scaling is None else scaling
            call = Call("", 0, 0, query, key, value, scale, mask, causal, **rules)
            settle_mask(call)
            found = call.output()
        return found.to(query.dtype).transpose(1, 2), None

    return door


@contextlib.contextmanager
def _interface(watch: Watch, model: Any) -> Iterator[None]:
    library = sys.modules.get("transformers")
    registry = getattr(library, "AttentionInterface", None)
    configs = {id(m.config): m.config for m in model.modules() if hasattr(getattr(m, "config", None), "_attn_implementation")}
    if registry is None or not configs:
        yield
        return
    registry.register(INTERFACE, _interface_door(watch))
    masks = getattr(library, "AttentionMaskInterface", None)
    if masks is not None:  # without a function of its own, a new name gets no mask at all
        masks.register(INTERFACE, sys.modules["transformers.masking_utils"].sdpa_mask)
    old = [(config, config._attn_implementation) for config in configs.values()]
    try:
        for config, _ in old:
            config._attn_implementation = INTERFACE
        yield
    finally:
        for config, before in old:
            config._attn_implementation = before


@contextlib.contextmanager
def watched(model: Any, attend: Attend) -> Iterator[Watch]:
    """Hands every call of attention of the model to ``attend`` while the block runs; afterwards all is as before."""
    watch = Watch(model, attend)
    try:
        with _multihead(watch, model), _functional(watch), _interface(watch, model):
            yield watch
    finally:
        watch.remove()
