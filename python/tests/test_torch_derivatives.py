"""Every public name of esscher.torch: gradcheck and gradgradcheck where it is differentiable, else why it is not."""

import numpy as np
import pytest

import esscher as es

torch = pytest.importorskip("torch")
import esscher.torch as et  # noqa: E402

D = torch.float64


def tensor(seed, *shape, scale=0.6):
    generator = torch.Generator().manual_seed(seed)
    return (scale * torch.randn(*shape, dtype=D, generator=generator)).requires_grad_()


Z, U, V, K, Q = tensor(0, 3, 2), tensor(1, 2, 2), tensor(2, 2, 2), tensor(3, 2, 2), tensor(4, 2, 2)
S, T = torch.tensor(0.8, dtype=D, requires_grad=True), torch.tensor([0.3, 1.2], dtype=D, requires_grad=True)
COV, MEAN, TOKENS = (tensor(5, 2, 2) @ tensor(6, 2, 2).T).detach(), tensor(7, 2), tensor(8, 5, 2)
COV = (COV @ COV.T + 0.4 * torch.eye(2, dtype=D)).requires_grad_()
WEIGHTS = {"in_proj_weight": tensor(11, 6, 2).detach(), "out_proj.weight": tensor(12, 2, 2).detach()}
ONE, R = tensor(9, 2, 2), tensor(10, 2)
TASK = es.LinearRegressionTask(1, noise_variance=0.1)
DENOISING = es.DenoisingTask([[1.0], [-1.0]], gamma=0.5, xi=0.7)
BALL = es.Mixture([1, 2], [es.Gaussian(np.eye(2), [1.0, 0.0]), es.Ball(2)])


SHARES = torch.tensor([1.0, 2.5], dtype=D, requires_grad=True)


def mixture(w, G, m, t):
    return et.Mixture(w, [et.Gaussian(G, m), et.Empirical(t)])


def module_of(U, V, law, z):
    """The module with tensors of the graph for parameters."""
    layer = et.Attention(U=U, V=V)
    del layer.U, layer.V
    layer.U, layer.V = U, V
    return layer(law, z)


def recorded(z, W):
    """What a model says while it is recorded, with its own attention."""
    layer = torch.nn.MultiheadAttention(2, 1, bias=False, batch_first=True, dtype=D)
    x = (z @ W)[None]
    layer.load_state_dict(WEIGHTS)
    with et.record(layer) as calls:
        y, _ = layer(x, z[None], z[None])
    assert len(calls) == 1
    return y


# f and its inputs, by name. L(..) multiplies what is small, so that gradcheck sees numbers of order 1.
CASES = {
    "Attention": [(lambda u, v, z: module_of(u, v, BALL, z), (U, V, Z))],
    "Call": [
        (lambda q, k, v: et.Call("m", 0, 0, q[None, None], k[None, None], v[None, None], 0.7, causal=True).output(), (Z, Z, Z)),
        (lambda q, k, v: et.Call("m", 0, 0, q[None, None], k[None, None], v[None, None], 0.7).output(), (Z, TOKENS, TOKENS)),
    ],
    "Empirical": [(lambda t, a: et.Empirical(t).tilted_mean(a), (TOKENS, Z))],
    "Gaussian": [(lambda G, m, a: et.Gaussian(G, m).tilted_mean(a), (COV, MEAN, Z))],
    "Mixture": [(lambda w, G, m, t, a: mixture(w, G, m, t).tilted_mean(a), (SHARES, COV, MEAN, TOKENS, Z))],
    "attention": [
        (lambda u, v, z, s: et.attention(BALL, z, U=u, V=v, score_scale=s), (U, V, Z, S)),
        (lambda k, q, v, z, s: et.attention(BALL, z, K=k, Q=q, V=v, score_scale=s), (K, Q, V, Z, S)),
        (lambda t, u, v, z: et.attention(t, z, U=u, V=v), (TOKENS, U, V, Z)),
        (lambda G, m, u, z, s: et.attention(et.Gaussian(G, m), z, U=u, score_scale=s), (COV, MEAN, U, Z, S)),
    ],
    "expected_output": [
        (lambda G, m, z, u, v, s, L=L: et.expected_output(et.Gaussian(G, m), z, L, U=u, V=v, score_scale=s), (COV, MEAN, Z, U, V, S))
        for L in (3, 1000, es.inf)
    ],
    "mean_square_error": [
        (lambda G, z, u, v, s, L=L: L * et.mean_square_error(et.Gaussian(G), z, L, U=u, V=v, score_scale=s), (COV, Z, U, V, S))
        for L in (3, 1000)
    ] + [
        (lambda w, G, m, t, u: 100 * et.mean_square_error(mixture(w, G, m, t), Z.detach()[:1], 100, U=u), (SHARES, COV, MEAN, TOKENS, U)),
    ],
    "with_constant": [
        (lambda t, z: et.attention(et.with_constant(t), et.with_constant(z), U=torch.eye(3, dtype=D)), (TOKENS, Z)),
        (lambda w, G, m, t: et.with_constant(mixture(w, G, m, t)).tilted_mean(et.with_constant(Z.detach())), (SHARES, COV, MEAN, TOKENS)),
    ],
    "universal": [
        (lambda t, L=L: tuple(L * x for x in et.universal(L, t)), (T,)) for L in (2, 100)
    ],
    "risk": [
        (lambda u, r, L=L, kind=kind: et.risk(TASK, u, r, L, kind=kind), (ONE, R))
        for L, kind in ((8, "softmax"), (8, "linear"), (es.inf, "softmax"))
    ],
    "layer_risk": [
        (lambda u, v, w, kind=kind: et.layer_risk(DENOISING, es.Layer(u, v, w, kind), 8), tuple(tensor(i, 1, 1) for i in (20, 21, 22)))
        for kind in ("softmax", "linear")
    ],
    "tilted_mean": [
        (lambda a, law=law: et.tilted_mean(law, a), (Z,))
        for law in (es.Sphere(2), es.Rademacher(2), es.Uniform(2), es.Categorical([0.3, 0.7]), BALL, es.Dirac([1.0, 2.0]),
                    es.Elliptical(np.eye(2), [0.5, 1.5], [0.4, 0.6]), es.Product([es.Gaussian([[1.0]]), es.Rademacher(1)]),
                    es.Rademacher(2) + es.Sphere(2), es.SingleIndex([[1.0]], [1.0], "tanh", 0.1))
    ],
    "record": [(recorded, (Z, U))],
}
# Names without a derivative, and what they give instead.
WITHOUT = {
    "Recording": "a list of calls",
    "Trainer": "steps of an optimizer",
    "TwinTraining": "a result",
    "draw_batch": "draws, which have no argument to differentiate",
    "from_state_dict": "heads of NumPy",
    "readouts": "heads of NumPy",
    "replace": "outputs that refuse to be differentiated",
    "to_state_dict": "weights made of NumPy",
}


def test_every_name_is_tried():
    assert {*CASES, *WITHOUT} == set(et.__all__) and not set(CASES) & set(WITHOUT)


@pytest.mark.parametrize("name, number", [(name, i) for name, cases in CASES.items() for i in range(len(cases))])
def test_derivatives_of_both_orders(name, number):
    f, inputs = CASES[name][number]
    assert torch.autograd.gradcheck(f, inputs)
    assert torch.autograd.gradgradcheck(f, inputs)


def test_what_has_no_derivative_says_so():
    task = es.LinearRegressionTask(2)
    assert not any(x.requires_grad for x in et.draw_batch(task, 5, 3, es.Stream(0)))
    layer = torch.nn.MultiheadAttention(4, 2, bias=False, batch_first=True).eval()
    heads = et.from_state_dict(layer.state_dict(), 2)
    assert isinstance(heads.heads[0].U, np.ndarray) and isinstance(et.readouts(layer)[0].U, np.ndarray)
    assert not any(x.requires_grad for x in et.to_state_dict(heads).values())
    x = torch.randn(1, 30, 4, requires_grad=True)
    with et.replace(layer, {"default": {"window": 8, "tail": "finite"}}):
        y, _ = layer(x, x, x)
    with pytest.raises(es.CapabilityError, match="windows? .*no gradients"):
        y.sum().backward()
    assert not any(x.requires_grad for x in calls_of(layer, x))


def calls_of(layer, x):
    """Tensors that a recording keeps are outside the graph."""
    with et.record(layer) as calls:
        layer(x, x, x)
    return [part for call in calls for part in (call.Q, call.K, call.V)]
