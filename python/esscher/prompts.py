"""Finite prompts: what they hold, what they do, and how far one of length L is from its limit."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import TYPE_CHECKING, Any, Dict, List, Literal, Mapping, NamedTuple, Optional, Sequence, Tuple, Union, overload

import numpy as np

from . import _esscher
from .attention import Attention
from .errors import ArgumentError, CapabilityError
from .grids import Shapes
from .keywords import helpful, renamed
from .measures import Measure, Mixture, measure
from .recorded import Recorded
from .results import Result, register_tuple
from .random import Stream, as_stream
from .types import Array, ArrayLike, Length, MeasureLike, PromptLike, whole

if TYPE_CHECKING:
    from .gradients import PromptGradients, ScoreGradients


@dataclass(frozen=True)
class Estimate(Result):
    """A number and how it was made; ``std_error`` is 0 and ``n`` is 0 where nothing was sampled.

    ``heavy`` is true where so few summands carry the value that its ``std_error`` is too small.

    >>> import esscher as es
    >>> e = es.mean_square_error(es.Sphere(2), es.Attention(U=[[1, 0], [0, 1]]), [1.0, 0.0], 50, engine="direct")
    >>> e.engine, e.n, e.std_error > 0, float(e) == e.value
    ('direct', 256, True, True)
    """

    value: float
    std_error: float
    n: int
    engine: str
    heavy: bool = False

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        sure = f" +- {self.std_error:.2g}" if self.std_error else ""
        return f"Estimate({self.value:.8g}{sure}, {self.engine}{', heavy' if self.heavy else ''})"


class Group(Recorded):
    """Tokens of one law in a ``Prompt``: ``count`` of them, or a ``share`` of the tokens that are left.

    ``bias`` is added to their scores. Shares are relative to each other; 1 unless given. The name is the measure's
    unless given.

    >>> import esscher as es
    >>> es.Group(es.Sphere(3), count=4, bias=0.5, name="needles")
    Group(measure=Sphere(dim=3), count=4, bias=0.5, name='needles')
    """

    measure: MeasureLike
    count: Optional[int]
    share: Optional[float]
    bias: float
    name: str

    def __init__(
        self,
        measure: MeasureLike,
        *,
        count: Optional[int] = None,
        share: Optional[float] = None,
        bias: float = 0.0,
        name: str = "",
    ) -> None:
        if count is not None and share is not None:
            raise ArgumentError("Group: both count and share, expected one of them")
        if count is not None:
            whole("Group", "count", count)

    def _tuple(self) -> Tuple[Any, Optional[int], float, float, str]:
        count = None if self.count is None else whole("Group", "count", self.count)
        return self.measure, count, 1.0 if self.share is None else self.share, self.bias, self.name


# Keys of a bias beside "kind", and what stands for those that it does not have.
_BIASES: Dict[str, Tuple[str, ...]] = {"none": (), "alibi": ("slope",), "window": ("width",), "table": ("values",)}


def _bias(given: Optional[Mapping[str, Any]]) -> Tuple[str, float, int, Optional[ArrayLike]]:
    if given is None:
        return "none", 0.0, 0, None
    kind = given.get("kind") if isinstance(given, Mapping) else None
    if kind not in _BIASES:
        raise ArgumentError(
            f"Prompt: bias is {given!r}, expected a dictionary with kind = \"none\", \"alibi\", \"window\" or \"table\""
        )
    known = _BIASES[kind]
    if set(given) != {"kind", *known}:
        raise ArgumentError(f"Prompt: bias of kind {kind!r} has the keys {sorted(given)}, expected {['kind', *known]}")
    width = whole("Prompt", "bias width", given["width"]) if "width" in known else 0
    return kind, float(given.get("slope", 0.0)), width, given.get("values")


class Prompt(Recorded, _esscher.Prompt):
    """What a prompt holds: groups of tokens drawn from laws, tokens that are given, the query itself, sinks, positions.

    ``groups`` is a law, a ``Group``, or a list of them; tokens [n,d] as a law are drawn with replacement. ``given`` [g,d]
    are tokens as they are, at the start. With ``include_query`` the query is the last token (self-attention).
    ``sink_logits`` are logits without a token, whose value is 0; -inf is none. ``bias`` is added to scores by the distance from the end, as in TOML:
    ``{"kind": "alibi", "slope": x}``, ``{"kind": "window", "width": n}`` or ``{"kind": "table", "values": [..]}``.

    A Prompt is taken by ``attend``, ``expected_output``, ``mean_square_error``, ``concentration``, ``shortest_length``
    and ``universal`` where a law of tokens is; lengths count all its tokens. A needle among 1000 tokens:

    >>> import numpy as np, esscher as es
    >>> prompt = es.Prompt(es.Gaussian(np.eye(2)), given=[[3.0, 0.0]], sink_logits=[0.0])
    >>> prompt.names
    ['given:0', 'gaussian', 'sink:0']
    >>> seen = es.attend(prompt, es.Attention(U=2 * np.eye(2)), [1.0, 0.0], 1001)
    >>> round(seen.weights["given:0"], 4), seen.engine
    (0.0535, 'exact')

    ``names`` are its parts, in the order of their weights; ``counts(L)`` the tokens of every group. As L grows it tends
    to ``limit``, the mixture of its groups by share; where there is none ``limit`` is None and ``no_limit`` says why.
    ``dim`` is d, ``fixed_tokens`` the number of tokens that do not grow with L.

    >>> prompt.limit, prompt.no_limit, prompt.counts(1001)
    (Gaussian(cov=[[1.0, 0.0], [0.0, 1.0]]), None, [1000])
    """

    given: Optional[Array]
    include_query: bool
    sink_logits: Optional[Array]
    bias: Optional[Mapping[str, Any]]

    def __init__(
        self,
        groups: Union[None, MeasureLike, Group, Sequence[Union[Group, Measure]]] = None,
        *,
        given: Optional[ArrayLike] = None,
        include_query: bool = False,
        sink_logits: Optional[ArrayLike] = None,
        bias: Optional[Mapping[str, Any]] = None,
    ) -> None:
        parts = [group._tuple() for group in _groups(groups)]
        super().__init__(_esscher.prompt(parts, given, include_query, sink_logits, *_bias(bias)))

    @property
    def groups(self) -> List[Group]:
        """The groups, in their order."""
        return _groups(self.parameters["groups"])

    def counts(self, length: Length) -> List[int]:
        """The tokens of every group in a prompt of this length."""
        return self._counts(whole("Prompt", "length", length))

    @property
    def limit(self) -> Optional[Measure]:
        """The law that it tends to as its groups grow by share; None where it has no limit."""
        if self._no_limit():
            return None
        grow = [group for group in self.groups if group.count is None and group.share != 0]
        if len(grow) == 1:
            return measure(grow[0].measure)
        top = max(group.bias for group in grow)
        weights = [(1.0 if group.share is None else group.share) * exp(group.bias - top) for group in grow]
        return Mixture(weights, [measure(group.measure) for group in grow])

    @property
    def no_limit(self) -> Optional[str]:
        """Why there is no limit, or None."""
        return self._no_limit() or None


def _groups(given: Any) -> List[Group]:
    if given is None:
        return []
    if isinstance(given, (list, tuple)) and (not given or isinstance(given[0], (Group, _esscher.Measure))):
        return [part if isinstance(part, Group) else Group(part) for part in given]
    return [given if isinstance(given, Group) else Group(given)]


@dataclass(frozen=True, eq=False)
class Attended(Result):
    """What prompts of one length do on average at one query: ``attend``.

    ``output`` [dv] is E[T_hat(z)] with ``std_error`` [dv] (0 where nothing was sampled), ``variance`` E|T_hat - E T_hat|^2,
    ``effective_sample_size`` one over E sum omega^2, ``weights`` the expected weight of every part by name; groups of
    one name are added.

    >>> import esscher as es
    >>> seen = es.attend(es.Prompt(given=[[1.0], [3.0]]), es.Attention(U=[[1.0]]), [0.0])
    >>> seen.output.round(9), round(seen.effective_sample_size, 9), round(seen.weights["given:1"], 9)
    (array([2.]), 2.0, 0.5)
    """

    length: int
    output: Array
    std_error: Array
    variance: float
    effective_sample_size: float
    weights: Dict[str, float]
    engine: str

    def _shapes(self) -> Shapes:
        return {"output": ("coordinate",), "std_error": ("coordinate",), "weights": ("part",)}

    def __repr__(self) -> str:
        parts = ", ".join(f"{name} {weight:.4g}" for name, weight in list(self.weights.items())[:4])
        more = ", .." if len(self.weights) > 4 else ""
        return f"Attended(L = {self.length}, |output| = {sum(self.output**2) ** 0.5:.6g}, {parts}{more}; {self.engine})"


@renamed(stream="seed")
def attend(
    prompt: PromptLike,
    attention: Attention,
    z: ArrayLike,
    length: Optional[Length] = None,
    *,
    engine: str = "auto",
    replicates: int = 256,
    seed: Union[Stream, int] = 0,
) -> Attended:
    """What a prompt of this length does on average at one query z [d]; a length is needed where groups have shares.

    engine: "exact" (no sampling, laws with a score law), "sampled" (Gaussian tokens and mixtures), "direct" (any law), or
    "auto", the first that serves. Self-attention, where the query is one of 8 tokens on a sphere:

    >>> import numpy as np, esscher as es
    >>> T = es.Attention(U=np.eye(3))
    >>> seen = es.attend(es.Prompt(es.Sphere(3), include_query=True), T, [1.0, 0.0, 0.0], 8)
    >>> round(seen.weights["self"], 4), seen.output.round(4).tolist()
    (0.2548, [0.4639, 0.0, 0.0])
    """
    found = _esscher.attend(engine, prompt, attention, z, length, replicates, as_stream(seed))
    return Attended(*found)


class _ScoreFunctions(NamedTuple):
    H: float
    M1: float
    M2c: float
    free_energy: float
    entropy: float
    needle: Optional[float]
    error: float


@register_tuple
class ScoreFunctions(_ScoreFunctions, Result):
    """Functions of the scores of a prompt, with weights omega and S = sum omega s: ``universal`` of a ``Prompt``.

    ``H`` = E[sum omega^2], ``M1`` = E[S], ``M2c`` = E[(S - S_inf)^2] about the limit (``inf`` where that is infinite),
    ``free_energy`` = E[log sum e^(b+s)], ``entropy`` = E[-sum omega log omega]; ``needle`` is the expected weight of one
    more token of the given score, else None; ``error`` is the defect of E sum omega = 1.

    >>> import esscher as es
    >>> u = es.universal(3, es.Dirac([2.0]), es.Attention(U=[[1.0]]), [1.0], needle=2.0)
    >>> round(u.H, 12), round(u.free_energy, 6), round(u.needle, 12)     # 1/3, 2 + log 3, 1/4
    (0.333333333333, 3.098612, 0.25)
    """

    def __repr__(self) -> str:
        shown = {name: value for name, value in self._asdict().items() if value is not None}
        return f"ScoreFunctions({', '.join(f'{name}={value:.8g}' for name, value in shown.items())})"


class _Universal(NamedTuple):
    M1: float
    M2c: float
    H: float
    M1_ratio: float
    M2c_ratio: float
    error: float


@register_tuple
class Universal(_Universal, Result):
    """What L iid scores N(0, tau^2) and their softmax weights do on average.

    S = sum omega s; ``M1`` = E[S], ``M2c`` = E[(S - tau^2)^2], ``H`` = E[sum omega^2]; the ratios are
    divided by tau^2; ``error`` bounds quadrature and rounding.

    >>> import esscher as es
    >>> u = es.universal(1, 2.0)      # one token: the prompt is frozen on it
    >>> u.M1, u.H
    (0.0, 1.0)
    """

    def __repr__(self) -> str:
        return f"Universal({', '.join(f'{name}={value:.8g}' for name, value in self._asdict().items())})"


@overload
def universal(L: Length, tau: float, *, gradient: Literal[False] = False) -> Universal: ...
@overload
def universal(L: Length, tau: float, *, gradient: Literal[True]) -> Tuple[Universal, Universal]: ...
@overload
def universal(
    L: Length,
    tau: PromptLike,
    attention: Attention,
    z: ArrayLike,
    *,
    needle: Optional[float] = None,
    gradient: Literal[False] = False,
) -> ScoreFunctions: ...
@overload
def universal(
    L: Length, tau: PromptLike, attention: Attention, z: ArrayLike, *, gradient: Literal[True]
) -> Tuple[ScoreFunctions, ScoreGradients]: ...
@helpful
def universal(
    L: Length,
    tau: Union[float, PromptLike],
    attention: Optional[Attention] = None,
    z: Optional[ArrayLike] = None,
    *,
    gradient: bool = False,
    needle: Optional[float] = None,
) -> Union[Universal, Tuple[Universal, Universal], ScoreFunctions, Tuple[ScoreFunctions, ScoreGradients]]:
    """The universal functions of a Gaussian prompt, at any L up to 2^63 at the same cost; 0 <= tau <= 600.

    ``universal(L, law, attention, z)``, z [d], gives those of the scores of a law of tokens or a ``Prompt``.

    >>> import esscher as es
    >>> u = es.universal(100, 1.0)
    >>> round(u.M1, 8), round(u.H, 8)
    (0.97446152, 0.02553848)

    With ``gradient`` a second one follows, the derivatives in tau, to 1e-8 of their size:

    >>> u, slope = es.universal(100, 1.0, gradient=True)
    >>> round(slope.H, 6)
    0.043632

    Of a law of tokens, where they are exact too:

    >>> T = es.Attention(U=[[1.0]])
    >>> round(es.universal(100, es.Gaussian([[1.0]]), T, [1.0]).H, 8)
    0.02553848

    Their gradients in z, U, K, Q, mean, cov and score_scale:

    >>> u, slope = es.universal(100, es.Gaussian([[1.0]]), T, [1.0], gradient=True)
    >>> round(slope.H.cov[0, 0], 6)
    0.021816
    """
    if attention is not None or z is not None or not isinstance(tau, (int, float, np.number)):
        if attention is None or z is None:
            raise ArgumentError("universal: expected attention and z beside a law of tokens")
        if gradient and needle is not None:
            raise CapabilityError("universal: the weight of a needle has no gradient; ask without a needle")
        found = ScoreFunctions(*_esscher.score_functions(tau, attention, z, L, needle))
        if not gradient:
            return found
        from .gradients import score_gradients

        law: Any = tau  # a law of tokens, as the lines above have seen
        return found, score_gradients(law, attention, z, L)
    if needle is not None:
        raise ArgumentError("universal: needle is for a law of tokens, an attention and z")
    return _gaussian_universal(L, float(tau), gradient)


def _gaussian_universal(L: Length, tau: float, gradient: bool) -> Union[Universal, Tuple[Universal, Universal]]:
    found = Universal(*_esscher.universal(whole("universal", "L", L), tau))
    if not gradient:
        return found
    from .gradients import node_functions

    t, dt = tau**2, 2 * tau
    H, k, dH, dk = node_functions(L, t)
    ratio, d_ratio = H + k * t, (dH + k + t * dk) * dt  # M2c / tau^2
    slope = Universal(dt * (1 - H) - t * dH * dt, dt * ratio + t * d_ratio, dH * dt, -dH * dt, d_ratio, found.error)
    return found, slope


@overload
def expected_output(measure: PromptLike, attention: Attention, z: ArrayLike, length: Length) -> Array: ...
@overload
def expected_output(
    measure: PromptLike, attention: Attention, z: ArrayLike, length: Length, *, cotangent: ArrayLike
) -> Tuple[Array, PromptGradients]: ...
@helpful
def expected_output(
    measure: PromptLike, attention: Attention, z: ArrayLike, length: Length, *, cotangent: Optional[ArrayLike] = None
) -> Union[Array, Tuple[Array, PromptGradients]]:
    """E[T_hat(z)] [dv] over prompts of this length, of a law or a ``Prompt`` with a score law; at ``inf`` the limit.

    A ``Prompt`` without a limit has the value at which it saturates instead.

    With a cotangent g [dv] the gradients of <g, E[T_hat(z)]> follow, in z, U, V, K, Q, mean, cov and score_scale.

    A finite prompt shrinks the operator: for N(0,G) it is (1 - H) V G U z.

    >>> import numpy as np, esscher as es
    >>> T = es.Attention(U=np.eye(1))
    >>> es.expected_output(es.Gaussian([[1.0]]), T, [1.0], 100).round(8)
    array([0.97446152])
    """
    found = _esscher.expected_output(measure, attention, z, length)
    if cotangent is None:
        return found
    from .gradients import output_gradient

    return found, output_gradient(measure, attention, z, length, cotangent)


@overload
def mean_square_error(
    measure: PromptLike, attention: Attention, z: ArrayLike, length: Length, *, metric: str = "output",
    engine: str = "auto", replicates: int = 256, seed: Union[Stream, int] = 0, gradient: Literal[False] = False,
) -> Estimate: ...
@overload
def mean_square_error(
    measure: PromptLike, attention: Attention, z: ArrayLike, length: Length, *, metric: str = "output",
    engine: str = "auto", replicates: int = 256, seed: Union[Stream, int] = 0, gradient: Literal[True],
) -> Tuple[Estimate, PromptGradients]: ...
@renamed(stream="seed")
def mean_square_error(
    measure: PromptLike,
    attention: Attention,
    z: ArrayLike,
    length: Length,
    *,
    metric: str = "output",
    engine: str = "auto", replicates: int = 256, seed: Union[Stream, int] = 0,
    gradient: bool = False,
) -> Union[Estimate, Tuple[Estimate, PromptGradients]]:
    """E|X_hat - X|^2 over prompts of this length, at one query z [d]; X is the output or a gradient.

    metric: "output", "grad_v", "grad_u", "grad_k" or "grad_q". engine: "exact" (no sampling),
    "sampled" (scores drawn, exact in law), "direct" (whole tokens), or "auto", the first that serves. With ``gradient``
    its derivatives in z, U, V, K, Q, mean, cov and score_scale follow, for the metric "output" by the exact engine.

    >>> import numpy as np, esscher as es
    >>> T = es.Attention(U=np.eye(1))
    >>> e = es.mean_square_error(es.Gaussian([[1.0]]), T, [1.0], 10**6)
    >>> round(e.value * 10**6, 5), e.std_error, e.engine
    (5.43645, 0.0, 'exact')
    """
    found = Estimate(
        *_esscher.mean_square_error(engine, metric, measure, attention, z, length, replicates, as_stream(seed))
    )
    if not gradient:
        return found
    if metric != "output" or found.engine != "exact":
        raise CapabilityError(
            f'mean_square_error: metric {metric} by the engine {found.engine} has no exact gradient; use metric="output" '
            "and a law that the exact engine serves"
        )
    from .gradients import error_gradient

    return found, error_gradient(measure, attention, z, length)
