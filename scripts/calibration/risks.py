"""Risks in context, their gradients, and the loss of training."""

import math

import numpy as np

from .counting import Row, covers, es, say, within


HEAD = es.Readout(np.diag([0.5, 0.0]), np.array([0.0, 1.0]))
# E (r zbar_y - y)^2 / 2 of the head above at L = 20, by softmax_risk_truth below with 4e6 prompts of its own
# (NumPy, seed 1): none of our code. Its standard error is SOFTMAX_ERROR.
SOFTMAX_RISK, SOFTMAX_ERROR = 0.20413843, 0.00030980


def softmax_risk_truth(prompts=4000000):
    rng, total, square, done = np.random.default_rng(1), 0.0, 0.0, 0
    while done < prompts:
        n = 100000
        w, x = rng.standard_normal(n), rng.standard_normal(n)
        tokens = rng.standard_normal((n, 20))
        labels = w[:, None] * tokens + math.sqrt(0.5) * rng.standard_normal((n, 20))
        weights = np.exp(0.5 * x[:, None] * tokens)
        loss = 0.5 * ((weights * labels).sum(1) / weights.sum(1) - w * x) ** 2
        total, square, done = total + loss.sum(), square + (loss**2).sum(), done + n
    mean = total / done
    return mean, math.sqrt((square / done - mean**2) / done)


def bayes_truth(L, noise):
    """Half of E[noise / (noise + chi^2_L)] for d = 1, unit variances: the posterior variance of the
    weight, averaged over prompts; a sum over a fine grid of the density of chi^2_L."""
    x = (np.arange(400000) + 0.5) * (L + 40 * math.sqrt(2 * L) + 40) / 400000
    density = np.exp((L / 2 - 1) * np.log(x) - x / 2 - L / 2 * math.log(2) - math.lgamma(L / 2))
    return 0.5 * float(np.sum(density * noise / (noise + x)) / np.sum(density))


def risks(seeds, small):
    count = max(100, seeds // 2)
    noise = 0.5
    task = es.LinearRegressionTask(1, noise_variance=noise)
    truth = bayes_truth(5, noise)
    row = Row("icl risk, Bayes", "d = 1, L = 5, noise 0.5", "400 prompts")
    for s in row.run(count):
        row.add(within(es.bayes_risk(task, 5, replicates=400, seed=s), truth))
    yield row
    # Two equal heads with half the readout are one head. Linear attention predicts x m / 2 with m the mean of
    # y_l x_l over the prompt, E m^2 = 1 + 2/L + noise/L and E w m = 1, so that its risk is E m^2 / 8.
    half = [es.Readout(HEAD.U, 0.5 * HEAD.r)] * 2
    for kind in ("linear", "softmax"):
        truth = SOFTMAX_RISK if kind == "softmax" else (1 + 2 / 20 + noise / 20) / 8
        row = Row(f"icl risk, {kind}, simulated heads", "d = 1, L = 20, noise 0.5", "2000 prompts")
        for s in row.run(count):
            row.add(within(es.risk(task, half, 20, kind=kind, draws=2000, seed=s), truth))
        yield row


def losses(seeds, small):
    """The loss curve at a learning rate that moves nothing: the risk of the start."""
    task = es.LinearRegressionTask(1, noise_variance=0.5)
    row = Row("training loss", "softmax, d = 1, L = 20, at rest", "50 steps of 64")
    for s in row.run(max(100, seeds // 2)):
        point = es.train(task, 20, 50, init="dense", start=HEAD, learning_rate=1e-12, batch=64, seed=s,
                         curve_block=50).curve[-1]
        row.add(abs(point.loss - SOFTMAX_RISK) <= 2 * point.std_error)
    yield row


def two_token_risk(alpha, readout, points=181, reach=9.0):
    """E (readout sum omega x_l - x)^2 / 2 over x, x_1, x_2 ~ N(0,1), with weights e^{alpha x x_l}: the risk at L = 2
    for d = 1 without noise, where w^2 averages to 1. A trapezoidal rule, right to 1e-10."""
    g = np.linspace(-reach, reach, points)
    p = np.exp(-g * g / 2)
    p /= p.sum()
    total = 0.0
    for x, weight in zip(g, p):
        omega = 1 / (1 + np.exp(-alpha * x * (g[:, None] - g[None, :])))
        mean = omega * g[:, None] + (1 - omega) * g[None, :]
        total += weight * (p @ (readout * mean - x) ** 2 @ p)
    return total / 2


def radial_risk(d, alpha, points=2001, reach=9.0):
    """The same for d features, U = alpha I and a readout of 1: given a query of square length s it is a function of
    s, and chi-square of d averages over s. With tau^2 = alpha^2 s, weights omega and 1 - omega of the two scores,
    H = E (omega^2 + (1 - omega)^2) and k = (E (S - tau^2)^2/tau^2 - H)/tau^2 for S = omega s_1 + (1 - omega) s_2, it is
    half of s (alpha - 1)^2 + (d - 2 s (alpha^2 - alpha)) H + s alpha^2 k (theory.md)."""
    g = np.linspace(-reach, reach, points)
    p = np.exp(-g * g / 2)
    p /= p.sum()
    r = (np.arange(4000) + 0.5) * (reach / 4000)  # the length of the query
    density = r ** (d - 1) * np.exp(-r * r / 2)
    total = 0.0
    for s, weight in zip(r * r, density / density.sum()):
        tau2 = alpha * alpha * s
        apart = g * math.sqrt(2 * tau2)
        omega = 1 / (1 + np.exp(-apart))
        h = p @ (omega**2 + (1 - omega) ** 2)
        k = ((tau2 / 2 + p @ ((omega - 0.5) * apart - tau2) ** 2) / tau2 - h) / tau2
        total += weight * (s * (alpha - 1) ** 2 + (d - 2 * s * (alpha**2 - alpha)) * h + s * alpha**2 * k)
    return total / 2


def quadratures(seeds, small):
    """Risks of one head over quadrature nodes: Student's t with seven degrees of freedom."""
    for d in (1,) if small else (1, 3):
        truth = two_token_risk(0.5, 1.0) if d == 1 else radial_risk(d, 0.5)
        head = es.Readout(np.diag(d * [0.5] + [0.0]), np.eye(d + 1)[d])
        row = Row("icl risk, softmax, quadrature", f"d = {d}, L = 2", "8 sets of 4096 nodes")
        for s in row.run(seeds // 5 if small else seeds // 2):
            got = es.risk(es.LinearRegressionTask(d), head, 2, seed=s)
            row.add(covers(got.value, got.std_error, truth, 7), got.heavy)
        yield row


def signs_risk(alpha, readout, L, noise):
    """The risk of d = 1 with features +-1, by enumeration over the number of features that equal the query."""
    total = 0.0
    for k in range(L + 1):
        same, other = k * math.exp(alpha), (L - k) * math.exp(-alpha)
        mean = (same - other) / (same + other)
        squares = (k * math.exp(2 * alpha) + (L - k) * math.exp(-2 * alpha)) / (same + other) ** 2
        total += math.comb(L, k) * 0.5**L * ((readout * mean - 1) ** 2 + readout**2 * noise * squares)
    return total / 2


def drawn_tasks(seeds, small):
    """Risks over draws of the task, with features +-1."""
    task = es.LinearRegressionTask(1, noise_variance=0.5, features="rademacher")
    truth = signs_risk(0.5, 1.0, 8, 0.5)
    row = Row("icl risk, softmax, drawn tasks", "±1 features, L = 8", "2000 draws")
    for s in row.run(seeds // 4):
        got = es.risk(task, HEAD, 8, engine="direct", draws=2000, seed=s)
        row.add(covers(got.value, got.std_error, truth), got.heavy)
    yield row


def layers(seeds, small):
    """Two softmax heads with a residual on a mixture; truth: the exact engine."""
    if small:
        return
    task = es.DenoisingTask([[1.0], [-1.0]], gamma=0.5, xi=0.5)
    layer = es.Layer([np.array([[0.8]]), np.array([[-0.3]])], [np.array([[0.4]]), np.array([[0.2]])], W=[[0.3]])
    truth = es.risk(task, layer, 10, engine="exact")
    row = Row("risk of a layer, drawn", "two heads, two clusters, L = 10", "1000 draws")
    for s in row.run(seeds // 4):
        got = es.risk(task, layer, 10, engine="direct", draws=1000, seed=s)
        row.add(covers(got.value, got.std_error, truth.value), got.heavy)
    yield row


def risk_gradients(seeds, small):
    """The derivative in U of a risk over eight sets of nodes; truth: differences of a trapezoidal rule."""
    if small:
        return
    step = 1e-4
    truth = (two_token_risk(0.5 + step, 1.0) - two_token_risk(0.5 - step, 1.0)) / (2 * step)
    row = Row("gradient of icl risk, softmax", "d = 1, L = 2", "8 sets of 4096 nodes")
    for s in row.run(seeds // 4):
        got = es.risk(es.LinearRegressionTask(1), HEAD, 2, gradient=True, seed=s)
        row.add(covers(got.gradient.U[0, 0], got.std_error.U[0, 0], truth, 7))
    yield row


def lowest(f, low, high):
    """Where f is smallest, by the golden section."""
    part = (math.sqrt(5) - 1) / 2
    while high - low > 1e-7:
        left, right = high - part * (high - low), low + part * (high - low)
        low, high = (low, right) if f(left) < f(right) else (left, high)
    return (low + high) / 2


def best_factors(seeds, small):
    """What scores must be multiplied by, and what that gains: over nodes (two tokens) and over draws (features +-1)."""
    if small:
        return
    head = ["--set", "model.init={kind=\"dense\",U=[[1.0,0.0],[0.0,0.0]],V=[[0.0,0.0],[0.0,%s]]}"]
    for case, sampled, curve, settings in (
            ("nodes, d = 1, L = 2", "8 sets of 4096 nodes", lambda f: two_token_risk(f, 1.5, 121, 8.0),
             [head[0], head[1] % 1.5, "--length", "2"]),
            ("draws, ±1 features, L = 8", "8 sets of 500 draws", lambda f: signs_risk(f, 1.0, 8, 0.5),
             [head[0], head[1] % 1.0, "--length", "8", "--set", "task.features=rademacher", "--set",
              "task.noise_variance=0.5"])):
        best = lowest(curve, 0.3, 4.0)
        gain = curve(1.0) - curve(best)
        factors = Row("best factor", case, sampled)
        gains = Row("gain of the best factor", case, sampled)
        for s in factors.run(seeds // 4) or gains.run(seeds // 4):
            got = say("icl", "risk", "--set", "task.dim=1", *settings, "--factor", "1", "--seed", str(s))["best"][0]
            factors.add(covers(got["factor"], got["factor_std_error"], best, 7), got["heavy"])
            gains.add(covers(got["gain"], got["gain_std_error"], gain, 7), got["heavy"])
        yield from (factors, gains)


def layer_gradients(seeds, small):
    """The derivative in U of the risk of `layers`, drawn; truth: the exact engine."""
    if small:
        return
    task = es.DenoisingTask([[1.0], [-1.0]], gamma=0.5, xi=0.5)
    layer = es.Layer(np.array([[0.8]]), np.array([[0.4]]), W=[[0.3]])
    truth = es.risk(task, layer, 10, engine="exact", gradient=True).gradient.U[0, 0]
    row = Row("gradient of a layer's risk, drawn", "one head, two clusters, L = 10", "8 sets of 1000 draws")
    for s in row.run(seeds // 4):
        got = es.risk(task, layer, 10, engine="direct", gradient=True, draws=1000, seed=s)
        row.add(covers(got.gradient.U[0, 0], got.std_error.U[0, 0], truth, 7), got.risk.heavy)
    yield row


def layer_quadratures(seeds, small):
    """A layer in three dimensions that reads one of them, over nets of nodes; truth: the lattice of that dimension, and
    half of gamma^2 for each coordinate that it predicts to be 0."""
    if small:
        return
    gamma, along = 0.5, np.diag([1.0, 0.0, 0.0])
    one = es.risk(es.DenoisingTask([[1.0], [-1.0]], gamma=gamma, xi=0.5),
                  es.Layer(np.array([[0.8]]), np.array([[0.4]]), W=[[0.3]]), 10)
    task = es.DenoisingTask([[1.0, 0, 0], [-1.0, 0, 0]], gamma=gamma, xi=0.5)
    layer = es.Layer(0.8 * along, 0.4 * along, W=0.3 * along)
    row = Row("risk of a layer, quadrature", "d = 3, two clusters, L = 10", "8 nets")
    for s in row.run(seeds // 4):
        got = es.risk(task, layer, 10, seed=s)
        row.add(covers(got.value, got.std_error, one.value + gamma**2, 7), got.heavy)
    yield row
