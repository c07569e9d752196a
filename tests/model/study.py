"""What windows with a tail do to stories15M, as tables of Markdown. Called by scripts/model_study."""

import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from twins import CACHE, PROGRAM, TEXT, fetch, run, tokenize

WINDOWS, TAILS, STORIES = (8, 16, 32), ("none", "mean", "first", "gaussian", "finite"), 8


def own_texts(package, folder):
    """Texts that the model itself writes, by the program of the package."""
    script, out = pathlib.Path(__file__).with_name("package.cjs"), folder / "own.txt"
    subprocess.run(["node", script, package, "--write", str(STORIES), out], check=True)
    return out


def effects(model, texts):
    """KL of all heads replaced, by window and tail."""
    for window in WINDOWS:
        for tail in TAILS:
            document = run(model, "--tokens", texts, "--window", window, "--tail", tail, "--from", 64)
            yield window, tail, document["rows"][0]


def effect_table(model, texts):
    print("| keys | " + " | ".join(TAILS) + " |\n|" + "---|" * (1 + len(TAILS)))
    rows = list(effects(model, texts))
    for window in WINDOWS:
        cells = [f"{r['kl']:.3f} ({r['kl_low']:.3f} to {r['kl_high']:.3f}{', !' if r['heavy'] else ''})" for w, _, r in rows if w == window]
        print(f"| {window} | " + " | ".join(cells) + " |")
    row = rows[0][2]
    print(f"\n{row['tokens']} positions, {row['nats']:.3f} nats per token before")
    for window, tail, row in rows:
        if window == 16:
            print(f"16 keys, {tail}: {row['nats_replaced'] - row['nats']:+.3f} nats, top-1 {row['top1']:.3f}, state {row['state']} of {row['cache']}")


def median_table(model, texts, folder):
    """Medians over heads of the errors that `esscher heads` prints."""
    heads = folder / "heads.safetensors"
    run(model, "--tokens", texts, "--capture", heads)
    command = [PROGRAM, "heads", heads, "--components", "2", "--window", "4,8,16,32,64", "--json"]
    rows = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["rows"]
    limit = np.array([row["lin_c"] for row in rows])
    print(f"{len(rows)} heads: the limit alone {np.median(limit):.3f}, {np.sum(limit < 0.3)} below 0.3")
    print("| keys | " + " | ".join((*TAILS, "rotary")) + " |\n|" + "---|" * (2 + len(TAILS)))
    for window in (4, 8, 16, 32, 64):
        cells = []
        for tail in (*TAILS, "rotary"):
            errors = [w["lin_c"] for row in rows for w in row["window"] if w["w"] == window and w["tail"] == tail]
            cells.append(f"{np.median(errors):.3f} ({np.sum(np.array(errors) < 0.2)})")
        print(f"| {window} | " + " | ".join(cells) + " |")


def main():
    found = fetch()
    if found is None:
        return 1
    package, model, tokenizer = found
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "moby.txt").write_text(" ".join(map(str, tokenize(tokenizer, TEXT)[:256])))
        own = own_texts(package, folder)
        for title, texts in (("texts of the model itself", own), ("opening of Moby-Dick", folder / "moby.txt")):
            print(f"\n## {title}: KL per token with every head replaced, 95 % interval\n", flush=True)
            effect_table(model, texts)
        (folder / "one.txt").write_text(own.read_text().splitlines()[0])
        for title, texts in (("a text of the model itself", folder / "one.txt"), ("opening of Moby-Dick", folder / "moby.txt")):
            print(f"\n## {title}: median error over heads (heads below 0.2)\n", flush=True)
            median_table(model, texts, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
