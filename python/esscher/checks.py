"""Do the formulas of a measure or a task agree with each other? ``esscher.check`` says what is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, List, Union

import numpy as np

from .errors import ArgumentError, DomainError
from .keywords import helpful
from .tasks import ContextTask
from .measures import Measure, measure
from .random import Stream, as_stream
from .results import Curve, Curves, Result
from .tables import Rows
from .types import Array

LIMIT = 6.0  # standard errors


@dataclass(frozen=True, eq=False)
class Check(Result):
    """What was compared: one row per comparison, with what was found, what was expected and the verdict.

    >>> import esscher as es
    >>> found = es.check(es.Sphere(2))
    >>> found.ok, bool(found), found.wrong
    (True, True, [])
    """

    name: str
    rows: Rows

    @property
    def wrong(self) -> List[str]:
        """One sentence for each comparison that failed."""
        return [row["sentence"] for row in self.rows if not row["ok"]]

    @property
    def ok(self) -> bool:
        """Whether everything agrees."""
        return not self.wrong

    def __bool__(self) -> bool:
        return self.ok

    def _table(self) -> Rows:
        return self.rows

    def _picture(self) -> Curves:
        """How much of its tolerance each comparison uses: at most 1 where it agrees."""
        numbered = list(enumerate(self.rows, 1))
        parts = {"agrees": [(i, row) for i, row in numbered if row.ok], "wrong": [(i, row) for i, row in numbered if not row.ok]}
        curves = [
            Curve(label, [i for i, _ in part], [row.gap / row.tolerance for _, row in part]) for label, part in parts.items() if part
        ]
        return Curves(self.name, "comparison", "gap in tolerances", curves, "verdict", log_y=not self.ok, marks=True)

    def _sentences(self) -> Rows:
        return Rows({"comparison": i, "sentence": row.sentence} for i, row in enumerate(self.rows, 1) if not row.ok)

    def __repr__(self) -> str:
        if self.ok:
            count = len(self.rows)
            return f"Check({self.name}: {count} comparison{'s agree' if count != 1 else ' agrees'})"
        return f"Check({self.name}: {len(self.wrong)} of {len(self.rows)} are wrong: {' '.join(self.wrong)})"


class _Report:
    def __init__(self, name: str) -> None:
        self.name = name
        self.rows: List[Any] = []

    def add(self, what: str, expected_is: str, found: Any, expected: Any, tolerance: Any) -> None:
        f, e = np.asarray(found, dtype=np.float64), np.asarray(expected, dtype=np.float64)
        gap = np.abs(f - e) - np.asarray(tolerance, dtype=np.float64)
        worst = np.unravel_index(int(np.argmax(np.where(np.isnan(gap), np.inf, gap))), gap.shape) if gap.ndim else ()
        at = f"[{','.join(str(i) for i in worst)}]" if worst else ""
        ok = bool(np.all(gap <= 0))
        f1, e1 = float(f[worst]), float(e[worst]) if e.ndim else float(e)
        sentence = f"{what}{at} is {f1:.6g}, {expected_is}{at} is {e1:.6g}"
        ratio = f1 / e1 if e1 else 0.0
        if not ok and any(abs(ratio - k) < 1e-3 * k for k in (2, 3, 4, 0.5)):
            sentence += f" (a factor of {round(ratio, 3):g})"
        room = np.broadcast_to(np.asarray(tolerance, dtype=np.float64), gap.shape)[worst]
        self._keep(what, f1, e1, float(room), ok, sentence + ".")

    def say(self, what: str, ok: bool, sentence: str) -> None:
        self._keep(what, float(ok), 1.0, 0.5, ok, sentence)

    def _keep(self, what: str, found: float, expected: float, tolerance: float, ok: bool, sentence: str) -> None:
        self.rows.append({
            "what": what, "found": found, "expected": expected, "gap": abs(found - expected), "tolerance": tolerance, "ok": ok,
            "sentence": sentence,
        })

    def check(self) -> Check:
        return Check(self.name, Rows(self.rows))


def _slope(f: Callable[[Array], Any], a: Array, unit: float) -> Any:
    """Jacobian of f at a by central differences at two steps: extrapolated value, and its error."""
    parts = []
    for i in range(len(a)):
        e = np.eye(len(a))[i]
        one, two = ((np.asarray(f(a + h * e)) - np.asarray(f(a - h * e))) / (2 * h) for h in (2e-3 * unit, 1e-3 * unit))
        parts.append(((4 * two - one) / 3, np.abs(two - one)))
    return np.stack([p[0] for p in parts], -1), np.stack([p[1] for p in parts], -1)


def _formulas(report: _Report, mu: Measure, prefix: str, seed: Stream) -> None:
    zero = np.zeros(mu.dim)
    m, G = mu.mean, mu.tilted_cov(zero)
    spread = float(np.sqrt(max(np.trace(G) / mu.dim, 1e-30)))
    unit = 1.0 / spread
    report.add(f"{prefix}log_mgf(0)", "the logarithm of the total mass", mu.log_mgf(zero), 0.0, 1e-9)
    report.add(f"{prefix}mean()", "tilted_mean(0)", m, mu.tilted_mean(zero), 1e-8 * (spread + np.abs(m)))
    second = G + np.outer(m, m)
    report.add(f"{prefix}second_moment()", "tilted_cov(0) + mean mean'", mu.second_moment(), second, 1e-8 * np.abs(second).max())
    for k, size in enumerate((0.0, 0.2, 0.5)):
        a = size * unit * seed.split(k).normal(mu.dim) / np.sqrt(mu.dim)
        at = f"at a = {np.array2string(a, precision=3)}"
        try:
            slope, error = _slope(mu.log_mgf, a, unit)
            curve, error2 = _slope(mu.tilted_mean, a, unit)
        except DomainError:
            continue  # the law of Laplace, and others with a bounded domain
        C, v = mu.tilted_cov(a), seed.split(10 + k).normal(mu.dim)
        report.add(f"{prefix}tilted_mean", f"the gradient of log_mgf {at}", mu.tilted_mean(a), slope, error + 1e-7 * spread)
        report.add(f"{prefix}tilted_cov", f"the Jacobian of tilted_mean {at}", C, curve, error2 + 1e-7 * spread**2)
        report.add(f"{prefix}tilted_cov", f"its transpose {at}", C, C.T, 1e-9 * np.abs(C).max())
        report.add(f"{prefix}tilted_cov_times", f"tilted_cov @ v {at}", mu.tilted_cov_times(a, v), C @ v, 1e-8 * spread**2)
        sigma = mu.sub_gaussian()
        room = mu.log_mgf(a) - a @ m - 0.5 * sigma**2 * (a @ a) if np.isfinite(sigma) else -1.0
        report.add(f"{prefix}log_mgf(a) - <a, mean>", f"at most sub_gaussian()^2 |a|^2 / 2 {at}: excess", max(room, 0.0), 0.0, 1e-9)


def _sampling(report: _Report, mu: Measure, prefix: str, seed: Stream, n: int) -> None:
    tokens = mu.sample(seed, n).tokens
    again, few = mu.sample(seed, n).tokens, mu.sample(seed, n // 3).tokens
    same, start = np.array_equal(tokens, again), np.array_equal(tokens[: n // 3], few)
    report.say(f"{prefix}sample", same, f"{prefix}sample gives other tokens for the same stream; draw from the stream alone.")
    report.say(
        f"{prefix}sample of fewer", start,
        f"{prefix}sample(stream, {n // 3}) is not the beginning of sample(stream, {n}); token l should depend on l alone.",
    )
    m, G = mu.mean, mu.tilted_cov(np.zeros(mu.dim))
    sd = np.sqrt(np.maximum(np.diag(G), 0.0))
    report.add(f"{prefix}the mean of {n} samples", "mean()", tokens.mean(0), m, LIMIT * sd / n**0.5 + 1e-12)
    centred = tokens - m
    outer = centred[:, :, None] * centred[:, None, :]
    error = LIMIT * outer.std(0) / n**0.5 + 1e-12
    report.add(f"{prefix}the covariance of {n} samples", "tilted_cov(0)", outer.mean(0), G, error)
    a = 0.5 * seed.split(99).normal(mu.dim) / (np.sqrt(mu.dim) * max(float(sd.max()), 1e-30))
    try:
        expected = np.exp(mu.log_mgf(a) - a @ m)
    except DomainError:
        return
    weights = np.exp(centred @ a)
    report.add(f"{prefix}E exp(<a, z - m>) over samples", "that of log_mgf", weights.mean(), expected, LIMIT * weights.std() / n**0.5)


def _task(report: _Report, task: Any, seed: Stream, draws: int) -> None:
    if hasattr(task, "token_covariance"):  # linear regression
        w, x, y, prompt = task.draw(seed, 2000)
        outer = prompt[:, :, None] * prompt[:, None, :]
        error = LIMIT * outer.std(0) / len(prompt) ** 0.5 + 1e-12
        report.add("the second moment of a prompt", "token_covariance(w)", outer.mean(0), task.token_covariance(w), error)
        return
    targets = []
    for i in range(draws):
        law, query, target = task.draw(seed.split(i))
        _, query2, target2 = task.draw(seed.split(i))
        same = np.array_equal(query, query2) and target == target2
        if i < 2:
            report.say("draw", same, "draw gives another query or target for the same stream; draw from the stream alone.")
            report.add("the size of the query", "token_dim", np.size(query), task.token_dim, 0)
            mu = measure(law)
            report.add("the dimension of the law", "token_dim", mu.dim, task.token_dim, 0)
            _formulas(report, mu, f"law {i}: ", seed.split(1000 + i))
            _sampling(report, mu, f"law {i}: ", seed.split(2000 + i), 1000)
        targets.append(float(target))
    report.say("targets", bool(np.isfinite(targets).all()), "a target is not finite.")
    report.say("targets vary", len(set(targets)) > 1, f"all of {draws} targets are {targets[0]:g}: there is nothing to learn.")


@helpful
def check(subject: Any, *, samples: int = 4000, seed: Union[Stream, int] = 0) -> Check:
    """Compares the formulas of a measure, tokens [n,d] or a task with each other, and with samples.

    For a measure: Lambda(0) = 0, tilted_mean = grad Lambda and tilted_cov = its Hessian by differences at three tilts,
    mean and second_moment, tilted_cov_times, the bound of sub_gaussian, and ``samples`` samples whose mean, covariance
    and exponential moment must agree within 6 standard errors. For a task: draws are functions of the stream, sizes fit
    token_dim, and the laws of two draws are checked as measures.

    >>> import numpy as np, esscher as es
    >>> class Wrong:
    ...     dim = 1
    ...     def log_mgf(self, a): return float(a @ a) / 2
    ...     def tilted_mean(self, a): return 3 * a
    ...     def tilted_cov(self, a): return np.eye(1)
    ...     def sample(self, stream, n): return stream.normal(n)[:, None]
    >>> found = es.check(Wrong())
    >>> found.ok
    False
    >>> print(found.wrong[1])
    tilted_mean[0] is ..., the gradient of log_mgf at a = [...][0] is ... (a factor of 3).
    """
    stream = as_stream(seed)
    name = getattr(subject, "name", None) or type(subject).__name__
    report = _Report(str(name() if callable(name) else name))
    if isinstance(subject, ContextTask):
        raise ArgumentError(f"check: a {type(subject).__name__} has no formulas of yours; expected a measure or a task of your own")
    if hasattr(subject, "draw"):
        _task(report, subject, stream, 50)
    elif isinstance(subject, Measure) or hasattr(subject, "log_mgf") or hasattr(subject, "__array__") or isinstance(subject, list):
        mu = measure(subject)
        _formulas(report, mu, "", stream)
        _sampling(report, mu, "", stream.split(3), samples)
    else:
        raise ArgumentError(f"check: the subject is {type(subject).__name__}, expected a measure or a task")
    return report.check()
