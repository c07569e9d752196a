"""Measures written in Python work where the C++ ones do, and their mistakes are named."""

import threading

import numpy as np
import pytest

import esscher as es
from user_laws import Coin


def test_agrees_with_the_built_in():
    mine, theirs = es.measure(Coin(2)), es.Rademacher(2)
    a = np.array([[0.3, -0.2], [1.0, 0.0]])
    np.testing.assert_allclose(mine.log_mgf(a), theirs.log_mgf(a), rtol=1e-12)
    np.testing.assert_allclose(mine.tilted_mean(a), theirs.tilted_mean(a), rtol=1e-12)
    np.testing.assert_allclose(mine.second_moment(), theirs.second_moment(), rtol=1e-12)
    assert mine.name == "Coin" and mine.cardinality == es.inf and mine.sub_gaussian() == es.inf


def test_inside_combinators_attention_and_engines():
    T = es.Attention(U=[[0.5, 0.0], [0.1, 0.5]])
    z = [0.3, 0.4]
    mine = es.Sum([Coin(2), es.Gaussian(np.eye(2))])
    theirs = es.Sum([es.Rademacher(2), es.Gaussian(np.eye(2))])
    np.testing.assert_allclose(T(mine, z), T(theirs, z), rtol=1e-12)
    np.testing.assert_allclose(T(Coin(2), z), T(es.Rademacher(2), z), rtol=1e-12)
    e = es.mean_square_error(Coin(2), T, z, 20, replicates=200, seed=1)
    f = es.mean_square_error(es.Rademacher(2), T, z, 20, replicates=200, seed=2)
    assert e.engine == "direct" and f.engine == "exact" and e.n == 200
    assert abs(e.value - f.value) < 6 * np.hypot(e.std_error, f.std_error)


@pytest.mark.parametrize("missing", ["log_mgf", "tilted_mean", "tilted_cov", "sample"])
def test_missing_method(missing):
    methods = {k: v for k, v in vars(Coin).items() if k != missing and not k.startswith("__")}
    broken = type("Broken", (), {"dim": 2, **methods})()
    with pytest.raises(es.ArgumentError, match=f"Broken has no {missing}; a measure needs"):
        es.measure(broken)


def test_wrong_shapes_are_named():
    class Wrong(Coin):
        def tilted_mean(self, a):
            return np.zeros(3)

        def tilted_cov(self, a):
            return np.zeros(2)

        def sample(self, stream, n):
            return np.zeros((n + 1, 2))

        def log_mgf(self, a):
            return "x"

    mu = es.measure(Wrong(2))
    with pytest.raises(es.DimensionError, match="Wrong.tilted_mean.*3.*2"):
        mu.tilted_mean([0.0, 0.0])
    with pytest.raises(es.DimensionError, match="Wrong.tilted_cov"):
        mu.tilted_cov([0.0, 0.0])
    with pytest.raises(es.DimensionError, match="Wrong.sample"):
        mu.sample(0, 4)
    with pytest.raises(es.ArgumentError, match="Wrong.log_mgf gave str, expected a number"):
        mu.log_mgf([0.0, 0.0])


def test_own_exceptions_come_through():
    class Angry(Coin):
        def tilted_mean(self, a):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        es.Attention(U=np.eye(2))(Angry(2), np.zeros((50, 2)))


def test_called_from_threads():
    T, z = es.Attention(U=np.eye(2)), np.linspace(-1, 1, 40).reshape(20, 2)
    expected, found = T(es.Rademacher(2), z), []
    threads = [threading.Thread(target=lambda: found.append(T(Coin(2), z))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    for value in found:
        np.testing.assert_allclose(value, expected, rtol=1e-12)
