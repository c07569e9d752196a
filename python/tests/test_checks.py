"""es.check: the formulas of a measure or a task of a user."""

import numpy as np
import pytest

import esscher as es

MU = es.Gaussian(np.eye(2))
TASK = es.LinearRegressionTask(2, noise_variance=0.1)
X = np.random.default_rng(0).normal(size=(2, 200, 4))


class Coin:
    """Signs; each test breaks one formula."""

    dim = 2
    factor = dict(log_mgf=1.0, tilted_mean=1.0, tilted_cov=1.0, sample=1.0)

    def log_mgf(self, a):
        return self.factor["log_mgf"] * np.log(np.cosh(a)).sum()

    def tilted_mean(self, a):
        return self.factor["tilted_mean"] * np.tanh(a)

    def tilted_cov(self, a):
        return self.factor["tilted_cov"] * np.diag(1 / np.cosh(a) ** 2)

    def sample(self, stream, n):
        return self.factor["sample"] * np.sign(stream.normal(2 * n)).reshape(n, 2)


@pytest.mark.parametrize("mu", [Coin(), MU, es.Sphere(3), es.Laplace(2, 0.5), es.Mixture([1, 2], [MU, es.Ball(2)]), X[0]], ids=repr)
def test_right_formulas_pass(mu):
    found = es.check(mu)
    assert found.ok, found
    assert len(found.rows) > 8


@pytest.mark.parametrize("what, size", [("log_mgf", 1.001), ("tilted_mean", 1.001), ("tilted_cov", 0.999), ("sample", 1.1)])
def test_wrong_formulas_are_named(what, size):
    wrong = Coin()
    wrong.factor = {**Coin.factor, what: size}
    found = es.check(wrong)
    assert not found and any(what in sentence or "samples" in sentence for sentence in found.wrong)


def test_tokens_that_ignore_their_stream_are_found():
    class Loose(Coin):
        def sample(self, stream, n):
            return np.sign(np.random.default_rng().normal(size=(n, 2)))

    assert any("same stream" in sentence for sentence in es.check(Loose()).wrong)


def test_tasks_are_checked():
    class Good:
        token_dim = 2

        def draw(self, stream):
            w, x = stream.normal(2)
            return es.Affine([0.0, 0.0], [[1.0], [w]], es.Rademacher(1)), [x, 0.0], w * x

    class Forgetful(Good):
        def draw(self, stream):
            law, query, _ = super().draw(stream)
            return law, query, float(np.random.default_rng().normal())

    class Constant(Good):
        def draw(self, stream):
            law, query, _ = super().draw(stream)
            return law, query, 1.0

    assert es.check(Good()).ok and repr(es.check(TASK)) == "Check(LinearRegressionTask: 1 comparison agrees)"
    assert any("same stream" in s for s in es.check(Forgetful()).wrong)
    assert any("nothing to learn" in s for s in es.check(Constant()).wrong)
    with pytest.raises(es.ArgumentError, match="expected a measure or a task"):
        es.check(3)
