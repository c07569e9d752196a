"""Heads of PyTorch models, recorded and replaced through each of the three doors, against `esscher model`."""

import json
import math
import struct
import subprocess
import sys
import types

import numpy as np
import pytest

import esscher as es

torch = pytest.importorskip("torch")
import esscher.torch as et  # noqa: E402
from esscher import _esscher  # noqa: E402

F = torch.nn.functional
N, WIDTH, HEADS = 40, 12, 3


def plain(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """A stand-in for the public function that PyTorch 1.13 does not have."""
    if enable_gqa:
        k, v = (x.repeat_interleave(q.shape[-3] // k.shape[-3], -3) for x in (k, v))
    s = q @ k.transpose(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        s = s.masked_fill(torch.ones(s.shape[-2:], dtype=torch.bool).triu(1), -math.inf)
    if attn_mask is not None:
        s = s.masked_fill(~attn_mask, -math.inf) if attn_mask.dtype == torch.bool else s + attn_mask
    return torch.softmax(s, -1) @ v


class Interface:
    """A stand-in for transformers.AttentionInterface: a registry of functions by name."""

    known = {}

    @classmethod
    def register(cls, name, function):
        cls.known[name] = function


def heads_of(x, heads):
    return x.reshape(*x.shape[:2], heads, -1).transpose(1, 2)


class Block(torch.nn.Module):
    """Causal self-attention by one of the doors; grouped queries where the door has them."""

    def __init__(self, door, width=WIDTH, heads=HEADS):
        super().__init__()
        self.door, self.heads, self.is_causal = door, heads, True
        self.groups = 1 if door != "mha" else heads
        if door == "mha":
            self.mha = torch.nn.MultiheadAttention(width, heads, batch_first=True)
        else:
            self.q, self.o_proj = (torch.nn.Linear(width, width) for _ in range(2))
            self.kv = torch.nn.Linear(width, 2 * width * self.groups // heads)
        self.config = types.SimpleNamespace(_attn_implementation="sdpa")

    def forward(self, x):
        n = x.shape[1]
        if self.door == "mha":
            mask = torch.ones(n, n, dtype=torch.bool).triu(1)
            return self.mha(x, x, x, attn_mask=mask, need_weights=False)[0]
        q, (k, v) = heads_of(self.q(x), self.heads), (heads_of(y, self.groups) for y in self.kv(x).chunk(2, -1))
        if self.door == "sdpa":
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.3, enable_gqa=True).transpose(1, 2)
        else:
            least = torch.full((n, n), torch.finfo(x.dtype).min, dtype=x.dtype).triu(1)
            function = Interface.known[self.config._attn_implementation]
            y, _ = function(self, q, k, v, least[None, None], scaling=0.3, dropout=0.0)
        return self.o_proj(y.flatten(2))


def stand_in(module, q, k, v, mask, scaling, dropout, is_causal=None):
    return plain(q, k, v, mask, scale=scaling, enable_gqa=True).transpose(1, 2), None


@pytest.fixture(autouse=True)
def doors(monkeypatch):
    monkeypatch.setattr(F, "scaled_dot_product_attention", plain, raising=False)
    monkeypatch.setattr(Interface, "known", {"sdpa": stand_in})
    monkeypatch.setitem(sys.modules, "transformers", types.SimpleNamespace(AttentionInterface=Interface))
    torch.manual_seed(0)


@pytest.fixture(params=["mha", "sdpa", "interface"])
def block(request):
    return Block(request.param).double().eval()


def text(batch=1, n=N, width=WIDTH):
    return torch.randn(batch, n, width, dtype=torch.float64)


def through(model, y):
    """The output of a block from those of its heads."""
    out = model.mha.out_proj if model.door == "mha" else model.o_proj
    return out(y.transpose(1, 2).flatten(2))


def read_safetensors(path):
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    kinds = {"F32": "<f4", "F64": "<f8"}
    return {
        name: np.frombuffer(data[8 + size :][slice(*at["data_offsets"])], kinds[at["dtype"]]).reshape(at["shape"])
        for name, at in header.items()
        if name != "__metadata__"
    }


@torch.no_grad()
def test_recorded_outputs_are_the_models_own(block, tmp_path):
    x = text(2)
    want = block(x)
    with et.record(block) as calls:
        got = block(x)
        block(x[:1])
    torch.testing.assert_close(got, want, rtol=1e-6, atol=1e-9)
    assert torch.equal(block(x), want) and len(calls) == 2  # the doors are as before
    call = calls[0]
    assert call.causal and call.mask is None and call.W_O.shape == (WIDTH, WIDTH)
    assert call.K.shape[1] == block.groups and calls[1].repeat == 1
    torch.testing.assert_close(through(block, call.output()), want, rtol=1e-6, atol=1e-9)
    calls.save(tmp_path / "heads.safetensors", rotary=(10000.0, "halves"))
    rows = es.heads(tmp_path / "heads.safetensors", components=[], windows=[8])
    assert [row["head"] for row in rows] == [f"t{t}.L0.H{h}" for t in range(3) for h in range(HEADS)]
    assert all(row["causal"] and row["n"] == N for row in rows)
    saved = read_safetensors(tmp_path / "heads.safetensors")
    np.testing.assert_allclose(saved["t1.L0.H2.Q"], call.Q[1, 2], rtol=1e-6)
    np.testing.assert_allclose(saved["t1.L0.H2.W_O"], call.W_O[:, 8:], rtol=1e-6)
    assert saved["t0.L0.H0.scale"] == pytest.approx(call.scale) and saved["t0.L0.H0.rotary"].tolist() == [10000, 1, 0, 0]


@torch.no_grad()
def test_a_replaced_head_is_a_windowed_head(block):
    x = text()
    want = block(x)
    with et.record(block) as calls:
        block(x)
    with et.replace(block, {"default": {"window": N}}):
        torch.testing.assert_close(block(x), want, rtol=1e-9, atol=1e-9)
    with et.replace(block, {"heads": [{"layer": 0, "head": 1, "window": 6, "tail": "mean"}]}):
        got = block(x)
    assert (got - want).abs().max() > 1e-4 and torch.equal(block(x), want)
    call = calls[0]
    Q, K, V = (y[0, min(1, y.shape[1] - 1)].numpy() for y in (call.Q, call.K, call.V))
    head = es.WindowedHead(4, 4, score_scale=call.scale, window=6, tail="mean")
    outputs = call.output()
    outputs[0, 1] = torch.tensor(np.stack([head.step(*row) for row in zip(Q, K, V)]))
    torch.testing.assert_close(got, through(block, outputs), rtol=1e-9, atol=1e-12)


@torch.no_grad()
@pytest.mark.parametrize("options", [{}, {"batch_first": True}, {"add_bias_kv": True}, {"add_zero_attn": True}, {"kdim": 5, "vdim": 7}])
def test_every_kind_of_multihead_attention(options):
    mha = torch.nn.MultiheadAttention(8, 2, **options).double().eval()
    x = text(3, 6, 8)
    key = text(3, 6, 5) if "kdim" in options else x
    value = text(3, 6, 7) if "vdim" in options else x
    if not options.get("batch_first"):
        x, key, value = (y.transpose(0, 1) for y in (x, key, value))
    batch = x.shape[0] if options.get("batch_first") else x.shape[1]
    rows, columns = (y.shape[1] if options.get("batch_first") else y.shape[0] for y in (x, key))
    padding = torch.zeros(batch, columns, dtype=torch.bool)
    padding[1, -2:] = True
    per_head = torch.randn(batch * 2, rows, columns, dtype=torch.float64)
    for masks in ({}, {"key_padding_mask": padding}, {"attn_mask": per_head}, {"attn_mask": per_head, "key_padding_mask": padding}):
        want, weights = mha(x, key, value, **masks)
        with et.record(mha) as calls:
            got, again = mha(x, key, value, **masks)
        assert torch.equal(got, want) and torch.equal(again, weights)
        y = mha.out_proj(calls[0].output().transpose(1, 2).flatten(2))
        torch.testing.assert_close(y if options.get("batch_first") else y.transpose(0, 1), want, rtol=1e-6, atol=1e-9)
    lone = [y[0] if options.get("batch_first") else y[:, 0] for y in (x, key, value)]
    with et.record(mha) as calls:
        want, _ = mha(*lone)
    torch.testing.assert_close(mha.out_proj(calls[0].output().transpose(1, 2).flatten(2))[0], want, rtol=1e-6, atol=1e-9)
    with et.replace(mha, {"default": {"window": 16, "sinks": 0}}):
        torch.testing.assert_close(mha(*lone)[0], want, rtol=1e-9, atol=1e-9)


@torch.no_grad()
def test_fused_encoders_do_not_pass_by():
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 2).double().eval()
    x = text(2, 7, 8)
    padding = torch.zeros(2, 7, dtype=torch.bool)
    padding[0, 5:] = True
    for masks in ({}, {"src_key_padding_mask": padding}):
        want = model(x, **masks)
        with et.record(model) as calls:
            got = model(x, **masks)
        seen = ~padding if masks else torch.ones(2, 7, dtype=torch.bool)  # a nested tensor pads with zeros
        torch.testing.assert_close(got[seen], want[seen], rtol=1e-6, atol=1e-9)
        assert calls.layers == ["layers.0.self_attn", "layers.1.self_attn"]
        assert torch.equal(model(x, **masks), want)
    assert (calls[0].mask is not None) and not calls[0].causal


@torch.no_grad()
def test_what_cannot_be_done_is_said(tmp_path):
    mha = torch.nn.MultiheadAttention(8, 2, batch_first=True).double().eval()
    x, file = text(1, 5, 8), tmp_path / "x.safetensors"
    window = {"default": {"window": 3}}
    with pytest.raises(es.ArgumentError, match=r"L0.H0, module 'model', has a mask"), et.replace(mha, window):
        mha(x, x, x, attn_mask=torch.randn(5, 5).double())
    with et.record(mha) as calls:
        mha(x, x, x)
    with pytest.raises(es.ArgumentError, match="ends in .safetensors"):
        calls.save(tmp_path / "x.npz")
    with et.record(mha) as calls:
        F.scaled_dot_product_attention(x, x, x)  # not a call of the model
    with pytest.raises(es.ArgumentError, match="no call of attention"):
        calls.save(file)
    assert not file.exists()
    for plan, words in (({"default": {"windw": 3}}, "windw"), ({"default": {"window": 3, "tail": "gaus"}}, "gaussian")):
        with pytest.raises(es.FileError, match=words), et.replace(mha, plan):
            pass
    with pytest.raises(es.FileError, match="nowhere.json"), et.replace(mha, tmp_path / "nowhere.json"):
        pass
    with pytest.raises(es.ArgumentError, match="layer 3, head 0, which the model did not call; it called 1 layer"):
        with et.replace(mha, {"heads": [{"layer": 3, "head": 0, "window": 4}]}):
            mha(x, x, x)
    with pytest.raises(es.ArgumentError, match="heavy"), et.replace(mha, {"default": {"window": 3, "heavy": 1}}):
        mha(x, x, x)  # not causal
    with pytest.raises(es.ArgumentError, match="rotary"), et.replace(mha, {"default": {"window": 3, "tail": "rotary"}}):
        mha(x, x, x)
    mha.train().dropout = 0.5
    with pytest.raises(es.ArgumentError, match="model.eval"), et.replace(mha, window):
        mha(x, x, x)
    assert "forward" not in vars(mha) and F.scaled_dot_product_attention is plain


@torch.no_grad()
def test_masks_are_written_and_read(tmp_path):
    mha = torch.nn.MultiheadAttention(8, 2, batch_first=True).double().eval()
    x, file = text(2, 40, 8), tmp_path / "masked.safetensors"
    padding = torch.zeros(2, 40, dtype=torch.bool)
    padding[1, 30:] = True
    with et.record(mha) as calls:
        mha(x, x, x, key_padding_mask=padding)
    calls.save(file)
    (call,) = calls
    rows = {row["head"]: row for row in es.heads(file, components=[], windows=[])}
    weights = torch.softmax(call.scale * call.Q @ call.K.transpose(-1, -2) + call.mask, -1)
    for b in range(2):
        for h in range(2):
            want = float(np.median((1 / (weights[b, h] ** 2).sum(-1)).numpy()))
            assert rows[f"t{b}.L0.H{h}"]["ess"] == pytest.approx(want, rel=1e-5)


class Ruled(torch.nn.Module):
    """Attention with a sliding window, a softcap and sink logits, handed to the interface as transformers does."""

    def __init__(self, masked):
        super().__init__()
        self.q, self.k, self.v = (torch.nn.Linear(8, 8) for _ in range(3))
        self.sinks = torch.nn.Parameter(torch.tensor([1.5, -0.5]))
        self.masked, self.is_causal = masked, True
        self.config = types.SimpleNamespace(_attn_implementation="sdpa")

    def hides(self, n):
        ones = torch.ones(n, n, dtype=torch.bool)
        return ones.triu(1) | ones.tril(-6)

    def forward(self, x):
        q, k, v = (heads_of(linear(x), 2) for linear in (self.q, self.k, self.v))
        mask = torch.zeros(x.shape[1], x.shape[1]).double().masked_fill(self.hides(x.shape[1]), -math.inf)[None, None]
        function = Interface.known[self.config._attn_implementation]
        options = dict(scaling=0.9, dropout=0.0, sliding_window=6, softcap=2.0, s_aux=self.sinks)
        return function(self, q, k, v, mask if self.masked else None, **options)[0]

    def eager(self, module, q, k, v, mask, scaling, dropout, sliding_window, softcap, s_aux):
        """The stand-in for the model's own kernel."""
        y = torch.zeros(q.shape[0], q.shape[2], q.shape[1], v.shape[-1], dtype=q.dtype)
        hides = self.hides(q.shape[2])
        for b in range(q.shape[0]):
            for h in range(q.shape[1]):
                s = softcap * torch.tanh(scaling * q[b, h] @ k[b, h].T / softcap)
                w = torch.exp(s).masked_fill(hides, 0)
                y[b, :, h] = (w / (w.sum(-1, keepdim=True) + torch.exp(s_aux[h]))) @ v[b, h]
        return y, None


@torch.no_grad()
@pytest.mark.parametrize("masked", [False, True])
def test_rules_of_the_interface_are_recorded(masked, tmp_path):
    model = Ruled(masked).double().eval()
    Interface.known["sdpa"] = model.eager
    x, file = text(2, 30, 8), tmp_path / "ruled.safetensors"
    want = model(x)
    with et.record(model) as calls:
        got = model(x)
    torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)
    (call,) = calls
    assert call.causal and call.mask is None and (call.sliding, call.softcap) == (6, 2.0) and not call.sink.requires_grad
    torch.testing.assert_close(call.output().transpose(1, 2), want, rtol=1e-6, atol=1e-9)
    calls.save(file)
    saved = read_safetensors(file)
    assert [saved[f"t1.L0.H1.{word}"].item() for word in ("sliding", "softcap", "sink")] == [6, 2, -0.5]
    rows = {row["head"]: row for row in es.heads(file, components=[], windows=[6])}
    lin = {row["head"]: [r["lin"] for r in row["window"]] for row in rows.values()}
    assert all(max(errors) < 1e-12 for errors in lin.values())  # a window of all seen keys is exact
    weights = torch.exp(2 * torch.tanh(0.9 * call.Q @ call.K.transpose(-1, -2) / 2)).masked_fill(model.hides(30), 0)
    ess = weights.sum(-1) ** 2 / (weights**2).sum(-1)
    for b in range(2):
        for h in range(2):
            assert rows[f"t{b}.L0.H{h}"]["ess"] == pytest.approx(float(np.median(ess[b, h, 15:].numpy())), rel=1e-5)
    with pytest.raises(es.ArgumentError, match="has a sliding window of 6 keys"), et.replace(model, {"default": {"window": 3}}):
        model(x)
    assert torch.equal(model(x), want)
    short = model(x[:, :6])
    with et.record(model) as calls:  # a text within the window
        torch.testing.assert_close(model(x[:, :6]), short, rtol=1e-12, atol=1e-12)
    assert calls[0].causal and calls[0].sliding is None


def test_replaced_heads_refuse_gradients():
    mha = torch.nn.MultiheadAttention(8, 2, batch_first=True).double().eval()
    x = text(1, 5, 8)
    with et.replace(mha, {"default": {"window": 3}}):
        y, _ = mha(x, x, x)
    with pytest.raises(es.CapabilityError, match="no gradients"):
        y.sum().backward()


@torch.no_grad()
def test_a_loop_with_a_cache_is_a_whole_text():
    """m queries at the end of n keys: the last outputs of the whole text."""

    class Cached(torch.nn.Module):
        def forward(self, q, k, v, mask):
            return F.scaled_dot_product_attention(q, k, v, mask)

    q, k, v = (torch.randn(1, 2, 30, 4, dtype=torch.float64) for _ in range(3))
    below = torch.ones(30, 30, dtype=torch.bool).tril()
    model, plan = Cached(), {"default": {"window": 8, "tail": "finite"}}
    with et.replace(model, plan):
        whole = model(q, k, v, below)
        part = model(q[..., -3:, :], k, v, below[-3:])
    torch.testing.assert_close(part, whole[..., -3:, :], rtol=1e-12, atol=0)


class TinyGPT(torch.nn.Module):
    """GPT-2 with attention of its own, or by MultiheadAttention."""

    def __init__(self, t, layers, heads, door):
        super().__init__()
        self.t, self.count, self.heads = t, layers, heads
        self.attention = torch.nn.ModuleList(Called(t, f"h.{i}.attn.", heads, door) for i in range(layers))

    def linear(self, x, name):
        return x @ self.t[name + ".weight"] + self.t[name + ".bias"]

    def norm(self, x, name):
        return F.layer_norm(x, x.shape[-1:], self.t[name + ".weight"], self.t[name + ".bias"], 1e-5)

    def forward(self, tokens):
        t = self.t
        x = (t["wte.weight"][tokens] + t["wpe.weight"][: len(tokens)])[None]
        for i in range(self.count):
            x = x + self.attention[i](self.norm(x, f"h.{i}.ln_1"))
            u = self.linear(self.norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc")
            gelu = 0.5 * u * (1 + torch.tanh(math.sqrt(2 / math.pi) * (u + 0.044715 * u**3)))
            x = x + self.linear(gelu, f"h.{i}.mlp.c_proj")
        return torch.log_softmax(self.norm(x, "ln_f")[0] @ t["wte.weight"].T, -1)


class Called(torch.nn.Module):
    """Attention of GPT-2 through one door."""

    def __init__(self, t, name, heads, door):
        super().__init__()
        width = t[name + "c_proj.bias"].shape[0]
        self.inner = Block(door, width, heads).double()
        with torch.no_grad():
            W, b = t[name + "c_attn.weight"].T, t[name + "c_attn.bias"]
            if door == "mha":
                self.inner.mha.in_proj_weight.copy_(W)
                self.inner.mha.in_proj_bias.copy_(b)
                out = self.inner.mha.out_proj
            else:
                self.inner.groups, self.inner.kv = heads, torch.nn.Linear(width, 2 * width).double()
                for linear, part in ((self.inner.q, slice(0, width)), (self.inner.kv, slice(width, None))):
                    linear.weight.copy_(W[part])
                    linear.bias.copy_(b[part])
                # Blocks of these doors have a scale of 0.3; queries make up for it.
                for p in (self.inner.q.weight, self.inner.q.bias):
                    p.mul_((width // heads) ** -0.5 / 0.3)
                out = self.inner.o_proj
            out.weight.copy_(t[name + "c_proj.weight"].T)
            out.bias.copy_(t[name + "c_proj.bias"])

    def forward(self, x):
        return self.inner(x)


def random_gpt2(folder, rng, width=20, layers=2, heads=4):
    spec = dict(model_type="gpt2", n_embd=width, n_layer=layers, n_head=heads, vocab_size=47, n_positions=48)
    (folder / "config.json").write_text(json.dumps(dict(spec, activation_function="gelu_new")))
    sizes = {"attn.c_attn": (width, 3 * width), "attn.c_proj": (width, width)}
    sizes.update({"mlp.c_fc": (width, 2 * width), "mlp.c_proj": (2 * width, width)})
    (folder / "config.json").write_text(json.dumps(dict(spec, activation_function="gelu_new", n_inner=2 * width)))
    t = {"wte.weight": rng.normal(size=(47, width)), "wpe.weight": 0.3 * rng.normal(size=(48, width))}
    for name in ["ln_f"] + [f"h.{i}.ln_{j}" for i in range(layers) for j in (1, 2)]:
        t[name + ".weight"], t[name + ".bias"] = 1 + 0.1 * rng.normal(size=width), 0.1 * rng.normal(size=width)
    for i in range(layers):
        for name, (a, b) in sizes.items():
            t[f"h.{i}.{name}.weight"] = 1.5 * rng.normal(size=(a, b)) / a**0.5
            t[f"h.{i}.{name}.bias"] = 0.1 * rng.normal(size=b)
    _esscher.write_tensors(str(folder / "model.safetensors"), t)
    return {name: torch.tensor(np.float32(value)).double() for name, value in t.items()}


@torch.no_grad()
@pytest.mark.parametrize("door", ["mha", "sdpa", "interface"])
def test_a_replaced_run_is_that_of_the_program(door, program, tmp_path):
    rng = np.random.default_rng(3)
    model = TinyGPT(random_gpt2(tmp_path, rng), 2, 4, door).eval()
    tokens = rng.integers(0, 47, size=48)
    (tmp_path / "tokens.txt").write_text(" ".join(map(str, tokens)))
    plan = {
        "default": {"window": 6, "sinks": 1, "tail": "finite"},
        "heads": [
            {"layer": 0, "head": 1, "window": 4, "sinks": 2, "heavy": 2, "tail": "gaussian"},
            {"layer": 1, "head": 3, "window": None},
        ],
    }
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    files = [tmp_path, "--tokens", tmp_path / "tokens.txt", "--replace", tmp_path / "plan.json"]
    files += ["--capture", tmp_path / "theirs.safetensors", "--from", "0", "--json"]
    done = subprocess.run([program, "model", *map(str, files)], capture_output=True, text=True, check=True)
    (row,) = json.loads(done.stdout)["rows"]
    tokens = torch.tensor(tokens)
    with et.record(model) as calls:
        original = model(tokens)
    with et.replace(model, tmp_path / "plan.json"):
        replaced = model(tokens)
    next_word = (torch.arange(47), tokens[1:])
    assert row["nats"] == pytest.approx(-original[next_word].mean().item(), abs=1e-5)
    assert row["nats_replaced"] == pytest.approx(-replaced[next_word].mean().item(), abs=1e-5)
    kl = (original.exp() * (original - replaced)).sum(-1)[:-1].mean().item()
    assert kl > 0.01 and row["kl"] == pytest.approx(kl, rel=1e-4)
    calls.save(tmp_path / "ours.safetensors")
    ours, theirs = (read_safetensors(tmp_path / f"{name}.safetensors") for name in ("ours", "theirs"))
    assert set(theirs) - set(ours) == {f"L{i}.H{h}.residual_norm" for i in range(2) for h in range(4)}
    if door == "mha":  # the others move a part of the scale into their queries
        for name, value in ours.items():
            np.testing.assert_allclose(value.ravel(), theirs[name].ravel(), rtol=1e-4, atol=1e-4, err_msg=name)
