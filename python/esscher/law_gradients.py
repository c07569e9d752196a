"""Gradients of finite prompts for every law and every ``Prompt`` that the exact engine serves.

A number f of a finite prompt depends on U z only through the tilt a, and f(a, V) is known exactly. Then

    dU = da z'        dz = U' da        dV: <g, E T_hat> is linear in V, E|T_hat - T|^2 = tr(V M V') is a form

and M [d,d] follows from the errors of single rows and of their sums. da is a central difference of order 8 of the exact
values, which hold about 1e-10. The law itself is moved by its mean m and stretched about it, z' -> m + (I + dB)(z' - m).
A stretched law has f(B'a, V B), so that

    d f = <W, dB>,   W = a da' + V' dV - dm m'        with the symmetric dB that turns nothing: dB G + G dB = dG.

In eigenvectors of G, of eigenvalues l, the derivative in G is (W + W')_ij / 2 (l_i + l_j). For Gaussian tokens these are
the derivatives in mean and covariance, for which gradients.py has formulas.
"""

from __future__ import annotations

from typing import Any, Callable, Optional

import numpy as np

from . import _esscher
from .attention import Attention
from .differences import along
from .errors import DomainError
from .measures import measure as as_measure
from .prompts import Prompt
from .random import Stream
from .types import Array, Length

# Steps in deviations of the scores. At this one differences lose two digits of the exact values, and the term of order 8,
# which grows with the eighth power of it, is below that: it was 1e-9 at three times the step, 1e-6 near the end of the
# domain of Laplace tokens.
STEP = 0.01
SINGULAR = 1e-12  # of the eigenvalues of a covariance


class Subject:
    """A law of tokens or a Prompt, a head and a query, with the tilt free of them: ``head(a, V)`` has the tilt a."""

    def __init__(self, law: Any, attention: Attention, z: Array) -> None:
        self.prompt: Optional[Prompt] = law if isinstance(law, Prompt) else None
        self.law = law if self.prompt is not None else as_measure(law)
        self.attention, self.z = attention, z
        self.a: Array = attention.U @ z
        self.reads_query = bool(self.prompt is not None and self.prompt.include_query)

    def at(self, a: Array, V: Array, f: Callable[[Any, Any, Array], Any]) -> Any:
        """f(law, head, query) of a head with this tilt. The query is a itself unless it is a token too."""
        if not self.reads_query:
            return f(self.law, _esscher.attention_uv(np.eye(len(a)), V), a)
        U = np.outer(a, self.z) / max(float(self.z @ self.z), 1e-300)
        return f(self.law, _esscher.attention_uv(U, V), self.z)

    def spread(self) -> Array:
        """Deviations of the tokens [d] at the tilt, for the size of steps."""
        laws = [self.law] if self.prompt is None else [as_measure(group.measure) for group in self.prompt.groups]
        parts = [np.zeros(len(self.a))] + [np.diag(_covariance(mu, self.a)) for mu in laws]
        points = [np.zeros((0, len(self.a)))] + [np.atleast_2d(mu.mean) for mu in laws]
        if self.prompt is not None and self.prompt.given is not None:
            points.append(np.atleast_2d(self.prompt.given))
        if self.reads_query:
            points.append(self.z[None, :])
        places = np.concatenate(points)
        found: Array = np.sqrt(np.max(parts, axis=0) + np.ptp(places, axis=0) ** 2)
        return found


def _covariance(mu: Any, a: Array) -> Array:
    try:
        return np.asarray(mu.tilted_cov(a))
    except DomainError:
        return np.asarray(mu.tilted_cov(np.zeros_like(a)))


def slopes(f: Callable[[Array], Any], a: Array, spread: Array) -> Any:
    """The derivatives [d,..] of f at a, one coordinate after another; steps shrink where f has no value."""
    found = []
    for i, size in enumerate(spread):
        e = np.eye(len(a))[i]
        step = STEP / max(float(size), 1e-3)
        for attempt in range(4):
            try:
                found.append(np.asarray(along(lambda h: f(a + h * e), step)))
                break
            except DomainError:
                if attempt == 3:
                    raise
                step /= 8
    return np.stack(found)


def error_form(subject: Subject, length: Length) -> Array:
    """M [d,d] with E|T_hat - T|^2 = tr(V M V')."""
    d = len(subject.a)

    def error(row: Array) -> float:
        return float(subject.at(subject.a, row[None, :], _error(length)))

    unit = np.eye(d)
    diagonal = np.array([error(unit[i]) for i in range(d)])
    M = np.diag(diagonal)
    for i in range(d):
        for j in range(i):
            M[i, j] = M[j, i] = (error(unit[i] + unit[j]) - diagonal[i] - diagonal[j]) / 2
    return M


def _error(length: Length) -> Callable[[Any, Any, Array], float]:
    return lambda law, head, z: _esscher.mean_square_error("exact", "output", law, head, z, length, 2, Stream(0))[0]


def _output(length: Length) -> Callable[[Any, Any, Array], Array]:
    return lambda law, head, z: _esscher.expected_output(law, head, z, length)


def _scores(length: Length) -> Callable[[Any, Any, Array], Array]:
    return lambda law, head, z: np.array(_esscher.score_functions(law, head, z, length, None)[:5])


class Pulled:
    """Derivatives of one number: in the tilt [d], in V, in the query beside the tilt [d], in mean and covariance."""

    def __init__(self, subject: Subject, a: Array, V: Array, z: Optional[Array], shift: Array) -> None:
        self.a, self.V, self.z = a, V, z
        self.mean: Optional[Array] = None
        self.cov: Optional[Array] = None
        if subject.prompt is not None:
            return
        mu = subject.law
        self.mean = shift
        W = np.outer(subject.a, a) + subject.attention.V.T @ V - np.outer(shift, mu.mean)
        values, E = np.linalg.eigh(np.asarray(mu.tilted_cov(np.zeros_like(a))))
        if values[0] > SINGULAR * values[-1]:
            self.cov = E @ ((E.T @ (W + W.T) @ E) / (2 * np.add.outer(values, values))) @ E.T


def _query(subject: Subject, V: Array, f: Callable[[Any, Any, Array], Any]) -> Optional[Array]:
    """The derivative in z of a prompt that holds its query; None where z acts through the tilt alone."""
    if not subject.reads_query:
        return None
    head = _esscher.attention_uv(subject.attention.U, V)
    scale = np.maximum(subject.spread() * np.linalg.norm(subject.attention.U, 2), 1.0)
    found: Array = slopes(lambda z: f(subject.law, head, z), subject.z, scale)
    return found


def error_slopes(subject: Subject, length: Length) -> Pulled:
    """Of E|T_hat - T|^2."""
    V, f = subject.attention.V, _error(length)
    a = slopes(lambda x: subject.at(x, V, f), subject.a, subject.spread())
    return Pulled(subject, a, 2 * V @ error_form(subject, length), _query(subject, V, f), np.zeros_like(a))


def output_slopes(subject: Subject, length: Length, cotangent: Array) -> Pulled:
    """Of <cotangent, E[T_hat]>."""
    V, f = subject.attention.V, _output(length)
    row = (cotangent @ V)[None, :]
    a = slopes(lambda x: subject.at(x, row, f)[0], subject.a, subject.spread())
    mean = subject.at(subject.a, np.eye(len(a)), f)
    z = _query(subject, row, lambda law, head, z: f(law, head, z)[0])
    return Pulled(subject, a, np.outer(cotangent, mean), z, row[0])


def score_slopes(subject: Subject, length: Length) -> "list[Pulled]":
    """Of H, M1, M2c, the free energy and the entropy of the scores."""
    V = np.eye(len(subject.a))[:1]
    f = _scores(length)
    with np.errstate(invalid="ignore"):  # M2c may be infinite
        by_a = slopes(lambda x: subject.at(x, V, f), subject.a, subject.spread())
        by_z = _query(subject, V, f)
    zero, shifts = np.zeros_like(subject.attention.V), (0.0, 1.0, 0.0, 1.0, 0.0)
    return [
        Pulled(subject, by_a[:, i], zero, None if by_z is None else by_z[:, i], shift * subject.a)
        for i, shift in enumerate(shifts)
    ]
