"""Attention on given tokens against NumPy, PyTorch and ONNX Runtime: the direct rows of bench/table.

Every answer is compared with float64 before it is timed. Times are CPU seconds of one thread, which a busy machine
disturbs little, and rounds of all sides alternate."""

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[2]
ONNX = "onnxruntime-node@1.30.0"  # from npm; it has its own libraries for Linux on x86-64 and arm64
SECTION = "Given tokens"


def pointer(x):
    return ctypes.c_void_p(x.ctypes.data)


def softmax(scores):
    scores = scores - scores.max(axis=1, keepdims=True)
    weights = np.exp(scores, out=scores)
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


def numpy_attention(a, k, v):
    s = a @ k.T
    s -= s.max(axis=1, keepdims=True)
    np.exp(s, out=s)
    return (s @ v) / s.sum(axis=1, keepdims=True)


def numpy_causal(a, k, v):
    s = a @ k.T
    s[np.triu_indices(len(a), 1)] = -np.inf
    s -= s.max(axis=1, keepdims=True)
    np.exp(s, out=s)
    return (s @ v) / s.sum(axis=1, keepdims=True)


def truth(a, k, v, rows, causal=False):
    """Outputs in float64 of a few queries."""
    a, k, v = (x.astype(np.float64) for x in (a, k, v))
    out = []
    for i in rows:
        seen = i + 1 if causal else len(k)
        out.append(softmax((k[:seen] @ a[i])[None])[0] @ v[:seen])
    return np.stack(out)


def install_onnx():
    """The folder with onnxruntime-node, fetched once by npm; None, with a message, where that fails."""
    folder = ROOT / "build/cache/onnx"
    if not (folder / "node_modules/onnxruntime-node").is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--prefix", str(folder), "--no-save", "--ignore-scripts", ONNX]
        try:
            done = subprocess.run(command, capture_output=True, text=True)
        except FileNotFoundError:
            done = None
        if done is None or done.returncode != 0:
            why = "there is no npm" if done is None else done.stderr.strip()[-200:]
            print(f"skipped: ONNX Runtime, because npm cannot install {ONNX}: {why}", file=sys.stderr)
            return None
    return folder


class Onnx:
    """One session in Node. run() computes once and returns its CPU seconds."""

    def __init__(self, folder, a, k, v):
        self.scratch = tempfile.TemporaryDirectory()
        for name, x in (("q", a), ("k", k), ("v", v)):
            x.tofile(os.path.join(self.scratch.name, name))
        shape = [str(n) for n in (len(a), len(k), a.shape[1])]
        script = str(Path(__file__).with_name("onnx_peer.cjs"))
        self.node = subprocess.Popen(["node", script, str(folder), self.scratch.name, *shape], text=True,
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.run()
        self.answer = np.fromfile(os.path.join(self.scratch.name, "out"), np.float32).reshape(len(a), -1)

    def run(self):
        self.node.stdin.write("\n")
        self.node.stdin.flush()
        line = self.node.stdout.readline()
        if not line:
            raise RuntimeError("the session of ONNX Runtime has ended")
        return json.loads(line)

    def close(self):
        self.node.stdin.close()
        self.node.wait()
        self.scratch.cleanup()


def cpu_seconds(call):
    start = time.process_time()
    call()
    return time.process_time() - start


def relative(got, want):
    return float(np.abs(np.asarray(got, np.float64) - want).max() / max(1.0, np.abs(want).max()))


def measure(task, flops, sides, want, rows, allowed, rounds, onnx=None):
    """A row of the table. sides: name -> call that returns the outputs; the first is ours."""
    errors = {name: relative(np.asarray(call())[rows], want) for name, call in sides.items()}
    if onnx is not None:
        errors["ONNX Runtime"] = relative(onnx.answer[rows], want)
    for name, error in errors.items():
        if not error <= (allowed if name == "Esscher" else 1e-3):
            sys.exit(f"{task}: {name} is wrong by {error:.2e}, allowed {allowed:.0e}")
    times = {name: [] for name in errors}
    for _ in range(rounds):
        for name, call in sides.items():
            times[name].append(cpu_seconds(call))
        if onnx is not None:
            times["ONNX Runtime"].append(onnx.run())
    if onnx is not None:
        onnx.close()
    return {"section": SECTION, "task": task, "unit": "ms", "scale": 1e3, "error": errors["Esscher"], "flops": flops,
            "times": times}


def forward(lib, folder, rng, q, n, d, rounds, dtype=np.float32, causal=False):
    a, k, v = ((scale * rng.standard_normal((m, d))).astype(dtype) for m, scale in ((q, 0.125), (n, 1), (n, 1)))
    means = np.zeros((q, d))
    kind = "shim_causal" if causal else "shim_many" if dtype == np.float32 else "shim_many_double"
    size = ctypes.c_int64

    def ours():
        getattr(lib, kind)(pointer(a), size(q), pointer(k), pointer(v), size(n), size(d), pointer(means))
        return means

    ta, tk, tv = map(torch.from_numpy, (a, k, v))
    hidden = torch.triu(torch.full((q, n), float("-inf")), 1) if causal else None

    def with_torch():
        s = ta @ tk.T
        return (torch.softmax(s + hidden if causal else s, 1) @ tv).numpy()

    numpy_ = numpy_causal if causal else numpy_attention
    rows = sorted({0, q // 3, q - 1})
    name = np.dtype(dtype).name
    task = f"{q} queries, n = {n}, d = {d}, {name}" + (", causal" if causal else "")
    onnx = Onnx(folder, a, k, v) if folder and dtype == np.float32 and not causal else None
    row = measure(task, 4.0 * q * n * d * (0.5 if causal else 1), {
        "Esscher": ours, "PyTorch": with_torch, "NumPy": lambda: numpy_(a, k, v)
    }, truth(a, k, v, rows, causal), rows, 1e-6 if dtype == np.float32 else 1e-13, rounds, onnx)
    return {**row, "peak_share": 4 / np.dtype(dtype).itemsize}


def gradient(lib, rng, q, n, d, rounds):
    """Means and C_hat r of every query, which give the gradients in U, V, K, Q."""
    a, r, x = ((scale * rng.standard_normal((m, d))).astype(np.float32) for m, scale in ((q, 0.125), (q, 0.125), (n, 1)))
    means, products = np.zeros((q, d)), np.zeros((q, d))
    size = ctypes.c_int64

    def ours():
        lib.shim_many_product(pointer(a), pointer(r), size(q), pointer(x), size(n), size(d), pointer(means),
                              pointer(products))
        return products

    def with_torch():
        tilt = torch.from_numpy(a).clone().requires_grad_()
        tokens = torch.from_numpy(x)
        (torch.softmax(tilt @ tokens.T, 1) @ tokens).backward(torch.from_numpy(r))
        return tilt.grad.numpy()

    rows = sorted({0, q // 3, q - 1})
    want = []
    for i in rows:
        z = x.astype(np.float64)
        w = softmax((z @ a[i].astype(np.float64))[None])[0]
        t = z @ r[i].astype(np.float64)
        want.append((w * (t - w @ t)) @ z)
    return measure(f"{q} queries, n = {n}, d = {d}, float32, forward and VJP", 8.0 * q * n * d,
                   {"Esscher": ours, "PyTorch": with_torch}, np.stack(want), rows, 5e-6, rounds)


def one_query(lib, rng, n, d, rounds):
    k, v = (rng.standard_normal((n, d), dtype=np.float32) for _ in range(2))
    a = (rng.standard_normal((1, d)) / 8).astype(np.float32)
    mean = np.zeros((1, d))
    size = ctypes.c_int64

    def ours():
        lib.shim_tilt(pointer(a), pointer(k), pointer(v), size(n), size(d), pointer(mean))
        return mean

    ta, tk, tv = torch.from_numpy(a[0]), torch.from_numpy(k), torch.from_numpy(v)
    row = measure(f"1 query, n = {n}, d = {d}, float32", None, {
        "Esscher": ours, "PyTorch": lambda: (torch.softmax(tk @ ta, 0) @ tv).numpy()[None],
        "NumPy": lambda: numpy_attention(a, k, v)
    }, truth(a, k, v, [0]), [0], 1e-6, rounds)
    reads = [cpu_seconds(lambda: lib.shim_read(pointer(k), pointer(v), size(n), size(d))) for _ in range(rounds)]
    row["remark"] = f"reading the tokens alone takes {1e3 * min(reads):.3g} ms"
    return row


def peak(lib):
    """Float32 operations per second of multiply-adds in registers."""
    lib.shim_multiply_adds.restype = ctypes.c_double
    lib.shim_multiply_adds.argtypes = [ctypes.c_int64]
    found = []
    for _ in range(5):
        start = time.process_time()
        done = lib.shim_multiply_adds(3_000_000)
        found.append(done / (time.process_time() - start))
    return max(found)


def table_rows(build, rounds):
    lib = ctypes.CDLL(str(build / "bench/libesscher_bench_shim.so"))
    lib.shim_threads(1)
    torch.set_num_threads(1)
    folder = install_onnx()
    rng = np.random.default_rng(1)
    yield {"peak": peak(lib)}
    yield forward(lib, folder, rng, 8192, 8192, 64, max(3, rounds // 3))
    yield forward(lib, folder, rng, 1024, 4096, 64, rounds)
    yield forward(lib, folder, rng, 1024, 4096, 16, rounds)
    yield forward(lib, folder, rng, 64, 1 << 17, 64, rounds)
    yield forward(lib, folder, rng, 2048, 2048, 64, rounds, causal=True)
    yield forward(lib, folder, rng, 1024, 4096, 64, rounds, dtype=np.float64)
    yield gradient(lib, rng, 1024, 4096, 64, rounds)
    yield one_query(lib, rng, 1 << 20, 64, rounds)
