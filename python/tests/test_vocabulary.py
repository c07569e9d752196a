"""One vocabulary: losses are risks, wrong keywords suggest, lengths are counts in any type."""

import numpy as np
import pytest

import esscher as es

MU, HEAD = es.Gaussian(np.eye(2)), es.Attention(U=0.5 * np.eye(2))
TASK = es.LinearRegressionTask(2, noise_variance=0.1)


def test_training_reports_the_risk():
    """The loss of a training at rest is the risk of its start, not twice that."""
    at = es.balanced_start(TASK, 0.5)
    for loss in ("half", "mse"):
        still = es.train(TASK, 30, 400, alpha=0.5, learning_rate=1e-9, curve_block=400, loss=loss)
        risk = es.risk(TASK, at, 30)
        assert abs(still.curve[0].loss - risk.value) < 6 * np.hypot(still.curve[0].std_error, risk.std_error)
    half, whole = (es.train(TASK, 30, 50, learning_rate=lr, loss=loss) for lr, loss in ((0.02, "half"), (0.01, "mse")))
    np.testing.assert_allclose(half.heads[0].U, whole.heads[0].U, rtol=1e-12)
    with pytest.raises(es.ArgumentError, match='"half" or "mse"'):
        es.train(TASK, 30, 1, loss="full")


def test_wrong_keywords_suggest():
    for call, meant in [
        (lambda: es.train(TASK, 10, 1, lr=0.1), "learning_rate"),
        (lambda: es.train(TASK, 10, 1, batch_size=4), "batch"),
        (lambda: es.concentration(MU, HEAD, MU, [10], replicate=4), "replicates"),
        (lambda: es.risk(TASK, es.balanced_start(TASK), 10, samples=5), "draws"),
        (lambda: es.flow(TASK, lenght=10), "length"),
        (lambda: es.sweep(lambda n: n, {"n": [1]}, directory="x"), "out"),
    ]:
        with pytest.raises(TypeError, match=f"did you mean '{meant}'"):
            call()
    with pytest.warns(DeprecationWarning, match="kind"):
        assert es.train(TASK, 10, 1, model="linear").steps == 1
    with pytest.warns(DeprecationWarning, match="seed"):
        assert es.bayes_risk(TASK, 10, stream=1) == es.bayes_risk(TASK, 10, seed=es.Stream(1))


def test_a_length_is_called_length():
    with pytest.warns(DeprecationWarning, match="length"):
        assert es.universal(L=100, tau=1.0) == es.universal(length=100, tau=1.0)
    for call, meant in [
        (lambda: es.mean_square_error(MU, HEAD, [1.0, 0.0], L=10), "length"),
        (lambda: es.concentration(MU, HEAD, MU, L=[10]), "lengths"),
        (lambda: es.Sphere(2, r=2.0), "radius"),
        (lambda: es.Gaussian(np.eye(2), mu=[0.0, 1.0]), "mean"),
    ]:
        with pytest.raises(TypeError, match=f"did you mean '{meant}'"):
            call()
    with pytest.raises(es.ArgumentError, match=r"cov is 'abc', expected a matrix \[d,d\]"):
        es.Gaussian("abc")


def test_lengths_are_counts_in_any_type():
    for length in (100, 100.0, np.int32(100), np.float64(100), np.float32(100)):
        assert es.mean_square_error(MU, HEAD, [1.0, 0.0], length).value == es.mean_square_error(MU, HEAD, [1.0, 0.0], 100).value
    assert es.concentration(MU, HEAD, MU, np.logspace(1, 3, 3), metrics=["output"]).rows["L"].tolist() == [10, 100, 1000]
    assert es.train(TASK, np.float64(10), np.int64(5)).steps == 5
    with pytest.raises(es.ArgumentError, match="31.6"):
        es.mean_square_error(MU, HEAD, [1.0, 0.0], 31.6)


def test_infinity_is_a_number():
    answer = es.shortest_length(es.Laplace(1, 1.0), es.Attention(U=[[1.0]]), [[2.0]], 0.01)
    assert answer.status == "never" and answer.length == es.inf


@pytest.mark.parametrize("call, said", [
    (lambda: es.Readout(U=np.eye(3), rr=np.zeros(3)), r"Readout\(\) has no argument 'rr'; did you mean 'r'"),
    (lambda: HEAD.vjp(MU, [1.0, 0.0], [1.0, 0.0], lin=True), "did you mean 'linear'"),
    (lambda: es.Mixture.fit(np.ones((5, 2)), componets=2), "did you mean 'components'"),
    (lambda: es.Gaussian.fit(np.ones((5, 2)), weights=1), "it takes tokens"),
    (lambda: MU.sample(stram=0, n=3), "did you mean 'stream'"),
    (lambda: es.Prompt(MU).counts(lenght=3), "did you mean 'length'"),
])
def test_methods_suggest_the_right_keyword_too(call, said):
    with pytest.raises(TypeError, match=said):
        call()


def test_no_method_is_left_out():
    """Every public method of a recorded class, also of one that somebody adds later."""
    import inspect

    from esscher.recorded import Recorded

    class Mine(es.Sphere):
        def half(self, factor=0.5):
            return factor * self.radius

    with pytest.raises(TypeError, match="did you mean 'factor'"):
        Mine(2).half(facter=1.0)
    assert Mine(2).half(factor=2.0) == 2.0
    seen = 0
    for kind in (getattr(es, name) for name in es.__all__):
        if not (inspect.isclass(kind) and issubclass(kind, Recorded)):
            continue
        for name, value in vars(kind).items():
            plain = getattr(value, "__func__", value)
            if not name.startswith("_") and inspect.isfunction(plain):
                assert hasattr(plain, "__wrapped__"), f"{kind.__name__}.{name}"
                seen += 1
    assert seen >= 15


def test_lengths_may_be_arrays_of_one_number():
    assert es.universal(np.array(10), 1.0) == es.universal(np.array(10.0), 1.0) == es.universal(10, 1.0)
    with pytest.raises(es.ArgumentError, match="expected an integer"):
        es.universal(np.array([10]), 1.0)
