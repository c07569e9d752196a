"""Weights with biases: heads on tokens (x, 1), both ways, and twins of modules that have them."""

import numpy as np
import pytest

import esscher as es

torch = pytest.importorskip("torch")
import esscher.torch as et  # noqa: E402
from test_torch import COV, MEAN, U, Z  # noqa: E402
from test_torch_finite import TOKENS, W, mixture  # noqa: E402

D = torch.float64


def biased(heads, size=4):
    layer = torch.nn.MultiheadAttention(size, heads, batch_first=True, dtype=D)
    with torch.no_grad():
        layer.in_proj_bias.copy_(torch.randn(3 * size, dtype=D))
        layer.out_proj.bias.copy_(torch.randn(size, dtype=D))
    return layer


@pytest.mark.parametrize("heads", [1, 2])
def test_biases_are_a_coordinate_more(heads):
    """On prompts as PyTorch computes them, on measures, and back into PyTorch with the same bits."""
    layer = biased(heads)
    tokens, z = torch.randn(1, 9, 4, dtype=D), torch.randn(1, 3, 4, dtype=D)
    expected = layer(z, tokens, tokens)[0][0].detach().numpy()
    with pytest.raises(es.CapabilityError, match="in_proj_bias of queries is not zero"):
        et.from_state_dict(layer.state_dict(), heads)
    mine = et.from_state_dict(layer.state_dict(), heads, constant=True)
    assert len(mine.heads) == heads + 1 and mine.dim == 5
    found = mine(et.with_constant(tokens[0].numpy()), et.with_constant(z[0].numpy()))
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    other = biased(heads)
    other.load_state_dict(et.to_state_dict(mine, constant=True))
    assert all(torch.equal(a, b) for a, b in zip(layer.state_dict().values(), other.state_dict().values()))
    # What a long prompt tends to: the mean of many, by the same module.
    law = es.Gaussian(0.3 * np.eye(4), [0.5, -0.2, 0.1, 0.3])
    limit = mine(et.with_constant(law), et.with_constant(z[0].numpy()))
    long = torch.tensor(law.sample(0, 200_000).tokens)[None]
    seen = layer(z, long, long)[0][0].detach().numpy()
    assert np.abs(seen - limit).max() < 0.02 * np.abs(limit).max()
    # The last coordinate, head by head; the first head says the bias of the output.
    read = et.readouts(layer, constant=True)
    assert len(read) == heads
    outputs = sum(es.Attention(U=h.U)(et.with_constant(tokens[0].numpy()), et.with_constant(z[0].numpy())) @ h.r for h in read)
    np.testing.assert_allclose(outputs, expected[:, -1], rtol=1e-10, atol=1e-12)


def test_each_bias_counts():
    """A bias of queries, of values and of outputs moves the output; one of keys does not; none may be lost."""
    tokens = torch.randn(1, 9, 4, dtype=D)
    cases = [("in_proj_bias", 0, True), ("in_proj_bias", 5, False), ("in_proj_bias", 9, True), ("out_proj.bias", 1, True)]
    for name, at, moves in cases:
        layer = torch.nn.MultiheadAttention(4, 2, batch_first=True, dtype=D)
        plain = layer(tokens, tokens, tokens)[0][0].detach().numpy()
        with torch.no_grad():
            dict(layer.named_parameters())[name][at] = 0.7
        expected = layer(tokens, tokens, tokens)[0][0].detach().numpy()
        assert (np.abs(expected - plain).max() > 1e-3) == moves
        mine = et.from_state_dict(layer.state_dict(), 2, constant=True)
        x = et.with_constant(tokens[0].numpy())
        np.testing.assert_allclose(mine(x, x), expected, rtol=1e-10, atol=1e-12)


def test_linears_with_biases():
    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for name in ("q", "k", "v", "o"):
                setattr(self, name, torch.nn.Linear(6, 6, dtype=D))

        def forward(self, x):
            parts = (getattr(self, name)(x).reshape(-1, 3, 2).transpose(0, 1) for name in ("q", "k", "v"))
            q, k, v = parts
            return self.o((torch.softmax(q @ k.transpose(1, 2) / 2**0.5, -1) @ v).transpose(0, 1).reshape(-1, 6))

    layer, x = Layer(), torch.randn(8, 6, dtype=D)
    mine = et.from_state_dict(layer.state_dict(), 3, constant=True)
    y = et.with_constant(x)
    np.testing.assert_allclose(mine(y.numpy(), y.numpy()), layer(x).detach(), rtol=1e-10, atol=1e-12)
    again = Layer()
    again.load_state_dict(et.to_state_dict(mine, names=("q", "k", "v", "o"), constant=True))
    assert all(torch.equal(a, b) for a, b in zip(layer.state_dict().values(), again.state_dict().values()))


def test_tokens_with_a_constant():
    mu = et.with_constant(es.Sphere(2))
    sample = mu.sample(0, 10).tokens
    assert sample.shape == (10, 3) and np.all(sample[:, 2] == 1)
    G = et.with_constant(et.Gaussian(COV, MEAN))
    np.testing.assert_allclose(G.numpy().mean, [*MEAN.detach().numpy(), 1.0])
    assert np.all(G.numpy().cov[2] == 0)
    both = et.with_constant(mixture(W, MEAN, COV, TOKENS))
    head = es.Attention(U=np.pad(U.detach().numpy(), (0, 1)), V=np.eye(3))
    z = et.with_constant(Z[:1])
    found = et.mean_square_error(both, z, 10, U=torch.tensor(head.U))
    plain = et.mean_square_error(mixture(W, MEAN, COV, TOKENS), Z[:1], 10, U=U)
    torch.testing.assert_close(found, plain, rtol=1e-10, atol=0)
    with pytest.raises(es.CapabilityError, match="Prompt"):
        et.with_constant(es.Prompt(es.Sphere(2)))
    with pytest.raises(es.CapabilityError, match="bias_k adds a token"):
        et.from_state_dict(torch.nn.MultiheadAttention(4, 2, add_bias_kv=True).state_dict(), 2, constant=True)


@pytest.mark.parametrize("heads", [1, 3])
def test_a_twin_follows_a_module_with_biases(heads):
    """The sampled loss of a module whose biases train is near the risk that the twin computes."""
    task = es.LinearRegressionTask(2, noise_variance=0.1)
    model = biased(heads, 3)
    model.in_proj_bias.data *= 0.3
    model.out_proj.bias.data *= 0.3
    predict = lambda m, prompts, queries: m(queries[:, None], prompts, prompts)[0][:, 0, -1]  # noqa: E731
    twin = et.Trainer(model, task, 10, predict=predict, batch=4000, optimizer=torch.optim.SGD(model.parameters(), lr=0.05))
    found = twin.run(4, log_every=2)
    for row in found.rows:
        assert abs(row["loss"] - row["risk"]) < 6 * np.hypot(row["std_error"], 0.03 * row["risk"])
        assert np.isfinite(row["risk_limit"])
    model.out_proj.bias.data[-1] += 2.0  # what the twin must see
    assert twin.exact()[0] > found.rows[-1]["risk"] + 1.0
