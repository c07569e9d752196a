#!/usr/bin/python3
"""attention_python.py [SECONDS]: attention on an array of tokens, against NumPy and torch, interleaved in one run.

Answers are compared first. Times are the smallest of many rounds, in ms; ratio > 1 means Esscher is faster."""

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "build/dev/python"))
import numpy as np

import esscher as es

try:
    import torch
except ImportError:
    torch = None

CASES = [  # tokens, dimension, queries
    (1000, 16, 1), (100_000, 16, 1), (1_000_000, 16, 1), (100_000, 64, 1),
    (10_000, 64, 64), (4096, 64, 1024), (100_000, 16, 64),
]


def numpy_attention(X, U, z):
    s = (z @ U.T) @ X.T
    w = np.exp(s - s.max(axis=1, keepdims=True))
    return (w @ X) / w.sum(axis=1, keepdims=True)


def torch_attention(X, U, z):
    return torch.softmax((z @ U.T) @ X.T, dim=1) @ X



def rounds(calls, seconds):
    best = {name: float("inf") for name in calls}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def main(seconds):
    print(f"{os.cpu_count()} cores, {es.thread_count()} threads"
          + (f", torch {torch.__version__} {torch.get_num_threads()} threads" if torch else ""))
    print(f"{'dtype':8}{'tokens':>9}{'d':>4}{'queries':>8}{'error':>10}{'esscher':>10}{'numpy':>10}{'ratio':>7}{'torch':>10}{'ratio':>7}")
    for dtype in (np.float64, np.float32):
        for n, d, q in CASES:
            rng = np.random.default_rng(0)
            X = rng.normal(size=(n, d)).astype(dtype)
            U = (0.3 * np.eye(d)).astype(dtype)
            z = rng.normal(size=(q, d)).astype(dtype)
            head = es.Attention(U=U)
            calls = {"esscher": lambda: head(X, z), "numpy": lambda: numpy_attention(X, U, z)}
            if torch:
                tX, tU, tz = map(torch.from_numpy, (X, U, z))
                calls["torch"] = lambda: torch_attention(tX, tU, tz)
            truth = numpy_attention(X.astype(np.float64), U.astype(np.float64), z.astype(np.float64))
            error = np.abs(head(X, z) - truth).max() / np.abs(truth).max()
            assert error < (1e-12 if dtype == np.float64 else 1e-5), error
            for call in calls.values():
                np.testing.assert_allclose(np.asarray(call()), truth, rtol=1e-2, atol=1e-4)
            best = rounds(calls, seconds)
            line = f"{np.dtype(dtype).name:8}{n:>9}{d:>4}{q:>8}{error:>10.1e}{1e3 * best['esscher']:>10.3f}"
            for other in ("numpy", "torch"):
                if other in best:
                    line += f"{1e3 * best[other]:>10.3f}{best[other] / best['esscher']:>7.2f}"
            print(line, flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 2.0)
