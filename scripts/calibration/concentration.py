"""Errors of finite prompts: D(L), its slope, suprema, medians, outputs and their moments."""

import math

import numpy as np

from .counting import Row, covers, es, identity_head, say, study_rows


def given_gaussian(seeds, small):
    """Sampled prompts at given queries of Gaussian tokens; truth: the exact engine."""
    for case, d, taus in (("mild, d = 1, tau 0.5", 1, [0.5]), ("mild, d = 3, tau 0.3, 0.6, 0.8", 3, [0.3, 0.6, 0.8]),
                          ("sharp, d = 1, tau 1.5", 1, [1.5])):
        points = np.zeros((len(taus), d))
        points[:, 0] = taus
        mu, head = es.Gaussian(np.eye(d)), identity_head(d)
        # One length per study: lengths of one study share prompts, and would not count as one each.
        truth = es.concentration(mu, head, points, [32], metrics=["output"], engine="exact").rows[0]["value"]
        for R in (2, 8) if small else (2, 4, 8, 32, 128, 512):
            yield study_rows("D(L), given queries", case, f"{R} prompts", [truth], lambda s, R=R: es.concentration(
                mu, head, points, [32], metrics=["output"], engine="sampled", replicates=R, seed=s), seeds)


def rademacher_error(a, L):
    """D(L) of tokens +-1 at tilt a, by enumeration over the number of +1."""
    total = 0.0
    for k in range(L + 1):
        up, down = k * math.exp(a), (L - k) * math.exp(-a)
        total += math.comb(L, k) * 0.5**L * ((up - down) / (up + down) - math.tanh(a)) ** 2
    return total


def given_direct(seeds, small):
    mu, head = es.Rademacher(1), identity_head(1)
    for case, tilts in (("±1 tokens, mild", (0.3, -0.5)), ("±1 tokens, sharp", (2.0,))):
        L = 24 if len(tilts) == 2 else 8
        points = np.array([[a] for a in tilts])
        truth = sum(rademacher_error(a, L) for a in tilts) / len(tilts)
        for R in (8,) if small else (2, 8, 100, 512):
            yield study_rows("D(L), given queries, direct", case, f"{R} prompts", [truth], lambda s, R=R:
                             es.concentration(mu, head, points, [L], metrics=["output"], engine="direct",
                                              replicates=R, seed=s), seeds)


def drawn(seeds, small):
    """Queries drawn from N(0,1); truth: both averages in closed form."""
    mu = es.Gaussian(np.eye(1))
    for case, lam in (("mild, lambda 0.05", 0.05), ("sharp, lambda 0.5", 0.5)):
        head = es.Attention(U=[[math.sqrt(lam)]], V=np.eye(1))
        truth = es.concentration(mu, head, mu, [100], metrics=["output"], engine="exact").rows[0]["value"]
        for Q, R in ((64, 2),) if small else ((2, 8), (8, 8), (64, 2), (64, 8), (512, 2), (512, 8)):
            yield study_rows("D(L), drawn queries", case, f"{Q} queries, {R} prompts", [truth], lambda s, Q=Q, R=R:
                             es.concentration(mu, head, mu, [100], metrics=["output"], engine="sampled",
                                              query_count=Q, replicates=R, seed=s), max(50, seeds // 2))


def nets(seeds, small):
    """Mixture tokens: no token is drawn, queries are nets. Two equal components are one Gaussian."""
    one = es.Gaussian(np.eye(1))
    two = es.Mixture([0.5, 0.5], [one, one])
    head = es.Attention(U=[[0.5]], V=np.eye(1))
    truth = es.concentration(one, head, one, [100], metrics=["output"], engine="exact").rows[0]["value"]
    yield study_rows("D(L), nets of queries", "mild, lambda 0.25", "8 nets of 8", [truth], lambda s: es.concentration(
        two, head, one, [100], metrics=["output"], query_count=64, seed=s), max(50, seeds // (4 if small else 1)))


def slopes(seeds, small, prompts=(12, 32, 128)):
    mu, head = es.Gaussian(np.eye(2)), identity_head(2)
    points, lengths = np.array([[0.3, 0.1], [-0.2, 0.4], [0.1, -0.5]]), [20, 40, 80, 160, 320]
    truth = es.concentration(mu, head, points, lengths, metrics=["output"], engine="exact").fits[0]["slope"]
    for R in prompts[:1] if small else prompts:
        row = Row("slope, given queries", "mild", f"{R} prompts")
        for s in row.run(max(100, seeds // 2)):
            fit = es.concentration(mu, head, points, lengths, metrics=["output"], engine="sampled", replicates=R,
                                   seed=s).fits[0]
            row.add(fit["ci"][0] <= truth <= fit["ci"][1])
        yield row


def few_slopes(seeds, small):
    if not small:
        yield from slopes(seeds, small, (2, 4, 8))


def sampled_slopes(seeds, small):
    """Slopes over drawn queries of Gaussian tokens; truth: both averages in closed form."""
    if small:
        return
    mu, lengths = es.Gaussian(np.eye(1)), [20, 40, 80, 160, 320]
    head = es.Attention(U=[[math.sqrt(0.05)]], V=np.eye(1))
    truth = es.concentration(mu, head, mu, lengths, metrics=["output"], engine="exact").fits[0]["slope"]
    for Q, R in ((64, 8), (512, 2)):
        row = Row("slope, drawn queries", "mild, lambda 0.05", f"{Q} queries, {R} prompts")
        for s in row.run(seeds // 4):
            fit = es.concentration(mu, head, mu, lengths, metrics=["output"], engine="sampled", query_count=Q,
                                   replicates=R, seed=s).fits[0]
            row.add(fit["ci"][0] <= truth <= fit["ci"][1])
        yield row


def gradients(seeds, small):
    """Errors of the gradient in U at a given query; short prompts are flagged."""
    if small:
        return
    mu, head, points = es.Gaussian(np.eye(3)), identity_head(3), np.array([[0.3, 0.0, 0.0]])
    for L in (8, 64):
        truth = es.concentration(mu, head, points, [L], metrics=["grad_u"], engine="exact").rows[0]["value"]
        for R in (2, 8, 64):
            yield study_rows("gradient in U, given query", f"d = 3, tau 0.3, L = {L}", f"{R} prompts", [truth],
                             lambda s, R=R, L=L: es.concentration(mu, head, points, [L], metrics=["grad_u"],
                                                                  engine="sampled", replicates=R, seed=s), seeds)


def sup_truth(L, radius):
    """E sup over |z| <= radius of |T_hat(z) - tanh z| for tokens +-1, by enumeration over the number of +1."""
    z, total = np.linspace(-radius, radius, 20001), 0.0
    for k in range(L + 1):
        up, down = k * np.exp(z), (L - k) * np.exp(-z)
        total += math.comb(L, k) * 0.5**L * float(np.max(np.abs((up - down) / (up + down) - np.tanh(z))))
    return total


def sups(seeds, small):
    """The supremum over a ball of queries; it lies between value and value + resolution."""
    for L, R in ((16, 32),) if small else ((16, 8), (16, 32)):
        truth = sup_truth(L, 1.0)
        row = Row("sup over queries", f"±1 tokens, radius 1, L = {L}", f"{R} prompts")
        for s in row.run(max(100, seeds // 4)):
            got = say("concentration", "--metric", "sup", "--radius", "1", "--set", "measure.type=rademacher", "--set",
                      "measure.dim=1", "--set", f"sweep.lengths=[{L}]", "--set", f"sweep.replicates={R}",
                      "--seed", str(s))["rows"][0]
            row.add(got["ci"][0] <= truth <= got["ci"][1] + got["resolution"])
        yield row


def medians(seeds, small):
    """The median of sum omega^2 for two scores N(0, tau^2): it grows with their distance, whose median is known."""
    for tau, n in ((1.0, 101),) if small else ((1.0, 101), (1.0, 1001), (3.0, 101)):
        w = 1 / (1 + math.exp(-0.6744897501960817 * math.sqrt(2) * tau))
        truth = w * w + (1 - w) ** 2
        row = Row("median of H", f"L = 2, tau {tau:g}", f"{n} prompts")
        for s in row.run(max(100, seeds // 2)):
            got = say("universal", "--length", "2", "--tau", str(tau), "--draws", str(n), "--seed", str(s))
            row.add(abs(got["H_median"] - truth) <= 1.959964 * got["H_median_error"])
        yield row


def attended(seeds, small):
    """Outputs of prompts with a given token, a sink and the query itself, direct; truth: score laws."""
    head, z = identity_head(2), np.array([0.6, 0.2])
    prompt = es.Prompt(es.Sphere(2), given=[[1.0, 1.0]], include_query=True, sink_logits=[0.5])
    truth = es.attend(prompt, head, z, 20).output[0]
    for R in (64,) if small else (64, 256):
        row = Row("output of a prompt, direct", "sphere, a given token, a sink, self", f"{R} prompts")
        for s in row.run(max(100, seeds // 2)):
            got = es.attend(prompt, head, z, 20, engine="direct", replicates=R, seed=s)
            row.add(abs(got.output[0] - truth) <= 1.959964 * got.std_error[0])
        yield row


def pair_error(a, rho, points=401, reach=9.0):
    """D(2) at tilt a of two neighbouring tokens N(0,1) with correlation rho, against the limit a."""
    g = np.linspace(-reach, reach, points)
    p = np.exp(-g * g / 2)
    p /= p.sum()
    x, y = g[:, None], rho * g[:, None] + math.sqrt(1 - rho * rho) * g[None, :]
    w = 1 / (1 + np.exp(-a * (x - y)))
    return float(p @ (w * x + (1 - w) * y - a) ** 2 @ p)


def dependents(seeds, small):
    """Tokens that depend on their neighbours, direct engine."""
    mu = es.Stationary(es.Gaussian(np.eye(1)), ar=[[[0.6]]])
    truth = pair_error(0.3, 0.6)
    for R in (64,) if small else (8, 64):
        yield study_rows("D(L), dependent tokens", "rho 0.6, tilt 0.3, L = 2", f"{R} prompts", [truth], lambda s, R=R:
                         es.concentration(mu, identity_head(1), np.array([[0.3]]), [2], metrics=["output"],
                                          engine="direct", replicates=R, seed=s), seeds)


def moments_truth(L, scale, prompts=400000):
    """E |mean of the outputs| of prompts of N(0,1) tokens that attend to themselves, by NumPy; its limit is 0."""
    rng, total, square, done = np.random.default_rng(1), 0.0, 0.0, 0
    while done < prompts:
        x = rng.standard_normal((20000, L))
        w = np.exp(scale * x[:, :, None] * x[:, None, :])
        y = np.abs(((w * x[:, None, :]).sum(2) / w.sum(2)).mean(1))
        total, square, done = total + y.sum(), square + (y * y).sum(), done + len(x)
    mean = total / done
    return mean, math.sqrt((square / done - mean**2) / done)


# moments_truth(10, 0.5) and its standard error.
MOMENT, MOMENT_ERROR = 0.35412719, 0.00043162


def output_moments(seeds, small):
    """The distance of the mean output from its limit, over prompts."""
    mu, head = es.Gaussian(np.eye(1)), es.Attention(U=[[0.5]], V=np.eye(1))
    for R, dof in ((32, 31),) if small else ((16, 15), (32, 31), (200, None)):
        row = Row("moments of outputs", "d = 1, H 0.5, L = 10", f"{R} prompts")
        for s in row.run(seeds // 4):
            found = es.output_moments(mu, head, [10], replicates=R, seed=s).rows[0]
            row.add(covers(found["value"], found["std_error"], MOMENT, dof))
        yield row


def limit_sizes(seeds, small):
    """The mean square of the limit over drawn queries: of tokens N(0,1) and scores lambda^(1/2) z, which is lambda."""
    if small:
        return
    lam = 0.05
    for Q in (64, 512):
        row = Row("size of the limit, drawn queries", f"lambda {lam}", f"{Q} queries")
        for s in row.run(seeds // 4):
            found = say("concentration", "--set", "measure.type=gaussian", "--set", "measure.dim=1", "--set",
                        f"attention.U={math.sqrt(lam)}", "--set", "sweep.lengths=[4]", "--set", "sweep.replicates=2",
                        "--set", "sweep.engine=sampled", "--set", f"sweep.queries={Q}", "--seed", str(s))
            size = found["limits"]["output"]
            row.add(size["ci"][0] <= lam <= size["ci"][1])
        yield row


def reached(seeds, small):
    """The length of an error of 1 %, read off a sampled curve between its lengths; truth: the certified length."""
    if small:
        return
    mu, head, tau = es.Gaussian(np.eye(1)), identity_head(1), 0.5
    truth = es.shortest_length(mu, head, np.array([[tau]]), error="1%").length
    row = Row("length for 1 %, off the curve", "one given query, tau 0.5", "32 prompts")
    for s in row.run(seeds // 4):
        found = say("concentration", "--set", "measure.type=gaussian", "--set", "measure.dim=1", "--set",
                    "attention.U=1.0", "--set", f"query.z=[[{tau}]]", "--set", f"sweep.lengths={around(truth)}", "--set",
                    "sweep.replicates=32", "--set", "sweep.engine=sampled", "--seed", str(s))["one_percent"]
        row.add((found["low"] or 0) <= truth <= (found["high"] or math.inf))
    yield row


def around(length):
    """Lengths from a half to twice of one."""
    return [round(length * 2**(k / 4)) for k in range(-4, 5)]


# Lengths, and moments_truth at each with H = 0.5; their standard errors are a thousandth.
SLOPE_LENGTHS = [4, 6, 9, 13, 20]
SLOPE_MOMENTS = [0.51282692, 0.43765341, 0.37050765, 0.31546861, 0.25965960]


def moment_slopes(seeds, small):
    """The slope of log E|mean of outputs| over log L; truth: a line through moments_truth at the same lengths."""
    if small:
        return
    mu, head = es.Gaussian(np.eye(1)), es.Attention(U=[[0.5]], V=np.eye(1))
    truth = float(np.polyfit(np.log(SLOPE_LENGTHS), np.log(SLOPE_MOMENTS), 1)[0])
    for R in (16, 64):
        row = Row("slope of moments", "d = 1, H 0.5, L = 4 to 20", f"{R} prompts")
        for s in row.run(seeds // 4):
            fit = next(f for f in es.output_moments(mu, head, SLOPE_LENGTHS, replicates=R, seed=s).fits
                       if f["moment"] == "mean")
            row.add(fit["ci"][0] <= truth <= fit["ci"][1])
        yield row


def local_exponents(seeds, small):
    """The exponent between two neighbouring lengths, which sampled prompts share."""
    if small:
        return
    mu, head, points, lengths = es.Gaussian(np.eye(1)), identity_head(1), np.array([[0.5]]), [20, 40, 80]
    exact = es.concentration(mu, head, points, lengths, metrics=["output"], engine="exact")
    truth = exact.fits[0]["local"][0]["exponent"]
    for R, dof in ((32, 31), (128, None)):
        row = Row("exponent of neighbouring lengths", "one given query, tau 0.5", f"{R} prompts")
        for s in row.run(seeds // 2):
            found = es.concentration(mu, head, points, lengths, metrics=["output"], engine="sampled", replicates=R,
                                     seed=s).fits[0]["local"][0]
            row.add(covers(found["exponent"], found["std_error"], truth, dof))
        yield row
