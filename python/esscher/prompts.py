"""Prompts: what they hold, and where their weight goes at a length."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from . import _esscher
from .attention import Attention
from .errors import ArgumentError
from .grids import Shapes
from .keywords import renamed
from .composed import Mixture
from .measures import Measure, measure
from .recorded import Recorded
from .pictures import Bar, Bars
from .results import Result
from .random import Stream, as_stream
from .types import Array, ArrayLike, Length, MeasureLike, PromptLike, whole


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

    def _picture(self) -> Bars:
        bars = [Bar(name, weight) for name, weight in self.weights.items()]
        return Bars(f"what a prompt of {self.length} tokens attends to", "part", "expected weight", bars)

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
