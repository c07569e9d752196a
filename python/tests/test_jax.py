"""The rules that esscher.jax registers. Debian has no JAX: without it a stand-in records the rules and calls them with NumPy,
which shows that they are the right derivatives and not that JAX accepts them."""

import importlib
import sys
import types

import numpy as np
import pytest

import esscher as es

try:
    import jax as real
except ImportError:
    real = None


class CustomVjp:
    """jax.custom_vjp for eager NumPy: the function, and its rules where a test can call them."""

    def __init__(self, function, nondiff_argnums=()):
        self.function, self.fixed = function, len(nondiff_argnums)

    def defvjp(self, forward, backward):
        self.forward, self.backward = forward, backward

    def __call__(self, *arguments):
        return self.function(*arguments)

    def vjp(self, g, *arguments):
        fixed, free = arguments[: self.fixed], arguments[self.fixed :]
        value, kept = self.forward(*fixed, *free)
        return value, self.backward(*fixed, kept, g)


@pytest.fixture
def ej(monkeypatch):
    if real is not None:
        pytest.skip("JAX is there: test_with_jax tests the module")
    fake, numpy = types.ModuleType("jax"), types.ModuleType("jax.numpy")
    fake.custom_vjp = CustomVjp
    fake.ShapeDtypeStruct = lambda shape, dtype: (shape, dtype)
    fake.pure_callback = lambda f, like, *arguments, vectorized: f(*arguments)
    for name in ("reshape", "eye", "sum", "trace", "concatenate", "ravel"):
        setattr(numpy, name, getattr(np, name))
    monkeypatch.setitem(sys.modules, "jax", fake)
    monkeypatch.setitem(sys.modules, "jax.numpy", numpy)
    sys.modules.pop("esscher.jax", None)
    yield importlib.import_module("esscher.jax")
    sys.modules.pop("esscher.jax", None)


RNG = np.random.default_rng(0)
A, X, W = RNG.normal(size=(3, 3, 2))


def slope(f, x, v, h=1e-4):
    return (f(x + h * v) - f(x - h * v)) / (2 * h)


def test_rules_of_measures(ej):
    mu = es.Mixture([1, 2], [es.Gaussian(np.eye(2), [1.0, 0.0]), es.Rademacher(2)])
    value, (back,) = ej._tilted_mean.vjp(X, mu, A)
    np.testing.assert_allclose(value, mu.tilted_mean(A))
    assert np.sum(back * W) == pytest.approx(np.sum(X * slope(mu.tilted_mean, A, W)), rel=1e-6)
    _, (in_a, in_v) = ej._cov_times.vjp(X, mu, A, W)
    f = lambda a: np.sum(X * ej._cov_times(mu, a, W))  # noqa: E731
    assert np.sum(in_a * W) == pytest.approx(slope(f, A, W), rel=1e-6)
    np.testing.assert_allclose(in_v, ej._cov_times(mu, A, X))


def test_rules_of_finite_prompts(ej):
    t = np.array([0.5, 2.0])
    for which in range(4):
        _, (back,) = ej._node.vjp(np.ones(2), 50, which, t)
        np.testing.assert_allclose(back, slope(lambda x: ej._node(50, which, x), t, 1.0), rtol=1e-5)
    head, mu = es.Attention(U=0.5 * np.eye(2)), es.Gaussian(np.eye(2))
    found = ej.mean_square_error(np.eye(2), X, 50, 0.5 * np.eye(2))
    np.testing.assert_allclose(found, [es.mean_square_error(mu, head, z, 50).value for z in X], rtol=1e-9)


def test_rules_of_risks(ej):
    task = es.LinearRegressionTask(1)
    f, theta, v = es.risk_function(task, 20), RNG.normal(size=6), RNG.normal(size=6)
    at = es.Readout(theta[:4].reshape(2, 2), theta[4:])
    value, (back,) = ej._risk.vjp(np.array(1.0), f, theta)
    assert float(value) == f(at) == float(ej.risk(task, at.U, at.r, 20, function=f))
    assert back @ v == pytest.approx(slope(lambda x: float(ej._risk(f, x)), theta, v), rel=1e-6)
    _, (second,) = ej._risk_slope.vjp(v, f, theta)
    np.testing.assert_allclose(second, slope(lambda x: ej._risk_slope(f, x), theta, v), rtol=1e-4, atol=1e-7)


def test_without_jax_only_its_module_is_missing():
    if real is not None:
        pytest.skip("JAX is there")
    sys.modules.pop("esscher.jax", None)
    with pytest.raises(ImportError, match="jax"):
        importlib.import_module("esscher.jax")


@pytest.mark.skipif(real is None, reason="needs JAX")
def test_with_jax():
    real.config.update("jax_enable_x64", True)
    ej = importlib.import_module("esscher.jax")
    mu, f = es.Rademacher(2), es.risk_function(es.LinearRegressionTask(1), 20)
    y = lambda U: ej.attention(mu, X, U).sum()  # noqa: E731
    U, V = 0.3 * np.eye(2), RNG.normal(size=(2, 2))
    np.testing.assert_allclose(np.sum(real.grad(y)(U) * V), slope(lambda u: float(y(u)), U, V), rtol=1e-6)
    second = real.grad(lambda u: (real.grad(y)(u) * V).sum())(U)
    np.testing.assert_allclose(np.sum(second * V), slope(lambda u: float((real.grad(y)(u) * V).sum()), U, V), rtol=1e-5)
    theta = RNG.normal(size=6)
    g = real.grad(lambda x: ej._risk(f, x))(theta)
    np.testing.assert_allclose(g, np.concatenate([p.ravel() for p in f.gradient(ej._readout(theta))[1]]), rtol=1e-10)
