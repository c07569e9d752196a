"""D(L) and lengths through Python: closed forms, user measures, charts, same rows as the program."""

import json
import subprocess

import numpy as np
import pytest

import esscher as es

T, MU = es.Attention(U=0.4 * np.eye(2)), es.Gaussian(np.eye(2))


def test_single_query_matches_mean_square_error():
    z = [1.0, 0.5]
    found = es.concentration(MU, T, [z], [10, 100], metrics=["output", "grad_u"], engine="exact")
    assert [row["L"] for row in found.curve("grad_u")] == [10, 100]
    for row in found.rows:
        single = es.mean_square_error(MU, T, z, row["L"], metric=row["metric"])
        assert row["value"] == pytest.approx(single.value, rel=1e-9)


def test_asymptotic_constant_is_the_limit():
    z = [1.0, 0.5]
    constant = es.asymptotic_constant(MU, T, z)
    assert 1e9 * es.mean_square_error(MU, T, z, 10**9).value == pytest.approx(constant, rel=1e-6)
    assert es.asymptotic_constant(es.Laplace(2, 0.5), es.Attention(U=1.5 * np.eye(2)), [1.0, 0.0]) == es.inf


def test_an_error_is_a_root_relative_to_the_limit(program):
    square = es.shortest_length(MU, T, MU, 0.05**2, relative=True)
    for error in (0.05, "5%", np.float64(0.05)):
        answer = es.shortest_length(MU, T, MU, error=error)
        assert answer.length == square.length and answer.status == "certified"
    head = ["measure.type=gaussian", "measure.dim=1", "measure.cov=0.25", "attention.U=1.0", "query.type=gaussian", "query.dim=1"]
    head.append("query.cov=0.25")
    command = [program, "length", "--error", "5%", "--json", *(word for part in head for word in ("--set", part))]
    told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    line = es.Gaussian([[0.25]])
    assert es.shortest_length(line, es.Attention(U=[[1.0]]), line, error="5%").length == told["length"]
    for wrong, words in (({}, "neither"), ({"eps": 0.1, "error": 0.1}, "both"), ({"error": "1 %%"}, "such as 0.01"),
                         ({"error": 0.0}, "> 0"), ({"error": 0.1, "relative": True}, "already")):  # fmt: skip
        with pytest.raises(es.ArgumentError, match=words):
            es.shortest_length(MU, T, MU, **wrong)


def test_shortest_length_is_shortest():
    answer = es.shortest_length(MU, T, MU, 0.01)
    assert answer.status == "certified"
    assert answer.value <= 0.01 < answer.value_before
    assert es.shortest_length(MU, T, MU, 0.01, relative=True).length != answer.length


def test_chart_of_a_study():
    found = es.concentration(es.Sphere(2), T, MU, [5, 10], metrics=["output"], engine="direct", query_count=20, replicates=4)
    spec = found.chart()
    assert [v["L"] for v in spec["data"]["values"]] == [5, 10]
    assert spec["encoding"]["y"]["scale"] == {"type": "log"}
    assert found.rows[0]["engine"] == "direct" and found.rows[0]["std_error"] > 0


def test_errors():
    with pytest.raises(es.ArgumentError):
        es.concentration(MU, T, MU, [])
    with pytest.raises(es.ArgumentError):
        es.concentration(MU, T, MU, [es.inf])
    with pytest.raises(es.Error):
        es.concentration(MU, T, np.zeros((1, 3)), [10])


def test_infinity_and_nan_are_numbers():
    line = es.Gaussian([[1.0]])
    slow = es.concentration(line, es.Attention(U=[[0.9]]), line, [10, 100], metrics=["output"])
    assert slow.rows[0]["asymptotic"] == np.inf
    assert slow.regime["constant"] == np.inf and slow.regime["constants"] == {"output": np.inf}
    one = es.concentration(es.Sphere(2), T, MU, [5], metrics=["output"], engine="direct", query_count=20, replicates=1)
    assert np.isnan(one.rows[0]["bias2"])
    assert (one.rows[0]["flag"] is None) == (not one.rows[0]["heavy"])
    assert np.isnan(one.rows[0]["frozen"]) and one.rows[0]["ci"].shape == (2,)
    answer = es.shortest_length(line, es.Attention(U=[[0.9]]), line, 100.0)
    assert answer.length == 1 and np.isnan(answer.value_before) and answer.details["clt"] == np.inf
    assert answer.details["bracket"] is None


def test_length_looks_beyond_its_answer():
    line = es.Gaussian([[1.0]])
    falls = es.shortest_length(line, es.Attention(U=[[0.5]]), line, 0.01)
    assert falls.stays_below is True and falls.rises_at is None and falls.enough_from == falls.length
    # A rare cluster far away spoils longer prompts.
    parts = [es.Gaussian([[0.01]], mean=[m]) for m in (-1.0, 1.0, 60.0)]
    rare = es.Mixture([0.5, 0.49999997, 3e-8], parts)
    rises = es.shortest_length(rare, es.Attention(U=[[1.0]]), [[0.2]], 0.4)
    assert rises.status == "certified" and rises.stays_below is False
    assert rises.length < rises.rises_at < rises.enough_from
    assert rises.details["peak_value"] > 0.4
