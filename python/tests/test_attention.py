"""Attention against NumPy, its derivatives by differences, and other libraries' arrays."""

import numpy as np
import pytest

import esscher as es

RNG = np.random.default_rng(0)
TOKENS, K, Q, V = RNG.normal(size=(30, 4)), *RNG.normal(size=(2, 3, 4)), RNG.normal(size=(2, 4))
Z, SCALE = RNG.normal(size=4), 3**-0.5
HEAD = es.Attention(K=K, Q=Q, V=V, scale=SCALE)


def softmax_attention(tokens, z):
    s = SCALE * (tokens @ K.T) @ (Q @ z)
    w = np.exp(s - s.max())
    return V @ (w @ tokens) / w.sum()


def test_finite_prompt_is_softmax_attention():
    np.testing.assert_allclose(HEAD(TOKENS, Z), softmax_attention(TOKENS, Z), rtol=1e-12)
    np.testing.assert_allclose(HEAD(es.Empirical(TOKENS), Z), HEAD(TOKENS, Z), rtol=1e-12)
    many = HEAD(TOKENS, np.stack([Z, -Z]))
    np.testing.assert_allclose(many[1], softmax_attention(TOKENS, -Z), rtol=1e-12)


def test_linear():
    S = TOKENS.T @ TOKENS / len(TOKENS)
    np.testing.assert_allclose(HEAD.linear(TOKENS, Z), V @ S @ HEAD.U @ Z, rtol=1e-12)


@pytest.mark.parametrize("mu", [TOKENS, es.Sphere(4), es.Gaussian(np.eye(4))], ids=str)
@pytest.mark.parametrize("linear", [False, True])
def test_vjp_by_differences(mu, linear):
    g, h = np.array([1.0, -2.0]), 1e-6
    found = HEAD.vjp(mu, Z, g, linear=linear)
    if isinstance(mu, np.ndarray):
        mu = es.Empirical(mu)

    def loss(**changed):
        head = es.Attention(**{"K": K, "Q": Q, "V": V, "scale": SCALE, **changed})
        return g @ (head.linear(mu, Z) if linear else head(mu, Z))

    for name, value in {"K": K, "Q": Q, "V": V}.items():
        direction = RNG.normal(size=value.shape)
        slope = (loss(**{name: value + h * direction}) - loss(**{name: value - h * direction})) / (2 * h)
        assert np.sum(getattr(found, name) * direction) == pytest.approx(slope, rel=1e-6, abs=1e-8)


def test_jacobians_match_vjp():
    g = np.array([0.5, 2.0])
    found = HEAD.vjp(TOKENS, Z, g)
    for name in ("z", "U", "V"):
        J = HEAD.jacobian(TOKENS, Z, name)
        np.testing.assert_allclose(np.tensordot(g, J, 1), getattr(found, name), rtol=1e-10, atol=1e-12)


def test_multi_head():
    O = RNG.normal(size=(3, 4))
    heads = es.MultiHead([HEAD, HEAD], O)
    np.testing.assert_allclose(heads(TOKENS, Z), O @ np.tile(HEAD(TOKENS, Z), 2), rtol=1e-12)
    found = heads.vjp(TOKENS, Z, np.ones(3))
    assert found.O.shape == O.shape and len(found.heads) == 2
    np.testing.assert_allclose(found.z, found.heads[0].z + found.heads[1].z, rtol=1e-12)


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    tokens = torch.tensor(TOKENS, requires_grad=False)
    assert np.array_equal(HEAD(tokens, torch.tensor(Z)), HEAD(TOKENS, Z))
    np.testing.assert_allclose(HEAD(tokens.float(), Z), HEAD(TOKENS, Z), rtol=1e-5)

    w = torch.softmax(SCALE * (tokens @ torch.tensor(K).T) @ (torch.tensor(Q) @ torch.tensor(Z)), 0)
    np.testing.assert_allclose(HEAD(tokens, Z), torch.tensor(V) @ (w @ tokens), rtol=1e-12)
    with pytest.raises(es.ArgumentError, match="attention: tokens is not an array"):
        HEAD(torch.tensor(TOKENS, requires_grad=True), Z)


def test_dlpack_only():
    class Foreign:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    assert np.array_equal(HEAD(Foreign(TOKENS), Foreign(Z)), HEAD(TOKENS, Z))


def test_errors():
    with pytest.raises(es.DimensionError, match="z"):
        HEAD(TOKENS, [1.0])
    with pytest.raises(es.DimensionError):
        HEAD(es.Rademacher(3), Z)
    with pytest.raises(es.CapabilityError):
        es.Attention(U=np.eye(2)).K
    with pytest.raises(TypeError, match="U and V, or K, Q, V and scale"):
        es.Attention(U=np.eye(2), K=np.eye(2))
    with pytest.raises(es.ArgumentError, match="dtype is bool"):
        HEAD(TOKENS > 0, Z)
