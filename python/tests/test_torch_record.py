"""Heads of PyTorch models, recorded and replaced."""

import sys
import types

import numpy as np
import pytest

import esscher as es

torch = pytest.importorskip("torch")
from esscher.torch_record import record, replace  # noqa: E402

torch.manual_seed(0)
N = 40


class Block(torch.nn.Module):
    """Causal self-attention by one of the three doors."""

    def __init__(self, door):
        super().__init__()
        self.door = door
        self.mha = torch.nn.MultiheadAttention(12, 3, batch_first=True)
        self.qkv = torch.nn.Linear(12, 36)
        self.config = types.SimpleNamespace(_attn_implementation="sdpa")

    def forward(self, x):
        n = x.shape[1]
        if self.door == "mha":
            mask = torch.ones(n, n, dtype=torch.bool).triu(1)
            return self.mha(x, x, x, attn_mask=mask, need_weights=False)[0]
        q, k, v = (y.reshape(*y.shape[:2], 3, 4).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        if self.door == "sdpa":
            function = getattr(torch.nn.functional, "scaled_dot_product_attention", plain)
            return function(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        name = self.config._attn_implementation
        out, _ = sys.modules["transformers"].AttentionInterface.known[name](self, q, k, v, None, scaling=0.5, is_causal=True)
        return out.flatten(2)


def plain(q, k, v, is_causal):
    s = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    s = s.masked_fill(torch.ones(s.shape[-2:], dtype=torch.bool).triu(1), -torch.inf)
    return torch.softmax(s, -1) @ v


@pytest.fixture(params=["mha", "sdpa", "interface"])
def block(request, monkeypatch):
    class Interface:
        known = {"sdpa": lambda m, q, k, v, mask, scaling, is_causal: (plain(q, k, v, True).transpose(1, 2), None)}

        @classmethod
        def register(cls, name, function):
            cls.known[name] = function

    monkeypatch.setitem(sys.modules, "transformers", types.SimpleNamespace(AttentionInterface=Interface))
    return Block(request.param).double().eval()


def test_recorded_outputs_are_the_modules_own(block, tmp_path):
    x = torch.randn(2, N, 12).double()
    with torch.no_grad():
        want = block(x)
        with record(block) as calls:
            got = block(x)
        again = block(x)
    torch.testing.assert_close(got, want, rtol=1e-6, atol=1e-9)
    assert torch.equal(again, want)  # the doors are as before
    assert len(calls) == 1 and calls[0].causal and calls[0].mask is None
    merged = calls[0].output.transpose(1, 2).flatten(2)
    if block.door == "mha":
        merged = merged @ block.mha.out_proj.weight.T + block.mha.out_proj.bias
        assert calls[0].W_O.shape == (12, 12)
    torch.testing.assert_close(merged, want, rtol=1e-6, atol=1e-9)
    calls.save(tmp_path / "heads.safetensors")
    rows = es.heads(tmp_path / "heads.safetensors", components=[], windows=[8])
    assert len(rows) == 2 * 3 and all(row["causal"] and row["n"] == N for row in rows)


def test_a_whole_window_changes_nothing_and_a_small_one_is_a_windowed_head(block):
    x = torch.randn(1, N, 12).double()
    with torch.no_grad():
        with record(block) as calls:
            want = block(x)
        with replace(block, {"window": N}):
            torch.testing.assert_close(block(x), want, rtol=1e-9, atol=1e-9)
        with replace(block, {"default": None, "calls": {calls[0].name: {"window": 6, "tail": "mean"}}}):
            got = block(x)
    assert (got - want).abs().max() > 1e-4
    head = es.WindowedHead(4, 4, score_scale=calls[0].scale, window=6, tail="mean")
    Q, K, V = (y[0, 1].numpy() for y in (calls[0].Q, calls[0].K, calls[0].V))
    last = [head.step(*row) for row in zip(Q, K, V)][-1]
    if block.door != "mha":
        np.testing.assert_allclose(got[0, -1, 4:8].numpy(), last, rtol=1e-9)


def test_other_masks_are_refused_by_name(tmp_path):
    mha = torch.nn.MultiheadAttention(8, 2, batch_first=True).double().eval()
    x, mask = torch.randn(1, 5, 8).double(), torch.rand(5, 5).double()
    with record(mha) as calls:
        mha(x, x, x, attn_mask=mask)
    with pytest.raises(es.ArgumentError, match="'model' has a mask of shape"):
        calls.save(tmp_path / "x.safetensors")
    assert not (tmp_path / "x.safetensors").exists()
    with pytest.raises(es.ArgumentError, match="mask of call 'model'"), replace(mha, {"window": 3}):
        mha(x, x, x, attn_mask=mask)
    with pytest.raises(es.ArgumentError, match="'windw'"), replace(mha, {"windw": 3}):
        mha(x, x, x)


def test_encoder_layers_do_not_pass_by():
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).double().eval()
    x = torch.randn(2, 7, 8).double()
    with torch.no_grad():
        want = layer(x)
        with record(layer) as calls:
            got = layer(x)
    torch.testing.assert_close(got, want, rtol=1e-6, atol=1e-9)
    assert [call.name for call in calls] == ["self_attn"] and not calls["self_attn"].causal
    with pytest.raises(es.ArgumentError, match="'other'"):
        calls["other"]
