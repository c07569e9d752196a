"""Values for `esscher paper --which general`, by NumPy and none of our code. independent.py collects them.

A case is a task of one feature x: tokens take the values (x_j, f_j) with weights p_j, labels have noise of a variance
besides, and one softmax head of scores u x x' predicts v sum omega y'. Its flow on the infinite prompt from (u, v) is
followed by RK4; the sup over its steps is searched by golden sections and a parabola. Averages over prompts are those
of independent.Prompt.
"""
import functools
import math

import numpy as np

from independent import Prompt

NOISE, END, EPS = 0.1, 30.0, 0.002
LENGTHS = (10, 100, 1000, 10**6, 10**9)
STEP = 0.02  # of RK4
LOOKS = (0, 75, 150, 300, 600, 1000, 1500)  # steps
FEW = 30


def normal(fine):
    x = np.arange(-10, 10.01, 0.125 / fine)
    p = np.exp(-x * x / 2)
    return x, p / p.sum()


def legendre(fine):
    x, p = np.polynomial.legendre.leggauss(int(40 * fine))
    return math.sqrt(3) * x, p / 2


class Case:
    """x, p [n]: tokens; q, weights [q]: queries. A member is (f [n], targets [q]), one of those of equal chance."""

    def __init__(self, start, x, p, q, weights, members, noise=NOISE):
        self.start, self.x, self.p, self.q, self.weights = start, x, p, q, weights
        self.members, self.noise = members, noise
        self.coarse = self

    def limits(self, u, f):
        """The label that an infinite prompt gives, at each query."""
        s = u * np.outer(self.q, self.x)
        w = np.exp(s - s.max(1, keepdims=True)) * self.p
        return (w @ f) / w.sum(1)

    def risk(self, at):
        squares = [float(self.weights @ (at[1] * self.limits(at[0], f) - t) ** 2) for f, t in self.members]
        return 0.5 * (math.fsum(squares) / len(squares) + self.noise)

    def slope(self, at):
        h = 1e-5
        steps = [np.array([h, 0]), np.array([0, h])]
        return np.array([(self.risk(at + e) - self.risk(at - e)) / (2 * h) for e in steps])

    @functools.cached_property
    def path(self):
        at = np.array(self.start, float)
        out = [at]
        for _ in range(round(END / STEP)):
            a = -self.slope(at)
            b = -self.slope(at + STEP / 2 * a)
            c = -self.slope(at + STEP / 2 * b)
            d = -self.slope(at + STEP * c)
            at = at + STEP / 6 * (a + 2 * b + 2 * c + d)
            out.append(at)
        return out

    def gap(self, at, L, fine):
        """R_L - R_inf at one layer."""
        u, v = at
        one, total = np.ones_like(self.x), 0.0
        for i in np.flatnonzero(self.weights > 1e-17):
            prompt = Prompt(u * self.q[i] * self.x, self.p, L, fine)
            noise = self.noise * prompt.average([(2, one)])
            for f, t in self.members:
                c = self.limits(u, f)[i]
                first, second = prompt.average([(1, f - c)]), prompt.average([(1, f - c)] * 2)
                total += self.weights[i] * (v * v * (second + noise) / 2 + (v * c - t[i]) * v * first)
        return total / len(self.members)

    @functools.cache
    def top(self, L):
        """Three steps around the largest gap: golden sections until they are few apart."""
        gap = functools.cache(lambda i: abs(self.gap(self.path[i], L, 1.0)))
        k = max(range(len(LOOKS)), key=lambda k: gap(LOOKS[k]))
        low, high = LOOKS[max(k - 1, 0)], LOOKS[min(k + 1, len(LOOKS) - 1)]
        while high - low > FEW:
            left, right = low + round((high - low) * 0.382), high - round((high - low) * 0.382)
            low, high = (low, right) if gap(left) > gap(right) else (left, high)
        return low, (low + high) // 2, high

    def sup(self, L, fine):
        """The largest gap at these steps of the way and on the parabola through them."""
        steps = self.coarse.top(float(f"{L:.2g}"))
        gaps = [abs(self.gap(self.path[i], L, fine)) for i in steps]
        curve = np.polyfit(np.array(steps, float) - steps[1], gaps, 2)
        top = -curve[1] / (2 * curve[0])
        inside = curve[0] < 0 and steps[0] - steps[1] < top < steps[2] - steps[1]
        return float(max([np.polyval(curve, top)] if inside else gaps))

    def length(self, fine):
        """The real L where the sup is EPS, by secants in logarithms."""
        x0, x1 = math.log(100.0), math.log(1000.0)
        f0, f1 = (math.log(self.sup(math.exp(x), fine) / EPS) for x in (x0, x1))
        while abs(x1 - x0) > 1e-5:
            x0, x1, f0 = x1, x1 - f1 * (x1 - x0) / (f1 - f0), f1
            f1 = math.log(self.sup(math.exp(x1), fine) / EPS)
        return math.exp(x1)


@functools.cache
def case(name, fine):
    """At two resolutions, the finer one on the steps that the other found."""
    out = made(name, fine)
    if fine != 1:
        out.coarse = case(name, 1.0)
    return out


def made(name, fine):
    x, p = normal(fine)
    q, weights = x[::2], p[::2] / p[::2].sum()
    if name == "tanh labels":  # w = 1; w = -1 has the same risk
        return Case((0.3, 0.3), x, p, q, weights, [(np.tanh(x), np.tanh(q))])
    if name == "two classes":  # queries of the class +1; those of -1 have the same risk
        labels, one = np.repeat([1.0, -1.0], len(x)), np.ones_like(q)
        both = np.concatenate((x + 1, x - 1))
        return Case((0.3, 0.3), both, np.concatenate((p, p)) / 2, q + 1, weights, [(labels, one)], 0)
    start = (0.3, 0.3)
    if name == "pool":
        start = (0.1, 3)
    elif name == "coin features":  # x = -1 has the same risk
        x, p, q, weights = np.array([1.0, -1.0]), np.full(2, 0.5), np.ones(1), np.ones(1)
    else:
        x, p = legendre(fine)
        q, weights = x, p
    return Case(start, x, p, q, weights, [(w * x, w * q) for w in (1, -0.5)])


def families():
    """As independent.families."""
    for name in ("tanh labels", "two classes", "pool", "coin features", "uniform features"):
        what = "general " + name
        yield what + " risk", 0, 0, lambda fine, n=name: case(n, fine).risk(case(n, fine).path[-1])
        yield what + " length", EPS, 0, lambda fine, n=name: case(n, fine).length(fine)
        for L in LENGTHS:
            yield what + " sup", 0, L, lambda fine, n=name, L=L: case(n, fine).sup(L, fine)
