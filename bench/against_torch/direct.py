#!/usr/bin/python3
"""Direct kernels against PyTorch + OpenBLAS on this machine, float32.

    cmake --preset release -DESSCHER_BENCH=ON && cmake --build build/release --target esscher_bench_shim
    bench/against_torch/direct.py build/release/bench/libesscher_bench_shim.so [--threads 1 2] [--rounds 15]

Needs Debian's python3-torch and libopenblas0-pthread. For every case the answers of both sides are
compared with a float64 reference before anything is timed; a wrong answer ends the run. Rounds are
interleaved, so that a busy machine slows both sides alike; times are wall-clock.
"""

import argparse
import ctypes
import sys
import time

import numpy as np
import torch


def pointer(x):
    return ctypes.c_void_p(x.ctypes.data)


def relative(got, want):
    return float(np.abs(np.asarray(got, np.float64) - want).max() / max(1.0, np.abs(want).max()))


def reference(a, keys, values):
    s = keys.astype(np.float64) @ a.astype(np.float64)
    w = np.exp(s - s.max())
    w /= w.sum()
    return w, w @ values.astype(np.float64)


class Case:
    """ours() and torch() return the answers; want holds the float64 ones; unit tokens."""

    def __init__(self, name, tokens, unit, allowed, want, ours, torch_, floor=None):
        self.name, self.tokens, self.unit, self.allowed = name, tokens, unit, allowed
        self.want, self.ours, self.torch, self.floor = want, ours, torch_, floor


def cases(lib):
    rng = np.random.default_rng(1)
    n, d = 1 << 20, 64
    keys = rng.standard_normal((n, d), dtype=np.float32)
    values = rng.standard_normal((n, d), dtype=np.float32)
    a = (rng.standard_normal(d) / 8).astype(np.float32)
    r = (rng.standard_normal(d) / 8).astype(np.float32)
    size = ctypes.c_int64
    t = torch.from_numpy
    mean, product = np.zeros(d), np.zeros(d)
    args_kv = pointer(keys), pointer(values), size(n), size(d)

    def one_query():
        lib.shim_tilt(pointer(a), *args_kv, pointer(mean))
        return [mean]

    def one_query_torch():
        return [(torch.softmax(t(keys) @ t(a), 0) @ t(values)).numpy()]

    def read_both():
        lib.shim_read(*args_kv)

    w, out = reference(a, keys, values)
    yield Case("1 query, L = 2^20, d = 64", n, "token", 1e-6, [out], one_query, one_query_torch,
               read_both)

    def vjp():
        lib.shim_product(pointer(a), pointer(r), pointer(keys), size(n), size(d), pointer(mean),
                         pointer(product))
        return [mean, product]

    def vjp_torch():
        tilt = t(a).clone().requires_grad_()
        m = torch.softmax(t(keys) @ tilt, 0) @ t(keys)
        m.backward(t(r))
        return [m.detach().numpy(), tilt.grad.numpy()]

    def read_twice():
        lib.shim_read(pointer(keys), pointer(keys), size(n), size(d))
        lib.shim_read(pointer(keys), pointer(keys), size(n), size(d))

    w, m = reference(a, keys, keys)
    k = w * ((keys.astype(np.float64) - m) @ r.astype(np.float64))
    yield Case("forward + VJP in U, L = 2^20, d = 64", n, "token", 5e-6,
               [m, k @ (keys.astype(np.float64) - m)], vjp, vjp_torch, read_twice)

    q, n_many = 64, 1 << 17
    queries = (rng.standard_normal((q, d)) / 8).astype(np.float32)
    means = np.zeros((q, d))

    def many():
        lib.shim_many(pointer(queries), size(q), pointer(keys), pointer(values), size(n_many),
                      size(d), pointer(means))
        return [means]

    def many_torch():
        return [(torch.softmax(t(queries) @ t(keys[:n_many]).T, 1) @ t(values[:n_many])).numpy()]

    want = np.stack([reference(x, keys[:n_many], values[:n_many])[1] for x in queries])
    yield Case("64 queries, L = 2^17, d = 64", n_many, "token", 1e-6, [want], many, many_torch)

    b, length, d6 = 128, 1000, 6
    tokens = rng.standard_normal((b, length, d6)).astype(np.float32)
    K, Q, V = (rng.standard_normal((d6, d6)).astype(np.float32) / 2.5 for _ in range(3))
    z, g = (rng.standard_normal((b, d6)).astype(np.float32) for _ in range(2))
    out = [np.zeros((b, d6))] + [np.zeros((d6, d6)) for _ in range(3)]

    def batch():
        lib.shim_batch(pointer(K), pointer(Q), pointer(V), pointer(z), pointer(g), pointer(tokens),
                       size(b), size(length), size(d6), *map(pointer, out))
        return out

    def batch_torch(dtype=torch.float32):
        k, qq, v = (t(x).to(dtype).clone().requires_grad_() for x in (K, Q, V))
        x = t(tokens).to(dtype)
        scores = torch.bmm(x @ k.T, (t(z).to(dtype) @ qq.T).unsqueeze(2)).squeeze(2)
        y = torch.bmm(torch.softmax(scores, 1).unsqueeze(1), x @ v.T).squeeze(1)
        y.backward(t(g).to(dtype))
        return [x.detach().numpy() for x in (y, k.grad, qq.grad, v.grad)]

    yield Case("batch 128, L = 1000, d = 6, grads K, Q, V", 1, "batch", 5e-6,
               batch_torch(torch.float64), batch, batch_torch)


def check(case, side, answers):
    error = max(relative(x, y) for x, y in zip(answers, case.want))
    # PyTorch's own loss of digits is reported, not forbidden; a different answer is.
    if not error <= (case.allowed if side == "ours" else 1e-2):
        sys.exit(f"{case.name}: {side} is wrong by {error:.2e}, allowed {case.allowed:.0e}")
    return error


def seconds(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shim")
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    lib = ctypes.CDLL(options.shim)
    print(f"{'ns per token or batch':44} {'thr':>3} {'side':6} {'best':>12} {'median':>12} "
          f"{'error':>8} {'times':>6}")
    for case in cases(lib):
        for threads in options.threads:
            lib.shim_threads(threads)
            torch.set_num_threads(threads)
            sides = {"ours": case.ours, "torch": case.torch}
            errors = {side: check(case, side, run()) for side, run in sides.items()}
            if case.floor:
                sides["read"] = case.floor
            times = {side: [] for side in sides}
            for _ in range(options.rounds):
                for side, run in sides.items():
                    times[side].append(seconds(run) / case.tokens * 1e9)
            ours = np.median(times["ours"])
            for side, values in times.items():
                error = f"{errors[side]:8.1e}" if side in errors else " " * 8
                print(f"{case.name:44} {threads:3} {side:6} {min(values):12.2f} "
                      f"{np.median(values):12.2f} {error} {np.median(values) / ours:6.2f}")


if __name__ == "__main__":
    main()
