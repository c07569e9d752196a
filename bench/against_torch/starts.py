#!/usr/bin/env python3
"""Where the authors' procedure ends from PyTorch's default start: PyTorch against `esscher icl train`.

    OMP_NUM_THREADS=1 /usr/bin/python3 bench/against_torch/starts.py PATH/TO/esscher [starts] [length]

Both sides draw K, Q, V, O as torch.nn.Linear does, train by SGD on fresh prompts (the authors' law, as
intended) for the same training time, steps * rate = 300, and are tested
on fresh prompts (PyTorch) or by the risk of the end point (Esscher). The starts are not the same numbers, only the same law, so that distributions of end points are
compared, by the Kolmogorov-Smirnov distance with its 1 % bound. Needs the Debian package python3-torch. 12 starts at L = 100 take about ten minutes.
"""
import json
import math
import os
import subprocess
import sys
import tempfile

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch  # noqa: E402

from train_step import BATCH, Model, loss_of  # noqa: E402

STEPS, RATE = 3000, 0.1


def test_error(model, length, batches=200):
    with torch.no_grad():
        return sum(loss_of(model, length).item() for _ in range(batches)) / batches


def torch_end(seed, length):
    torch.manual_seed(seed)
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss_of(model, length).backward()
        optimizer.step()
    return test_error(model, length)


def our_end(program, seed, length):
    """The test error at the end of `icl train`."""
    with tempfile.TemporaryDirectory() as folder:
        out = subprocess.run(
            [program, "icl", "train", "--preset", "boursier-boyer", "--length", str(length), "--seed", str(seed),
             "--set", f"train.steps={STEPS}", "--set", f"train.learning_rate={RATE}", "--set", f"train.batch={BATCH}",
             "--out", os.path.join(folder, "run"), "--quiet", "--json"],
            check=True, capture_output=True, text=True).stdout
    return 2 * json.loads(out)["final_risk"]["risk"]


def main():
    program = sys.argv[1]
    starts = int(sys.argv[2]) if len(sys.argv) > 2 else 12
    length = int(sys.argv[3]) if len(sys.argv) > 3 else 100
    torch.set_num_threads(1)
    ours = sorted(our_end(program, seed, length) for seed in range(1, 4 * starts + 1))
    peer = sorted(torch_end(seed, length) for seed in range(1, starts + 1))
    print("torch  ", " ".join(f"{x:.3f}" for x in peer))
    print("esscher", " ".join(f"{x:.3f}" for x in ours))
    distance = max(abs(sum(x <= t for x in peer) / len(peer) - sum(x <= t for x in ours) / len(ours))
                   for t in peer + ours)
    bound = 1.63 * math.sqrt(1 / len(peer) + 1 / len(ours))
    print(f"L = {length}, {len(peer)} and {len(ours)} starts: largest difference of the two distributions "
          f"{distance:.3f}, 1 % bound {bound:.3f}")
    if not distance < bound:
        sys.exit("the end points have different laws")


if __name__ == "__main__":
    main()
