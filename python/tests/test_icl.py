"""Risks against simulation, flow against its closed-form end, charts."""

import numpy as np
import pytest

import esscher as es

TASK = es.LinearRegressionTask(es.power_covariance(3, 0.5), noise_variance=0.1)


def test_linear_risk_is_the_mean_over_draws():
    at = es.block_optimum(TASK, 20)
    losses = []
    for i in range(4000):
        w, x, y, prompt = TASK.draw(es.Stream(1).split(i), 20)
        query = np.append(x, 0.0)
        prediction = at.r @ (prompt.T @ (prompt @ (at.U @ query))) / 20
        losses.append((prediction - y) ** 2 / 2)
    z = (np.mean(losses) - es.linear_risk(TASK, at, 20)) / (np.std(losses) / 4000**0.5)
    assert abs(z) < 6


def test_gradient_by_differences():
    at, h = es.balanced_start(TASK), 1e-6
    risk, slope = es.linear_risk(TASK, at, 50, gradient=True)
    direction = np.random.default_rng(0).normal(size=at.U.shape)
    up, down = (es.linear_risk(TASK, es.Readout(at.U + s * direction, at.r), 50) for s in (h, -h))
    assert np.sum(slope.U * direction) == pytest.approx((up - down) / (2 * h), rel=1e-6)
    assert risk == es.linear_risk(TASK, at, 50)


@pytest.mark.parametrize("length", [30, es.inf])
def test_flow_ends_at_the_optimum(length):
    found = es.flow(TASK, length=length, kind="linear", parametrisation="block")
    best = es.block_optimum(TASK, length)
    assert found.status == "stationary"
    np.testing.assert_allclose(found.end.U, best.U, atol=1e-6)
    assert found.risk[-1] == pytest.approx(es.linear_risk(TASK, best, length), rel=1e-6, abs=1e-9)
    assert found.conserved_drift < 1e-6 and np.all(np.diff(found.risk) <= 1e-9)


def test_flow_times_and_chart():
    found = es.flow(TASK, t_end=2.0, times=[0.5, 1.0, 2.0])
    assert found.status == "t_end" and {0.5, 1.0, 2.0} <= set(found.t)
    bundle = found._repr_mimebundle_()
    spec = found.chart()
    assert len(spec["data"]["values"]) == len(found.t) and "Flow(" in bundle["text/plain"]


def test_bayes_is_below_linear_attention():
    bayes = es.bayes_risk(TASK, 20, seed=3)
    assert bayes.engine == "sampled" and bayes.std_error > 0
    assert bayes.value < es.linear_risk(TASK, es.block_optimum(TASK, 20), 20)


def test_errors():
    with pytest.raises(es.ArgumentError, match="features"):
        es.LinearRegressionTask(2, features="x")
    with pytest.raises(es.ArgumentError):
        es.LinearRegressionTask(2, noise_variance=-1.0)
    with pytest.raises(es.DimensionError):
        es.LinearRegressionTask(2, query_cov=np.eye(3))
    with pytest.raises(es.CapabilityError):
        es.linear_risk(es.LinearRegressionTask(3, features="sphere"), es.block_optimum(TASK, 5), 5)
    with pytest.raises(es.FileError) as caught:
        es.Run("no/such/run")
    assert isinstance(caught.value, OSError)
