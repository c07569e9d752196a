"""Values for `esscher paper --which mixtures`, by NumPy and none of our code. independent.py collects them.

Tasks are in dimension one, with two means +m and -m of equal weight. Tokens are the mixture on a fine grid, so that
averages over prompts are those of independent.Prompt; averages over queries are trapezoidal rules.
"""
import functools
import math

import numpy as np

from independent import Prompt

MEAN, GAMMA, XI = 2.0, 0.5, 1.0  # of the denoising task at finite length


def mixture(m, variance, reach, step):
    """A grid and the weights of N(m, variance)/2 + N(-m, variance)/2 on it."""
    x = np.arange(-reach, reach + step, step)
    p = np.exp(-(x - m) ** 2 / (2 * variance)) + np.exp(-(x + m) ** 2 / (2 * variance))
    keep = p > 0
    return x[keep], p[keep] / p.sum()


def queries(m, variance, fine):
    z, p = mixture(m, variance, m + 10 * math.sqrt(variance), 0.2 / fine)
    return zip(z, p)


def posterior_mean(z, m, gamma, xi):
    S = gamma**2 + xi**2
    return xi**2 / S * m * math.tanh(m * z / S) + gamma**2 / S * z


def bayes_denoising(m, gamma, xi, fine=1.0):
    """Half the mean of Var(x | z)."""
    S = gamma**2 + xi**2
    variances = [p * (gamma**2 * xi**2 / S + (xi**2 * m / S) ** 2 / math.cosh(m * z / S) ** 2)
                 for z, p in queries(m, S, fine)]
    return 0.5 * math.fsum(variances)


def head_moments(L, factor, m, gamma, xi, fine=1.0):
    """Second moments over queries and prompts of (T, z), and their products with the posterior mean t:
    A = E (T,z)(T,z)', b = E t (T,z), E t^2. U = factor / S; L = 0 stands for the infinite prompt."""
    S = gamma**2 + xi**2
    A, b, tt = np.zeros((2, 2)), np.zeros(2), 0.0
    for z, p in queries(m, S, fine):
        if p < 1e-19:
            continue
        a, t = factor * z / S, posterior_mean(z, m, gamma, xi)
        T = m * math.tanh(a * m) + S * a
        first = second = 0.0  # of the head minus its limit
        if L:
            x, w = mixture(m, S, m + 9 * math.sqrt(S) + 3 * abs(a) * S + 1, 0.2 / fine)
            prompt = Prompt(a * x, w, L, fine)
            first, second = prompt.average([(1, x - T)]), prompt.average([(1, x - T)] * 2)
        ET, ETT = T + first, second + 2 * T * first + T * T
        A += p * np.array([[ETT, ET * z], [ET * z, z * z]])
        b += p * t * np.array([ET, z])
        tt += p * t * t
    return A, b, tt


def excess(L, factor, v, w, fine=1.0):
    """Risk of W z + V T above the Bayes risk."""
    A, b, tt = head_moments(L, factor, MEAN, GAMMA, XI, fine)
    at = np.array([v, w])
    return 0.5 * float(at @ A @ at - 2 * at @ b + tt)


def limit_excess(L, fine=1.0):
    """Of the layer that is best at L = infinity."""
    S = GAMMA**2 + XI**2
    return excess(L, 1.0, XI**2 / S, (GAMMA**2 - XI**2) / S, fine)


def profiled(L, factor, fine):
    """The best V and W for this U: least squares."""
    A, b, tt = head_moments(L, factor, MEAN, GAMMA, XI, fine)
    return 0.5 * float(tt - b @ np.linalg.solve(A, b))


def smallest(f, low, high, width):
    """Where a smooth function with one minimum between low and high has it: golden sections down to the width, then
    the parabola through three points."""
    ratio = (math.sqrt(5) - 1) / 2
    x, y = high - ratio * (high - low), low + ratio * (high - low)
    fx, fy = f(x), f(y)
    while high - low > width:
        if fx < fy:
            high, y, fy = y, x, fx
            x = high - ratio * (high - low)
            fx = f(x)
        else:
            low, x, fx = x, y, fy
            y = low + ratio * (high - low)
            fy = f(y)
    middle, h = 0.5 * (low + high), 0.25 * width
    left, here, right = f(middle - h), f(middle), f(middle + h)
    return middle + 0.5 * h * (left - right) / (left - 2 * here + right)


@functools.cache
def cool_factor(L, fine):
    """The factor on U = 1/S of the best cool layer."""
    return smallest(lambda factor: profiled(L, factor, fine), 0.45, 0.95, 0.03)


def crossing(fine):
    """The real L where the limit's best layer is as good as the best affine map."""
    S = GAMMA**2 + XI**2
    affine = 0.5 * (GAMMA**2 + MEAN**2) * XI**2 / (S + MEAN**2) - bayes_denoising(MEAN, GAMMA, XI)
    x0, x1 = math.log(150.0), math.log(250.0)
    f0, f1 = (math.log(limit_excess(math.exp(x), fine) / affine) for x in (x0, x1))
    while abs(x1 - x0) > 1e-5:
        x0, x1, f0 = x1, x1 - f1 * (x1 - x0) / (f1 - f0), f1
        f1 = math.log(limit_excess(math.exp(x1), fine) / affine)
    return math.exp(x1)


def best_one_head(ratio, fine):
    """The least excess of v T_u without a residual at L = infinity, over all u and v; m = 2, xi = 1, gamma = ratio."""
    m, xi = MEAN, XI
    gamma = ratio * xi

    def f(log_factor):
        A, b, tt = head_moments(0, math.exp(log_factor), m, gamma, xi, fine)
        return 0.5 * (tt - b[0] ** 2 / A[0, 0])

    grid = np.linspace(-4, 3, 141)
    start = grid[np.argmin([f(x) for x in grid])]
    return f(smallest(f, start - 0.05, start + 0.05, 1e-3))


def bayes_classification(m, fine=1.0):
    """Half the mean of Var(y | x), y = +-1 with equal chance, x | y ~ N(y m, 1)."""
    return 0.5 * math.fsum(p / math.cosh(m * x) ** 2 for x, p in queries(m, 1.0, fine))


def plane_hessian(m, fine=1.0):
    """The smaller eigenvalue of the Hessian in (u, v) of E (v tanh(u m x) - y)^2 / 2 at u = v = 1."""
    uu = uv = vv = 0.0
    for x, p in queries(m, 1.0, fine):
        t, s = math.tanh(m * x), 1 / math.cosh(m * x) ** 2
        uu, uv, vv = uu + p * (s * m * x) ** 2, uv + p * s * m * x * t, vv + p * t * t
    return float(np.linalg.eigvalsh([[uu, uv], [uv, vv]])[0])


def families():
    """As independent.families."""
    yield "denoising bayes", 0, 0, lambda fine: bayes_denoising(MEAN, GAMMA, XI, fine)
    for L in (10, 100, 1000, 10**4, 10**6, 10**9, 10**12):
        yield "denoising excess", 0, L, lambda fine, L=L: limit_excess(L, fine)
    for L in (10**4, 10**6):
        yield "denoising cool factor", 0, L, lambda fine, L=L: cool_factor(L, fine)
        yield "denoising cool excess", 0, L, lambda fine, L=L: profiled(L, cool_factor(L, fine), fine)
    yield "denoising crossing", 0, 0, crossing
    for ratio in (0.5, 2.0):
        yield "denoising one head", ratio, 0, lambda fine, r=ratio: best_one_head(r, fine)
    yield "classification bayes", 0, 0, lambda fine: bayes_classification(1.0, fine)
    yield "classification rate", 0, 0, lambda fine: plane_hessian(1.0, fine)
