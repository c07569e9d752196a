"""No copies where the layout allows, no references kept, the GIL released, Ctrl-C obeyed."""

import gc
import os
import signal
import sys
import threading
import time
import tracemalloc

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


def test_repeated_calls_do_not_grow():
    T, mu, z = es.Attention(U=np.eye(4)), es.Gaussian(np.eye(4)), np.ones((50, 4))

    def work():
        for _ in range(50):
            T(mu, z), mu.sample(0, 20).tokens, es.universal(100, 1.0)
        gc.collect()

    work()
    tracemalloc.start()
    work()
    first = tracemalloc.get_traced_memory()[0]
    work()
    second = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert second - first < 4096


def slow_call():
    """Several seconds of work."""
    mu, T = es.Rademacher(16), es.Attention(U=0.3 * np.eye(16))
    return es.mean_square_error(mu, T, np.ones(16), 2000, replicates=50_000, engine="direct")


def test_ctrl_c_ends_a_long_call():
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        slow_call()
    assert time.monotonic() - start < 3.0


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
