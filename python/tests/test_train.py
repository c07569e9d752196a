"""Training: learns, same bits for any number of threads, Ctrl-C, errors."""

import os
import signal
import threading

import numpy as np
import pytest

import esscher as es

TASK = es.LinearRegressionTask(3, noise_variance=0.05)


def test_learns_and_shows_itself():
    found = es.train(TASK, 50, 400, learning_rate=0.05, curve_block=50)
    assert found.status == "finished" and found.steps == 400 and len(found.curve) == 8
    assert found.curve[-1].loss < 0.7 * found.curve[0].loss
    assert found.heads[0].U.shape == (4, 4)
    assert "text/html" in found._repr_mimebundle_()


def test_same_bits_for_any_number_of_threads():
    before = es.thread_count()
    one = es.train(TASK, 20, 30, seed=3, init="torch")
    es.set_thread_count(1)
    two = es.train(TASK, 20, 30, seed=3, init="torch")
    es.set_thread_count(before)
    assert np.array_equal(one.heads[0].U, two.heads[0].U) and one.last_loss == two.last_loss
    assert es.train(TASK, 20, 30, seed=4, init="torch").last_loss != one.last_loss


def test_ctrl_c():
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        es.train(TASK, 1000, 10**7)


@pytest.mark.parametrize(
    "wrong", [{"optimizer": "x"}, {"kind": "x"}, {"init": "x"}, {"batch": 0}, {"gradient": "x"}]
)
def test_errors(wrong):
    with pytest.raises(es.ArgumentError):
        es.train(TASK, 10, 1, **wrong)


def test_every_start_has_the_name_it_has_in_toml():
    identity = es.train(TASK, 20, 1, init="identity", alpha=0.3, learning_rate=1e-12)
    d = TASK.dim
    np.testing.assert_allclose(identity.heads[0].U[:d, :d], 0.3 * np.eye(d), atol=1e-9)
    rng = np.random.default_rng(0)
    given = [es.Readout(rng.normal(size=(d + 1, d + 1)), rng.normal(size=d + 1)) for _ in range(2)]
    dense = es.train(TASK, 20, 1, init="dense", start=given, heads=2, learning_rate=1e-12)
    np.testing.assert_allclose(dense.heads[1].U, given[1].U, atol=1e-9)
    with pytest.raises(ValueError, match="small_identity"):
        es.train(TASK, 20, 1, init="small_identity")
    with pytest.raises(ValueError, match="number of"):
        es.train(TASK, 20, 1, init="dense")


def test_results_with_arrays_compare_by_identity():
    one = es.train(TASK, 20, 1)
    flow = es.flow(TASK, t_end=0.1)
    assert one == one and flow == flow and flow != es.flow(TASK, t_end=0.1)


def test_normal_starts_and_short_gradients():
    task = es.LinearRegressionTask(2, noise_variance=0.1)
    start = dict(kind="linear", init="normal", learning_rate=1e-12, curve_block=1, batch=4)
    one, two = (es.train(task, 10, 1, alpha=alpha, **start).heads[0] for alpha in (0.01, 0.02))
    np.testing.assert_allclose(two.U, 2 * one.U, rtol=1e-6)
    assert 0.001 < np.abs(one.U).mean() < 0.03 and not np.allclose(one.U[0, 1], 0)
    # A step of plain descent has the length learning_rate times clip, or that of the gradient.
    steps = []
    for clip in (1e-3, 2e-3, None, 1e9):
        found = es.train(task, 10, 1, kind="linear", alpha=0.5, learning_rate=0.1, clip=clip, curve_block=1, batch=4)
        at = es.balanced_start(task, 0.5)
        steps.append(np.sqrt(((found.heads[0].U - at.U) ** 2).sum() + ((found.heads[0].r - at.r) ** 2).sum()))
    assert steps[0] == pytest.approx(1e-4) and steps[1] == pytest.approx(2e-4) and steps[2] == steps[3] > 1e-2
    with pytest.raises(es.ArgumentError, match="clip is 0"):
        es.train(task, 10, 1, clip=0.0)
