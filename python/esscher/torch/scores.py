"""Finite prompts of tokens whose scores have a law that can be written down: exact, in plain operations of a graph.

With scores s, tokens f = V(z' - m_a) centred at the limit, phi(t) = E e^(-t e^s) and t = e^u, x = s + u,

    E[T_hat - T]   = L     int  E[f e^(x - e^x)]       phi^(L-1) du
    E|T_hat - T|^2 = L     int  E[|f|^2 e^(2x - e^x)]  phi^(L-1) du
                   + L(L-1) int |E[f e^(x - e^x)]|^2   phi^(L-2) du

A law is a sum over atoms: weights p [J], scores s [J], E[f|s] [J,dv] and E[|f|^2|s] [J]. Those of Gaussian tokens stand at
nodes of the trapezoidal rule, which is exact to rounding here, because everything is analytic in a strip. So is that in u.
"""

from __future__ import annotations

import math
from typing import List, NamedTuple, Tuple

from ..errors import CapabilityError
from .tensors import Tensor, torch

STEP = 0.2  # of u, and the largest of a score; the strip has half width pi/2, so the rule errs by e^(-pi^2/0.2)
NORMAL_STEP = 0.4  # the largest of a normal variable: e^(-2 pi^2/0.4^2)
REACH = 9.0  # deviations; beyond them a normal variable has 1e-19
MOST = 3 * 10**7  # pairs of an atom and a value of u
FLOOR = 1e-13  # of the variance of scores, so that a query of zero has derivatives


class Atoms(NamedTuple):
    """A law of scores, and of the tokens at each of them."""

    p: Tensor  # [J]
    s: Tensor  # [J]
    mean: Tensor  # [J,d], of the token at this score
    spread: Tensor  # [J,d,d] or [1,d,d]: covariance of the token at this score


def gaussian_atoms(m: Tensor, G: Tensor, a: Tensor, L: int) -> Atoms:
    """N(m, G) at tilt a [d]: nodes of the normal variable that the score is.

    Weights e^s carry it by tau, their squares by 2 tau, but none of L tokens is where L times the tail is 1e-18.
    """
    w = G @ a
    tau2 = a @ w + FLOOR
    tau = torch.sqrt(tau2)
    size = float(tau.detach())
    step = min(NORMAL_STEP, STEP / max(size, 1e-300))
    reach = min(REACH + 2 * size, math.sqrt(2 * (math.log(L) + 42.0)))
    xi = torch.arange(-REACH, reach + step, step, dtype=torch.float64)
    p = torch.exp(-0.5 * xi**2)
    spread = G - torch.outer(w, w) / tau2
    return Atoms(p / p.sum(), a @ m + tau * xi, m + torch.outer(xi / tau, w), spread[None])


def token_atoms(tokens: Tensor, a: Tensor) -> Atoms:
    """Tokens [n,d] of equal weights at tilt a [d]."""
    n, d = tokens.shape
    p = torch.full((n,), 1.0 / n, dtype=torch.float64)
    return Atoms(p, tokens @ a, tokens, torch.zeros(1, d, d, dtype=torch.float64))


def joined(parts: List[Tuple[Tensor, Atoms]]) -> Atoms:
    """A mixture, of weights and atoms."""
    p = torch.cat([weight * part.p for weight, part in parts])
    spread = torch.cat([part.spread.expand(len(part.p), -1, -1) for _, part in parts])
    return Atoms(p, torch.cat([part.s for _, part in parts]), torch.cat([part.mean for _, part in parts]), spread)


def _times(s: Tensor, L: int) -> Tensor:
    """Values of u: from where all scores are small to where phi vanishes."""
    low, high = -float(s.detach().max()) - math.log(L) - 40.0, -float(s.detach().min()) + 4.0
    return torch.arange(low, high + STEP, STEP, dtype=torch.float64)


def _parts(atoms: Atoms, L: int) -> Tuple[Tensor, Tensor, Tensor]:
    """p e^(x - e^x) [u,J], p e^(2x - e^x) [u,J] and log phi [u]."""
    u = _times(atoms.s, L)
    if len(u) * len(atoms.s) > MOST:
        raise CapabilityError(
            f"mean_square_error: scores reach from {float(atoms.s.detach().min()):.4g} to {float(atoms.s.detach().max()):.4g}, too "
            "sharp for tokens of tensors; a measure of esscher as a constant has no such bound"
        )
    x = (atoms.s + u[:, None]).clamp(max=50.0)
    t = torch.exp(x)
    first = atoms.p * torch.exp(x - t)
    second = atoms.p * torch.exp(2 * x - t)
    rest = (atoms.p * -torch.expm1(-t)).sum(-1)
    phi = (atoms.p * torch.exp(-t)).sum(-1).clamp(min=1e-300)
    log_phi = torch.where(rest < 0.5, torch.log1p(-rest.clamp(max=0.75)), torch.log(phi))
    return first, second, log_phi


def atoms_output(atoms: Atoms, L: int) -> Tensor:
    """E sum omega z', the mean output [d] of the identity."""
    first, _, log_phi = _parts(atoms, L)
    return L * STEP * (torch.exp((L - 1) * log_phi) @ (first @ atoms.mean))


def atoms_error(atoms: Atoms, V: Tensor, limit: Tensor, L: int) -> Tensor:
    """E|T_hat - T|^2 for tokens centred at the limit m_a [d]."""
    centred = atoms.mean - limit
    f = centred @ V.T
    q = (f * f).sum(-1) + torch.einsum("id,jde,ie->j", V, atoms.spread, V)
    first, second, log_phi = _parts(atoms, L)
    value = L * STEP * (torch.exp((L - 1) * log_phi) @ (second @ q))
    if L > 1:
        cross = ((first @ f) ** 2).sum(-1)
        value = value + L * (L - 1) * STEP * (torch.exp((L - 2) * log_phi) @ cross)
    return value
