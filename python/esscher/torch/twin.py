"""A twin of a user's training: the exact risk of a module's heads beside its sampled loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Callable, List, Optional, Sequence, Tuple, Union

import numpy as np

from ..errors import ArgumentError, CapabilityError, DimensionError
from ..icl import LinearRegressionTask, Readout
from ..keywords import helpful
from ..layers import Layer
from ..measures import Gaussian, measure
from ..models import risk as estimated_risk
from ..random import Stream, as_seed
from ..results import Curve, Curves, Result
from ..tables import Rows
from ..tasks import ContextTask
from ..types import whole
from .tensors import Tensor, to_numpy, torch
from .weights import has_biases, layer_of, readouts, with_constant


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

    def _picture(self) -> Curves:
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


@helpful
def draw_batch(task: Any, length: int, batch: int, stream: Stream, dtype: Any = None) -> Tuple[Tensor, Tensor, Tensor]:
    """Fresh prompts of a task: tokens [B,L,D], queries [B,D], targets [B]; a function of the stream.

    Tasks beyond regression have targets [B,m].

    >>> import esscher as es, esscher.torch as et
    >>> [tuple(x.shape) for x in et.draw_batch(es.LinearRegressionTask(2), 10, 4, es.Stream(0))]
    [(4, 10, 3), (4, 3), (4,)]
    """
    prompts: List[Any] = []
    queries: List[Any] = []
    targets: List[Any] = []
    beyond = isinstance(task, ContextTask)
    for i in range(batch):
        if isinstance(task, LinearRegressionTask):
            _, x, y, prompt = task.draw(stream.split(i), length)
            query = np.append(x, 0.0)
        elif beyond:
            query, y, _, prompt = task.draw(stream.split(i), length)
        else:
            law, query, y = task.draw(stream.split(i).split(0))
            prompt = measure(law).sample(stream.split(i).split(1), length).tokens
        prompts.append(prompt)
        queries.append(np.asarray(query, dtype=np.float64))
        targets.append(np.asarray(y, dtype=np.float64) if beyond else float(y))
    kind = dtype or torch.get_default_dtype()
    found = (np.stack(prompts), np.stack(queries), np.stack(targets))
    tokens, points, values = (torch.as_tensor(x).to(kind) for x in found)
    return tokens, points, values


class _WithConstant:
    """A task of tokens and queries (z, 1), for heads with biases."""

    def __init__(self, task: Any) -> None:
        if isinstance(task, LinearRegressionTask) and task.features != "gaussian":
            raise CapabilityError("Trainer: heads with biases on regression need gaussian features")
        self.task = task
        dim = task.dim + 1 if isinstance(task, LinearRegressionTask) else task.token_dim
        self.token_dim = dim + 1

    def draw(self, stream: Stream) -> Tuple[Any, Any, float]:
        """Law of the tokens, query and target."""
        if not isinstance(self.task, LinearRegressionTask):
            law, query, target = self.task.draw(stream)
            return with_constant(law), with_constant(query), target
        w, x, target, _ = self.task.draw(stream, 1)
        return with_constant(Gaussian(self.task.token_covariance(w))), np.concatenate([x, [0.0, 1.0]]), target


class Trainer:
    """Trains a module of yours on fresh prompts of a task, and follows it with the exact risk of its heads.

    ``predict(module, prompts [B,L,D], queries [B,D])`` gives predictions [B]; without it the module is called as
    ``module(prompts, queries)``. ``readout(module)`` gives its heads as (U, r); without it ``readouts``. The loss is half
    the mean squared error, as everywhere. Batch t is drawn from (seed, t), so two modules see the same prompts.

    On tasks beyond regression (``DenoisingTask`` and so on) predictions are [B,m], and ``readout(module)`` gives a
    ``Layer``, which without it is made of the module's heads. On regression and tasks of your own a module may have biases:
    its exact risk is then that of tokens (z, 1), averaged over draws of the task.

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

    @helpful
    def __init__(
        self,
        module: Any,
        task: Any,
        length: int,
        *,
        optimizer: Any = None,
        predict: Optional[Callable[[Any, Tensor, Tensor], Tensor]] = None,
        readout: Optional[Callable[[Any], Union[Sequence[Readout], Layer]]] = None,
        kind: str = "softmax",
        batch: int = 128,
        seed: int = 0,
    ) -> None:
        beyond = isinstance(task, ContextTask)
        if not hasattr(task, "draw"):
            raise ArgumentError(f"Trainer: a {type(task).__name__} draws nothing; expected a task")
        if beyond and (kind != "softmax" or task.parameters.get("loss", "squared") != "squared"):
            raise CapabilityError("Trainer: tasks beyond regression are for softmax heads and the squared loss")
        self.module, self.task, self.length, self.kind = module, task, whole("Trainer", "length", length), kind
        self.optimizer = optimizer or torch.optim.SGD(module.parameters(), lr=0.05)
        self.predict = predict or (lambda m, prompts, queries: m(prompts, queries))
        self.readout = readout or (layer_of if beyond else readouts)
        self.batch, self.seed, self.step = whole("Trainer", "batch", batch), as_seed("Trainer", seed), 0
        self.dtype = next(module.parameters()).dtype

    def losses(self) -> Tensor:
        """Halves of squared errors [B], summed over coordinates, on the batch of the present step."""
        stream = Stream(self.seed).split(1).split(self.step)
        prompts, queries, targets = draw_batch(self.task, self.length, self.batch, stream, self.dtype)
        found = self.predict(self.module, prompts, queries)
        if found.shape != targets.shape:
            raise DimensionError(f"Trainer: predictions have shape {list(found.shape)}, expected {list(targets.shape)}")
        return 0.5 * ((found - targets) ** 2).reshape(self.batch, -1).sum(-1)

    def exact(self) -> Tuple[float, float]:
        """The risk of the heads at this length and at infinity; nan where there is no formula."""
        task, given = self.task, None
        if self.readout is readouts and has_biases(self.module):
            task, given = _WithConstant(self.task), readouts(self.module, constant=True)
        heads: Any = given or self.readout(self.module)
        heads = heads if isinstance(heads, Layer) else list(heads)
        at = heads[0] if isinstance(heads, list) and len(heads) == 1 else heads
        found = []
        for length in (self.length, math.inf):
            try:
                found.append(estimated_risk(task, at, length, kind=self.kind).value)
            except CapabilityError:
                found.append(math.nan)
        return found[0], found[1]

    @helpful
    def run(self, steps: int, *, log_every: int = 100) -> TwinTraining:
        """Trains so many steps; logs at the start, every ``log_every`` steps and at the end."""
        rows = []
        last, log_every = self.step + whole("run", "steps", steps), whole("run", "log_every", log_every)
        while True:
            losses = self.losses()
            if self.step % log_every == 0 or self.step == last:
                values = to_numpy(losses)
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
