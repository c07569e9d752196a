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
    mine = es.risk(MyRegression(), AT, 30, kind=kind, draws=3000, seed=1)
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

    for call in (
        lambda task: es.risk(task, AT, 10),
        lambda task: es.flow(task, AT, length=10),
        lambda task: es.compare(task, [10], start=AT),
        lambda task: es.train(task, 10, 1),
    ):
        with pytest.raises(es.ArgumentError, match="NoDraw has no draw; a task needs"):
            call(NoDraw())
        with pytest.raises(es.ArgumentError, match="Wrong.draw gave .*expected .law, query, target"):
            call(Wrong())
        with pytest.raises(es.DimensionError, match="Short.draw"):
            call(Short())


class Coins(MyRegression):
    """Tokens (x, w'x) with x of signs: no Gaussian, and a measure written in Python inside."""

    class Law:
        def __init__(self, w):
            self.B, self.dim = np.vstack([np.eye(2), w]), 3

        def log_mgf(self, a):
            return np.log(np.cosh(a @ self.B)).sum()

        def tilted_mean(self, a):
            return self.B @ np.tanh(a @ self.B)

        def tilted_cov(self, a):
            return (self.B / np.cosh(a @ self.B) ** 2) @ self.B.T

        def sample(self, stream, n):
            return np.sign(stream.normal(2 * n)).reshape(n, 2) @ self.B.T

    def draw(self, stream):
        w, x = stream.normal(4).reshape(2, 2)
        return self.Law(w), np.append(x, 0.0), float(w @ x)


COINS = es.LinearRegressionTask(2, features="rademacher", query_cov=np.eye(2))


@pytest.mark.parametrize("engine, exact", [("auto", True), ("exact", True), ("direct", False)])
def test_engines_for_gaussian_laws(engine, exact):
    found = es.risk(MyRegression(), AT, 30, engine=engine, draws=2000, seed=1)
    assert (found.engine == "quadrature") == exact
    truth = es.risk(TASK, AT, 30)
    assert abs(found.value - truth.value) < 6 * np.hypot(found.std_error, truth.std_error)


@pytest.mark.parametrize("length", [20, es.inf])
@pytest.mark.parametrize("kind", ["softmax", "linear"])
def test_own_task_flows_like_the_built_in(length, kind):
    ask = dict(length=length, kind=kind, parametrisation="block", t_end=0.3, rtol=1e-5, atol=1e-7)
    start = es.balanced_start(TASK, 0.7)
    mine = es.flow(MyRegression(), start, draws=4000, seed=2, **ask)
    theirs = es.flow(TASK, start, **ask)
    assert mine.status == theirs.status == "t_end"
    np.testing.assert_allclose(mine.end.U, theirs.end.U, atol=0.1)
    assert mine.risk[-1] == pytest.approx(theirs.risk[-1], rel=0.15)
    assert np.all(np.diff(mine.risk) < 1e-6)


def test_own_measures_inside_own_tasks_flow():
    ask = dict(length=15, t_end=0.5, rtol=1e-4, atol=1e-6, draws=150, seed=3, parametrisation="block")
    start = es.balanced_start(COINS, 0.7)
    for length in (15, es.inf):
        mine = es.flow(Coins(), start, **{**ask, "length": length})
        theirs = es.flow(COINS, start, **{**ask, "length": length, "draws": 4000})
        assert mine.risk[-1] < mine.risk[0]
        np.testing.assert_allclose(mine.end.U, theirs.end.U, atol=0.25)


def test_own_task_has_twins():
    found = es.compare(MyRegression(), [20, 2000], parametrisation="block", draws=200, t_end=3.0, eps=[0.3], rtol=1e-5)
    rows = {(row["model"], row["L"]): row for row in found.rows}
    for kind in ("softmax", "linear"):
        near, far = rows[kind, 20], rows[kind, 2000]
        assert far["sup_distance"] < near["sup_distance"]
        assert far["limiting_risk"] < near["limiting_risk"] and near["engine"] == "quadrature"
        assert "bayes" not in near  # nobody knows the best prediction of a task of one's own
    assert rows["infinity", es.inf]["sup_distance"] == 0
    assert [row["status"] for row in found.lengths] == ["found", "found"]


def test_own_task_trains():
    ask = dict(learning_rate=0.05, batch=16, curve_block=20, alpha=0.5)
    for length in (20, es.inf):
        found = es.train(MyRegression(), length, 100, **ask)
        assert found.curve[-1].loss < found.curve[0].loss
        assert found.heads[0].U.shape == (3, 3)
    before = es.thread_count()
    es.set_thread_count(1)
    again = es.train(MyRegression(), es.inf, 100, **ask)
    es.set_thread_count(before)
    assert again.last_loss == found.last_loss
    two = es.train(Coins(), 10, 5, heads=2, init="torch", parametrisation="KQVO", batch=4)
    assert len(two.heads) == 2
    assert es.train(COINS, 10, 5).steps == 5  # not Gaussian: direct without being asked


def test_what_has_no_formula_names_what_serves():
    start = es.balanced_start(Coins())
    with pytest.raises(es.CapabilityError, match="Coins.*'Law'.*use engine = direct.*or length inf"):
        es.risk(Coins(), start, 10, engine="exact")
    with pytest.raises(es.CapabilityError, match="use engine = direct"):
        es.flow(Coins(), start, length=10, engine="exact", draws=10)
    with pytest.raises(es.CapabilityError, match="use engine = direct"):
        es.compare(COINS, [10], engine="exact", draws=10, t_end=0.1)
    with pytest.raises(es.CapabilityError, match="use exact or direct"):
        es.risk(Coins(), start, 10, engine="sampled")
    with pytest.raises(es.CapabilityError, match="8 GiB; use fewer draws"):
        es.flow(Coins(), start, length=2**40, draws=10)
    with pytest.raises(es.CapabilityError, match='the task is Coins; use "direct" or "auto"'):
        es.train(Coins(), 10, 1, gradient="sampled")
    with pytest.raises(es.ArgumentError, match="int has no token_dim; a task needs"):
        es.flow(3)


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
    (row,) = es.heads(X[:50], X, X, score_scale=0.2)
    assert row["n"] == 600 and row["verdict"] and row["verdict_kind"] in ("linear_here", "linear_from")
    assert isinstance(row["score_histogram"], np.ndarray) and row["mixtures"][0]["split_lin_c"] > 0
    assert row["verdict_kind"] == "linear_from" or row["shape_departure"] is None
    (frozen,) = es.heads(X[:50], X, X, score_scale=1e3, components=[2])
    assert frozen["linear_from"] == np.inf and frozen["mixtures"][0]["control_lin_c"] is None
    (few,) = es.heads(X[:50], X, X, score_scale=0.2, components=[3], queries=[1, 7])
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
    np.testing.assert_equal({**rows[2], "head": "head"}, third)
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


def test_risk_of_several_heads():
    """Predictions of heads add: a head cut into two has the risk of the head."""
    at = es.Readout(0.4 * np.eye(3), np.array([0.1, -0.2, 0.7]))
    halves = [es.Readout(at.U, at.r / 2)] * 2
    whole, cut = es.risk(TASK, at, 30), es.risk(TASK, halves, 30, draws=8000)
    assert abs(whole.value - cut.value) < 5 * np.hypot(whole.std_error, cut.std_error)
    assert es.risk(TASK, [at], 30) == whole
    with pytest.raises(es.CapabilityError, match="several heads"):
        es.risk(TASK, halves, 30, engine="exact")
    with pytest.raises(es.ArgumentError, match="heads"):
        es.risk(TASK, [], 30)
    with pytest.raises(es.ArgumentError, match="Readout"):
        es.risk(TASK, [1.0], 30)


def test_training_takes_every_option_of_its_optimizer():
    ask = dict(length=20, steps=30, optimizer="adamw", learning_rate=0.01)
    plain, decayed = es.train(TASK, **ask), es.train(TASK, weight_decay=0.5, **ask)
    assert np.linalg.norm(decayed.heads[0].U) < np.linalg.norm(plain.heads[0].U)
    slow = es.train(TASK, beta1=0.5, beta2=0.9, epsilon=1e-3, **ask)
    assert not np.array_equal(slow.heads[0].U, plain.heads[0].U)
    for name, value in (("beta1", 1.0), ("beta2", -0.1), ("epsilon", 0.0), ("weight_decay", -1.0)):
        with pytest.raises(es.ArgumentError, match=name):
            es.train(TASK, **ask, **{name: value})


def ess_of(scores):
    """Effective sample size of the softmax weights of each row, by the formulas."""
    w = np.exp(scores - scores.max(-1, keepdims=True))
    return w.sum(-1) ** 2 / (w**2).sum(-1)


def test_heads_read_what_the_model_did_before_its_softmax():
    rng = np.random.default_rng(5)
    Q, K, V = rng.normal(size=(20, 4)), rng.normal(size=(50, 4)), rng.normal(size=(50, 3))
    raw = 0.5 * Q @ K.T
    place = np.arange(30, 50)[:, None] - np.arange(50)[None, :]  # the queries belong to the last keys
    call = dict(score_scale=0.5, components=[], windows=[])
    seen = (place >= 0) & (place < 12)
    (row,) = es.heads(Q, K, V, causal=True, sliding=12, **call)
    assert row["ess"] == pytest.approx(np.median(ess_of(np.where(seen, raw, -np.inf))))
    (row,) = es.heads(Q, K, V, softcap=0.7, **call)
    assert row["ess"] == pytest.approx(np.median(ess_of(0.7 * np.tanh(raw / 0.7))))
    (row,) = es.heads(Q, K, V, mask=seen, **call)
    assert row["ess"] == pytest.approx(np.median(ess_of(np.where(seen, raw, -np.inf))))
    (row,) = es.heads(Q, K, V, mask=np.arange(50) < 40, **call)
    assert row["ess"] == pytest.approx(np.median(ess_of(raw[:, :40])))
    (row,) = es.heads(Q, K, V, causal=True, alibi=0.1, **call)
    assert row["ess"] == pytest.approx(np.median(ess_of(np.where(place >= 0, raw - 0.1 * place, -np.inf))))
    (row,) = es.heads(Q, K, V, sink_logit=1.0, **call)
    w = np.exp(raw)
    top = np.median(w.max(-1) / (w.sum(-1) + np.exp(1.0)))
    assert row["top_weight"] == pytest.approx(top)
    with pytest.raises(es.DimensionError, match="mask"):
        es.heads(Q, K, V, mask=np.ones((3, 50), bool), **call)


def test_heads_compare_methods_at_equal_memory():
    rng = np.random.default_rng(6)
    Q, K, V = rng.normal(size=(60, 4)), rng.normal(size=(80, 4)), rng.normal(size=(80, 3))
    (row,) = es.heads(Q, K, V, components=[], windows=[], budgets=[2, 8], gap=5)
    assert all(r["numbers"] <= 7 * r["budget"] for r in row["budget"])
    assert [r["budget"] for r in row["budget"] if r["best"]] == [2, 8]
    assert es.heads(Q, K, V, components=[], windows=[])[0]["budget"] is None
