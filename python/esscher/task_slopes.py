"""Derivatives of a risk in what linear regression is made of, where they have no formula: several heads, features that are
not Gaussian, prompts that are drawn.

They are averages over drawn prompts. With e the error of a prediction without noise, tilts a_h = U_h (x,0) and means m_h
and covariances C_h of the tilted prompt, the derivatives of e^2/2 are da_h = e C_h r_h and dr_h = e m_h (linear attention:
S for C_h and S a_h for m_h, S = sum z z'/L). Tokens that move by X z act as tilts that move by X'a_h and outputs by X'r_h, so

    d = <W, X>,   W = sum_h a_h da_h' + r_h dr_h'.

A covariance S = F F moves features by M = dF F^-1, F symmetric, so X = [I; w'] M [I 0]; the variance of w moves labels by
w'x/(2 s^2). Noise enters by Stein's identity, dR/dsig2 = E sum_l d^2/dy_l^2 e^2/4, which also holds without noise.
"""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

import numpy as np

from .random import Stream
from .types import Array, Length

MOST = 2**25  # numbers of all prompts of one average
LEAST = 64  # prompts
CHUNK = 2**21  # numbers of the prompts that are in memory at once

Slopes = List[Any]  # noise_variance, task_variance, prompt_cov [d,d], query_cov [d,d]


def prompts_within_reach(length: Length, dim: int, draws: int) -> int:
    """How many prompts an average takes; 0 if they are too long to be drawn."""
    if length == float("inf"):
        return draws
    most = int(MOST // (float(length) * dim))
    return min(draws, most) if most >= LEAST else 0


def task_slopes(
    task: Any, heads: Sequence[Any], kind: str, length: Length, draws: int, stream: Stream
) -> Optional[Slopes]:
    """The derivatives, averaged over prompts of the stream; None where they are beyond reach.

    That is softmax at infinite length on features that are not Gaussian, and prompts of more than half a million numbers.
    """
    infinite = length == float("inf")
    count = prompts_within_reach(length, task.dim + 1, draws)
    if count == 0 or (infinite and kind == "softmax" and task.features != "gaussian"):
        return None
    sums = _Sums(task, np.stack([head.U for head in heads]), np.stack([head.r for head in heads]))
    n = 1 if infinite else int(length)
    chunk = max(1, CHUNK // (n * (task.dim + 1)))
    for first in range(0, count, chunk):
        drawn = [task.draw(stream.split(i), n) for i in range(first, min(first + chunk, count))]
        w, x = np.stack([draw.w for draw in drawn]), np.stack([draw.x for draw in drawn])
        if infinite:
            sums.add(w, x, *_limits(task, w, *sums.at(x)))
        else:
            of_prompts = _softmax if kind == "softmax" else _linear
            sums.add(w, x, *of_prompts(np.stack([draw.prompt for draw in drawn]), *sums.at(x)))
    return sums.slopes(count)


# Answers of prompts [n]: predictions [n], the m_h and C_h r_h [n,H,D], the sums over tokens of (dp/dy_l)^2 and of d^2p/dy_l^2.
Answers = Tuple[Array, Array, Array, Array, Array]


def _softmax(Z: Array, a: Array, r: Array) -> Answers:
    """Of prompts Z [n,L,D] at tilts a [n,H,D]."""
    scores = np.einsum("nld,nhd->nhl", Z, a)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    means = np.einsum("nhl,nld->nhd", weights, Z)
    values = np.einsum("nld,hd->nhl", Z, r)
    said = np.einsum("nhl,nhl->nh", weights, values)
    apart = values - said[..., None]
    products = np.einsum("nhl,nld->nhd", weights * apart, Z)  # sum omega (v - p) z = C r
    ae, re = a[..., -1:], r[:, -1][None, :, None]
    moved = re + ae * apart
    first = weights * moved  # dp_h/dy_l
    second = ae * (weights * (1 - weights) * moved + weights * (re - first))
    return said.sum(-1), means, products, (first.sum(1) ** 2).sum(-1), second.sum((1, 2))


def _linear(Z: Array, a: Array, r: Array) -> Answers:
    n = Z.shape[1]
    scores, values = np.einsum("nld,nhd->nhl", Z, a), np.einsum("nld,hd->nhl", Z, r)
    means, products = (np.einsum("nhl,nld->nhd", part, Z) / n for part in (scores, values))
    first = (r[:, -1][None, :, None] * scores + a[..., -1:] * values).sum(1) / n
    second = 2 * (r[:, -1] * a[..., -1]).sum(-1)  # of each of L tokens 1/L
    return np.einsum("nhd,hd->n", means, r), means, products, (first**2).sum(-1), second


def _limits(task: Any, w: Array, a: Array, r: Array) -> Answers:
    """Of infinite prompts, where the covariance of the tokens is all that counts; its noise moves the label's own entry."""
    J = np.concatenate([np.broadcast_to(np.eye(task.dim), (len(w), task.dim, task.dim)), w[:, None, :]], 1)
    G = J @ task.prompt_cov @ J.transpose(0, 2, 1)
    G[:, -1, -1] += task.noise_variance
    means, products = np.einsum("nde,nhe->nhd", G, a), np.einsum("nde,he->nhd", G, r)
    second = 2 * (r[:, -1] * a[..., -1]).sum(-1)
    return np.einsum("nhd,hd->n", means, r), means, products, np.zeros(len(w)), second


class _Sums:
    """Sums over prompts of what the derivatives are made of."""

    def __init__(self, task: Any, U: Array, r: Array) -> None:
        d = task.dim
        self.task, self.U, self.r = task, U, r
        self.noise = self.variance = 0.0
        self.prompt, self.query = np.zeros((d, d)), np.zeros((d, d))

    def at(self, x: Array) -> Tuple[Array, Array]:
        """Tilts [n,H,D] of queries x [n,d], and r."""
        return np.einsum("hde,ne->nhd", self.U[:, :, :-1], x), self.r

    def add(self, w: Array, x: Array, said: Array, means: Array, products: Array, squares: Array, second: Array) -> None:
        """Answers of tasks w [n,d] at queries x [n,d]."""
        a, r = self.at(x)
        label = np.einsum("nd,nd->n", w, x)
        e = said - label
        by_a, by_r = e[:, None, None] * products, e[:, None, None] * means
        W = np.einsum("nhd,nhe->nde", a, by_a) + np.einsum("hd,nhe->nde", r, by_r)
        upper, lower = W[:, :-1, :-1], W[:, -1, :-1]
        self.prompt += upper.sum(0) + np.einsum("nd,ne->de", w, lower)
        to_x = np.einsum("hde,nhd->ne", self.U[:, :, :-1], by_a) - e[:, None] * w
        self.query += np.einsum("nd,ne->de", to_x, x)
        self.variance += float(np.sum(w * lower) - np.sum(e * label))
        self.noise += 0.5 * float(np.sum(squares + e * second))

    def slopes(self, count: int) -> Slopes:
        """The averages in the parameters; nan in those whose variance vanishes."""
        task = self.task
        noise = self.noise / count + (0.5 if task.query_noise else 0.0)
        variance = self.variance / (2 * task.task_variance * count) if task.task_variance > 0 else np.nan
        covs = [_in_covariance(given, sums / count)
                for given, sums in ((task.prompt_cov, self.prompt), (task.query_cov, self.query))]
        return [noise, variance, *covs]


def _in_covariance(S: Array, P: Array) -> Array:
    """The symmetric derivative in S = F F of what changes by <P, dF F^-1>; nan where S is singular."""
    values, E = np.linalg.eigh(S)
    if values[0] <= 1e-12 * max(values[-1], 1e-300):
        return np.full(S.shape, np.nan)
    f = np.sqrt(values)
    found: Array = E @ ((E.T @ P @ E) / (np.add.outer(f, f) * f)) @ E.T
    return (found + found.T) / 2
