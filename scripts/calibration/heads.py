"""What is said of the heads of a model, and intervals that tests of the library count."""

import json
import math
import os
import pathlib
import subprocess
import tempfile

import numpy as np

from .counting import MORE, ROOT, Row, es


def diagnosed(keys, queries, values, **options):
    """The row of one head that sees these keys, whatever its error."""
    return es.heads(queries, keys, values, score_scale=1.0, components=[], windows=[], tolerance=1e-9,
                    **options).rows[0]


def cause_of(row, name):
    return next(cause for cause in row["causes"] if cause["cause"] == name)


def steps(keys):
    """Keys whose second half is one deviation further in every coordinate."""
    keys = keys.copy()
    keys[len(keys) // 2:] += 1
    return keys


def drift_truth(queries):
    """Deviations between the halves of such keys, per query, as a root mean square."""
    step = queries.sum(1)
    return math.sqrt(np.mean(step**2 / ((queries**2).sum(1) + step**2 / 4)))


def cluster_truth(apart):
    """Nats per key that two clusters at +-apart explain better than the Gaussian of their variance."""
    x = np.linspace(-apart - 10, apart + 10, 200001)
    two = (np.exp(-(x - apart)**2 / 2) + np.exp(-(x + apart)**2 / 2)) / 2
    p = two / two.sum()
    return float(p @ (np.log(two) + 0.5 * math.log(1 + apart**2) + x * x / (2 * (1 + apart**2))))


def kurtosis_truth(queries, of_one):
    """The median over queries of the kurtosis of <a, k> for independent coordinates of kurtosis of_one."""
    a2 = queries**2
    return float(np.median(3 + (of_one - 3) * (a2**2).sum(1) / a2.sum(1)**2))


def causes(seeds, small):
    """Why a head fails: keys whose departure from Gaussian ones is known."""
    queries = 0.7 * np.random.default_rng(5).standard_normal((8, 5))
    normal = lambda rng, n: rng.standard_normal((n, 5))  # noqa: E731
    # Clusters are looked for in three directions, so that these keys have three.
    def clusters(rng, n):
        return (normal(rng, n) + 3 * rng.choice([-1, 1], (n, 1)) * np.eye(5)[0]) * [1, 1, 1, 0, 0]

    cases = [("kurtosis", "Gaussian keys", 600, normal, 3.0),
             ("kurtosis", "uniform keys", 600, lambda rng, n: rng.uniform(-1, 1, (n, 5)), kurtosis_truth(queries, 1.8)),
             ("kurtosis", "Laplace keys", 600, lambda rng, n: rng.laplace(size=(n, 5)), kurtosis_truth(queries, 6)),
             ("tails", "Gaussian keys", 1000, normal, 1.0),
             ("drift", "none", 600, normal, 0.0),
             ("drift", "one deviation", 600, lambda rng, n: steps(normal(rng, n)), drift_truth(queries)),
             ("clusters", "three deviations", 600, clusters, cluster_truth(3.0))]
    for name, case, n, keys, truth in cases[:1] + cases[5:6] if small else cases:
        row = Row(f"cause of a head: {name}", case, f"{n} keys")
        for s in row.run(seeds // 4):
            rng = np.random.default_rng(s)
            K = keys(rng, n)
            found = cause_of(diagnosed(K, queries, K[:, :1] + rng.standard_normal((n, 1))), name)
            row.add(found["low"] <= truth <= found["high"], found["flag"])
        yield row


def autoregressive(rng, n, d, rho):
    x = rng.standard_normal((n, d))
    for i in range(1, n):
        x[i] = rho * x[i - 1] + np.sqrt(1 - rho * rho) * x[i]
    return x


def neighbours(seeds, small):
    """kappa of keys whose coordinates follow autoregressions with coefficients rho: the mean of
    (1 + rho)/(1 - rho). Where its interval has no upper end, kappa is flagged as a lower bound."""
    cases = (("d = 1, rho = 0.5", [0.5]), ("d = 1, rho = 0.8", [0.8]), ("d = 4, rho = 0.5", 4 * [0.5]),
             ("d = 8, rho = -0.3", 8 * [-0.3]), ("one slower coordinate of 4", [0.7] + 3 * [0.3]),
             ("one slow coordinate of 16", [0.95] + 15 * [0.3]))
    for case, rhos in cases[2:3] if small else cases:
        rho, d = np.array(rhos), len(rhos)
        queries = 0.5 * np.random.default_rng(6).standard_normal((4, d))
        truth = float(np.mean((1 + rho) / (1 - rho)))
        row = Row("kappa of a head", case, "1500 keys")
        for s in row.run(seeds // 4):
            K = autoregressive(np.random.default_rng(s), 1500, d, rho)
            found = diagnosed(K, queries, K)
            row.add(found["kappa_low"] <= truth <= found["kappa_high"], math.isinf(found["kappa_high"]))
        yield row


def shares(seeds, small):
    """Statistics over the queries of one prompt, against as many queries as one likes of the same law."""
    if small:
        return
    row = Row("cause of a head: dominant", "one of 40 keys stands out", "128 queries")
    for s in row.run(seeds // 4):
        rng = np.random.default_rng(s)
        K, many = rng.standard_normal((40, 3)), 0.8 * rng.standard_normal((20000, 3))
        K[0] *= 7 / np.linalg.norm(K[0])
        scores = many @ K.T
        weights = np.exp(scores - scores.max(1, keepdims=True))
        top = (weights / weights.sum(1, keepdims=True)).argmax(1)
        heavy = (weights / weights.sum(1, keepdims=True)).max(1) > 0.5
        share = max(np.mean(heavy & (top == k)) for k in range(40))
        found = cause_of(diagnosed(K, 0.8 * rng.standard_normal((128, 3)), K), "dominant")
        row.add(found["low"] <= share <= found["high"])
    yield row


def counted(seeds, small):
    """Coverage that a test of the library counted over seeds of its own, from what it records."""
    tests = (("estimate", "BlockInterval.CoversAsOftenAsItSays"), ("heads", "Causes.PositionsHaveTheirShare"),
             ("training", "GradientGap.RareQueriesAreSeenAndErrorsCover"))
    for program, only in tests[:1] if small else tests:
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "found.json"
            more = {"ESSCHER_COVERAGE": str(MORE)} if Row.only else {}
            subprocess.run([ROOT / f"build/dev/tests/test_{program}", f"--gtest_filter={only}",
                            f"--gtest_output=json:{file}"], capture_output=True, env={**os.environ, **more})
            found = json.loads(file.read_text())
        for test in (test for suite in found["testsuites"] for test in suite["testsuite"]):
            for text in (test[key] for key in sorted(test) if key.startswith("coverage")):
                kind, case, sampled, n, flagged, held = text.split("|")
                row = Row(kind, case, sampled)
                row.seeds, row.flagged, row.covered = int(n), int(flagged), int(held)
                yield row


def limit_errors(keys, values, a):
    """|T - the Gaussian limit| over |T - mean value| of queries a, in NumPy: the method `limit` of --budget."""
    scores = a @ keys.T
    weights = np.exp(scores - scores.max(1, keepdims=True))
    outputs = weights @ values / weights.sum(1, keepdims=True)
    mean, centred = values.mean(0), values - values.mean(0)
    cross = centred.T @ (keys - keys.mean(0)) / len(keys)
    return np.linalg.norm(outputs - mean - a @ cross.T, axis=1) / np.linalg.norm(outputs - mean, axis=1)


def budgets(seeds, small):
    """Errors at equal memory over the queries of one prompt, against as many queries as one likes of the same law."""
    if small:
        return
    rng = np.random.default_rng(7)
    keys = rng.standard_normal((60, 3))
    values = keys[:, :1] + rng.standard_normal((60, 2))
    truth = float(np.median(limit_errors(keys, values, 0.8 * rng.standard_normal((400000, 3)))))
    for m in (40, 200):
        row = Row("error at equal memory", "the limit, 60 keys", f"{(m - min(64, m // 8)) // 2} queries")
        for s in row.run(seeds // 4):
            queries = 0.8 * np.random.default_rng(s).standard_normal((m, 3))
            found = next(b for b in diagnosed(keys, queries, values, budgets=[16])["budget"] if b["method"] == "limit")
            row.add(abs(found["lin_c"] - truth) <= 1.959964 * found["lin_c_std_error"])
        yield row
