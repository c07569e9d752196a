"""No copies where the layout allows, no references kept, the GIL released, Ctrl-C obeyed."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import esscher as es


def test_tokens_share_the_memory_of_the_measure():
    prompt = es.Empirical(np.ones((1000, 3)))
    tokens = prompt.tokens
    assert np.shares_memory(tokens, prompt.tokens) and not tokens.flags.writeable
    del prompt
    gc.collect()
    assert tokens.sum() == 3000  # the array keeps the measure alive


def test_arguments_are_not_kept():
    T, z, tokens = es.Attention(U=np.eye(3)), np.ones(3), np.ones((10, 3))
    before = [sys.getrefcount(x) for x in (z, tokens)]
    for _ in range(100):
        T(tokens, z), T.vjp(tokens, z, z), es.Empirical(tokens).log_mgf(z)
    assert [sys.getrefcount(x) for x in (z, tokens)] == before


def test_arrays_are_not_copied():
    """80 MB of tokens, in any precision and with a stride, cost a call no such memory."""
    import resource

    wide = np.random.default_rng(0).normal(size=(1_000_000, 10))
    T = es.Attention(U=0.1 * np.eye(9))
    cases = [wide[:, :9], wide.astype(np.float32)[:, :9]]
    for tokens in cases:
        T(tokens[:1000], np.ones(9))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for tokens in cases:
        T(tokens, np.ones(9)), T.vjp(tokens, np.ones(9), np.ones(9)), T(tokens, np.ones((2, 9)))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # KB


def test_user_measures_are_released():
    class Point:
        dim = 1

        def log_mgf(self, a):
            return float(a[0])

        def tilted_mean(self, a):
            return np.ones(1)

        def tilted_cov(self, a):
            return np.zeros((1, 1))

        def sample(self, stream, n):
            return np.ones((n, 1))

    point = Point()
    before = sys.getrefcount(point)
    mu = es.Mixture([1, 1], [point, point])
    assert sys.getrefcount(point) > before
    es.Attention(U=[[1.0]])(mu, np.ones((20, 1)))
    del mu
    gc.collect()
    assert sys.getrefcount(point) == before


GROWTH = """
import gc, tracemalloc
import numpy as np, esscher as es

T, mu, z = es.Attention(U=np.eye(4)), es.Gaussian(np.eye(4)), np.ones((50, 4))
kept = []

def work():
    for _ in range(50):
        T(mu, z), mu.sample(0, 20).tokens, es.universal(100, 1.0)
        {more}
    gc.collect()

tracemalloc.start()
for _ in range(60):  # free lists and caches fill up within 2000 calls
    work()
held = []
for _ in range(4):
    work()
    held.append(tracemalloc.get_traced_memory()[0])
print(min(np.diff(held)))
"""


@pytest.mark.parametrize("more, leaks", [("", False), ("kept.append(z.sum())", True)])
def test_repeated_calls_do_not_grow(more, leaks):
    """In a process of its own, where no thread of another test allocates. What leaks grows in every round, planted or not."""
    run = subprocess.run([sys.executable, "-c", GROWTH.format(more=more)], capture_output=True, text=True, check=True)
    assert (int(run.stdout) >= 512) == leaks, run.stdout


class OwnTask:
    """Signs with a slope, in Python: draws prompts, has no formula."""

    token_dim = 2

    def draw(self, stream):
        w, x = stream.normal(2)
        return es.Affine([0.0, 0.0], [[1.0], [w]], es.Rademacher(1)), [x, 0.0], w * x


def many_replicates():
    mu, T = es.Rademacher(16), es.Attention(U=0.3 * np.eye(16))
    return es.mean_square_error(mu, T, np.ones(16), 2000, replicates=500_000, engine="direct")


def many_tokens():
    tokens = np.broadcast_to(np.ones(32), (200_000, 32))
    return es.Attention(U=np.eye(32))(np.ascontiguousarray(tokens), np.ones((3000, 32)))


def long_study():
    mu, T = es.Sphere(8), es.Attention(U=0.3 * np.eye(8))
    return es.concentration(mu, T, mu, [10_000, 20_000], query_count=5000, replicates=100)


def long_flow():
    return es.flow(es.LinearRegressionTask(5, features="sphere"), length=500, draws=20_000)


def long_comparison():
    return es.compare(OwnTask(), [300, 600], draws=4000)


def long_training():
    return es.train(OwnTask(), 100, 10**7)


def long_risk():
    return es.risk(OwnTask(), es.balanced_start(OwnTask()), 100_000, draws=10**6)


def long_preset():
    return es.preset("boursier-boyer").run()


def long_prompts():
    return es.mean_square_error(es.Sphere(20), es.Attention(U=np.eye(20)), np.ones(20), 10**6, replicates=10**4, engine="direct")


def long_fit():
    return es.Mixture.fit(np.random.default_rng(0).normal(size=(100_000, 16)), 16)


def long_optimum():
    """Prompts are drawn first, which takes most of the time."""
    task = es.DenoisingTask(np.random.default_rng(0).normal(size=(8, 6)), gamma=0.5, xi=0.5)
    return es.optimum(task, [200, 400], family="full", heads=2, draws=10**5)


def long_supremum():
    return es.sup_error(es.Sphere(3), es.Attention(U=3 * np.eye(3)), 2.0, [1000, 10000], replicates=100, tolerance=1e-4)


def long_scaling():
    head = es.Attention(U=np.eye(12))
    return es.kept_factors((es.Rademacher(12), head, np.arange(12) / 12), "ess", train=100, lengths=np.logspace(2, 12, 500))


def long_sweep():
    task = es.LinearRegressionTask(10)
    heads = [es.balanced_start(task)] * 2
    return es.sweep(lambda seed: es.risk(task, heads, 500, draws=10**6, seed=seed), {"seed": range(100)})


@pytest.mark.parametrize(
    "call",
    [long_optimum, long_supremum, long_scaling, long_sweep, long_prompts, long_fit, many_replicates, many_tokens, long_study, long_flow, long_comparison, long_training, long_risk, long_preset],
)
def test_ctrl_c_ends_a_long_call(call):
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        call()
    assert time.monotonic() - start < 6.0  # each would take far longer


def test_after_ctrl_c_calls_work_as_before():
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        long_training()
    assert es.train(OwnTask(), 5, 3).steps == 3


def test_own_tasks_are_released():
    task = OwnTask()
    start = es.balanced_start(task)
    before = sys.getrefcount(task)
    es.risk(task, start, 5, draws=20)
    es.flow(task, start, length=5, draws=20, t_end=0.1)
    es.compare(task, [5], start=start, draws=20, t_end=0.1, rtol=1e-3)
    es.train(task, 5, 3)
    gc.collect()
    assert sys.getrefcount(task) == before


def test_calls_from_many_threads_at_once():
    """The GIL is released, and results are those of one thread."""
    tokens, z = np.random.default_rng(0).normal(size=(20_000, 4)), np.ones((4, 4))
    T, task = es.Attention(U=0.3 * np.eye(4)), OwnTask()
    start = es.balanced_start(task)

    def work():
        risk = es.risk(task, start, 20, draws=200).value
        flow = es.flow(es.LinearRegressionTask(2), length=20, t_end=0.5).risk[-1]
        return T(tokens, z).tolist(), risk, flow, es.train(es.LinearRegressionTask(2), 20, 20).last_loss

    expected, found = work(), []
    threads = [threading.Thread(target=lambda: found.append(work())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4


def test_other_threads_run_during_a_long_call():
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.wait(0.01):
            ticks.append(1)

    thread = threading.Thread(target=tick)
    thread.start()
    mu, T = es.Rademacher(16), es.Attention(U=0.3 * np.eye(16))
    es.mean_square_error(mu, T, np.ones(16), 1000, replicates=1000, engine="direct")
    stop.set()
    thread.join()
    assert len(ticks) >= 2
