"""D(L) and mean outputs inside a graph, for mixtures of tensors and for every law of the exact engine."""

import numpy as np
import pytest

import esscher as es

torch = pytest.importorskip("torch")
import esscher.torch as et  # noqa: E402
from test_torch import COV, LAWS, MEAN, U, V, Z, both_orders, tensor  # noqa: E402

D = torch.float64
W = torch.tensor([1.0, 2.5], dtype=D, requires_grad=True)
TOKENS, PLACES = tensor(5, 2), tensor(2, 2)


def mixture(weights, mean, cov, tokens):
    return et.Mixture(weights, [et.Gaussian(cov, mean), et.Empirical(tokens)])


@pytest.mark.parametrize("length", [1, 2, 50, 10**6])
def test_finite_prompts_of_mixtures_of_tensors(length):
    """Against the exact engine, which has other nodes and another way to average."""
    laws = {
        "two": et.Mixture(W, [et.Gaussian(COV, PLACES[0]), et.Gaussian(0.5 * COV, PLACES[1])]),
        "one": et.Mixture(W[:1], [et.Gaussian(COV, PLACES[0])]),
        "tokens": et.Empirical(TOKENS),
        "far": et.Mixture(W, [et.Gaussian(COV, 9 * PLACES[0]), et.Gaussian(0.01 * COV)]),
    }
    head = es.Attention(U=U.detach().numpy(), V=V.detach().numpy())
    for name, law in laws.items():
        found = et.mean_square_error(law, Z, length, U=U, V=V)
        mean = et.expected_output(law, Z, length, U=U, V=V)
        for i, z in enumerate(Z.detach().numpy()):
            value = es.mean_square_error(law.numpy(), head, z, length, engine="exact").value
            assert found[i].item() == pytest.approx(value, rel=1e-7), name
            np.testing.assert_allclose(mean[i].detach(), es.expected_output(law.numpy(), head, z, length), rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(et.attention(law, Z, U=U, V=V).detach(), head(law.numpy(), Z.detach().numpy()), rtol=1e-10)
    # A part alone is the closed form of Gaussian tokens.
    closed = et.mean_square_error(et.Gaussian(COV, PLACES[0]), Z, length, U=U, V=V)
    torch.testing.assert_close(et.mean_square_error(laws["one"], Z, length, U=U, V=V), closed, rtol=1e-8, atol=0)


def test_finite_prompts_of_few_tokens_by_enumeration():
    import itertools

    a = (Z @ U.T)[0].detach()
    z = TOKENS.detach()
    limit = torch.softmax(z @ a, 0) @ z @ V.T
    for L in (1, 2, 4):
        outputs = torch.stack([torch.softmax(z[list(i)] @ a, 0) @ z[list(i)] @ V.T for i in itertools.product(range(5), repeat=L)])
        found = et.mean_square_error(TOKENS, Z[:1], L, U=U, V=V)
        assert found.item() == pytest.approx(((outputs - limit) ** 2).sum(-1).mean().item(), rel=1e-12)
        torch.testing.assert_close(et.expected_output(TOKENS, Z[:1], L, U=U, V=V)[0], outputs.mean(0), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("length", [3, 10**4])
def test_derivatives_of_finite_prompts_of_mixtures_of_tensors(length):
    z = Z.detach()[:1]
    error = lambda u, v, w, m, G, t: length * et.mean_square_error(mixture(w, m, G, t), z, length, U=u, V=v).sum()  # noqa: E731
    assert both_orders(error, U, V, W, MEAN, COV, TOKENS)
    output = lambda u, w, m, G, t: et.expected_output(mixture(w, m, G, t), z, length, U=u)  # noqa: E731
    assert both_orders(output, U, W, MEAN, COV, TOKENS)
    assert both_orders(lambda u, w, m: et.attention(mixture(w, m, COV.detach(), TOKENS.detach()), z, U=u), U, W, MEAN)


def test_a_query_of_zero_and_one_that_is_sharp():
    law = mixture(W, MEAN, COV, TOKENS)
    zero = torch.zeros(1, 2, dtype=D, requires_grad=True)
    assert both_orders(lambda z: et.mean_square_error(law, z, 5, U=U.detach(), V=V.detach()).sum(), zero)
    sharp = torch.tensor([[6.0, -5.0]], dtype=D)
    head = es.Attention(U=3 * np.eye(2))
    found = et.mean_square_error(law, sharp, 100, U=3 * torch.eye(2, dtype=D))
    assert found.item() == pytest.approx(es.mean_square_error(law.numpy(), head, sharp[0].numpy(), 100, engine="exact").value, rel=1e-6)
    with pytest.raises(es.CapabilityError, match="scores reach from .* too sharp"):
        et.mean_square_error(law, 20 * sharp, 100, U=torch.eye(2, dtype=D))


SCORE_LAWS = {
    **LAWS,
    "uniform": es.Uniform(2),
    "laplace": es.Laplace(2, 0.3),
    "needle": es.Prompt(es.Gaussian(np.eye(2)), given=[[1.0, 0.5]], sink_logits=[0.0]),
    "self": es.Prompt(es.Sphere(2), include_query=True),
}


@pytest.mark.parametrize("name", SCORE_LAWS)
def test_finite_prompts_of_every_law_of_the_exact_engine(name):
    """Laws and Prompts of esscher are constants of the graph; D(L) is differentiable in queries and heads."""
    law, length = SCORE_LAWS[name], 20
    z, u, v = Z.detach()[:2].clone().requires_grad_(), U, V
    head = es.Attention(U=u.detach().numpy(), V=v.detach().numpy())
    found = et.mean_square_error(law, z, length, U=u, V=v)
    found.sum().backward(inputs=[z, u, v])
    slopes = []
    for i, at in enumerate(z.detach().numpy()):
        value, slope = es.mean_square_error(law, head, at, length, gradient=True)
        assert found[i].item() == value.value
        np.testing.assert_allclose(z.grad[i], slope.z, rtol=1e-12)
        slopes.append(slope)
    np.testing.assert_allclose(u.grad, sum(s.U for s in slopes), rtol=1e-12)
    np.testing.assert_allclose(v.grad, sum(s.V for s in slopes), rtol=1e-12)
    u.grad = v.grad = None
    mean = et.expected_output(law, z, length, U=u, V=v)
    np.testing.assert_allclose(mean[1].detach(), es.expected_output(law, head, z[1].detach().numpy(), length), rtol=1e-12)


@pytest.mark.parametrize("name", ["coins", "mixture", "needle", "self"])
def test_both_orders_of_finite_prompts_of_score_laws(name):
    law, z = SCORE_LAWS[name], Z.detach()[:1].clone().requires_grad_()
    s = torch.tensor(0.8, dtype=D, requires_grad=True)
    v = V.detach()[:1].clone().requires_grad_()
    f = lambda z, u, v, s: 10 * et.mean_square_error(law, z, 10, U=u, V=v, score_scale=s).sum()  # noqa: E731
    assert torch.autograd.gradcheck(f, (z, U, v, s))
    assert torch.autograd.gradgradcheck(f, (z, U, v, s), eps=1e-4, atol=1e-4, rtol=1e-3)
    g = lambda z, u: et.expected_output(law, z, 10, U=u, V=v.detach())  # noqa: E731
    assert torch.autograd.gradcheck(g, (z, U))
    assert torch.autograd.gradgradcheck(g, (z, U), eps=1e-4, atol=1e-4, rtol=1e-3)


def test_mixtures_that_are_none():
    one = et.Gaussian(COV)
    with pytest.raises(es.ArgumentError, match="a component is a Sphere"):
        et.Mixture(W, [one, es.Sphere(2)])
    with pytest.raises(es.DimensionError, match=r"weights have shape \[2\], expected \[1\]"):
        et.Mixture(W, [one])
    with pytest.raises(es.ArgumentError, match="positive sum"):
        et.Mixture(-W, [one, one])
    with pytest.raises(es.DimensionError, match=r"dimensions \[2, 1\]"):
        et.Mixture(W, [one, et.Gaussian(torch.eye(1))])
