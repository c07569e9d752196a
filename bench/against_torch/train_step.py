#!/usr/bin/env python3
"""Training steps on fresh data (KQVO, SGD): ours against PyTorch. The authors' step (one head, Gaussian features, d = 5,
batch 128), several heads, features that are not Gaussian, and layers with a residual on prompts of a mixture (denoising,
classification), whose means every prompt draws.

    OMP_NUM_THREADS=1 /usr/bin/python3 bench/against_torch/train_step.py PATH/TO/train_step_bench

Needs the Debian packages python3-torch and libopenblas0-pthread. First the mean gradient of both programs at the same
parameters is compared entry by entry and, for the authors' step, the mean loss curve of many trainings block by block
(|z| < 6), then steps are timed in turns in one run, one thread each, and best and median are printed per token.
"""
import dataclasses
import json
import math
import os
import subprocess
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import torch  # noqa: E402

NOISE = math.sqrt(0.1)
RATE = 0.1  # of the loss curves: large enough for them to move


@dataclasses.dataclass(frozen=True)
class Setting:
    length: int
    heads: int = 1
    d: int = 5
    batch: int = 128
    features: str = "gaussian"

    @property
    def dim(self):
        return self.d + 1

    @property
    def tokens(self):
        return self.batch * self.length

    @property
    def mixture(self):
        return self.features in ("denoising", "classification")

    @property
    def words(self):
        return [self.length, self.heads, self.d, self.batch, self.features]

    @property
    def text(self):
        heads = f"{self.heads} heads, " if self.heads > 1 else ""
        if self.mixture:
            return f"{self.features}, residual, {heads or 'one head, '}d = {self.d}, batch {self.batch}, L = {self.length}"
        features = "" if self.features == "gaussian" else f"{self.features} features, "
        return f"KQVO, {heads}{features}d = {self.d}, batch {self.batch}, L = {self.length}"

    def factor(self):
        sigma = torch.tensor([[0.5 ** abs(i - j) for j in range(self.d)] for i in range(self.d)], dtype=torch.float64)
        values, vectors = torch.linalg.eigh(sigma)  # the symmetric root: it matters if features are not Gaussian
        return ((vectors * values.sqrt()) @ vectors.T).float()


# The authors' step, several heads, other features; gradients of this many batches are compared.
SETTINGS = [(Setting(10), 300), (Setting(100), 150), (Setting(1000), 40),
            (Setting(40, heads=2, batch=256), 200), (Setting(40, heads=8, batch=256), 120),
            (Setting(40, heads=8, d=20, batch=64), 150), (Setting(1000, heads=4, batch=256), 12),
            *((Setting(length, features=law), batches) for law in ("rademacher", "uniform", "sphere")
              for length, batches in ((100, 150), (1000, 40))),
            *((Setting(length, features=task), batches) for task in ("denoising", "classification")
              for length, batches in ((100, 150), (1000, 40)))]


class Model(torch.nn.Module):
    """H heads with keys, queries and values in R^D, stacked as users of PyTorch stack them; their outputs are read by O."""

    def __init__(self, setting):
        super().__init__()
        self.heads, self.dim = setting.heads, setting.dim
        wide = self.heads * self.dim
        self.k = torch.nn.Linear(self.dim, wide, bias=False)
        self.q = torch.nn.Linear(self.dim, wide, bias=False)
        self.v = torch.nn.Linear(self.dim, wide, bias=False)
        self.o = torch.nn.Linear(wide, 1, bias=False)

    def forward(self, prompt, query):
        if self.heads == 1:
            scores = torch.bmm(self.k(prompt), self.q(query).unsqueeze(2)).squeeze(2) / math.sqrt(self.dim)
            weights = torch.softmax(scores, dim=1)
            mixed = torch.bmm(weights.unsqueeze(1), self.v(prompt)).squeeze(1)
            return self.o(mixed).squeeze(1)
        batch, length, _ = prompt.shape
        keys = self.k(prompt).view(batch, length, self.heads, self.dim).permute(0, 2, 3, 1)
        queries = self.q(query).view(batch, self.heads, 1, self.dim)
        values = self.v(prompt).view(batch, length, self.heads, self.dim).transpose(1, 2)
        weights = torch.softmax(queries @ keys / math.sqrt(self.dim), dim=3)
        return self.o((weights @ values).reshape(batch, self.heads * self.dim)).squeeze(1)

    def load(self, theta):
        """theta of ours: K, Q, V, O of each head in turn."""
        D = self.dim
        parts = [torch.split(head, [D * D, D * D, D * D, D]) for head in theta.split(3 * D * D + D)]
        for i, layer in enumerate((self.k, self.q, self.v)):
            layer.weight.data = torch.cat([p[i].reshape(D, D) for p in parts]).clone()
        self.o.weight.data = torch.cat([p[3] for p in parts]).reshape(1, -1).clone()

    def flat_gradient(self):
        D, heads = self.dim, []
        for h in range(self.heads):
            rows = slice(h * D, (h + 1) * D)
            heads += [layer.weight.grad[rows].reshape(-1) for layer in (self.k, self.q, self.v)]
            heads.append(self.o.weight.grad[0, rows])
        return torch.cat(heads).double()


class Residual(torch.nn.Module):
    """W z + sum_h V_h T_h(z), T_h the mean of tokens weighed by the softmax of <U_h z, token>."""

    def __init__(self, setting):
        super().__init__()
        self.heads = setting.heads
        self.d = setting.d if setting.features == "denoising" else setting.d + 1  # of a token
        self.out = setting.d if setting.features == "denoising" else 1
        self.query = setting.d
        self.w = torch.nn.Linear(self.query, self.out, bias=False)
        self.u = torch.nn.Linear(self.query, self.heads * self.d, bias=False)
        self.v = torch.nn.Linear(self.heads * self.d, self.out, bias=False)

    def forward(self, prompt, query):
        tilts = self.u(query).view(-1, self.heads, self.d)
        weights = torch.softmax(tilts @ prompt.transpose(1, 2), dim=2)
        return self.w(query) + self.v((weights @ prompt).reshape(-1, self.heads * self.d))

    def load(self, theta):
        """theta of ours: W, then U and V of each head; W and U have no columns for the label of a query, which is 0."""
        d, out, query = self.d, self.out, self.query
        w, rest = theta[:out * query], theta[out * query:]
        parts = [torch.split(head, [d * query, out * d]) for head in rest.split(d * query + out * d)]
        self.w.weight.data = w.reshape(out, query).clone()
        self.u.weight.data = torch.cat([p[0].reshape(d, query) for p in parts]).clone()
        self.v.weight.data = torch.cat([p[1].reshape(out, d) for p in parts], 1).clone()

    def flat_gradient(self):
        parts = [self.w.weight.grad.reshape(-1)]
        for h in range(self.heads):
            rows = slice(h * self.d, (h + 1) * self.d)
            parts += [self.u.weight.grad[rows].reshape(-1), self.v.weight.grad[:, rows].reshape(-1)]
        return torch.cat(parts).double()


def model_of(setting):
    return Residual(setting) if setting.mixture else Model(setting)


def fresh_mixture(setting):
    """Denoising: four means on a sphere of radius 2, deviations 0.5 of clean points and of noise. Classification: two
    normal means, unit covariance, labels 1 and -1 as a coordinate of the tokens."""
    batch, length, d = setting.batch, setting.length, setting.d
    clusters = 4 if setting.features == "denoising" else 2
    means = torch.randn(batch, clusters, d)
    if setting.features == "denoising":
        means = means * (2 / means.norm(dim=2, keepdim=True))
    chosen = torch.randint(0, clusters, (batch, length + 1, 1))
    centres = torch.gather(means, 1, chosen.expand(-1, -1, d))
    if setting.features == "denoising":
        tokens = centres[:, :length] + math.sqrt(0.5) * torch.randn(batch, length, d)
        clean = centres[:, length] + 0.5 * torch.randn(batch, d)
        return tokens, clean + 0.5 * torch.randn(batch, d), clean
    labels = 1 - 2 * chosen.float()
    points = centres + torch.randn(batch, length + 1, d)
    tokens = torch.cat((points[:, :length], labels[:, :length]), 2)
    return tokens, points[:, length], labels[:, length]


def features(law, *shape):
    """Coordinates with identity covariance."""
    if law == "gaussian":
        return torch.randn(*shape)
    if law == "rademacher":
        return torch.randint(0, 2, shape).float().mul_(2).sub_(1)
    if law == "uniform":
        return torch.rand(*shape).mul_(2 * math.sqrt(3)).sub_(math.sqrt(3))
    normals = torch.randn(*shape)
    return normals * (math.sqrt(shape[-1]) / normals.norm(dim=-1, keepdim=True))


def fresh(setting, root):
    batch, length, d = setting.batch, setting.length, setting.d
    w = math.sqrt(1 / d) * torch.randn(batch, d, 1)
    x = features(setting.features, batch, length, d) @ root
    y = torch.bmm(x, w) + NOISE * torch.randn(batch, length, 1)
    x_query = features(setting.features, batch, d) @ root
    target = (x_query * w.squeeze(2)).sum(1) + NOISE * torch.randn(batch)
    return torch.cat((x, y), 2), torch.cat((x_query, torch.zeros(batch, 1)), 1), target


def loss_of(model, setting, root):
    if setting.mixture:
        prompt, query, target = fresh_mixture(setting)
        return (model(prompt, query) - target).square().sum(1).mean()
    prompt, query, target = fresh(setting, root)
    return torch.nn.functional.mse_loss(model(prompt, query), target)


def ours(program, *arguments):
    text = subprocess.run([program, *map(str, arguments)], check=True, capture_output=True, text=True).stdout
    return json.loads(text)


def check_gradients(program, setting, batches):
    reference = ours(program, "--gradient", 4 * batches, *setting.words)
    model, root = model_of(setting), setting.factor()
    model.load(torch.tensor(reference["theta"], dtype=torch.float64).float())
    rows = []
    for _ in range(batches):
        model.zero_grad()
        loss = loss_of(model, setting, root)
        loss.backward()
        rows.append(torch.cat((loss.detach().double().reshape(1), model.flat_gradient())))
    rows = torch.stack(rows)
    error = rows.std(0) / math.sqrt(batches)
    mean = torch.tensor(reference["mean"], dtype=torch.float64)
    spread = torch.tensor(reference["std_error"], dtype=torch.float64)
    z = (rows.mean(0) - mean) / torch.sqrt(error**2 + spread**2 + 1e-24)
    worst = z.abs().max().item()
    print(f"{setting.text}: {z.numel()} means compared, largest |z| {worst:.2f}", file=sys.stderr)
    if not worst < 6:
        sys.exit("the two programs disagree; no timing")
    return worst


def train_torch(setting, blocks):
    """Mean loss of each block of ten steps of a training from a start of its own."""
    model, root = model_of(setting), setting.factor()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    curve = torch.zeros(blocks, dtype=torch.float64)
    for step in range(10 * blocks):
        optimizer.zero_grad()
        loss = loss_of(model, setting, root)
        loss.backward()
        optimizer.step()
        curve[step // 10] += loss.item() / 10
    return curve


def check_curves(program, setting, runs):
    reference = ours(program, "--curve", 8 * runs, RATE, *setting.words)
    mean = torch.tensor(reference["mean"], dtype=torch.float64)
    spread = torch.tensor(reference["std_error"], dtype=torch.float64)
    curves = torch.stack([train_torch(setting, len(mean)) for _ in range(runs)])
    z = (curves.mean(0) - mean) / torch.sqrt(curves.var(0) / runs + spread**2)
    worst = z.abs().max().item()
    print(f"{setting.text}: loss from {mean[0]:.3f} to {mean[-1]:.3f} ours, {curves[:, 0].mean():.3f} to "
          f"{curves[:, -1].mean():.3f} torch, largest |z| {worst:.2f}")
    if not worst < 6:
        sys.exit("the two programs disagree; no timing")


def time_torch(setting, steps):
    """CPU seconds of each step, on one thread."""
    model, root = model_of(setting), setting.factor()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    seconds = []
    for i in range(steps + 2):
        start = time.process_time()
        optimizer.zero_grad()
        loss_of(model, setting, root).backward()
        optimizer.step()
        if i >= 2:
            seconds.append(time.process_time() - start)
    return seconds


def measure(program, setting, rounds):
    """CPU seconds per step of both sides, in turns, so that both see the same machine."""
    work = setting.tokens * setting.heads
    peer, best, medians = [], [], []
    for _ in range(rounds):
        peer += time_torch(setting, min(40, max(3, 600_000 // work)))
        result = ours(program, "--time", max(20, 5_000_000 // work), *setting.words)
        best.append(1e-9 * result["best_ns"])
        medians.append(1e-9 * result["median_ns"])
    return peer, best, medians


def table_rows(build, rounds):
    """Rows of bench/table. Gradients are compared first; whole loss curves are compared by this script alone."""
    program = str(build / "bench/train_step_bench")
    torch.set_num_threads(1)
    for setting, batches in SETTINGS:
        worst = check_gradients(program, setting, batches)
        peer, best, medians = measure(program, setting, rounds)
        yield {"section": "Training steps", "task": setting.text, "unit": "ns per token", "scale": 1e9 / setting.tokens,
               "agreement": f"z {worst:.1f}", "times": {"Esscher": medians, "PyTorch": peer}, "best": min(best),
               "remark": "gradients agree within their errors"}


def main():
    program = sys.argv[1]
    torch.set_num_threads(1)
    for length, runs in ((10, 40), (100, 30), (1000, 12)):
        check_curves(program, Setting(length), runs)
    print(f"torch {torch.__version__}, one thread; ns per token, best (median)")
    for setting, batches in SETTINGS:
        check_gradients(program, setting, batches)
        peer, best, medians = measure(program, setting, 25)
        peer = sorted(1e9 * s for s in peer)
        t_best, t_median = peer[0] / setting.tokens, peer[len(peer) // 2] / setting.tokens
        o_best, o_median = 1e9 * min(best) / setting.tokens, 1e9 * sorted(medians)[len(medians) // 2] / setting.tokens
        print(f"{setting.text}:  torch {t_best:8.2f} ({t_median:8.2f})  esscher {o_best:6.2f} ({o_median:6.2f})"
              f"  ratio {t_best / o_best:6.1f} ({t_median / o_median:6.1f})")


if __name__ == "__main__":
    main()
