"""Training on fresh prompts by SGD, Adam or AdamW."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Union

from . import _esscher
from .errors import ArgumentError
from .icl import Readout, Task, start_of
from .keywords import renamed
from .layers import Layer, layer_of, layer_parts, small_layer
from .tasks import ContextTask
from .outlets import Out, outlet, without
from .progress import Progress
from .random import as_seed
from .results import Curve, Curves, Result, register_tuple
from .tables import Rows
from .types import Length, whole


@register_tuple
class LossPoint(NamedTuple):
    """Mean loss over the steps (first, last] and its standard error; the loss is a risk, half a squared error.

    >>> import esscher as es
    >>> p = es.train(es.LinearRegressionTask(1), 20, 200).curve[-1]
    >>> p.first, p.last, p.std_error > 0
    (100, 200, True)
    """

    first: int
    last: int
    loss: float
    std_error: float


@dataclass(frozen=True, eq=False)
class Training(Result):
    """A training run: loss curve and the heads (U, r) it ended with. status: "finished" or "diverged".

    Tasks beyond regression have a ``layer`` instead of heads. Losses are risks, halves of squared errors, whatever the optimizer saw, so that they stand beside ``risk``.
    ``last_loss`` is one batch and noisy.

    >>> import esscher as es
    >>> t = es.train(es.LinearRegressionTask(2), 20, 100, heads=2, init="torch", parametrisation="KQVO")
    >>> len(t.heads), t.heads[0].U.shape
    (2, (3, 3))
    """

    status: str
    steps: int
    curve: List[LossPoint]
    heads: List[Readout]
    last_loss: float
    layer: Optional[Layer] = None

    @property
    def end(self) -> Union[Readout, List[Readout], Layer]:
        """What was trained: the layer, the head, or the list of several heads."""
        if self.layer is not None:
            return self.layer
        return self.heads[0] if len(self.heads) == 1 else self.heads

    def _table(self) -> Rows:
        return Rows({"step": p.last, "loss": p.loss, "std_error": p.std_error} for p in self.curve)

    def _axes(self) -> List[str]:
        return ["step"]

    def _picture(self) -> Curves:
        steps, loss = [p.last for p in self.curve], [p.loss for p in self.curve]
        low, high = ([p.loss + side * p.std_error for p in self.curve] for side in (-2, 2))
        return Curves("training loss", "step", "loss", [Curve("", steps, loss, low, high)], log_y=True)

    def __repr__(self) -> str:
        p = self.curve[-1] if self.curve else None
        loss = "" if p is None else f", loss={p.loss:.6g} +- {p.std_error:.2g} over steps {p.first + 1}..{p.last}"
        return f"Training({self.status}, steps={self.steps}{loss})"


def _layer_start(task: ContextTask, start: Any, kind: str, heads: int, init: str) -> Layer:
    """The layer that is given, or small heads, whose entries the compiled module draws if init is "torch"."""
    if init not in ("balanced", "torch"):  # the first is the word of the signature for "not said"
        raise ArgumentError(f'train: init is {init!r}, expected "torch" or a start, a Layer, for a {type(task).__name__}')
    if start is None:
        if heads != 1 and init != "torch":
            raise ArgumentError(f'train: heads is {heads!r}, and heads that start equal stay equal; expected init="torch", or a start')
        return small_layer(task, kind, whole("train", "heads", heads))
    if init == "torch" or heads != 1:
        name, value = ("init", init) if init == "torch" else ("heads", heads)
        raise ArgumentError(f"train: {name} is {value!r}, but start is a Layer, which has heads of its own")
    layer: Layer = start_of("train", task, start, Layer)
    return layer


@renamed(model="kind")
def train(
    task: Task,
    length: Length,
    steps: int,
    *,
    kind: str = "softmax",
    parametrisation: str = "UV",
    heads: int = 1,
    init: str = "balanced",
    alpha: float = 0.1,
    start: Union[None, Readout, Sequence[Readout], Layer] = None,
    family: str = "full",
    score_scale: float = 1.0,
    optimizer: str = "sgd",
    learning_rate: float = 1e-3,
    momentum: float = 0.0,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    weight_decay: float = 0.0,
    clip: Optional[float] = None,
    batch: int = 128,
    gradient: str = "auto",
    loss: str = "half",
    seed: int = 0,
    curve_block: Optional[int] = None,
    checkpoints: int = 50,
    out: Out = None,
    progress: Progress = None,
) -> Training:
    """Train on fresh prompts of this length.

    loss: what the optimizer descends, "half" the squared error, which is the risk, or the whole, "mse", whose gradient
    is twice as long. Reported losses are risks in either case. ``out`` makes a run on disk with ``checkpoints`` states,
    which the same call resumes, and report.html; ``progress`` as in ``set_progress``. The curve has one point for every
    ``curve_block`` steps, 100 unless given or there are fewer.

    task may be your own (``UserTask``). optimizer: "sgd" (momentum), "adam" or "adamw" (beta1, beta2,
    epsilon, weight_decay), as in PyTorch; a gradient longer than ``clip`` is shortened first. init: where training
    starts, with the words of TOML: "balanced" (alpha), "torch", "identity" (alpha), "normal" (entries of deviation
    alpha) or "dense", which takes ``start``, a Readout per head.
    gradient: "sampled" draws scores instead of tokens (Gaussian
    features), "direct" draws every token (any task, finite or infinite length of your own tasks),
    "exact" follows the population loss (one head, Gaussian features); "auto" is sampled for Gaussian
    features, else direct. A run is a pure function of its arguments: same bits for any number of threads.

    For tasks beyond regression (``DenoisingTask`` and so on) start is a ``Layer``, heads of ``kind`` with small
    matrices unless given, or drawn as PyTorch draws them (init="torch"); it moves in a family, or in a parametrisation
    of its heads, as in ``flow``. Prompts are drawn ("direct") or, where the risk of the
    layer is exact over prompts, averaged over ("exact").

    >>> import esscher as es
    >>> t = es.train(es.LinearRegressionTask(2), es.inf, 200, learning_rate=0.05)
    >>> t.status, t.steps, t.curve[-1].loss < t.curve[0].loss
    ('finished', 200, True)
    >>> task = es.DenoisingTask([[1.5], [-1.5]])
    >>> t = es.train(task, 20, 200, start=es.Layer([[0.5]], [[0.5]]), optimizer="adam", learning_rate=0.02)
    >>> t.layer.U.shape, t.curve[-1].loss < t.curve[0].loss
    ((1, 1), True)
    """
    steps, seed = whole("train", "steps", steps), as_seed("train", seed)
    curve_block = max(1, min(100, steps)) if curve_block is None else whole("train", "curve_block", curve_block)
    given = without(locals(), "checkpoints")
    if loss not in ("half", "mse"):
        raise ArgumentError(f'train: loss is {loss!r}, expected "half" or "mse"')
    options: Dict[str, Any] = dict(
        kind=kind, half_loss=loss == "half", parametrisation=parametrisation, heads=whole("train", "heads", heads), init=init, alpha=alpha,
        score_scale=score_scale, optimizer=optimizer, learning_rate=learning_rate, momentum=momentum,
        beta1=beta1, beta2=beta2, epsilon=epsilon, weight_decay=weight_decay, clip=clip, batch=whole("train", "batch", batch), gradient=gradient,
        seed=seed, curve_block=curve_block,
    )
    if isinstance(task, ContextTask):
        options.update(layer=layer_parts(task, _layer_start(task, start, kind, heads, init)), family=family, heads=1)
    else:
        one = isinstance(start, (Readout, Layer))
        options["start"] = [start_of("train", task, head, Readout) for head in ([start] if one else start or [])]
    with outlet("icl train", "train", given, out=out, progress=progress, seed=seed) as where:
        found = _esscher.train(task, length, steps, checkpoints, options, where)
    return training_of(found)


def training_of(found: Dict[str, Any]) -> Training:
    """A Training from the dictionary of the compiled module."""
    found["curve"] = [LossPoint(*point) for point in found["curve"]]
    found["heads"] = [Readout(*head) for head in found["heads"]]
    found["layer"] = None if found["layer"] is None else layer_of(found["layer"])
    return Training(**found)
