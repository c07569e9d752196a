"""es.sweep: here, in processes, into runs and shards."""

import numpy as np
import pytest

import esscher as es

TASK = es.LinearRegressionTask(2, noise_variance=0.1)


def cube(n, shift):
    """Top level, so that processes find it."""
    return {"cube": float(n**3 + shift), "text": f"n={n}", "vector": np.array([n, shift], dtype=float), "inf": np.inf}


def test_sweep_into_a_run_resumes(tmp_path):
    asked = []

    def count(n, shift):
        asked.append((n, shift))
        if n == 3 and len(asked) < 6:
            raise ValueError("not yet")
        return cube(n, shift)

    grid = {"n": [1, 2, 3], "shift": [0.5, 1.5]}
    with pytest.raises(ValueError, match="not yet"):
        es.sweep(count, grid, out=tmp_path / "run")
    kept = es.Run(tmp_path / "run").progress[0]
    found = es.sweep(count, grid, out=tmp_path / "run")
    here = es.sweep(cube, grid)
    assert kept >= 1 and len(asked) < 2 * 6 + 1
    assert list(found.rows["cube"]) == list(here.rows["cube"]) and found.rows[0].inf == np.inf
    assert np.array_equal(found.rows[5].vector, [3.0, 1.5]) and found.rows[5].text == "n=3"
    assert (tmp_path / "run" / "report.html").exists()
    more = es.sweep(count, {"n": [1, 2, 3, 4], "shift": [0.5, 1.5]}, out=tmp_path / "run")  # a grid may grow
    assert more.rows["n"].tolist() == [1, 1, 2, 2, 3, 3, 4, 4]


def test_sweep_of_calls_that_use_threads_themselves(tmp_path):
    at = es.block_optimum(TASK, es.inf)
    found = es.sweep(lambda length: es.risk(TASK, at, length), {"length": [10, 20, 50, 100]}, out=tmp_path / "run")
    here = es.sweep(lambda length: es.risk(TASK, at, length), {"length": [10, 20, 50, 100]})
    assert found.rows["value"].tolist() == here.rows["value"].tolist()
    assert here.rows[1].value == es.risk(TASK, at, 20).value


def test_sweep_in_processes_and_shards(tmp_path):
    grid = {"n": [1, 2, 3], "shift": [0.5]}
    expected = es.sweep(cube, grid).rows["cube"].tolist()
    assert es.sweep(cube, grid, processes=2).rows["cube"].tolist() == expected
    for part in ("1/2", "2/2"):
        with pytest.raises(es.RuntimeFailure, match="shard"):
            es.sweep(cube, grid, out=tmp_path / part[0], shard=part)
    found = es.sweep(cube, grid, out=tmp_path / "1", processes=1)
    assert found.rows["cube"].tolist() == expected


def test_sweep_errors(tmp_path):
    with pytest.raises(es.ArgumentError, match="grid is empty"):
        es.sweep(cube, {})
    with pytest.raises(es.ArgumentError, match="shard"):
        es.sweep(cube, {"n": [1], "shift": [1]}, shard="1/2")
    with pytest.raises(ZeroDivisionError):
        es.sweep(lambda n: 1 / n, {"n": [1, 0]})
    with pytest.raises(es.ArgumentError, match="gave b, which the first point did not"):
        es.sweep(lambda n: {"a": 1} if n == 1 else {"b": 2}, {"n": [1, 2]}, out=tmp_path / "run")
