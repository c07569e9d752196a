"""Every measure: gradients of Lambda by differences, and errors."""

import math
import pickle

import numpy as np
import pytest

import esscher as es

G = np.array([[2.0, 0.5], [0.5, 1.0]])
CASES = {
    "empirical": es.Empirical([[0.0, 1.0], [1.0, -1.0], [2.0, 0.5]], [1, 2, 3]),
    "gaussian": es.Gaussian(G, [0.3, -0.2]),
    "rademacher": es.Rademacher(2),
    "uniform": es.Uniform(2),
    "laplace": es.Laplace(2, 0.5),
    "sphere": es.Sphere(2, 1.5),
    "ball": es.Ball(2, 1.5),
    "categorical": es.Categorical([1, 2]),
    "dirac": es.Dirac([0.5, -1.0]),
    "elliptical": es.Elliptical(G, [0.5, 2.0], [3, 1], [0.3, -0.2]),
    "gamma": es.Elliptical.gamma(G, shape=2.0, bound=3.0),
    "tanh": es.SingleIndex([[0.7]], [1.2], noise_variance=0.1),
    "polynomial": es.SingleIndex([[0.7]], [1.2], link="polynomial", coefficients=[1.0, 0.5, 0.1]),
    "own link": es.SingleIndex([[0.7]], [1.2], link=np.abs, kinks=[0.0]),
    "affine": es.Affine([1.0, 0.0], [[1.0], [2.0]], es.Uniform(1)),
    "product": es.Product([es.Rademacher(1), es.Gaussian([[0.7]])]),
    "sum": es.Sum([es.Rademacher(2), es.Gaussian(G)]),
    "mixture": es.Mixture([1, 3], [es.Gaussian(G), es.Sphere(2)]),
}


@pytest.mark.parametrize("name", CASES)
def test_mean_and_covariance_are_derivatives(name):
    mu, a, h = CASES[name], np.array([0.4, -0.3]), 1e-5
    steps = h * np.eye(2)
    slope = [(mu.log_mgf(a + e) - mu.log_mgf(a - e)) / (2 * h) for e in steps]
    np.testing.assert_allclose(mu.tilted_mean(a), slope, rtol=1e-7, atol=1e-9)
    curve = [(mu.tilted_mean(a + e) - mu.tilted_mean(a - e)) / (2 * h) for e in steps]
    np.testing.assert_allclose(mu.tilted_cov(a), curve, rtol=1e-6, atol=1e-9)
    v = np.array([1.0, 2.0])
    np.testing.assert_allclose(mu.tilted_cov_times(a, v), mu.tilted_cov(a) @ v, rtol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_many_tilts_at_once(name):
    mu = CASES[name]
    a = np.array([[0.1, 0.2], [0.0, 0.0], [-0.3, 0.4]])
    assert np.array_equal(mu.tilted_mean(a), [mu.tilted_mean(row) for row in a])
    assert np.array_equal(mu.log_mgf(a), [mu.log_mgf(row) for row in a])
    assert mu.dim == 2 and np.array_equal(mu.mean, mu.tilted_mean([0, 0])) or name != "gaussian"


def test_names_and_cardinality():
    assert CASES["empirical"].cardinality == 3
    assert CASES["gaussian"].cardinality == es.inf == math.inf
    assert CASES["mixture"].name == "mixture"
    assert [part.name for part in CASES["mixture"].components] == ["gaussian", "sphere"]
    assert es.Laplace(1).sub_gaussian() == math.inf


def test_a_link_of_your_own_is_the_built_in_one():
    own = es.SingleIndex([[0.7]], [1.2], link=np.tanh, noise_variance=0.1)
    np.testing.assert_allclose(own.tilted_mean([0.4, 1.3]), CASES["tanh"].tilted_mean([0.4, 1.3]), rtol=1e-12)
    with pytest.raises(es.ArgumentError, match="at most linear growth"):
        es.SingleIndex([[1.0]], [1.0], link=np.square)
    with pytest.raises(ZeroDivisionError):
        es.SingleIndex([[1.0]], [1.0], link=lambda t: 1 // 0)


def test_student_prompts_have_no_limit():
    law = es.Student(5, G)
    assert law.sample(1, 7).tokens.shape == (7, 2)
    with pytest.raises(es.DomainError, match="no limit"):
        es.Attention(U=np.eye(2))(law, [1.0, 0.0])


def test_float32_and_strides_and_integers():
    tokens = np.arange(12.0).reshape(3, 4)
    expected = es.Empirical(tokens[:, ::2].copy()).mean
    assert np.array_equal(es.Empirical(tokens[:, ::2]).mean, expected)
    assert np.array_equal(es.Empirical(tokens.astype(np.float32)[:, ::2]).mean, expected)
    assert np.array_equal(es.Empirical(tokens.astype(int)[:, ::2].T.copy().T).mean, expected)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: es.Gaussian([[1.0, 2.0]]), "gaussian: cov"),
        (lambda: es.Gaussian([[1.0, 0.0], [0.0, -1.0]]), "gaussian: cov"),
        (lambda: es.Gaussian([1.0]), r"gaussian: cov has shape \(1,\), expected 2 axes"),
        (lambda: es.Gaussian([[1j]]), "gaussian: cov dtype is complex128, expected float64"),
        (lambda: es.Gaussian([["x"]]), "gaussian: cov dtype is"),
        (lambda: es.Gaussian([[math.nan]]), "gaussian: cov"),
        (lambda: es.Gaussian(np.eye(2), [0.0]), "gaussian: "),
        (lambda: es.Empirical([[1.0], [2.0, 3.0]]), "empirical: tokens"),
        (lambda: es.Rademacher(2).log_mgf([1.0]), "rademacher"),
        (lambda: es.Rademacher(2).log_mgf(np.zeros((1, 1, 2))), r"log_mgf: a has shape \(1, 1, 2\)"),
        (lambda: es.Laplace(1).log_mgf([1.0]), "laplace"),
        (lambda: es.Sphere(2, -1.0), "sphere"),
        (lambda: es.measure(3), "measure: measure is int, expected a Measure"),
    ],
)
def test_errors_name_the_argument(make, message):
    with pytest.raises(es.ArgumentError, match=message) as caught:
        make()
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, es.Error)


def test_a_mean_is_an_array():
    mu = es.Gaussian(np.eye(2), mean=[1.0, 2.0])
    assert repr(mu.mean) == "array([1., 2.])" and type(mu.mean + 1.0) is np.ndarray and type(mu.mean.sum()) is np.float64
    assert type(pickle.loads(pickle.dumps(mu.mean))) is np.ndarray
    with pytest.warns(DeprecationWarning, match="mu.mean\\(\\) is now mu.mean"):
        assert mu.mean().tolist() == [1.0, 2.0]


def test_a_covariance_may_be_a_number():
    for mu in (es.Gaussian(0.1, dim=2), es.Gaussian(0.1, dim=np.float64(2)), es.Gaussian(0.1, mean=[0.0, 0.0])):
        assert np.array_equal(mu.cov, 0.1 * np.eye(2)) and mu.tilted_mean([1.0, 2.0]).tolist() == [0.1, 0.2]
        assert repr(eval(repr(mu), {"Gaussian": es.Gaussian})) == repr(mu)
        assert np.array_equal((2 * np.eye(2) @ mu).cov, 0.4 * np.eye(2))
    with pytest.raises(es.ArgumentError, match="cov is 0.1, a number, expected dim or mean"):
        es.Gaussian(0.1)
    with pytest.raises(es.DimensionError, match=r"cov has shape \(2, 2\), dim is 3"):
        es.Gaussian(np.eye(2), dim=3)
