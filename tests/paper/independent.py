#!/usr/bin/env python3
"""The values that the verdicts of `esscher paper` are compared with, by NumPy and none of our code.

    /usr/bin/python3 tests/paper/independent.py --write     esscher/paper/independent_values.inc again (minutes)
    /usr/bin/python3 tests/paper/independent.py --write "rademacher gap"    only the lines that begin so
    /usr/bin/python3 tests/paper/independent.py --check     a few of its lines again, and the brute force (seconds)

Averages over prompts are the one-dimensional integrals of docs/maths/concentration.md, which hold for iid
tokens of any law: Gaussian tokens on a grid of scores, +-1 tokens as atoms. Averages over queries are tensor
rules. Ends of gradient flows are minima of the exact risk, found by Newton's method, because no end of a flow
depends on its path there. Each value is computed at two resolutions; their difference is its error.
--check compares the integrals with all prompts of two and three +-1 tokens, and with simulated prompts.
"""
import argparse
import itertools
import math
import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
VALUES = os.path.join(HERE, "..", "..", "esscher", "paper", "independent_values.inc")


# ---- averages over prompts of iid tokens

def partitions(items):
    """All set partitions of a list."""
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for smaller in partitions(rest):
        yield [[first]] + smaller
        for i, block in enumerate(smaller):
            yield smaller[:i] + [[first] + block] + smaller[i + 1:]


class Prompt:
    """L iid tokens, whose scores s take the values s_j with weights p_j, softmax weights omega.

    average([(k, f), ..]) = E prod_i sum_l omega_l^{k_i} f_i(token_l); f is given on the values."""

    def __init__(self, scores, weights, L, fine=1.0):
        s = np.asarray(scores, float)
        self.p, self.L = np.asarray(weights, float), L
        deviation = math.sqrt(max(self.p @ (s - self.p @ s) ** 2, 1e-12))
        reach = min(math.log(L) + deviation**2 / 2, deviation * (math.sqrt(2 * math.log(L + 1)) + 10))
        top = max(-s.min(), 0) + 7
        self.step = 0.25 / fine
        u = np.arange(-reach - abs(self.p @ s) - 40, top + self.step, self.step)
        self.x = u[:, None] + s[None, :]
        self.decay = np.exp(np.minimum(self.x, 700))
        with np.errstate(divide="ignore"):
            self.log_phi = np.log1p(-np.minimum(-np.expm1(-self.decay) @ self.p, 1.0))
        self.cache = {}

    def moment(self, k, f):
        """E[y^k e^-y f], y = e^{u + s}, at each u."""
        if k not in self.cache:
            self.cache[k] = np.exp(np.maximum(k * self.x - self.decay, -745))
        return self.cache[k] @ (self.p * f)

    def average(self, factors):
        n, total = sum(k for k, _ in factors), 0.0
        for blocks in partitions(list(range(len(factors)))):
            p = len(blocks)
            if p > self.L:
                continue
            term = np.exp(np.maximum((self.L - p) * self.log_phi, -745)) if self.L > p else 1.0  # phi^{L-p}
            for block in blocks:
                f = np.ones_like(self.p)
                for i in block:
                    f = f * factors[i][1]
                term = term * self.moment(sum(factors[i][0] for i in block), f)
            ways = 1.0
            for i in range(p):
                ways *= self.L - i
            total += ways * self.step * np.sum(term)
        return total / math.factorial(n - 1)


def gaussian_scores(tau, fine=1.0):
    """Values and weights of N(0, tau^2): the trapezoidal rule, exact to rounding at this step."""
    step = min(0.3, 0.4 * tau) / fine
    s = np.arange(0, 9 * tau + min(4 * tau**2, 45) + step, step)
    s = np.concatenate((-s[:0:-1], s))
    p = np.exp(-s * s / (2 * tau * tau))
    keep = p > 0
    return s[keep], p[keep] / p.sum()


def output_functions(L, tau, fine=1.0):
    """H = E sum omega^2 and M2c/tau^2, M2c = E (sum omega s - tau^2)^2."""
    if tau < 1e-3:
        return 1 / L, 1 / L
    s, p = gaussian_scores(tau, fine)
    prompt = Prompt(s, p, L, fine)
    one, c = np.ones_like(s), s - tau * tau
    return prompt.average([(2, one)]), prompt.average([(1, c), (1, c)]) / tau**2


def covariance_functions(L, tau, fine=1.0):
    """Averages of v = sum omega (s - S)^2 - tau^2, h = sum omega^2, q = sum omega^2 (s - S)^2."""
    s, p = gaussian_scores(tau, fine)
    prompt = Prompt(s, p, L, fine)
    one, c = np.ones_like(s), s - tau * tau
    f = c * c - tau * tau
    E = prompt.average
    return {"vv": E([(1, f), (1, f)]) - 2 * E([(1, f), (1, c), (1, c)]) + E([(1, c)] * 4),
            "q": E([(2, c * c)]) - 2 * E([(2, c), (1, c)]) + E([(2, one), (1, c), (1, c)]),
            "vh": E([(1, f), (2, one)]) - E([(2, one), (1, c), (1, c)]),
            "hh": E([(2, one), (2, one)]), "h": E([(2, one)]), "p3": E([(3, one)])}


class Table:
    """Even functions of tau up to `top` as Chebyshev series in arsinh tau, in which they are smooth on the scale
    one: values and slopes. compute(tau) gives the functions; all of them are interpolated by their logarithm,
    except those whose place is in `signed`."""

    def __init__(self, compute, top, nodes, signed=()):
        self.top = math.asinh(top)
        half = self.top * np.cos(np.pi * (np.arange(nodes) + 0.5) / (2 * nodes))
        values = np.array([compute(math.sinh(y)) for y in half]).T
        x = np.concatenate((half, -half[::-1])) / self.top
        self.series = []
        for i, v in enumerate(values):
            v = v if i in signed else np.log(v)
            c = np.polynomial.chebyshev.chebfit(x, np.concatenate((v, v[::-1])), 2 * nodes - 1)
            self.series.append((i in signed, c))

    def __call__(self, tau):
        return [value for value, _ in self.with_slopes(tau)]

    def with_slopes(self, tau):
        chebyshev = np.polynomial.chebyshev
        x, out = np.arcsinh(tau) / self.top, []
        for signed, c in self.series:
            value = chebyshev.chebval(x, c)
            slope = chebyshev.chebval(x, chebyshev.chebder(c)) / (self.top * np.sqrt(1 + tau * tau))
            out.append((value, slope) if signed else (np.exp(value), np.exp(value) * slope))
        return out


# ---- Propositions 3.1 and 3.4: D(L) averaged over queries N(0, I)

REACH = 9  # deviations of a query: the weight beyond is 1e-17, what it meets grows like a power


def quarter_disc(step):
    """|g| <= REACH, g >= 0, in the plane with the weights of N(0, I) on the four quarters."""
    x = np.arange(0, REACH, step)
    w = np.exp(-x * x / 2) * np.where(x == 0, 1, 2)
    w /= w.sum()
    g1, g2 = np.repeat(x, x.size), np.tile(x, x.size)
    inside = np.hypot(g1, g2) <= REACH
    return g1[inside], g2[inside], np.outer(w, w).ravel()[inside]


def decay(L, sigmas, fine=1.0):
    """{(metric, sigma): D(L)} of the layer of both propositions. U is half a rotation, so a = g/2 with
    g ~ N(0, I); G = sigma^2 diag(1, 1/2); V'V = 5/4 I."""
    g1, g2, weight = quarter_disc(0.15 / fine)
    table = Table(lambda tau: output_functions(L, tau, fine), max(sigmas) / 2 * REACH, int(32 * fine))
    out = {}
    for sigma in sigmas:
        k1, k2 = sigma**2, sigma**2 / 2
        t1, t2 = k1 * g1 / 2, k2 * g2 / 2  # G a
        tau2 = np.maximum((t1 * g1 + t2 * g2) / 2, 1e-12)
        H, m = table(np.sqrt(tau2))
        along = (t1 * t1 + t2 * t2) / tau2
        D = along * m + (k1 + k2 - along) * H
        out["output", sigma] = 1.25 * float(weight @ D)
        out["grad_v", sigma] = 2 * float(weight @ D)
    return out


def gradient_decay(L, sigma, fine=1.0):
    """D(L) of the gradient in U: E |z|^2 E|V (Chat - G)|^2 (docs/maths/concentration.md)."""
    g1, g2, weight = quarter_disc(0.15 / fine)

    def functions(tau):
        u = covariance_functions(L, tau, fine)
        return (u["vv"] / tau**4, u["q"] / tau**2, u["vh"] / (tau**2 * u["h"]), u["hh"],
                u["h"] - 2 * u["p3"] + u["hh"], u["h"])

    table = Table(functions, sigma / 2 * REACH, int(28 * fine), signed=(2,))
    k = sigma**2 * np.array([1, 0.5])
    tau2 = np.maximum((k[0] * g1**2 + k[1] * g2**2) / 4, 1e-12)
    vv, q, vh, hh, n2, h = table(np.sqrt(tau2))
    vv, q, vh = vv * tau2**2, q * tau2, vh * tau2 * h
    b1, b2 = k[0] * g1 / 2 / tau2, k[1] * g2 / 2 / tau2
    R11, R12, R22 = k[0] - b1 * b1 * tau2, -b1 * b2 * tau2, k[1] - b2 * b2 * tau2
    bb, trace, bRb = b1 * b1 + b2 * b2, R11 + R22, b1 * b1 * R11 + 2 * b1 * b2 * R12 + b2 * b2 * R22
    RR = R11**2 + 2 * R12**2 + R22**2
    error = 1.25 * (bb * bb * vv + q * (2 * bb * trace + 2 * bRb) - 2 * vh * bRb + hh * RR
                    + n2 * (trace**2 + RR))
    return float(weight @ ((g1**2 + g2**2) * error))


# ---- in-context linear regression, U = [[A, 0], [0, 0]], r = (0, b)

def tilted_moment(p, q, sigma, fine=1.0):
    """E |x|^p |z|^q, z ~ N(0, I), x ~ N(G U z, G): Assumption 3.3 in the layer of gradient_decay. The average of a
    polynomial of degree p + q in four normals, by a product of Gauss-Hermite rules that is exact for it."""
    g, w = np.polynomial.hermite_e.hermegauss(12 if fine == 1.0 else 10)
    w = w / w.sum()
    G, U = np.array([sigma**2, sigma**2 / 2]), 0.5 * np.array([[math.cos(0.6), -math.sin(0.6)],
                                                               [math.sin(0.6), math.cos(0.6)]])
    z = np.stack(np.meshgrid(g, g, indexing="ij"), -1).reshape(-1, 2)
    weight = np.outer(w, w).ravel()
    x = (z @ U.T * G)[:, None, :] + (np.sqrt(G) * z)[None, :, :]
    return float(weight @ ((x**2).sum(-1) ** (p // 2) @ weight * (z**2).sum(-1) ** (q // 2)))


def power_covariance(d, rho=0.5):
    return rho ** np.abs(np.subtract.outer(np.arange(d), np.arange(d)))


def released_covariance(d):
    C = np.linalg.cholesky(power_covariance(d))
    return C @ C @ (C @ C).T


class Regression:
    """The exact risk of softmax attention at length L. Given the query x, with u = S A x, tau^2 = (Ax)'u,
    e = b u - x, K = (M2c/tau^2 - H)/tau^2 and Q = s2 tr S + sig2, the average over tasks and prompts of the
    squared error is

        s2 |e|^2 - 2 s2 b (u'e) H + s2 b^2 |u|^2 K + b^2 Q H        (+ sig2 if the target is noisy).

    If the covariances of prompt and query commute, A is diagonal in their basis and only |x_i| matters."""

    def __init__(self, prompt_cov, query_cov, L, s2=1.0, sig2=0.0, target_noise=0.0, diagonal=True, fine=1.0):
        self.d, self.s2, self.L = len(prompt_cov), s2, L
        self.floor, self.diagonal = target_noise / 2, diagonal
        S, Sq = np.asarray(prompt_cov), np.asarray(query_cov)
        if diagonal:
            values, basis = np.linalg.eigh(S)
            S, Sq = np.diag(values), np.diag(np.diag(basis.T @ Sq @ basis))
        self.S, self.Q = S, s2 * np.trace(S) + sig2
        self.noise = sig2
        x, w = self.axis(fine)
        grids = np.meshgrid(*[x] * self.d, indexing="ij")
        weights = np.meshgrid(*[w] * self.d, indexing="ij")
        xi = np.stack([g.ravel() for g in grids], 1)
        self.w = np.prod([g.ravel() for g in weights], 0)
        self.x = xi @ np.linalg.cholesky(Sq).T
        self.table = None
        self.fine = fine

    def axis(self, fine):
        if self.d > 3:  # Gauss and Hermite; else trapezoids
            x, w = np.polynomial.hermite_e.hermegauss(2 * int(9 * fine))
            keep = x > 0
            return x[keep], 2 * w[keep] / w.sum()
        x = np.arange(0, 8.5, 0.45 / fine)
        w = np.exp(-x * x / 2) * np.where(x == 0, 1, 2)
        if not self.diagonal:
            x, w = np.concatenate((-x[:0:-1], x)), np.concatenate((w[:0:-1] / 2, w[:1], w[1:] / 2))
        return x, w / w.sum()

    def functions(self, tau):
        if self.table is None or tau.max() > self.top:
            self.top = 2.2 * tau.max()

            def compute(t):
                H, m = output_functions(self.L, t, self.fine)
                return H, (m - H) / t**2

            self.table = Table(compute, self.top, int(24 * self.fine))
        return self.table.with_slopes(tau)

    def unpack(self, p):
        A = np.diag(p[:-1]) if self.diagonal else p[:-1].reshape(self.d, self.d)
        return A, p[-1]

    def risk(self, p):
        """Risk and gradient at p = (A, b)."""
        A, b = self.unpack(p)
        x, s2 = self.x, self.s2
        Ax = x @ A.T
        u = Ax @ self.S
        tau = np.sqrt(np.maximum(np.sum(Ax * u, 1), 1e-12))
        (H, dH), (K, dK) = self.functions(tau)
        e = b * u - x
        ue, uu = np.sum(u * e, 1), np.sum(u * u, 1)
        value = s2 * np.sum(e * e, 1) - 2 * s2 * b * ue * H + s2 * b * b * uu * K + b * b * self.Q * H
        by_u = 2 * s2 * b * (e * (1 - H)[:, None] + b * u * (K - H)[:, None])
        by_b = 2 * s2 * (ue - H * (ue + b * uu) + b * uu * K) + 2 * b * self.Q * H
        by_tau = -2 * s2 * b * ue * dH + s2 * b * b * uu * dK + b * b * self.Q * dH
        slope = (by_u @ self.S + (by_tau / tau)[:, None] * u) * self.w[:, None]
        by_A = slope.T @ x
        by_A = np.diag(by_A) if self.diagonal else by_A.ravel()
        return self.w @ value / 2 + self.floor, np.append(by_A, self.w @ by_b) / 2

    def start(self):
        G = (1 + 1 / self.L) * self.S + (np.trace(self.S) + self.noise / self.s2) / self.L * np.eye(self.d)
        inverse = np.linalg.inv(G)
        b = 1.3 * np.sum(inverse * inverse) ** 0.25
        A = inverse / b
        return np.append(np.diag(A) if self.diagonal else A.ravel(), b)

    def minimum(self, p=None, tolerance=1e-9):
        """Where a gradient flow ends: Newton's method, damped where it would not descend."""
        p = self.start() if p is None else p
        value, g = self.risk(p)
        damping = 0.0
        for _ in range(40):
            if np.linalg.norm(g) < tolerance / min(self.L, 1e3):
                break
            h = 1e-5 * np.maximum(np.abs(p), 0.1)
            J = np.array([(self.risk(p + dp)[1] - self.risk(p - dp)[1]) / (2 * dp.sum()) for dp in np.diag(h)])
            J = (J + J.T) / 2
            smallest = np.linalg.eigvalsh(J)[0]
            damping = max(damping, 1e-3 - smallest if smallest <= 0 else 0)
            while True:
                step = np.linalg.solve(J + damping * np.eye(len(p)), -g)
                step *= min(1, 0.3 * np.linalg.norm(p) / np.linalg.norm(step))
                new, gradient = self.risk(p + step)
                if new <= value + 1e-15 or np.linalg.norm(step) < 1e-10:
                    break
                damping = max(4 * damping, 1e-6)
            p, value, g, damping = p + step, new, gradient, damping / 8 if damping > 1e-9 else 0.0
        return p, value


def linear_minimum(prompt_cov, query_cov, L, s2=1.0, sig2=0.0, target_noise=0.0):
    """The smallest risk of linear attention, W = b A. With the sample covariance C of the prompt the prediction
    is w'C W x plus noise of variance sig2 (Wx)'C (Wx)/L; the average of C W x x' W' C is Wick's formula."""
    S, Sq, d = np.asarray(prompt_cov), np.asarray(query_cov), len(prompt_cov)
    W = np.linalg.inv((1 + 1 / L) * S + (np.trace(S) + sig2 / s2) / L * np.eye(d))
    X = W @ Sq @ W.T
    second = S @ X @ S + (S @ X @ S + np.trace(X @ S) * S) / L  # E C X C
    error = np.trace(second) - 2 * np.trace(S @ W @ Sq) + np.trace(Sq)
    return (s2 * error + sig2 * np.trace(X @ S) / L) / 2 + target_noise / 2


def limit_constant(prompt_cov, query_cov, s2=1.0, sig2=0.0):
    """lim L (R_L - R_inf) at the ends of softmax flows: b A = S^-1, b the best of the valley, e^{tau^2} averaged
    over x ~ N(0, Sq) in closed form, tau^2 = x'S^-1 x / b^2."""
    S, Sq = np.asarray(prompt_cov), np.asarray(query_cov)
    R = np.linalg.cholesky(Sq)
    T, Q = R.T @ np.linalg.inv(S) @ R, s2 * np.trace(S) + sig2
    best = math.inf
    for b2 in 2 * np.linalg.eigvalsh(T)[-1] * np.exp(np.linspace(1e-3, 4, 40001)):
        M = np.linalg.inv(np.eye(len(S)) - 2 * T / b2)
        best = min(best, 0.5 * math.sqrt(np.linalg.det(M)) * (s2 * np.trace(R @ M @ R.T) + b2 * Q))
    return best


# ---- +-1 tokens: four atoms in the plane

ATOMS = np.array(list(itertools.product((-1.0, 1.0), repeat=2)))


def coin_decay(L, fine=1.0):
    """D(L) of output and gradients on +-1 tokens, the same layer and queries."""
    g1, g2, weight = quarter_disc(0.45 / fine)
    out = {"output": 0.0, "grad_v": 0.0, "grad_u": 0.0}
    for x, y, w in zip(g1, g2, weight):
        if w < 1e-13:
            continue
        a = np.array([x, y]) / 2
        prompt = Prompt(ATOMS @ a, np.full(4, 0.25), L, fine)
        c = ATOMS - np.tanh(a)
        mean = sum(prompt.average([(1, c[:, i])] * 2) for i in range(2))
        out["output"] += w * 1.25 * mean
        out["grad_v"] += w * 2 * mean
        covariance = 0.0
        for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
            f = c[:, i] * c[:, j] - (1 - math.tanh(a[i]) ** 2 if i == j else 0.0)
            Ci, Cj = (1, c[:, i]), (1, c[:, j])
            covariance += (prompt.average([(1, f), (1, f)]) - 2 * prompt.average([(1, f), Ci, Cj])
                           + prompt.average([Ci, Cj, Ci, Cj]))
        out["grad_u"] += w * 1.25 * (x * x + y * y) * covariance
    return out


class CoinRegression:
    """Regression on features S^{1/2} xi, xi = +-1: given the query x, the average over tasks and labels of the
    squared error is s2 |b xbar - x|^2 + b^2 sig2 sum omega^2, averaged over prompts of 2^d atoms."""

    def __init__(self, cov, L, sig2, fine=1.0):
        values, basis = np.linalg.eigh(cov)
        root = basis @ np.diag(np.sqrt(values)) @ basis.T
        self.d, self.L, self.sig2, self.fine = len(cov), L, sig2, fine
        self.atoms = np.array(list(itertools.product((-1.0, 1.0), repeat=self.d))) @ root

    def risk(self, A, b):
        n = len(self.atoms)
        total = 0.0
        for x in self.atoms[: n // 2]:  # the others by symmetry
            scores = self.atoms @ A @ x
            prompt = Prompt(scores, np.full(n, 1 / n), self.L, self.fine)
            for i in range(self.d):
                error = b * self.atoms[:, i] - x[i]
                total += prompt.average([(1, error), (1, error)])
            total += b * b * self.sig2 * prompt.average([(2, np.ones(n))])
        return total / n

    def minimum(self):
        """The smallest risk, from the balanced start: A stays symmetric with equal diagonal (d = 2), so it is
        A = p I + q (1 - I). Newton's method by differences."""
        assert self.d == 2

        def f(v):
            return self.risk(np.array([[v[0], v[1]], [v[1], v[0]]]), v[2])

        v, h, damping = np.array([1.0, 0.0, 1.0]), 1e-3, 0.1
        value = f(v)
        E = h * np.eye(3)
        for _ in range(60):
            g = np.array([(f(v + e) - f(v - e)) / (2 * h) for e in E])
            if np.linalg.norm(g) < 1e-8:
                break
            J = np.empty((3, 3))
            for i in range(3):
                for j in range(i, 3):
                    J[i, j] = J[j, i] = (f(v + E[i] + E[j]) - f(v + E[i] - E[j]) - f(v - E[i] + E[j])
                                         + f(v - E[i] - E[j])) / (4 * h * h)
            smallest = np.linalg.eigvalsh(J)[0]
            damping = max(damping, 1e-3 - smallest if smallest <= 0 else 0)
            while True:
                step = np.linalg.solve(J + damping * np.eye(3), -g)
                new = f(v + step)
                if new <= value + 1e-14:
                    break
                damping *= 4
            v, value, damping = v + step, new, damping / 8 if damping > 1e-7 else 0.0
        return value


# ---- stability: gaps of gradients along the flow of the infinite prompt, noise-free, from the balanced start

TIMES = [0.02 * 2500 ** (i / 23) for i in range(24)]


def balanced_alpha(cov):
    """Half of the largest start of the theorem, sqrt 2 / (d^{1/4} |S|)."""
    return math.sqrt(2) / (len(cov) ** 0.25 * np.linalg.eigvalsh(cov)[-1]) / 2


def runge_kutta(slope, p, times, steps):
    """p at the times, by the classical rule with `steps` steps between them."""
    out, t = [], 0.0
    for end in times:
        h = (end - t) / steps
        for _ in range(steps):
            k1 = slope(p)
            k2 = slope(p + h / 2 * k1)
            k3 = slope(p + h / 2 * k2)
            k4 = slope(p + h * k3)
            p = p + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        t = end
        out.append(p)
    return out


def gaussian_path(cov, steps=400):
    """(A, b) at TIMES, A diagonal in the basis of the covariance."""
    s, d = np.linalg.eigvalsh(cov), len(cov)
    alpha = balanced_alpha(cov)

    def slope(p):
        a, b = p[:-1], p[-1]
        return np.append(b * s**2 - b * b * s**3 * a, a @ s**2 - b * (a * a) @ s**3)

    return runge_kutta(slope, np.append(np.full(d, alpha / math.sqrt(d)), alpha), TIMES, steps)


def gaussian_gaps(cov, L, fine=1.0):
    """|grad R_L - grad R_inf| at TIMES."""
    path = gaussian_path(cov)
    model = Regression(cov, cov, L, fine=fine)
    s = np.linalg.eigvalsh(cov)
    out = []
    for p in path:
        a, b = p[:-1], p[-1]
        e = b * s * a - 1
        limit = np.append(b * s**2 * e, a @ (s**2 * e))
        out.append(np.linalg.norm(model.risk(p)[1] - limit))
    return out


# ---- the same for features that are not Gaussian: xi has independent +-1 or uniform coordinates of unit variance, or is
# uniform on the sphere of radius sqrt d, and x = S^{1/2} xi

FEATURE_TIMES = [TIMES[i] for i in (7, 15, 23)]


def feature_rule(features, d, n):
    """Points xi and weights: all signs, a product of Gauss-Legendre rules, or a product rule of the sphere."""
    if features == "rademacher":
        points = np.array(list(itertools.product((-1.0, 1.0), repeat=d)))
        return points, np.full(len(points), 1 / len(points))
    x, w = np.polynomial.legendre.leggauss(n)
    if features == "uniform":
        grids = np.meshgrid(*[math.sqrt(3) * x] * d, indexing="ij")
        weights = np.meshgrid(*[w / 2] * d, indexing="ij")
        return np.stack([g.ravel() for g in grids], 1), np.prod([g.ravel() for g in weights], 0)
    if d == 2:
        angle = np.pi * (np.arange(4 * n) + 0.5) / (2 * n)
        return math.sqrt(2) * np.stack([np.cos(angle), np.sin(angle)], 1), np.full(4 * n, 1 / (4 * n))
    angle = np.pi * (np.arange(2 * n) + 0.5) / n
    height, turn = np.repeat(x, 2 * n), np.tile(angle, n)
    ring = np.sqrt(1 - height**2)
    points = math.sqrt(3) * np.stack([ring * np.cos(turn), ring * np.sin(turn), height], 1)
    return points, np.repeat(w / 2, 2 * n) / (2 * n)


class FeatureGaps:
    """R_L - R_inf = E [ |b(xbar - m)|^2 + 2 b (xbar - m)'(b m - x) ] / 2 over queries x and prompts, m the infinite
    prompt's mean at the tilt A x; noise-free, tasks of unit variance. S is reversed into itself, and so is A."""

    def __init__(self, features, cov, fine):
        values, basis = np.linalg.eigh(cov)
        root = basis @ np.diag(np.sqrt(values)) @ basis.T
        self.d, self.cov, self.fine = len(cov), cov, fine
        tokens, self.p = feature_rule(features, self.d, int(round(8 * fine)))
        queries, w = feature_rule(features, self.d, int(round(6 * fine)))
        side = queries @ np.array([1.0, 0.01, 0.0001][: self.d])  # -x has the same part as x
        half = side > -1e-12
        self.tokens = tokens @ root
        self.x, self.w = (queries @ root)[half], (w * np.where(side > 1e-12, 2, 1))[half]
        self.orbits = sorted({tuple(sorted({(i, j), (self.d - 1 - i, self.d - 1 - j)}))
                              for i in range(self.d) for j in range(self.d)})

    def limit(self, A, x):
        s = self.tokens @ (A @ x)
        q = self.p * np.exp(s - s.max())
        q /= q.sum()
        return q @ self.tokens, q

    def path(self):
        """(A, b) at FEATURE_TIMES: the flow of R_inf from the balanced start, by steps of at most 0.06."""
        alpha, d = balanced_alpha(self.cov), self.d

        def slope(p):
            A, b, by_A, by_b = p[:-1].reshape(d, d), p[-1], np.zeros((d, d)), 0.0
            for x, w in zip(self.x, self.w):
                m, q = self.limit(A, x)
                e = b * m - x
                C = (self.tokens - m).T @ ((self.tokens - m) * q[:, None])
                by_A -= w * b * np.outer(C @ e, x)
                by_b -= w * (m @ e)
            return np.append(by_A.ravel(), by_b)

        p, t, out = np.append(alpha / math.sqrt(d) * np.eye(d).ravel(), alpha), 0.0, []
        for end in FEATURE_TIMES:
            p = runge_kutta(slope, p, [end - t], max(20, math.ceil((end - t) / 0.06)))[0]
            t = end
            out.append(p)
        return out

    def difference(self, A, b, L):
        total = 0.0
        for x, w in zip(self.x, self.w):
            m, _ = self.limit(A, x)
            prompt = Prompt(self.tokens @ (A @ x), self.p, L, self.fine)
            for i in range(self.d):
                c = (1, b * (self.tokens[:, i] - m[i]))
                total += w * (prompt.average([c, c]) + 2 * (b * m[i] - x[i]) * prompt.average([c]))
        return total / 2

    def gap(self, p, L, h=2e-3):
        """|grad (R_L - R_inf)| by central differences; entries of one orbit have one derivative."""
        A, b, square = p[:-1].reshape(self.d, self.d), p[-1], 0.0
        for orbit in self.orbits:
            E = np.zeros_like(A)
            for i, j in orbit:
                E[i, j] = h
            slope = (self.difference(A + E, b, L) - self.difference(A - E, b, L)) / (2 * h)
            square += slope**2 / len(orbit)
        by_b = (self.difference(A, b + h, L) - self.difference(A, b - h, L)) / (2 * h)
        return math.sqrt(square + by_b**2)


PATHS = {}


def feature_gaps(features, cov, L, fine):
    key = features, len(cov), fine
    if key not in PATHS:
        model = FeatureGaps(features, cov, fine)
        PATHS[key] = model, model.path()
    model, path = PATHS[key]
    return [model.gap(p, L) for p in path]


# ---- all values

SIGMAS = [1, 1.2, 1.4142135623730951, 1.7, 2, 2.5, 3, 4]


def one_dimensional(sigma, L, fine=1.0):
    """D(L), d = 1, U = V = 1, queries N(0, 1), tokens N(0, sigma^2)."""
    z = np.arange(0, REACH, 0.1 / fine)
    w = np.exp(-z * z / 2) * np.where(z == 0, 1, 2)
    table = Table(lambda tau: output_functions(L, tau, fine), sigma * REACH, int(32 * fine))
    return float(w @ (sigma**2 * table(np.maximum(sigma * z, 1e-6))[1]) / w.sum())


def best_factor(d, alpha, L, fine=1.0):
    """The factor f on the scores with the smallest risk: d standard normal features, A = f alpha I, b = 1/alpha.
    The error of Regression depends on |x| alone then, so its average is one integral over |x|."""
    x = np.arange(0.05 / fine, 9 + math.sqrt(d), 0.1 / fine)
    w = x**(d - 1) * np.exp(-x * x / 2)
    w /= w.sum()

    def compute(t):
        H, m = output_functions(L, t, fine)
        return H, (m - H) / t**2

    table = Table(compute, 3 * alpha * x[-1], int(32 * fine))

    def risk(f):
        H, K = table(f * alpha * x)
        u, e, b = f * alpha * x, (f - 1) * x, 1 / alpha
        return w @ (e * e - 2 * b * u * e * H + b * b * u * u * K + b * b * d * H)

    low, high, golden = 0.2, 2.0, (math.sqrt(5) - 1) / 2
    while high - low > 1e-5:
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if risk(left) < risk(right) else (left, high)
    # The parabola through three points: golden sections alone stop at the root of the rounding.
    f, h = (low + high) / 2, 1e-3
    down, middle, up = risk(f - h), risk(f), risk(f + h)
    return f - h * (up - down) / (2 * (up - 2 * middle + down))


def softmax_minimum(S, Sq, L, fine, **task):
    return Regression(S, Sq, L, fine=fine, **task).minimum()[1]


def length_for(S, eps, fine):
    """The real L where the end of softmax flows is eps above the Bayes risk, 0: the secant rule in log L."""
    def excess(x):
        return math.log(softmax_minimum(S, S, math.exp(x), fine) / eps)

    x0, x1 = math.log(15 / eps * 0.9), math.log(15 / eps * 1.2)
    f0, f1 = excess(x0), excess(x1)
    while abs(x1 - x0) > 1e-7:
        x0, x1, f0 = x1, x1 - f1 * (x1 - x0) / (f1 - f0), f1
        f1 = excess(x1)
    return math.exp(x1)


def families():
    """(what, parameter, L, function of the resolution); a function may give a list."""
    tens = [10, 1000, 10**6, 10**8, 10**10, 10**12]
    for sigma in (0.5, 0.6, 0.70710678, 0.9):
        for L in (10, 10**10, 10**12):
            yield "output d=1", sigma, L, lambda fine, s=sigma, L=L: one_dimensional(s, L, fine)
    for L in (10, 100, 1000, 10000):
        for metric in ("output", "grad_v", "grad_u"):
            yield "coin " + metric, 1, L, lambda fine, m=metric, L=L: coin_decay(L, fine)[m]
    for sigma in (1, 2):
        for p, q in itertools.product((0, 4, 8), repeat=2):
            if p + q > 0:
                yield f"moment p={p} q={q}", sigma, 0, lambda fine, a=(p, q, sigma): tilted_moment(*a, fine)
    for d, alpha in ((1, 0.25), (1, 0.5), (2, 0.5), (5, 0.5)):
        for L in (10, 100, 1000, 10000):
            yield f"best factor d={d}", alpha, L, lambda fine, a=(d, alpha, L): best_factor(*a, fine)
    S2, S3, S5, R5 = power_covariance(2), power_covariance(3), power_covariance(5), released_covariance(5)
    I5, shifted = np.eye(5), np.diag([2.0, 0.5])
    noisy = {"sig2": 0.2}
    authors = {"s2": 0.2, "sig2": 0.1, "target_noise": 0.1}
    plain = [10, 20, 50, 100, 200, 500, 1000, 10000, 100000, 1000000]
    for name, S, Sq, task, lengths in (
            ("d=2", S2, S2, {}, [10, 100, 1000]), ("d=3", S3, S3, {}, plain),
            ("noisy d=2", S2, S2, noisy, [10, 100, 1000]), ("noisy d=3", S3, S3, noisy, plain),
            ("intended", S5, S5, authors, [10, 100, 1000, 10000, 100000]),
            ("released", R5, I5, authors, [10, 100, 1000, 10000, 100000])):
        for L in lengths:
            yield "linear " + name, 0, L, lambda fine, a=(S, Sq, L), t=task: linear_minimum(*a, **t)
            if "noisy" not in name:
                yield "softmax " + name, 0, L, lambda fine, a=(S, Sq, L), t=task: softmax_minimum(*a, fine, **t)
        if "noisy" not in name:
            constant = {k: v for k, v in task.items() if k != "target_noise"}
            yield "constant " + name, 0, 0, lambda fine, a=(S, Sq), t=constant: limit_constant(*a, **t)
    for L in (10, 30, 100, 300, 1000, 10000, 100000):
        yield "softmax shifted", 0, L, lambda fine, L=L: softmax_minimum(S2, shifted, L, fine, diagonal=False, **noisy)
    yield "constant shifted", 0, 0, lambda fine: limit_constant(S2, shifted, **noisy)
    for L in (30, 100, 300):
        yield "softmax coin", 0, L, lambda fine, L=L: CoinRegression(S2, L, 0.05, fine).minimum()
    for name, S, eps_list in (("d=2", S2, [0.1]), ("d=3", S3, [0.3, 0.1, 0.03, 0.01])):
        for eps in eps_list:
            yield "length " + name, eps, 0, lambda fine, a=(S, eps): length_for(*a, fine)
    for name, S, lengths in (("d=2", S2, [10, 100, 1000]),
                             ("d=3", S3, [10, 30, 100, 300, 1000, 10000, 100000, 1000000])):
        for L in lengths:
            yield "gap " + name, TIMES, L, lambda fine, a=(S, L): gaussian_gaps(*a, fine)
    for features in ("rademacher", "uniform", "sphere"):
        for name, S, lengths in (("d=2", S2, [10, 100]), ("d=3", S3, [10, 100, 1000, 10**6])):
            for L in lengths:
                yield (f"{features} gap {name}", FEATURE_TIMES, L,
                       lambda fine, a=(features, S, L): feature_gaps(*a, fine))
    for L in tens:
        for metric, sigmas in (("output", SIGMAS), ("grad_v", [1, 2])):
            yield metric, sigmas, L, lambda fine, m=metric, s=sigmas, L=L: [decay(L, s, fine)[m, x] for x in s]
        for sigma in (1, 2):
            yield "grad_u", sigma, L, lambda fine, s=sigma, L=L: gradient_decay(L, s, fine)
    import general  # they take Prompt from this file
    import mixtures
    yield from mixtures.families()
    yield from general.families()


def rows(family):
    """Lines of the header: value at the usual resolution, and its distance to a coarser one."""
    what, parameter, L, compute = family
    many = isinstance(parameter, list)
    value, coarse = compute(1.0), compute(0.8)
    for x, v, c in zip(parameter, value, coarse) if many else [(parameter, value, coarse)]:
        yield f'    {{"{what}", {x!r}, {L}, {float(v):.10g}, {abs(v - c):.1e}}},'


def stored():
    """{(what, parameter, L): (value, error)} of the file."""
    out = {}
    with open(VALUES, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith('    {"'):
                what, x, L, value, error = line.strip()[1:-2].rsplit(", ", 4)
                out[what.strip('"'), float(x), int(L)] = float(value), float(error)
    return out


def write(only):
    """The file again; with `only`, lines that begin otherwise stay as they are."""
    lines = sorted(line for family in families() if family[0].startswith(only) for line in rows(family))
    if only:
        with open(VALUES, encoding="utf-8") as old:
            kept = [line.rstrip("\n") for line in old if line.startswith('    {"')]
        lines = sorted(lines + [line for line in kept if not line.startswith('    {"' + only)])
    with open(VALUES, "w", encoding="utf-8") as out:
        out.write("\n".join(
            ["// Made by tests/paper/independent.py, which uses NumPy and no code of this library. Do not edit.",
             "// Each line: what, its parameter (sigma, eps or t; 0: none), L (0: none), value, error.",
             "// clang-format off"] + lines + ["// clang-format on", ""]))


def every_coin_prompt(L, a, f, g):
    """E (sum omega f)(sum omega g) over all prompts of L tokens +-1, scores a s."""
    total = 0.0
    for prompt in itertools.product((0, 1), repeat=L):
        w = np.exp([a * (2 * t - 1) for t in prompt])
        w /= w.sum()
        total += (w @ [f[t] for t in prompt]) * (w @ [g[t] for t in prompt])
    return total / 2**L


def check():
    """The integrals against all prompts, simulated prompts and the file; exits with 1 if one is off."""
    bad = []

    def compare(what, x, y, allowed):
        print(f"{what}: {x:.10g} {y:.10g}")
        if not abs(x - y) <= allowed:
            bad.append(what)

    f, g = np.array([0.3, -1.2]), np.array([2.0, 0.7])
    for L in (1, 2, 3, 8):
        prompt = Prompt([-1.1, 1.1], [0.5, 0.5], L)
        compare(f"all prompts of {L} tokens", prompt.average([(1, f), (1, g)]), every_coin_prompt(L, 1.1, f, g), 1e-12)
    rng = np.random.default_rng(1)
    s = 1.2 * rng.normal(size=(100000, 10))
    w = np.exp(s) / np.exp(s).sum(1, keepdims=True)
    S = (w * s).sum(1)
    v, h = (w * (s - S[:, None]) ** 2).sum(1) - 1.44, (w * w).sum(1)
    exact = covariance_functions(10, 1.2)
    for key, x in (("vv", v * v), ("vh", v * h), ("hh", h * h), ("h", h)):
        compare(f"simulated {key}", exact[key], x.mean(), 5 * x.std() / math.sqrt(len(x)))
    model = Regression(power_covariance(2), power_covariance(2), 50, sig2=0.1)
    p = model.start()
    slope = [(model.risk(p + e)[0] - model.risk(p - e)[0]) / 2e-5 for e in 1e-5 * np.eye(3)]
    compare("gradient of a risk", 0.0, float(np.linalg.norm(slope - model.risk(p)[1])), 1e-8)
    known = stored()
    for what, x, L, compute in families():
        cheap = what.startswith(("moment", "classification", "general coin")) or what in (
            "output d=1", "coin output", "linear d=3", "softmax coin", "denoising bayes")
        if cheap and (what, x, L) in known:
            value, error = known[what, x, L]
            compare(f"{what} {x} L = {L}", compute(1.0), value, 1e-8 * abs(value) + error)
    if bad:
        sys.exit("off: " + ", ".join(bad))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--write", nargs="?", const="", metavar="NAME")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    if arguments.write is not None:
        write(arguments.write)
    if arguments.check:
        check()
