"""Brackets of lengths."""

import json
import math
import subprocess

import numpy as np

from .counting import ROOT, Row, es, identity_head


def brackets(seeds, small):
    mu, head = es.Gaussian(np.eye(1)), identity_head(1)
    for case, tau in (("mild, tau 0.5", 0.5), ("sharp, tau 1.3", 1.3)):
        points = np.array([[tau]])
        truth = es.shortest_length(mu, head, points, 0.05).length
        for R in (3,) if small else (2, 3, 5, 8):
            row = Row("length bracket, one given query", case, f"{R} prompts", states_misses=True)
            for s in row.run(seeds // 2):
                got = es.shortest_length(mu, head, points, 0.05, engine="sampled", replicates=R, seed=s).details
                low, high = got["bracket"] or (1, math.inf)
                row.miss = max(row.miss, got["error_probability"])
                row.add(low <= truth <= high, got["flag"] is not None)
            yield row


def mixture_brackets(seeds, small):
    """Mixture tokens, queries N(0,1): no token is drawn, the bracket is that of nets of queries."""
    one = es.Gaussian(np.eye(1))
    two = es.Mixture([0.5, 0.5], [one, one])
    for case, lam in (("mild, lambda 0.1", 0.1), ("sharp, lambda 0.45", 0.45)):
        head = es.Attention(U=[[math.sqrt(lam)]], V=np.eye(1))
        truth = es.shortest_length(one, head, one, 0.01).length
        row = Row("length bracket, mixture", case, "8 nets of 8", states_misses=True)
        for s in row.run(max(20, seeds // 10)):
            got = es.shortest_length(two, head, one, 0.01, query_count=64, seed=s).details
            low, high = got["bracket"] or (1, math.inf)
            row.miss = max(row.miss, got["error_probability"])
            row.add(low <= truth <= high, got["flag"] is not None)
        yield row
        if small:
            return


def sampled_brackets(seeds, small):
    """Lengths for drawn queries: of the mean, and of the median over queries, which is the answer at the
    median of |z| because the error grows with |z|."""
    if small:
        return
    mu, head = es.Gaussian(np.eye(1)), es.Attention(U=[[0.3]], V=np.eye(1))
    middle = np.array([[0.6744897501960817]])
    for case, options, truth in (
            ("mean of queries, lambda 0.09", {}, es.shortest_length(mu, head, mu, 0.01).length),
            ("median of queries", {"quantile": 0.5}, es.shortest_length(mu, head, middle, 0.01).length)):
        row = Row("length bracket, drawn queries", case, "128 queries, 8 prompts", states_misses=True)
        for s in row.run(seeds // 5):
            got = es.shortest_length(mu, head, mu, 0.01, engine="sampled", query_count=128, seed=s, **options).details
            low, high = got["bracket"] or (1, math.inf)
            row.miss = max(row.miss, got["error_probability"])
            row.add(low <= truth <= high, got["flag"] is not None)
        yield row


def trained_lengths(seeds, small):
    """L(eps) of training: flows on few nodes. Truth: the smallest L whose minimum of the risk is 0.01, where
    tests/paper/independent.py has 2011.70 for d = 3, covariances 0.5^|i-j|, no noise."""
    if small:
        return
    truth = 2012
    row = Row("L(eps) of training", "softmax, d = 3, eps = 0.01", "sets of 128 nodes")
    for s in row.run(seeds // 5):
        text = subprocess.run(
            [ROOT / "build/dev/cli/esscher", "icl", "compare", "--set", "task.dim=3", "--set",
             'task.prompt_cov={kind="kcm",rho=0.5}', "--length", "inf", "--set",
             "sweep.eps=[0.01]", "--set", "flow.log2_nodes=7", "--threads", "1", "--seed", str(s), "--json", "--quiet"],
            check=True, capture_output=True, text=True).stdout
        got = next(x for x in json.loads(text)["lengths"] if x["model"] == "softmax")
        row.add(got["length_low"] <= truth <= got["length_high"])
    yield row
