"""Measures, attention, tasks and streams pickle, copy, give parameters back and cross processes."""

import copy
import multiprocessing
import pickle

import numpy as np
import pytest

import esscher as es
from user_laws import Coin

I = np.eye(2)
GAUSS = es.Gaussian([[2.0, 0.5], [0.5, 1.0]], [1.0, -1.0])


MEASURES = [
    GAUSS,
    es.Empirical([[0.0, 1.0], [2.0, 3.0]], [1, 2]),
    GAUSS.sample(3, 5),
    es.Rademacher(2),
    es.Uniform(2),
    es.Laplace(2, 0.5),
    es.Sphere(2, radius=3.0),
    es.Ball(2, radius=0.5),
    es.Categorical([1, 2]),
    es.Dirac([1.0, 2.0]),
    es.Elliptical(np.eye(2), [1.0, 2.0]),
    es.SingleIndex([[1.0]], [1.0], link="relu"),
    es.Affine([1.0, 0.0], [[1.0], [2.0]], es.Rademacher(1)),
    es.Product([es.Rademacher(1), es.Sphere(1)]),
    es.Sum([Coin(2), GAUSS]),
    es.Mixture([1, 3], [GAUSS, es.Sphere(2)]),
    es.Mixture([1, 3], [[[0.0, 1.0]], [[1.0, 0.0], [2.0, 2.0]]]),
    es.measure(Coin(2)),
    es.measure([[0.0, 1.0]]),
]
A = np.array([0.3, -0.2])


def changed(value, how):
    return {"pickle": lambda x: pickle.loads(pickle.dumps(x)), "copy": copy.copy, "deepcopy": copy.deepcopy}[how](value)


@pytest.mark.parametrize("how", ["pickle", "copy", "deepcopy"])
@pytest.mark.parametrize("mu", MEASURES, ids=lambda mu: type(mu).__name__)
def test_measures_come_back_with_the_same_bits(mu, how):
    again = changed(mu, how)
    assert type(again) is type(mu) and repr(again) == repr(mu)
    assert again.log_mgf(A) == mu.log_mgf(A)
    assert np.array_equal(again.tilted_mean(A), mu.tilted_mean(A))
    assert np.array_equal(again.sample(5, 7).tokens, mu.sample(5, 7).tokens)


@pytest.mark.parametrize("mu", MEASURES, ids=lambda mu: type(mu).__name__)
def test_a_repr_makes_the_measure_again(mu):
    names = {name: getattr(es, name) for name in es.__all__}
    again = eval(repr(mu), {**names, "Coin": Coin})
    np.testing.assert_allclose(again.log_mgf(A), mu.log_mgf(A), rtol=1e-15)


def test_every_class_of_measures_gives_its_parameters_back():
    """Also one that somebody adds later: the mechanism is in the base class."""

    class Doubled(es.Sphere):
        def __init__(self, half):
            super().__init__(2, 2 * half)

    mu = copy.copy(Doubled(1.5))
    assert type(mu) is Doubled and mu.half == 1.5 and mu.parameters == {"half": 1.5}
    assert mu.tilted_mean(A).tolist() == es.Sphere(2, 3.0).tilted_mean(A).tolist()
    for mu in MEASURES:
        assert mu.parameters and type(mu)(**mu.parameters).log_mgf(A) == mu.log_mgf(A)


def test_parameters():
    assert np.array_equal(GAUSS.cov, [[2.0, 0.5], [0.5, 1.0]]) and np.array_equal(GAUSS.mean, [1.0, -1.0])
    assert not GAUSS.cov.flags.writeable
    assert es.Sphere(2, 3.0).radius == 3.0 and es.Laplace(1, 0.5).b == 0.5
    mixed = es.Mixture([1, 3], [GAUSS, es.Sphere(2)])
    assert [type(part) for part in mixed.components] == [es.Gaussian, es.Sphere]
    assert mixed.components[0] is GAUSS
    image = es.Affine([1.0, 0.0], [[1.0], [2.0]], es.Rademacher(1))
    assert isinstance(image.inner, es.Rademacher) and image.c.tolist() == [1.0, 0.0]
    given = np.eye(2)
    mu = es.Gaussian(given)
    given[0, 0] = 7.0  # what is recorded is what was used
    assert mu.cov[0, 0] == 1.0
    with pytest.raises(AttributeError, match="radius"):
        mu.radius


def test_a_failed_constructor_leaves_something_to_print():
    broken = es.Gaussian.__new__(es.Gaussian)
    assert repr(broken) == "Gaussian()"


def test_iterators_are_read_once():
    mixed = es.Mixture([1, 1], (es.Sphere(2, r) for r in (1.0, 2.0)))
    assert [part.radius for part in mixed.components] == [1.0, 2.0]
    assert pickle.loads(pickle.dumps(mixed)).dim == 2


@pytest.mark.parametrize("how", ["pickle", "copy", "deepcopy"])
def test_attention_tasks_and_streams(how):
    head = changed(es.Attention(K=2 * I, Q=I, score_scale=0.5), how)
    assert head.score_scale == 0.5 and np.array_equal(head(GAUSS, A), es.Attention(U=I)(GAUSS, A))
    many = changed(es.MultiHead([head, es.Attention(U=I, V=3 * I)], np.ones((1, 4))), how)
    assert np.array_equal(many.heads[1].V, 3 * I) and many(GAUSS, A).shape == (1,)
    task = changed(es.LinearRegressionTask(2, noise_variance=0.5, features="sphere"), how)
    assert (task.dim, task.noise_variance, task.features) == (2, 0.5, "sphere")
    stream = es.Stream(3).split(4)
    again = changed(stream, how)
    assert again == stream and hash(again) == hash(stream) and np.array_equal(again.normal(3), stream.normal(3))
    assert stream != es.Stream(3)


def error_at(mu, length):
    return es.mean_square_error(mu, es.Attention(U=0.3 * I), A, length).value


def test_processes():
    """A forked child computes although the parent has threads, and a spawned one finds everything."""
    expected = [error_at(GAUSS, L) for L in (10, 20)]
    es.Attention(U=I)(np.ones((100_000, 2)), np.ones((50, 2)))  # the parent's threads are there
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            assert pool.starmap(error_at, [(GAUSS, 10), (GAUSS, 20)]) == expected
            studies = pool.starmap(es.bayes_risk, [(es.LinearRegressionTask(2), 5)])
            assert studies[0].value == es.bayes_risk(es.LinearRegressionTask(2), 5).value


def test_joblib():
    joblib = pytest.importorskip("joblib")
    mixed = es.Mixture([1, 3], [GAUSS, es.Sphere(2)])
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(error_at)(mixed, L) for L in (10, 20))
    assert found == [error_at(mixed, 10), error_at(mixed, 20)]


def test_operators():
    B, b = np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([1.0, -1.0])
    for mu in (GAUSS, es.Sphere(2), es.Affine([1.0, 0.0], [[1.0], [2.0]], es.Rademacher(1))):
        np.testing.assert_allclose((B @ mu + b).log_mgf(A), A @ b + mu.log_mgf(B.T @ A), rtol=1e-12)
        np.testing.assert_allclose((b + mu).mean, mu.mean + b, rtol=1e-12)
        np.testing.assert_allclose((mu - b).mean, mu.mean - b, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose((-mu).log_mgf(A), mu.log_mgf(-A), rtol=1e-12)
        np.testing.assert_allclose((mu + GAUSS).log_mgf(A), mu.log_mgf(A) + GAUSS.log_mgf(A), rtol=1e-12)
        np.testing.assert_allclose((Coin(2) + mu).log_mgf(A), mu.log_mgf(A) + Coin(2).log_mgf(A), rtol=1e-12)
        mixed = 0.25 * mu | 0.75 * es.Rademacher(2)
        expected = 0.25 * np.exp(mu.log_mgf(A)) + 0.75 * np.exp(es.Rademacher(2).log_mgf(A))
        np.testing.assert_allclose(np.exp(mixed.log_mgf(A)), expected, rtol=1e-12)
    assert isinstance(B @ GAUSS + b, es.Gaussian)
    three = 0.2 * GAUSS | np.float64(0.3) * es.Sphere(2) | 0.5 * Coin_measure()
    assert [type(part).__name__ for part in three.components] == ["Gaussian", "Sphere", "_Own"]
    np.testing.assert_allclose(three.weights, [0.2, 0.3, 0.5], rtol=1e-15)
    np.testing.assert_allclose((0.5 * three | 0.5 * GAUSS).weights, [0.1, 0.15, 0.25, 0.5], rtol=1e-15)
    with pytest.raises(TypeError, match="no law"):
        GAUSS - GAUSS
    with pytest.raises(TypeError, match="mass"):
        -1.0 * GAUSS
    with pytest.raises(es.DimensionError, match="A has shape"):
        np.ones((2, 3)) @ GAUSS


@pytest.mark.parametrize("wrong, said", [
    (lambda mu: 2 * mu + [1.0, 0.0], r"2 \* np.eye\(d\) @ mu \+ b"),
    (lambda mu: 0.5 * mu + 0.5 * mu, "is a mixture"),
    (lambda mu: np.eye(2) @ (0.5 * mu), "mu with a mass"),
    (lambda mu: mu + 0.5 * mu, "mu with a mass"),
    (lambda mu: mu / 2, r"np.eye\(d\) / c @ mu"),
    (lambda mu: mu @ np.eye(2), "A @ mu"),
])
def test_operators_that_mean_nothing_name_the_right_one(wrong, said):
    with pytest.raises(TypeError, match=said):
        wrong(GAUSS)


def test_a_part_stands_on_either_side():
    assert repr(GAUSS | 0.5 * es.Sphere(2)) == repr(es.Mixture([1.0, 0.5], [GAUSS, es.Sphere(2)]))


def Coin_measure():
    return es.measure(Coin(2))


def test_fits():
    rng = np.random.default_rng(0)
    tokens = rng.normal(size=(500, 2)) @ [[1.0, 0.5], [0.0, 1.0]] + [1.0, 2.0]
    found = es.Gaussian.fit(tokens)
    np.testing.assert_allclose(found.mean, tokens.mean(0), rtol=1e-12)
    np.testing.assert_allclose(found.cov, np.cov(tokens.T, bias=True), rtol=1e-10)
    assert np.array_equal(es.Empirical.fit(tokens).tokens, tokens)
    truth = 0.3 * es.Gaussian([[0.2]], [-2.0]) | 0.7 * es.Gaussian([[0.5]], [2.0])
    sample = truth.sample(1, 5000)
    mixed = es.Mixture.fit(sample, 2, seed=1)
    order = np.argsort([part.mean[0] for part in mixed.components])
    low, high = (mixed.components[i] for i in order)
    n = 5000 * np.array([0.3, 0.7])
    # The clusters are apart, so the estimates have the errors of two separate samples.
    assert abs(mixed.weights[order[0]] - 0.3) < 6 * np.sqrt(0.21 / 5000)
    assert abs(low.mean[0] + 2) < 6 * np.sqrt(0.2 / n[0]) and abs(high.mean[0] - 2) < 6 * np.sqrt(0.5 / n[1])
    assert abs(low.cov[0, 0] - 0.2) < 6 * 0.2 * np.sqrt(2 / n[0])
    assert abs(high.cov[0, 0] - 0.5) < 6 * 0.5 * np.sqrt(2 / n[1])
    # It is the most likely mixture, so it is more likely than the true one.

    def likelihood(mixture):
        x, parts = sample.tokens, zip(mixture.weights, mixture.components)
        return np.mean(np.log(sum(w * np.exp(-((x - c.mean) ** 2) / (2 * c.cov)) / c.cov**0.5 for w, c in parts)))

    assert likelihood(truth) < likelihood(mixed) < likelihood(truth) + 10 / 5000
    with pytest.raises(es.CapabilityError, match="equal weights"):
        es.Mixture.fit(es.Sphere(2), 2)
    with pytest.raises(es.ArgumentError):
        es.Mixture.fit(tokens[:1], 2)


def test_wrong_keywords_suggest_the_right_one():
    for call, meant in [
        (lambda: es.Gaussian(covariance=I), "cov"),
        (lambda: es.Sphere(2, raduis=1.0), "radius"),
        (lambda: es.LinearRegressionTask(2, noise=0.1), "noise_variance"),
        (lambda: es.Attention(U=I, temperature=2.0), "score_scale"),
    ]:
        with pytest.raises(TypeError, match=f"did you mean '{meant}'"):
            call()
    with pytest.warns(DeprecationWarning, match="score_scale"):
        assert es.Attention(K=I, Q=I, scale=0.5).score_scale == 0.5


def test_counts_may_be_integral_floats_and_numpy_integers():
    assert es.universal(1e6, 1.0) == es.universal(np.int64(10**6), 1.0) == es.universal(10**6, 1.0)
    assert es.Rademacher(1).sample(0, 3.0).cardinality == 3
    with pytest.raises(es.ArgumentError, match="n is 2.5, expected an integer"):
        es.Rademacher(1).sample(0, 2.5)
    with pytest.raises(es.ArgumentError, match="length is 31.6"):
        es.universal(31.6, 1.0)


def test_copies_of_a_windowed_head_go_on_by_themselves():
    rng = np.random.default_rng(0)
    head = es.WindowedHead(3, 2, window=4)
    head.push(rng.normal(size=(20, 3)), rng.normal(size=(20, 2)))
    for other in (copy.copy(head), copy.deepcopy(head)):
        assert np.array_equal(other.attend(np.ones(3)), head.attend(np.ones(3)))
        other.push(np.ones(3), np.ones(2))
        assert other.count == 21 and head.count == 20
    with pytest.raises(TypeError, match="did you mean 'window'"):
        es.WindowedHead(3, 2, windows=4)
