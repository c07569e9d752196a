#!/usr/bin/env python3
"""The authors' training step (KQVO, d = 5, batch 128, SGD, fresh data), ours against PyTorch.

    OMP_NUM_THREADS=1 /usr/bin/python3 bench/against_torch/train_step.py PATH/TO/train_step_bench

Needs the Debian packages python3-torch and libopenblas0-pthread. First the mean gradient of both
programs at the same parameters is compared entry by entry and the mean loss curve of many trainings
block by block (|z| < 6), then steps are timed in turns in one run, one thread each, and best and median
are printed per token.
"""
import json
import math
import os
import subprocess
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import torch  # noqa: E402

D, DIM, BATCH, NOISE, TASK_STD = 5, 6, 128, math.sqrt(0.1), math.sqrt(0.2)
RATE = 0.1  # of the loss curves: large enough for them to move
SIGMA = torch.tensor([[0.5 ** abs(i - j) for j in range(D)] for i in range(D)])
FACTOR = torch.linalg.cholesky(SIGMA.double()).float()


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.k = torch.nn.Linear(DIM, DIM, bias=False)
        self.q = torch.nn.Linear(DIM, DIM, bias=False)
        self.v = torch.nn.Linear(DIM, DIM, bias=False)
        self.o = torch.nn.Linear(DIM, 1, bias=False)

    def forward(self, prompt, query):
        scores = torch.bmm(self.k(prompt), self.q(query).unsqueeze(2)).squeeze(2) / math.sqrt(DIM)
        weights = torch.softmax(scores, dim=1)
        mixed = torch.bmm(weights.unsqueeze(1), self.v(prompt)).squeeze(1)
        return self.o(mixed).squeeze(1)


def fresh(length):
    w = TASK_STD * torch.randn(BATCH, D, 1)
    x = torch.randn(BATCH, length, D) @ FACTOR.T
    y = torch.bmm(x, w) + NOISE * torch.randn(BATCH, length, 1)
    x_query = torch.randn(BATCH, D) @ FACTOR.T
    target = (x_query * w.squeeze(2)).sum(1) + NOISE * torch.randn(BATCH)
    return torch.cat((x, y), 2), torch.cat((x_query, torch.zeros(BATCH, 1)), 1), target


def loss_of(model, length):
    prompt, query, target = fresh(length)
    return torch.nn.functional.mse_loss(model(prompt, query), target)


def flat_gradient(model):
    return torch.cat([p.weight.grad.reshape(-1) for p in (model.k, model.q, model.v, model.o)]).double()


def ours(program, *arguments):
    text = subprocess.run([program, *map(str, arguments)], check=True, capture_output=True, text=True).stdout
    return json.loads(text)


def check_gradients(program, length, batches):
    reference = ours(program, "--gradient", length, 4 * batches)
    model = Model()
    theta = torch.tensor(reference["theta"], dtype=torch.float64).float()
    for layer, part in zip((model.k, model.q, model.v, model.o), torch.split(theta, [36, 36, 36, 6])):
        layer.weight.data = part.reshape(layer.weight.shape).clone()
    rows = []
    for _ in range(batches):
        model.zero_grad()
        loss = loss_of(model, length)
        loss.backward()
        rows.append(torch.cat((loss.detach().double().reshape(1), flat_gradient(model))))
    rows = torch.stack(rows)
    error = rows.std(0) / math.sqrt(batches)
    mean = torch.tensor(reference["mean"], dtype=torch.float64)
    spread = torch.tensor(reference["std_error"], dtype=torch.float64)
    z = (rows.mean(0) - mean) / torch.sqrt(error**2 + spread**2 + 1e-24)
    worst = z.abs().max().item()
    print(f"L = {length}: {z.numel()} means compared, largest |z| {worst:.2f}", file=sys.stderr)
    if not worst < 6:
        sys.exit("the two programs disagree; no timing")
    return worst


def train_torch(length, blocks):
    """Mean loss of each block of ten steps of a training from a start of its own."""
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    curve = torch.zeros(blocks, dtype=torch.float64)
    for step in range(10 * blocks):
        optimizer.zero_grad()
        loss = loss_of(model, length)
        loss.backward()
        optimizer.step()
        curve[step // 10] += loss.item() / 10
    return curve


def check_curves(program, length, runs):
    reference = ours(program, "--curve", length, 8 * runs, RATE)
    mean = torch.tensor(reference["mean"], dtype=torch.float64)
    spread = torch.tensor(reference["std_error"], dtype=torch.float64)
    curves = torch.stack([train_torch(length, len(mean)) for _ in range(runs)])
    z = (curves.mean(0) - mean) / torch.sqrt(curves.var(0) / runs + spread**2)
    worst = z.abs().max().item()
    print(f"L = {length}: loss from {mean[0]:.3f} to {mean[-1]:.3f} ours, {curves[:, 0].mean():.3f} to "
          f"{curves[:, -1].mean():.3f} torch, largest |z| {worst:.2f}")
    if not worst < 6:
        sys.exit("the two programs disagree; no timing")


def time_torch(length, steps):
    """CPU seconds of each step, on one thread."""
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    seconds = []
    for i in range(steps + 2):
        start = time.process_time()
        optimizer.zero_grad()
        loss_of(model, length).backward()
        optimizer.step()
        if i >= 2:
            seconds.append(time.process_time() - start)
    return seconds


def measure(program, length, steps, rounds):
    """Seconds per step of both sides, in turns, so that both see the same machine."""
    peer, best, medians = [], [], []
    for _ in range(rounds):
        peer += time_torch(length, steps)
        result = ours(program, "--time", length, max(20, 40000 // length))
        best.append(1e-9 * result["best_ns"])
        medians.append(1e-9 * result["median_ns"])
    return peer, best, medians


def table_rows(build, rounds):
    """Rows of bench/table. Gradients are compared first; whole loss curves are compared by this script alone."""
    program = str(build / "bench/train_step_bench")
    torch.set_num_threads(1)
    for length, batches, steps in ((10, 300, 40), (100, 150, 20), (1000, 40, 6)):
        worst = check_gradients(program, length, batches)
        peer, best, medians = measure(program, length, steps, rounds)
        yield {"section": "Training steps", "task": f"KQVO, d = {D}, batch {BATCH}, L = {length}", "unit": "ns per token",
               "scale": 1e9 / (BATCH * length), "agreement": f"z {worst:.1f}",
               "times": {"Esscher": medians, "PyTorch": peer}, "best": min(best), "remark": "gradients agree within their errors"}


def main():
    program = sys.argv[1]
    torch.set_num_threads(1)
    for length, batches, runs in ((10, 600, 40), (100, 300, 30), (1000, 60, 12)):
        check_gradients(program, length, batches)
        check_curves(program, length, runs)
    print(f"torch {torch.__version__}, {BATCH} prompts, d = {D}, one thread; ns per token, best (median)")
    for length, steps, target in ((10, 40, 25), (100, 20, 60), (1000, 6, 60)):
        tokens = BATCH * length
        peer, best, medians = measure(program, length, steps, 25)
        peer = sorted(1e9 * s for s in peer)
        t_best, t_median = peer[0] / tokens, peer[len(peer) // 2] / tokens
        o_best, o_median = 1e9 * min(best) / tokens, 1e9 * sorted(medians)[len(medians) // 2] / tokens
        print(f"L = {length:5d}  torch {t_best:8.2f} ({t_median:8.2f})  esscher {o_best:6.2f} ({o_median:6.2f})"
              f"  ratio {t_best / o_best:6.1f} ({t_median / o_median:6.1f})  target {target}")


if __name__ == "__main__":
    main()
