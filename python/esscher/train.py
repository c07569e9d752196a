"""Training on fresh prompts by SGD, Adam or AdamW."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, NamedTuple, Sequence, Union

from . import _esscher
from .charts import Charted, Spec, lines
from .icl import AnyTask, Readout
from .types import Length


class LossPoint(NamedTuple):
    """Mean loss over the steps (first, last] and its standard error.

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
class Training(Charted):
    """A training run: loss curve and the heads (U, r) it ended with.

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

    def chart(self) -> Spec:
        """Loss over steps."""
        rows = [{"step": p.last, "loss": p.loss} for p in self.curve]
        return lines(rows, "step", "loss", log_y=True, title="training loss")

    def __repr__(self) -> str:
        return f"Training(status={self.status!r}, steps={self.steps}, last_loss={self.last_loss:.6g})"


def train(
    task: AnyTask,
    length: Length,
    steps: int,
    *,
    model: str = "softmax",
    parametrisation: str = "UV",
    heads: int = 1,
    init: str = "balanced",
    alpha: float = 0.1,
    start: Union[None, Readout, Sequence[Readout]] = None,
    score_scale: float = 1.0,
    optimizer: str = "sgd",
    learning_rate: float = 1e-3,
    momentum: float = 0.0,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    weight_decay: float = 0.0,
    batch: int = 128,
    gradient: str = "auto",
    seed: int = 0,
    curve_block: int = 100,
) -> Training:
    """Train on fresh prompts of this length; the loss is the squared error (no one half).

    task may be your own (``UserTask``). optimizer: "sgd" (momentum), "adam" or "adamw" (beta1, beta2,
    epsilon, weight_decay), as in PyTorch. init: where training starts, with the words of TOML:
    "balanced" (alpha), "torch", "identity" (alpha) or "dense", which takes ``start``, a Readout per head.
    gradient: "sampled" draws scores instead of tokens (Gaussian
    features), "direct" draws every token (any task, finite or infinite length of your own tasks),
    "exact" follows the population loss (one head, Gaussian features); "auto" is sampled for Gaussian
    features, else direct. A run is a pure function of its arguments: same bits for any number of threads.

    >>> import esscher as es
    >>> t = es.train(es.LinearRegressionTask(2), es.inf, 200, learning_rate=0.05)
    >>> t.status, t.steps, t.curve[-1].loss < t.curve[0].loss
    ('running', 200, True)
    """
    heads_given = [start] if isinstance(start, Readout) else list(start or [])
    options: Dict[str, Any] = dict(
        model=model, parametrisation=parametrisation, heads=heads, init=init, alpha=alpha,
        score_scale=score_scale, optimizer=optimizer, learning_rate=learning_rate, momentum=momentum,
        beta1=beta1, beta2=beta2, epsilon=epsilon, weight_decay=weight_decay, batch=batch, gradient=gradient, seed=seed, curve_block=curve_block,
        start=heads_given,
    )
    found = _esscher.train(task, length, steps, options)
    return training_of(found)


def training_of(found: Dict[str, Any]) -> Training:
    """A Training from the dictionary of the compiled module."""
    found["curve"] = [LossPoint(*point) for point in found["curve"]]
    found["heads"] = [Readout(*head) for head in found["heads"]]
    return Training(**found)
