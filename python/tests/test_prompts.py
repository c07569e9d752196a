"""Universal functions, engines, and the same bits from the program."""

import json
import subprocess

import numpy as np
import pytest

import esscher as es

T = es.Attention(U=[[0.6, 0.1], [0.0, 0.5]])
MU, Z = es.Gaussian([[1.0, 0.3], [0.3, 0.8]]), [1.0, -0.5]


@pytest.mark.parametrize(
    "L, tau, M1, H",
    [(100, 1, 0.97446152, 0.02553848), (1000, 1.5, 2.23065959, 0.00859574), (1, 2, 0, 1)],
)
def test_universal_known_answers(L, tau, M1, H):
    u = es.universal(L, tau)
    assert u.M1 == pytest.approx(M1, abs=1e-8) and u.H == pytest.approx(H, abs=1e-8)


def test_the_program_gives_the_same_bits(program):
    text = subprocess.run(
        [program, "universal", "--length", "1000000", "--tau", "1.25", "--json"],
        check=True, capture_output=True, text=True,
    ).stdout
    found, u = json.loads(text), es.universal(10**6, 1.25)
    assert (found["M1"], found["M2c"], found["H"]) == (u.M1, u.M2c, u.H)


def test_the_program_samples_the_same_tokens_and_limits(program, tmp_path):
    tokens = MU.sample(11, 50).tokens
    np.save(tmp_path / "tokens.npy", tokens)
    config = tmp_path / "prompt.toml"
    config.write_text(
        '[measure]\ntype = "empirical"\nfile = "tokens.npy"\n'
        "[attention]\nU = [[0.6, 0.1], [0.0, 0.5]]\n[query]\nz = [1.0, -0.5]\n"
    )
    text = subprocess.run(
        [program, "limit", "--config", str(config), "--json"], check=True, capture_output=True, text=True
    ).stdout
    row = json.loads(text)["rows"][0]
    assert row["output"] == T(tokens, Z).tolist() == T(es.Empirical(tokens), Z).tolist()
    np.testing.assert_allclose(es.Empirical(tokens).tilted_mean(T.U @ Z), row["output"], rtol=1e-12)
    assert row["log_mgf"] == es.Empirical(tokens).log_mgf(T.U @ Z)


@pytest.mark.parametrize("metric", ["output", "grad_v", "grad_u"])
def test_engines_agree(metric):
    exact = es.mean_square_error(MU, T, Z, 30, metric=metric)
    direct = es.mean_square_error(MU, T, Z, 30, metric=metric, engine="direct", replicates=4000)
    assert exact.engine == "exact" and exact.std_error == 0
    assert direct.engine == "direct" and direct.n == 4000
    assert abs(direct.value - exact.value) < 6 * direct.std_error
    assert float(exact) == exact.value


def test_seed_and_threads_fix_the_bits():
    ask = dict(engine="direct", replicates=200, seed=es.Stream(4, 2))
    before = es.thread_count()
    one = es.mean_square_error(MU, T, Z, 40, **ask)
    es.set_thread_count(1)
    assert es.mean_square_error(MU, T, Z, 40, **ask) == one
    es.set_thread_count(before)


def test_infinite_length():
    assert es.mean_square_error(MU, T, Z, es.inf).value == 0
    assert np.array_equal(es.expected_output(MU, T, Z, es.inf), T(MU, Z))
    shrunk = es.expected_output(MU, T, Z, 10)
    assert np.linalg.norm(shrunk) < np.linalg.norm(T(MU, Z))


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: es.universal(0, 1.0), es.ArgumentError, "L"),
        (lambda: es.universal(10, 700.0), es.ArgumentError, "tau"),
        (lambda: es.mean_square_error(MU, T, Z, 10, metric="x"), es.ArgumentError, "grad_v"),
        (lambda: es.mean_square_error(MU, T, Z, 10, engine="x"), es.ArgumentError, "auto, exact"),
        (lambda: es.mean_square_error(MU, T, Z, 2.5), es.ArgumentError, "2.5"),
        (lambda: es.mean_square_error(MU, T, Z, -1), es.ArgumentError, "-1"),
        (lambda: es.mean_square_error(MU, T, Z, None), es.ArgumentError, "None, expected an integer"),
        (lambda: es.expected_output(es.Stationary(MU, ar=0.5), T, Z, 10), es.CapabilityError, "direct"),
        (lambda: es.mean_square_error(es.Sphere(2), T, Z, 10, metric="grad_u", engine="exact"), es.CapabilityError, "direct"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()
