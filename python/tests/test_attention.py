"""Attention against NumPy, its derivatives by differences, and other libraries' arrays."""

import numpy as np
import pytest

import esscher as es

RNG = np.random.default_rng(0)
TOKENS, K, Q, V = RNG.normal(size=(30, 4)), *RNG.normal(size=(2, 3, 4)), RNG.normal(size=(2, 4))
Z, SCALE = RNG.normal(size=4), 3**-0.5
HEAD = es.Attention(K=K, Q=Q, V=V, score_scale=SCALE)


def softmax_attention(tokens, z):
    s = SCALE * (tokens @ K.T) @ (Q @ z)
    w = np.exp(s - s.max())
    return V @ (w @ tokens) / w.sum()


def test_finite_prompt_is_softmax_attention():
    np.testing.assert_allclose(HEAD(TOKENS, Z), softmax_attention(TOKENS, Z), rtol=1e-12)
    np.testing.assert_allclose(HEAD(es.Empirical(TOKENS), Z), HEAD(TOKENS, Z), rtol=1e-12)
    many = HEAD(TOKENS, np.stack([Z, -Z]))
    np.testing.assert_allclose(many[1], softmax_attention(TOKENS, -Z), rtol=1e-12)


@pytest.mark.parametrize("queries", [1, 7, 100])
@pytest.mark.parametrize("n", [1, 30, 5000])
def test_prompts_run_in_the_direct_engine(n, queries):
    tokens, z, g = RNG.normal(size=(n, 4)), RNG.normal(size=(queries, 4)), RNG.normal(size=2)
    for weights in (None, 1 + RNG.uniform(size=n)):
        prompt = es.Empirical(tokens, weights)
        tilts = z @ HEAD.U.T
        expected = prompt.tilted_mean(tilts) @ V.T  # the reference path
        found = HEAD(prompt, z)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
        two = es.MultiHead([HEAD, HEAD], np.eye(4))
        np.testing.assert_allclose(two(prompt, z), np.hstack([expected] * 2), rtol=1e-12, atol=1e-13)
        c = prompt.tilted_cov_times(tilts[0], V.T @ g)
        slopes = HEAD.vjp(prompt, z[0], g)
        np.testing.assert_allclose(slopes.U, np.outer(c, z[0]), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(slopes.z, HEAD.U.T @ c, rtol=1e-10, atol=1e-12)
        if weights is not None:
            continue
        assert np.array_equal(HEAD(tokens, z), found)
        assert np.array_equal(HEAD.vjp(tokens, z[0], g).K, slopes.K)
        assert np.array_equal(two(tokens, z), two(prompt, z))
        np.testing.assert_allclose(HEAD(tokens.astype(np.float32), z), expected, rtol=1e-4, atol=1e-5)


def test_arrays_of_any_layout():
    wide = RNG.normal(size=(40, 8))
    expected = HEAD(np.ascontiguousarray(wide[::2, 1:5]), Z)
    for tokens in (wide[::2, 1:5], np.asfortranarray(wide[::2, 1:5]), wide[::2, 1:5].astype(">f8")):
        assert np.array_equal(HEAD(tokens, Z), expected)
    raw = np.zeros(wide.nbytes + 1, np.uint8)
    unaligned = raw[1:].view(np.float64).reshape(40, 8)
    unaligned[:] = wide
    assert np.array_equal(HEAD(unaligned[::2, 1:5], Z), expected)
    np.testing.assert_allclose(HEAD(wide[::-1, 1:5], Z), softmax_attention(wide[:, 1:5], Z), rtol=1e-12)
    np.testing.assert_allclose(
        HEAD(np.broadcast_to(wide[:1, :4], (5, 4)), Z), softmax_attention(wide[:1, :4], Z), rtol=1e-12
    )


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
        head = es.Attention(**{"K": K, "Q": Q, "V": V, "score_scale": SCALE, **changed})
        return g @ (head.linear(mu, Z) if linear else head(mu, Z))

    for name, value in {"K": K, "Q": Q, "V": V}.items():
        direction = RNG.normal(size=value.shape)
        slope = (loss(**{name: value + h * direction}) - loss(**{name: value - h * direction})) / (2 * h)
        assert np.sum(getattr(found, name) * direction) == pytest.approx(slope, rel=1e-6, abs=1e-8)


def test_jacobians_match_vjp():
    g = np.array([0.5, 2.0])
    found = HEAD.vjp(TOKENS, Z, g)
    linear = HEAD.vjp(TOKENS, Z, g, linear=True)
    for name in ("z", "U", "V"):
        J = HEAD.jacobian(TOKENS, Z, name)
        np.testing.assert_allclose(np.tensordot(g, J, 1), getattr(found, name), rtol=1e-10, atol=1e-12)
        J = HEAD.jacobian(TOKENS, Z, name, linear=True)
        np.testing.assert_allclose(np.tensordot(g, J, 1), getattr(linear, name), rtol=1e-10, atol=1e-12)


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
    with pytest.raises(es.DimensionError, match="attention: tokens.d has dimension 3, expected 4"):
        HEAD(np.zeros((5, 3)), Z)
    with pytest.raises(es.DimensionError, match=r"attention: tokens has shape \(4,\), expected 2 axes"):
        HEAD(np.zeros(4), Z)
    with pytest.raises(es.DimensionError, match=r"z has shape \(1, 1, 4\), expected \[d\] or \[n,d\]"):
        HEAD(TOKENS, np.zeros((1, 1, 4)))
    for bad in (np.nan, np.inf, -np.inf):
        tokens = TOKENS.copy()
        tokens[7, 2] = bad
        with pytest.raises(es.ArgumentError, match=r"tokens\[7,2\] is -?(nan|inf)"):
            HEAD(tokens, Z)
        with pytest.raises(es.ArgumentError, match="tokens"):
            HEAD.vjp(tokens.astype(np.float32), Z, [1.0, 0.0])
    assert HEAD(TOKENS, np.zeros((0, 4))).shape == (0, 2)
    with pytest.raises(es.ArgumentError, match="tokens is empty"):
        HEAD(np.zeros((0, 4)), Z)
    with pytest.raises(es.ArgumentError, match="z"):
        HEAD(TOKENS, [np.nan, 0, 0, 0])
    with pytest.raises(es.CapabilityError):
        es.Attention(U=np.eye(2)).K
    with pytest.raises(TypeError, match="U and V, or K, Q, V and score_scale"):
        es.Attention(U=np.eye(2), K=np.eye(2))
    with pytest.raises(es.ArgumentError, match="dtype is bool"):
        HEAD(TOKENS > 0, Z)


def test_gradients_compare_as_one_truth_value():
    head = es.Attention(U=np.eye(2))
    heads = es.MultiHead([head, head], np.ones((1, 4)))
    mu = es.Gaussian(np.eye(2))
    for ask, u in [(head, [1.0, 0.0]), (heads, [1.0])]:
        one, same, other = (ask.vjp(mu, z, u) for z in ([1.0, 2.0], [1.0, 2.0], [1.0, 3.0]))
        assert one == same and not one != same
        assert one != other
        assert one != "gradients"
