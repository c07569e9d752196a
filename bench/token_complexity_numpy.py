#!/usr/bin/env python3
"""The straightforward NumPy version of bench/token_complexity_bench.cc, for comparison.

Token sample complexity of attention in the setting of Bohbot et al. (arXiv 2512.10656): d = 50, Gaussian tokens and
queries N(0, I/d) (our reading of their setting), U = scale * identity for 12 scales from 0.05 to 50, V = identity, 12 lengths from 10^3
to 10^5, 200 replicates. Each replicate draws one query and one prompt of the longest length and
attends to every prefix. Prints seconds for the replicates done and, scaled, for all 200.

    /usr/bin/python3 bench/token_complexity_numpy.py --replicates 2
"""
import argparse
import json
import time

import numpy as np

DIM = 50
SCALES = np.geomspace(0.05, 50, 12)
LENGTHS = np.rint(np.geomspace(1e3, 1e5, 12)).astype(int)


def squared_errors(rng, scale):
    """|T_hat_L(z) - T(z)|^2 at every length, one prompt."""
    z = rng.standard_normal(DIM) / np.sqrt(DIM)
    tokens = rng.standard_normal((LENGTHS[-1], DIM)) / np.sqrt(DIM)
    limit = scale * z / DIM
    scores = tokens @ (scale * z)
    errors = []
    for length in LENGTHS:
        weights = np.exp(scores[:length] - scores[:length].max())
        output = weights @ tokens[:length] / weights.sum()
        errors.append(np.sum((output - limit) ** 2))
    return np.array(errors)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=int, default=200)
    replicates = parser.parse_args().replicates
    rng = np.random.default_rng(0)
    start = time.perf_counter()
    means = [np.mean([squared_errors(rng, s) for _ in range(replicates)], axis=0) for s in SCALES]
    seconds = time.perf_counter() - start
    print(json.dumps({
        "replicates": replicates,
        "seconds": seconds,
        "seconds_for_200": seconds * 200 / replicates,
        "lengths": LENGTHS.tolist(),
        "scales": SCALES.tolist(),
        "mean_square_error": [m.tolist() for m in means],
    }))


if __name__ == "__main__":
    main()
