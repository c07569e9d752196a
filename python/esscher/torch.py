"""The bridge to PyTorch: attention on prompts and measures, exact risks and D(L) inside a graph of autograd.

    import torch, esscher as es, esscher.torch as et

Everything has first and second derivatives (``gradcheck``, ``gradgradcheck``) and works in float64 inside; results
have the dtype of the arguments. Measures of ``esscher`` are constants of the graph; ``et.Gaussian`` and ``et.Empirical``
are measures of tensors, whose parameters have gradients too. Needs PyTorch 1.13 or later, on the CPU.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import _esscher
from .attention import Attention as NumpyAttention
from .attention import MultiHead
from .errors import ArgumentError, CapabilityError, DimensionError
from .gradients import RiskFunction, risk_function, tables
from .icl import LinearRegressionTask, Readout
from .measures import Gaussian as NumpyGaussian
from .measures import Measure, measure
from .models import risk as estimated_risk
from .random import Stream
from .results import Curve, Curves, Result
from .rules import cov_times, hessian_times, node_slope, third_cumulant
from .tables import Rows
from .types import Length

# Without its types: they would take a type checker minutes to read.
torch: Any = import_module("torch")
Tensor = Any
__all__ = [
    "Attention", "Empirical", "Gaussian", "Trainer", "TwinTraining", "attention", "draw_batch", "expected_output",
    "from_state_dict", "mean_square_error", "readouts", "risk", "tilted_mean", "to_state_dict", "universal",
]

def _numpy(x: Tensor) -> Any:
    return x.detach().to(torch.float64).cpu().numpy()


def _like(array: Any, x: Tensor) -> Tensor:
    return torch.as_tensor(np.asarray(array), dtype=torch.float64).to(x.dtype)


# ---- measures


class _TiltedMean(torch.autograd.Function):  # type: ignore[misc]
    """m_a [n,d] at tilts a [n,d]."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, mu: Measure) -> Tensor:
        ctx.save_for_backward(a)
        ctx.mu = mu
        return _like(mu.tilted_mean(_numpy(a)), a)

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
        return _like(cov_times(mu, _numpy(a), _numpy(v)), a)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        a, v = ctx.saved_tensors
        slope = third_cumulant(ctx.mu, _numpy(a), _numpy(v), _numpy(g))
        return _like(slope, a), _CovTimes.apply(a, g, ctx.mu), None


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

    def numpy(self) -> NumpyGaussian:
        """The same measure outside the graph."""
        m, G = self.moments()
        return NumpyGaussian(_numpy(G), _numpy(m))


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


AnyLaw = Union[Gaussian, Empirical, Measure, Tensor, Any]


def tilted_mean(law: AnyLaw, a: Tensor) -> Tensor:
    """m_a = grad Lambda(a) at tilts a [..,d]: tensors of tokens, measures of tensors, and every measure of ``esscher``.

    >>> import torch, esscher as es, esscher.torch as et
    >>> et.tilted_mean(es.Rademacher(1), torch.tensor([1.0]))
    tensor([0.7616])
    """
    if isinstance(law, (Gaussian, Empirical)):
        return law.tilted_mean(a)
    if isinstance(law, torch.Tensor):
        return Empirical(law).tilted_mean(a)
    mu = measure(law)
    flat = a.reshape(-1, a.shape[-1])
    return _TiltedMean.apply(flat, mu).reshape(a.shape)


# ---- attention


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
        given = {name: _numpy(p) for name, p in self.named_parameters()}
        return NumpyAttention(**given, **({"score_scale": self.score_scale} if self.K is not None else {}))

    def forward(self, law: AnyLaw, z: Tensor) -> Tensor:
        """T[law](z) [..,dv] for z [..,d]."""
        return attention(law, z, U=self.U, V=self.V, K=self.K, Q=self.Q, score_scale=self.score_scale)


# ---- finite prompts


class _Node(torch.autograd.Function):  # type: ignore[misc]
    """Column `which` of (H, k, dH, dk) at t = tau^2 [n]; its derivative is the column two to the right."""

    @staticmethod
    def forward(ctx: Any, t: Tensor, L: int, which: int) -> Tensor:
        ctx.save_for_backward(t)
        ctx.L, ctx.which = L, which
        return _like(tables(L).at(np.maximum(_numpy(t).ravel(), 0.0))[:, which].reshape(t.shape), t)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        (t,) = ctx.saved_tensors
        if ctx.which < 2:
            return g * _Node.apply(t, ctx.L, ctx.which + 2), None, None
        slope = node_slope(ctx.L, ctx.which, _numpy(t).ravel())
        return g * _like(slope.reshape(t.shape), t), None, None


def universal(L: int, t: Tensor) -> Tuple[Tensor, Tensor]:
    """(H, k), k = (M2c/t - H)/t, of L scores of variance t = tau^2, twice differentiable in t.

    >>> import torch, esscher as es, esscher.torch as et
    >>> H, k = et.universal(100, torch.tensor(1.0, dtype=torch.float64))
    >>> abs(H.item() - es.universal(100, 1.0).H) < 1e-10
    True
    """
    x = t.to(torch.float64)
    return _Node.apply(x, int(L), 0).to(t.dtype), _Node.apply(x, int(L), 1).to(t.dtype)


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
    H = torch.zeros_like(t) if length == math.inf else universal(int(length), t)[0]
    return ((m + (1 - H)[..., None] * w) @ W.T).to(z.dtype)


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
    H, k = universal(int(length), t)
    Vw = w @ W.T
    return ((Vw * Vw).sum(-1) * k + torch.trace(W @ G @ W.T) * H).to(z.dtype)


# ---- risks


class _Risk(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, U: Tensor, r: Tensor, f: RiskFunction) -> Tensor:
        ctx.save_for_backward(U, r)
        ctx.f = f
        return _like(f(Readout(_numpy(U), _numpy(r))), U)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        U, r = ctx.saved_tensors
        dU, dr = _RiskSlope.apply(U, r, ctx.f)
        return g * dU, g * dr, None


class _RiskSlope(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, U: Tensor, r: Tensor, f: RiskFunction) -> Any:
        ctx.save_for_backward(U, r)
        ctx.f = f
        slope = f.gradient(Readout(_numpy(U), _numpy(r)))[1]
        return _like(slope.U, U), _like(slope.r, r)

    @staticmethod
    def backward(ctx: Any, gU: Tensor, gr: Tensor) -> Any:
        """The Hessian is symmetric, so this is the derivative of the gradient along (gU, gr)."""
        U, r = ctx.saved_tensors
        D = r.numel()

        def slope(x: Any) -> Any:
            found = ctx.f.gradient(Readout(x[: D * D].reshape(D, D), x[D * D :]))[1]
            return np.concatenate([found.U.ravel(), found.r])

        at, v = (np.concatenate([_numpy(x).ravel(), _numpy(y)]) for x, y in ((U, r), (gU, gr)))
        product = hessian_times(slope, at, v)
        return _like(product[: D * D].reshape(D, D), U), _like(product[D * D :], r), None


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
    """R_L(U, r), half the mean squared error of one head on prompts of this length, exact over the tokens.

    U [D,D] and r [D], the last row of V, are tensors of the graph; gradients of first and second order. options are those
    of ``esscher.risk_function``. In a loop make the function once and give it: its tables are kept.

    >>> import torch, esscher as es, esscher.torch as et
    >>> task = es.LinearRegressionTask(2)
    >>> at = es.balanced_start(task)
    >>> U, r = (torch.tensor(x, requires_grad=True) for x in at)
    >>> et.risk(task, U, r, 50).backward()
    >>> U.grad.shape, r.grad.shape
    (torch.Size([3, 3]), torch.Size([3]))
    """
    f = risk_function(task, length, kind=kind, **options) if function is None else function
    return _Risk.apply(U, r, f)


# ---- weights of other models


def _split(W: Tensor, heads: int, name: str) -> Any:
    if W.shape[0] % heads:
        raise DimensionError(f"from_state_dict: {name} has {W.shape[0]} rows, which {heads} heads do not share evenly")
    return W.reshape(heads, W.shape[0] // heads, W.shape[1])


def _matrix(state: Mapping[str, Tensor], name: str) -> Any:
    if name not in state:
        raise ArgumentError(f"from_state_dict: there is no {name}; the keys are {', '.join(state)}")
    return torch.as_tensor(_numpy(state[name]))


def _check_bias(state: Mapping[str, Tensor], name: str, what: str) -> None:
    if name in state and bool((state[name] != 0).any()):
        raise CapabilityError(f"from_state_dict: {name} is not zero, and a head of esscher has no bias of {what}")


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


def readouts(module: Any) -> List[Readout]:
    """What a prediction (the last coordinate of the output) reads of a module: (U, r) per head.

    Serves ``et.Attention``, ``nn.MultiheadAttention`` without biases, and modules with linears q, k, v, o and an integer
    ``heads``.

    >>> import torch, esscher.torch as et
    >>> [head.U.shape for head in et.readouts(torch.nn.MultiheadAttention(4, 2, bias=False))]
    [(4, 4), (4, 4)]
    """
    if isinstance(module, Attention):
        head = module.numpy()
        return [Readout(head.U, head.V[-1])]
    count = getattr(module, "num_heads", None) or getattr(module, "heads", None)
    if count is None:
        raise ArgumentError(f"readouts: {type(module).__name__} has no num_heads; give the Trainer a function readout=")
    whole = from_state_dict(module.state_dict(), int(count))
    rows, first = [], 0
    for head in whole.heads:
        width = head.output_dim
        rows.append(Readout(head.U, whole.O[-1, first : first + width] @ head.V))
        first += width
    return rows


# ---- a twin of a user's training


@dataclass(frozen=True, eq=False)
class TwinTraining(Result):
    """What a ``Trainer`` saw: per log step the sampled loss, the exact risk of the heads, and that at infinite length.

    >>> import esscher.torch as et
    >>> et.TwinTraining([{"step": 0, "loss": 1.0, "std_error": 0.1, "risk": 0.9, "risk_limit": 0.8}])
    TwinTraining(step 0: loss 1 +- 0.1, exact risk 0.9, at infinite length 0.8)
    """

    rows: Any

    def _table(self) -> Rows:
        return Rows(self.rows)

    def _axes(self) -> List[str]:
        return ["step"]

    def _curves(self) -> Curves:
        table = self._table()
        steps, loss, error = table["step"], table["loss"], table["std_error"]
        sampled = Curve("sampled loss", steps, loss, loss - 2 * error, loss + 2 * error)
        exact = Curve("exact risk", steps, table["risk"])
        limit = Curve("infinite prompt", steps, table["risk_limit"])
        return Curves("training beside its exact risk", "step", "risk", [sampled, exact, limit], "curve", log_y=True)

    def __repr__(self) -> str:
        row = self._table()[-1]
        return (
            f"TwinTraining(step {row.step}: loss {row.loss:.4g} +- {row.std_error:.2g}, exact risk {row.risk:.4g}, "
            f"at infinite length {row.risk_limit:.4g})"
        )


def draw_batch(task: Any, length: int, batch: int, stream: Stream, dtype: Any = None) -> Tuple[Tensor, Tensor, Tensor]:
    """Fresh prompts of a task: tokens [B,L,D], queries [B,D], targets [B]; a function of the stream.

    >>> import esscher as es, esscher.torch as et
    >>> [tuple(x.shape) for x in et.draw_batch(es.LinearRegressionTask(2), 10, 4, es.Stream(0))]
    [(4, 10, 3), (4, 3), (4,)]
    """
    prompts, queries, targets = [], [], []
    for i in range(batch):
        if isinstance(task, LinearRegressionTask):
            _, x, y, prompt = task.draw(stream.split(i), length)
            query = np.append(x, 0.0)
        else:
            law, query, y = task.draw(stream.split(i).split(0))
            prompt = measure(law).sample(stream.split(i).split(1), length).tokens
        prompts.append(prompt)
        queries.append(np.asarray(query, dtype=np.float64))
        targets.append(float(y))
    kind = dtype or torch.get_default_dtype()
    found = (np.stack(prompts), np.stack(queries), np.array(targets))
    tokens, points, values = (torch.as_tensor(x).to(kind) for x in found)
    return tokens, points, values


class Trainer:
    """Trains a module of yours on fresh prompts of a task, and follows it with the exact risk of its heads.

    ``predict(module, prompts [B,L,D], queries [B,D])`` gives predictions [B]; without it the module is called as
    ``module(prompts, queries)``. ``readout(module)`` gives its heads as (U, r); without it ``readouts``. The loss is half
    the mean squared error, as everywhere. Batch t is drawn from (seed, t), so two modules see the same prompts.

    >>> import torch, esscher as es, esscher.torch as et
    >>> task = es.LinearRegressionTask(2)
    >>> at = es.balanced_start(task, 0.5)
    >>> V = torch.zeros(3, 3); V[-1] = torch.tensor(at.r)
    >>> model = et.Attention(U=torch.tensor(at.U).float(), V=V)
    >>> predict = lambda m, prompts, queries: torch.stack([m(p, q)[-1] for p, q in zip(prompts, queries)])
    >>> twin = et.Trainer(model, task, 20, predict=predict, batch=8)
    >>> found = twin.run(20, log_every=10)
    >>> [row["step"] for row in found.rows]
    [0, 10, 20]
    """

    def __init__(
        self,
        module: Any,
        task: Any,
        length: int,
        *,
        optimizer: Any = None,
        predict: Optional[Callable[[Any, Tensor, Tensor], Tensor]] = None,
        readout: Optional[Callable[[Any], Sequence[Readout]]] = None,
        kind: str = "softmax",
        batch: int = 128,
        seed: int = 0,
    ) -> None:
        self.module, self.task, self.length, self.kind = module, task, int(length), kind
        self.optimizer = optimizer or torch.optim.SGD(module.parameters(), lr=0.05)
        self.predict = predict or (lambda m, prompts, queries: m(prompts, queries))
        self.readout = readout or readouts
        self.batch, self.seed, self.step = batch, seed, 0
        self.dtype = next(module.parameters()).dtype

    def losses(self) -> Tensor:
        """Halves of squared errors [B] on the batch of the present step."""
        stream = Stream(self.seed).split(1).split(self.step)
        prompts, queries, targets = draw_batch(self.task, self.length, self.batch, stream, self.dtype)
        return 0.5 * (self.predict(self.module, prompts, queries) - targets) ** 2

    def exact(self) -> Tuple[float, float]:
        """The risk of the heads at this length and at infinity; nan where there is no formula."""
        heads = list(self.readout(self.module))
        found = []
        for length in (self.length, math.inf):
            try:
                at: Union[Readout, List[Readout]] = heads[0] if len(heads) == 1 else heads
                found.append(estimated_risk(self.task, at, length, kind=self.kind).value)
            except CapabilityError:
                found.append(math.nan)
        return found[0], found[1]

    def run(self, steps: int, *, log_every: int = 100) -> TwinTraining:
        """Trains so many steps; logs at the start, every ``log_every`` steps and at the end."""
        rows = []
        last = self.step + steps
        while True:
            losses = self.losses()
            if self.step % log_every == 0 or self.step == last:
                values = _numpy(losses)
                risk_here, risk_limit = self.exact()
                error = float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.inf
                rows.append({"step": self.step, "loss": float(values.mean()), "std_error": error, "risk": risk_here,
                             "risk_limit": risk_limit})
            if self.step == last:
                return TwinTraining(Rows(rows))
            self.optimizer.zero_grad()
            losses.mean().backward()
            self.optimizer.step()
            self.step += 1
