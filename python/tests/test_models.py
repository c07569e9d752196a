"""Risks at any length, tasks written in Python, twins, heads."""

import numpy as np
import pytest

import esscher as es

TASK = es.LinearRegressionTask(2, noise_variance=0.1)
AT = es.block_optimum(TASK, 50)


class MyRegression:
    """The regression of TASK, written in Python."""

    token_dim = 3

    def draw(self, stream):
        w, x = stream.normal(4).reshape(2, 2)
        return es.Gaussian(TASK.token_covariance(w)), np.append(x, 0.0), float(w @ x)


def test_linear_risk_is_one_of_them():
    assert es.risk(TASK, AT, 50, kind="linear").value == pytest.approx(es.linear_risk(TASK, AT, 50))
    assert es.risk(TASK, AT, es.inf).value == pytest.approx(es.linear_risk(TASK, AT, es.inf))


@pytest.mark.parametrize("kind", ["softmax", "linear"])
def test_own_task_agrees_with_the_built_in(kind):
    mine = es.risk(MyRegression(), AT, 30, kind=kind, draws=3000, stream=1)
    theirs = es.risk(TASK, AT, 30, kind=kind)
    assert mine.std_error > 0
    assert abs(mine.value - theirs.value) < 6 * np.hypot(mine.std_error, theirs.std_error)


def test_own_task_mistakes_are_named():
    class NoDraw:
        token_dim = 3

    class Wrong(MyRegression):
        def draw(self, stream):
            return 1

    class Short(MyRegression):
        def draw(self, stream):
            law, query, y = super().draw(stream)
            return law, query[:2], y

    with pytest.raises(es.ArgumentError, match="NoDraw has no draw; a task needs"):
        es.risk(NoDraw(), AT, 10)
    with pytest.raises(es.ArgumentError, match="Wrong.draw gave .*expected .law, query, target"):
        es.risk(Wrong(), AT, 10)
    with pytest.raises(es.DimensionError, match="Short.draw"):
        es.risk(Short(), AT, 10)


def test_softmax_flow_at_finite_length():
    found = es.flow(TASK, length=100, kind="softmax", t_end=3.0, rtol=1e-5, atol=1e-7)
    assert found.risk[-1] < found.risk[0] and np.all(np.diff(found.risk) < 1e-6)


def test_twins_come_closer_with_length():
    found = es.compare(TASK, [20, 200], kinds=["linear"], parametrisation="block")
    by_length = {row["L"]: row for row in found.rows if row.get("model") == "linear"}
    assert by_length[200]["limiting_risk"] < by_length[20]["limiting_risk"]
    assert found.chart()["data"]["values"]


def test_heads_of_arrays():
    X = np.random.default_rng(1).normal(size=(600, 4))
    (row,) = es.heads(X[:50], X, X, scale=0.2)
    assert row["n"] == 600 and row["verdict"]
    (few,) = es.heads(X[:50], X, X, scale=0.2, components=[3], queries=[1, 7])
    assert few["queries"] == 2 and [m["k"] for m in few["mixtures"]] == [3]
    with pytest.raises(es.Error):
        es.heads(X[:50], X, X[:5])
    with pytest.raises(es.ArgumentError, match="components"):
        es.heads(X, X, X, components=[0])
    with pytest.raises(es.ArgumentError, match="query"):
        es.heads(X, X, X, queries=[600])
    with pytest.raises(TypeError):
        es.heads(X)


def test_stacked_heads_share_keys():
    X = np.random.default_rng(2).normal(size=(4, 200, 3))
    rows = es.heads(X, X[:2], X[:2], causal=True, components=[2])
    (third,) = es.heads(X[2], X[1], X[1], causal=True, components=[2])
    assert [row["head"] for row in rows] == ["head.0", "head.1", "head.2", "head.3"]
    assert {**rows[2], "head": "head"} == third
    with pytest.raises(es.DimensionError):
        es.heads(X, X[:3], X[:3])
    X[1, 5, 0] = np.nan
    with pytest.raises(es.Error, match="head.1"):
        es.heads(X, X, X)


def test_heads_of_a_file(tmp_path):
    X = np.random.default_rng(1).normal(size=(300, 4))
    np.savez(tmp_path / "heads.npz", **{"a.Q": X, "a.K": X, "a.V": X, "b.Q": X, "b.K": X, "b.V": X})
    assert [row["head"] for row in es.heads(tmp_path / "heads.npz")] == ["a", "b"]
    with pytest.raises(es.FileError):
        es.heads(tmp_path / "none.npz")
