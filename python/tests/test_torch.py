"""The bridge to PyTorch: derivatives of both orders, against NumPy and against autograd; weights; twins."""

import numpy as np
import pytest

import esscher as es

torch = pytest.importorskip("torch")
import esscher.torch as et  # noqa: E402

torch.manual_seed(0)
D = torch.float64


def tensor(*shape, scale=1.0):
    return (scale * torch.randn(*shape, dtype=D)).requires_grad_()


U, V, K, Q, Z = tensor(2, 2, scale=0.5), tensor(3, 2), tensor(2, 2), tensor(2, 2, scale=0.5), tensor(4, 2)
HALF = torch.randn(2, 2, dtype=D)
COV, MEAN = (HALF @ HALF.T + 0.3 * torch.eye(2, dtype=D)).requires_grad_(), tensor(2)
LAWS = {
    "sphere": es.Sphere(2, 1.5),
    "coins": es.Rademacher(2),
    "mixture": es.Mixture([1, 2], [es.Gaussian(np.eye(2), [1.0, 0.0]), es.Ball(2)]),
    "prompt": es.Empirical(np.random.default_rng(0).normal(size=(7, 2))),
}


def both_orders(f, *inputs):
    assert torch.autograd.gradcheck(f, inputs)
    assert torch.autograd.gradgradcheck(f, inputs)
    return True


@pytest.mark.parametrize("name", LAWS)
def test_attention_on_measures(name):
    law = LAWS[name]
    y = et.attention(law, Z, U=U, V=V)
    head = es.Attention(U=U.detach().numpy(), V=V.detach().numpy())
    np.testing.assert_allclose(y.detach(), head(law, Z.detach().numpy()), rtol=1e-12)
    assert both_orders(lambda u, v, z: et.attention(law, z, U=u, V=v), U, V, Z)


def test_attention_by_keys_and_queries():
    s = torch.tensor(0.7, dtype=D, requires_grad=True)
    assert both_orders(lambda k, q, s: et.attention(LAWS["coins"], Z.detach(), K=k, Q=q, score_scale=s), K, Q, s)
    for wrong in ({"U": U, "K": K}, {"K": K}, {}):
        with pytest.raises(TypeError, match="U, or K and Q"):
            et.attention(LAWS["coins"], Z, **wrong)


def test_prompts_and_measures_of_tensors():
    tokens = tensor(6, 2)
    expected = torch.softmax((Z @ U.T) @ tokens.T, -1) @ tokens @ V.T
    torch.testing.assert_close(et.attention(tokens, Z, U=U, V=V), expected)
    assert both_orders(lambda t, z: et.attention(t, z, U=U.detach()), tokens, Z)
    both_orders(lambda G, m: et.attention(et.Gaussian(G, m), Z.detach(), U=U.detach()), COV, MEAN)
    mu = et.Gaussian(COV, MEAN).numpy()
    np.testing.assert_allclose(mu.cov, COV.detach().numpy())
    np.testing.assert_allclose(
        et.attention(et.Gaussian(COV, MEAN), Z, U=U).detach(), et.attention(mu, Z, U=U).detach(), rtol=1e-12
    )


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float32])
def test_every_precision(kind):
    z, u = Z.detach().to(kind), U.detach().to(kind).requires_grad_()
    y = et.attention(LAWS["sphere"], z, U=u)
    y.float().sum().backward()
    assert u.grad.dtype == y.dtype == kind
    exact = et.attention(LAWS["sphere"], Z.detach(), U=U.detach())
    np.testing.assert_allclose(y.detach().float(), exact, atol={torch.bfloat16: 0.05}.get(kind, 0.01))
    # Measures and attention of esscher take such tensors as well; what would lose a gradient is refused.
    assert es.Gaussian(torch.eye(2).to(kind)).cov.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert es.Empirical(z).cardinality == 4
    with pytest.raises(es.ArgumentError, match="esscher.torch"):
        es.Empirical(z.clone().requires_grad_())


@pytest.mark.parametrize("length", [2, 50, 10**6])
def test_finite_prompts(length):
    law = et.Gaussian(COV, MEAN)
    D_L = et.mean_square_error(law, Z, length, U=U, V=V)
    head = es.Attention(U=U.detach().numpy(), V=V.detach().numpy())
    for z, found in zip(Z.detach().numpy(), D_L):
        value, slope = es.mean_square_error(law.numpy(), head, z, length, gradient=True)
        assert found.item() == pytest.approx(value.value, rel=1e-9)
        (by_torch,) = torch.autograd.grad(found, COV, retain_graph=True)
        np.testing.assert_allclose((by_torch + by_torch.T) / 2, slope.cov, rtol=1e-7, atol=1e-12)
        mean = et.expected_output(law, torch.tensor(z), length, U=U, V=V)
        np.testing.assert_allclose(mean.detach(), es.expected_output(law.numpy(), head, z, length), rtol=1e-9)
    unit = length  # so that gradcheck sees numbers of order 1
    assert both_orders(lambda u, v, G: unit * et.mean_square_error(et.Gaussian(G), Z.detach()[:2], length, U=u, V=v).sum(), U, V, COV)
    assert both_orders(lambda u, G, m: et.expected_output(et.Gaussian(G, m), Z.detach()[:2], length, U=u), U, COV, MEAN)


def test_limits_and_refusals():
    assert et.mean_square_error(es.Gaussian(np.eye(2)), Z, es.inf, U=U).abs().max() == 0
    torch.testing.assert_close(
        et.expected_output(es.Gaussian(np.eye(2)), Z, es.inf, U=U), et.attention(es.Gaussian(np.eye(2)), Z, U=U)
    )
    assert et.mean_square_error(es.Sphere(2), Z, es.inf, U=U).shape == (4,)
    torch.testing.assert_close(et.expected_output(es.Sphere(2), Z, es.inf, U=U), et.attention(es.Sphere(2), Z, U=U))
    with pytest.raises(es.DimensionError):
        et.mean_square_error(es.Sphere(3), Z, 10, U=U)


TASK = es.LinearRegressionTask(1, noise_variance=0.1)


@pytest.mark.parametrize("length, kind", [(10, "softmax"), (20, "linear"), (es.inf, "softmax")])
def test_risks(length, kind):
    f = es.risk_function(TASK, length, kind=kind)
    u, r = tensor(2, 2, scale=0.5), tensor(2)
    at = es.Readout(u.detach().numpy(), r.detach().numpy())
    value = et.risk(TASK, u, r, length, kind=kind)
    assert value.item() == f(at)
    value.backward()
    np.testing.assert_allclose(u.grad, f.gradient(at)[1].U, rtol=1e-12)
    u.grad = None
    assert both_orders(lambda u, r: et.risk(TASK, u, r, length, function=f), u, r)


SMALL = dict(eps=3e-3, atol=1e-4)  # prompts of several heads are summed in single precision


@pytest.mark.parametrize("length, kind", [(10, "softmax"), (20, "linear"), (es.inf, "softmax")])
def test_risks_of_several_heads(length, kind):
    f = es.risk_function(TASK, length, kind=kind, draws=400)
    u, r = tensor(2, 2, 2, scale=0.5), tensor(2, 2, scale=0.5)
    at = [es.Readout(*(x.detach().numpy() for x in head)) for head in zip(u, r)]
    value = et.risk(TASK, u, r, length, function=f)
    assert value.item() == f(at)
    value.backward()
    slopes = f.gradient(at)[1]
    np.testing.assert_allclose(u.grad, [slope.U for slope in slopes], rtol=1e-12)
    np.testing.assert_allclose(r.grad, [slope.r for slope in slopes], rtol=1e-12)
    risk = lambda u, r: et.risk(TASK, u, r, length, function=f)  # noqa: E731
    assert torch.autograd.gradcheck(risk, (u, r), rtol=1e-3, **SMALL)
    assert torch.autograd.gradgradcheck(risk, (u, r), rtol=1e-2, eps=1e-2, atol=1e-2)


DENOISING = es.DenoisingTask([[1.0, 0.0], [-1.0, 0.5]], gamma=0.5, xi=0.7)
ONE_AXIS = es.DenoisingTask([[1.0], [-1.0]], gamma=0.5, xi=0.7)
CLASSES = es.ClassificationTask([[1.0], [-1.0]])


@pytest.mark.parametrize(
    "task, rows, kinds, length",
    [
        (DENOISING, 2, ["softmax"], es.inf),
        (ONE_AXIS, 1, ["softmax"], 10),
        (ONE_AXIS, 1, ["linear", "linear"], 10),
        (CLASSES, 1, ["softmax"], es.inf),
    ],
)
def test_risks_of_layers(task, rows, kinds, length):
    dim = task.token_dim
    u, v, w = ([tensor(n, dim, scale=0.4) for _ in kinds] for n in (dim, rows, rows))
    w = w[0]

    def layer(*x):
        return es.Layer(list(x[: len(kinds)]), list(x[len(kinds) : -1]), x[-1], kinds)

    at = layer(*(x.detach().numpy() for x in (*u, *v, w)))
    value = et.layer_risk(task, layer(*u, *v, w), length)
    assert value.item() == pytest.approx(es.risk(task, at, length).value, rel=1e-3)
    assert both_orders(lambda *x: et.layer_risk(task, layer(*x), length), *u, *v, w)


def test_risks_of_layers_whose_prompts_are_drawn():
    u, v = [tensor(2, 2, scale=0.4) for _ in range(2)], [tensor(2, 2, scale=0.4) for _ in range(2)]
    risk = lambda *x: et.layer_risk(DENOISING, es.Layer(x[:2], x[2:]), 10, draws=200)  # noqa: E731
    assert risk(*u, *v).item() == risk(*u, *v).item()  # the same prompts at every call
    assert torch.autograd.gradcheck(risk, (*u, *v), rtol=1e-3, **SMALL)


def test_layers_of_tensors_are_refused_by_name():
    one = torch.ones(2, 2, dtype=D)
    with pytest.raises(es.DimensionError, match="V has 1 matrices, U has 2"):
        et.layer_risk(DENOISING, es.Layer([one, one], [one]), 10)
    with pytest.raises(es.DimensionError, match="kinds has 1 words, U has 2"):
        et.layer_risk(DENOISING, es.Layer([one, one], [one, one], None, ["linear"]), 10)
    with pytest.raises(es.DimensionError, match=r"W has shape \[2, 3\], expected \[2,2\]"):
        et.layer_risk(DENOISING, es.Layer(one, one, torch.ones(2, 3)), 10)


def test_modules():
    layer = et.Attention.of(es.Attention(K=K.detach().numpy(), Q=Q.detach().numpy(), V=V.detach().numpy(), score_scale=0.5))
    assert sorted(name for name, _ in layer.named_parameters()) == ["K", "Q", "V"]
    head = layer.numpy()
    np.testing.assert_allclose(layer(LAWS["sphere"], Z).detach(), head(LAWS["sphere"], Z.detach().numpy()), rtol=1e-12)
    again = et.Attention(K=K, Q=Q, V=V)
    again.load_state_dict(layer.state_dict())
    assert torch.equal(again.K, layer.K)
    (readout,) = et.readouts(layer)
    np.testing.assert_allclose(readout.r, V.detach().numpy()[-1])


@pytest.mark.parametrize("heads", [1, 2])
def test_multihead_attention_of_torch(heads):
    layer = torch.nn.MultiheadAttention(4, heads, bias=False, batch_first=True, dtype=D)
    tokens, z = torch.randn(1, 9, 4, dtype=D), torch.randn(1, 3, 4, dtype=D)
    expected = layer(z, tokens, tokens)[0][0].detach().numpy()
    mine = et.from_state_dict(layer.state_dict(), heads)
    np.testing.assert_allclose(mine(tokens[0].numpy(), z[0].numpy()), expected, rtol=1e-10, atol=1e-12)
    other = torch.nn.MultiheadAttention(4, heads, bias=False, batch_first=True, dtype=D)
    other.load_state_dict(et.to_state_dict(mine))
    assert all(torch.equal(a, b) for a, b in zip(layer.state_dict().values(), other.state_dict().values()))
    # What the last coordinate of the output reads, head by head.
    outputs = sum(es.Attention(U=h.U)(tokens[0].numpy(), z[0].numpy()) @ h.r for h in et.readouts(layer))
    np.testing.assert_allclose(outputs, expected[:, -1], rtol=1e-10, atol=1e-12)


def test_four_linears_and_biases():
    class Layer(torch.nn.Module):
        def __init__(self, bias):
            super().__init__()
            for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
                setattr(self, name, torch.nn.Linear(4, 4, bias=bias, dtype=D))

    names = ("q_proj", "k_proj", "v_proj", "o_proj")
    plain = Layer(False)
    mine = et.from_state_dict(plain.state_dict(), 2, names=names)
    again = et.to_state_dict(mine, names=names)
    assert all(torch.equal(again[name], value) for name, value in plain.state_dict().items())
    with pytest.raises(es.CapabilityError, match="q_proj.bias is not zero.*constant=True"):
        et.from_state_dict(Layer(True).state_dict(), 2, names=names)
    with pytest.raises(es.ArgumentError, match="there is no q.weight; the keys are q_proj.weight"):
        et.from_state_dict(plain.state_dict(), 2)
    with pytest.raises(es.DimensionError, match="3 heads"):
        et.from_state_dict(plain.state_dict(), 3, names=names)
    # A bias of keys changes no softmax.
    layer = torch.nn.MultiheadAttention(4, 2, batch_first=True, dtype=D)
    with torch.no_grad():
        layer.in_proj_bias[4:8] = torch.randn(4, dtype=D)
    tokens = torch.randn(1, 9, 4, dtype=D)
    mine = et.from_state_dict(layer.state_dict(), 2)
    np.testing.assert_allclose(mine(tokens[0].numpy(), tokens[0].numpy()), layer(tokens, tokens, tokens)[0][0].detach(), rtol=1e-10, atol=1e-12)


def test_a_twin_follows_a_module():
    task = es.LinearRegressionTask(2, noise_variance=0.1)
    at = es.balanced_start(task, 0.6)
    V = torch.zeros(3, 3, dtype=D)
    V[-1] = torch.tensor(at.r)
    model = et.Attention(U=torch.tensor(at.U), V=V)

    def predict(m, prompts, queries):
        w = torch.softmax(torch.einsum("bld,de,be->bl", prompts, m.U, queries), -1)
        return torch.einsum("bl,bld,d->b", w, prompts, m.V[-1])

    twin = et.Trainer(model, task, 20, predict=predict, batch=128, optimizer=torch.optim.SGD(model.parameters(), lr=0.1))
    found = twin.run(60, log_every=20)
    table = found.to_pandas()
    assert list(table["step"]) == [0, 20, 40, 60]
    for row in found.rows:  # the sampled loss is that of the same law
        assert abs(row["loss"] - row["risk"]) < 6 * row["std_error"]
    assert found.rows[-1]["risk"] < 0.9 * found.rows[0]["risk"] and "<iframe" in found._repr_mimebundle_()["text/html"]
    assert found.rows[0]["risk"] == es.risk(task, es.Readout(at.U, at.r), 20).value
    # Another module sees the same prompts.
    other = et.Trainer(et.Attention(U=torch.tensor(at.U), V=V), task, 20, predict=predict, batch=128)
    assert other.losses().mean().item() == pytest.approx(found.rows[0]["loss"], rel=1e-14)


@pytest.mark.parametrize("task, size", [
    (es.DenoisingTask([[1.5, 0.0], [-1.5, 0.0]], gamma=0.5, xi=0.5), 2),
    (es.PoolTask([[1.0], [-1.0]], noise_variance=0.1), 2),
    (es.SingleIndexTask(2, link="sign"), 3),
])
def test_a_twin_on_tasks_beyond_regression(task, size):
    """Prompts of the same law: the sampled loss is near the exact risk of the module's layer at every log step."""
    model = et.Attention(U=0.3 * torch.eye(size, dtype=D), V=0.3 * torch.eye(size, dtype=D))

    def predict(m, prompts, queries):
        return torch.stack([m(prompt, z)[-task.out_dim :] for prompt, z in zip(prompts, queries)])

    twin = et.Trainer(model, task, 30, predict=predict, batch=200, optimizer=torch.optim.Adam(model.parameters(), lr=0.05))
    tokens, queries, targets = et.draw_batch(task, 30, 200, es.Stream(0).split(1).split(0), D)
    expected = 0.5 * ((predict(model, tokens, queries) - targets) ** 2).sum(-1)
    torch.testing.assert_close(twin.losses(), expected)
    found = twin.run(20, log_every=10)
    for row in found.rows:
        assert abs(row["loss"] - row["risk"]) < 6 * row["std_error"]
    assert found.rows[-1]["risk"] < 0.9 * found.rows[0]["risk"]
    start = es.Layer(0.3 * np.eye(size), 0.3 * np.eye(size))
    assert found.rows[0]["risk"] == pytest.approx(es.risk(task, start, 30).value)
    assert found.rows[0]["risk_limit"] == pytest.approx(es.risk(task, start, es.inf).value)
    # A layer of the user's own making stands for the module.
    other = et.Trainer(model, task, 30, predict=predict, readout=lambda m: start, batch=2)
    assert other.exact()[0] == found.rows[0]["risk"]


def test_a_twin_refuses_what_has_no_risk():
    model, task = et.Attention(U=torch.eye(2)), es.DenoisingTask([[1.0, 0.0], [-1.0, 0.0]])
    with pytest.raises(es.ArgumentError, match="expected a task"):
        et.Trainer(model, 5, 20)
    with pytest.raises(es.CapabilityError, match="squared loss"):
        et.Trainer(model, es.ClassificationTask([[1.0], [-1.0]], loss="logistic"), 20)
    with pytest.raises(es.CapabilityError, match="softmax"):
        et.Trainer(model, task, 20, kind="linear")
    with pytest.raises(es.DimensionError, match=r"\[128\], expected \[128, 2\]"):
        et.Trainer(model, task, 20, predict=lambda m, prompts, queries: queries[:, 0]).losses()


def test_training_on_the_exact_risk():
    """A loop of PyTorch on R_L itself: no noise, so every step of a small rate goes down."""
    task = es.LinearRegressionTask(2, noise_variance=0.1)
    f, at = es.risk_function(task, 30), es.balanced_start(task, 0.6)
    u, r = torch.tensor(at.U, requires_grad=True), torch.tensor(at.r, requires_grad=True)
    optimizer, seen = torch.optim.SGD([u, r], lr=0.1), []
    for _ in range(30):
        optimizer.zero_grad()
        value = et.risk(task, u, r, 30, function=f)
        value.backward()
        optimizer.step()
        seen.append(value.item())
    assert seen == sorted(seen, reverse=True) and seen[-1] < 0.9 * seen[0]
