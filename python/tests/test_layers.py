"""Tasks beyond regression: risks of layers against the program and against simulation, references, optima, mistakes."""

import copy
import json
import pickle
import subprocess

import numpy as np
import pytest

import esscher as es
from esscher import _esscher
from esscher.layers import layer_of, layer_parts

MEANS = [[1.5], [-1.5]]
DENOISING = es.DenoisingTask(MEANS, gamma=0.5, xi=0.75)
S = 0.5**2 + 0.75**2
# The posterior mean at L = inf, because the means have equal norms.
POSTERIOR = es.Layer(U=[[1 / S]], V=[[0.75**2 / S]], W=[[(0.5**2 - 0.75**2) / S]])
FEW = 100  # nodes, where the same ones are on both sides
TASKS = [
    DENOISING,
    es.DenoisingTask(means_law="sphere", dim=2, components=3, mean_scale=2.0),
    es.ClassificationTask([[1.0, 0.0], [-1.0, 0.5]], cov=[[1.0, 0.2], [0.2, 0.5]], weights=[0.4, 0.6]),
    es.ClassificationTask(means_law="gaussian", dim=2, mean_scale=1.5, loss="logistic"),
    es.SingleIndexTask(2, link="sign", index_law="sphere", noise_variance=0.1),
    es.PoolTask([[1.0, 0.0], [0.0, -1.0]], weights=[0.25, 0.75], noise_variance=0.3, query_noise=True),
    es.LinearTask([[1.0, 0.3], [0.3, 0.7]], nonzero=1, cov_law="scale", scale_deviation=0.3, noise_variance=0.2),
]


def small_layer(task, heads=1):
    draw = np.random.default_rng(3)
    D, m = task.token_dim, task.out_dim
    U, V = ([draw.normal(size=(rows, D)) / 4 for _ in range(heads)] for rows in (D, m))
    return es.Layer(U if heads > 1 else U[0], V if heads > 1 else V[0], draw.normal(size=(m, D)) / 4)


def program_rows(program, tmp_path, verb, *options):
    config = tmp_path / "task.toml"
    config.write_text(
        f'[task]\ntype = "denoising"\nmeans = {MEANS}\ngamma = 0.5\nxi = 0.75\n'
        f'[model]\ninit = {{ kind = "dense", U = {POSTERIOR.U}, V = {POSTERIOR.V}, W = {POSTERIOR.W} }}\n'
    )
    command = [program, "icl", verb, "--config", config, "--quiet", "--json", *options]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["rows"]


def test_risk_and_references_are_those_of_the_program(program, tmp_path):
    rows = program_rows(program, tmp_path, "risk", "--length", "30,inf")
    assert len(rows) == 8
    for length, row in zip((30, es.inf), (rows[:4], rows[4:])):
        said = {item["model"]: item for item in row}
        mine = {"softmax": es.risk(DENOISING, POSTERIOR, length)}
        found = es.reference_risks(DENOISING, length)
        mine.update(bayes=found.bayes, affine=found.affine, linear=found.linear)
        assert said.keys() == mine.keys() and not found.bayes_is_bound
        for name, estimate in mine.items():
            assert estimate.value == said[name]["risk"], (length, name)
            assert estimate.engine == said[name]["engine"]


def test_optimum_is_that_of_the_program(program, tmp_path):
    rows = program_rows(program, tmp_path, "optimum", "--set", "flow.restarts=1", "--set", "flow.draws=500", "--length", "50,inf")
    found = es.optimum(DENOISING, [50, es.inf], restarts=1, draws=500, start=POSTERIOR).rows
    for mine, said in zip(found, rows):
        assert [mine[key] for key in ("u", "v", "w", "risk", "limit_risk")] == [
            said[key] for key in ("u", "v", "w", "risk", "limit_risk")]
    assert np.isinf(found[1].L) and found[0].L == 50 and found[0].task == "denoising"


def test_risk_of_a_finite_prompt_is_the_mean_over_draws():
    draw, n, L = np.random.default_rng(5), 40000, 7
    side = draw.choice([1.5, -1.5], size=(n, L + 1))
    clean = side + 0.5 * draw.normal(size=side.shape)
    noisy = clean + 0.75 * draw.normal(size=side.shape)
    z, tokens = noisy[:, 0], noisy[:, 1:]
    u, v, w = (float(matrix[0][0]) for matrix in POSTERIOR[:3])
    scores = u * z[:, None] * tokens
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    said = w * z + v * (weights * tokens).sum(axis=1) / weights.sum(axis=1)
    losses = (said - clean[:, 0]) ** 2 / 2
    exact = es.risk(DENOISING, POSTERIOR, L)
    assert exact.engine == "quadrature"
    assert abs(losses.mean() - exact.value) < 5 * losses.std() / n**0.5


def test_two_linear_heads_and_drawn_ones_are_near_each_other():
    layer = small_layer(DENOISING, heads=2)._replace(kinds="linear")
    exact = es.risk(DENOISING, layer, 9)
    drawn = es.risk(DENOISING, layer, 9, engine="direct", draws=20000, seed=4)
    assert exact.engine == "quadrature" and drawn.engine == "direct" and drawn.std_error > 0
    assert abs(exact.value - drawn.value) < 5 * drawn.std_error
    assert es.risk(DENOISING, layer._replace(kinds=["softmax", "linear"]), 9).engine == "direct"


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.type)
@pytest.mark.parametrize("length", [6, es.inf])
def test_bayes_is_never_beaten_and_maps_are_in_order(task, length):
    found = es.reference_risks(task, length, draws=1000)
    slack = 5 * sum(e.std_error for e in (found.bayes, found.affine, found.linear)) + 1e-9
    assert found.bayes.value <= found.affine.value + slack
    assert found.affine.value <= found.linear.value + slack
    layer = on_nodes(task, small_layer(task), length)[0]
    assert found.bayes.value <= layer + slack


@pytest.mark.parametrize(
    "task", [es.SingleIndexTask(3, link="sign", noise_variance=0.2), es.DenoisingTask(dim=2, means_law="gaussian", gamma=0.5)]
)
def test_a_finite_prompt_is_worse_than_a_known_law_and_better_than_the_query_alone(task):
    found, known = es.reference_risks(task, 5, draws=200), es.reference_risks(task, es.inf)
    assert found.bayes_by == "chains" and known.bayes_by == "known law"
    slack = 5 * found.bayes.std_error
    assert known.bayes.value + slack < found.bayes.value < found.affine.value - slack


def test_references_say_how_the_best_prediction_was_found():
    drawn, fixed, pool = TASKS[1], TASKS[0], TASKS[5]
    assert es.reference_risks(drawn, 6, draws=100).bayes_by == "chains"
    assert es.reference_risks(drawn, es.inf).bayes_by == "known law"
    assert es.reference_risks(fixed, 6).bayes_by == "known law"
    assert es.reference_risks(pool, 6).bayes_by == "formula"
    exact = es.reference_risks(es.SingleIndexTask(3, link="relu"), 6, draws=100)
    assert exact.bayes_by == "chains" and not exact.bayes_is_bound
    unknown = es.reference_risks(es.SingleIndexTask(8, link="sin"), 7)  # too many phases fit the labels
    assert unknown.bayes_by == "bound" and unknown.bayes_is_bound


def test_posterior_means_of_chains_are_those_of_formulas():
    # Signs in the plane have a formula; in space, with tokens in the plane, they have chains.
    plane, space = (es.SingleIndexTask(d, link="sign", noise_variance=0.3) for d in (2, 3))
    prompt, query = plane.draw(1, 8).prompt, np.array([0.4, -0.7, 0.0])
    flat = np.insert(prompt, 2, 0.0, axis=1)
    by_chain = space.posterior_mean(flat, np.insert(query, 2, 0.0))
    assert by_chain == pytest.approx(plane.posterior_mean(prompt, query), abs=0.06)


def on_nodes(task, at, length):
    """The risk on nodes that stay where they are, and its gradient."""
    W, heads = layer_parts(task, at)
    options = {"engine": "auto", "draws": FEW, "stream": es.Stream(0)}
    value, slope = _esscher.layer_risk_gradient(task, W, heads, length, options)
    return value, layer_of(slope)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.type)
@pytest.mark.parametrize("length", [6, es.inf])
def test_gradient_by_differences(task, length):
    at, h = small_layer(task), 1e-4
    slope = on_nodes(task, at, length)[1]
    draw = np.random.default_rng(1)
    direction = [draw.normal(size=matrix.shape) for matrix in at[:3]]
    up, down = (on_nodes(task, es.Layer(*(m + s * d for m, d in zip(at, direction))), length)[0] for s in (h, -h))
    along = sum(np.sum(m * d) for m, d in zip(slope, direction))
    assert along == pytest.approx((up - down) / (2 * h), rel=1e-5, abs=1e-7)


def test_risk_with_its_gradient():
    value, slope, error = es.risk(DENOISING, POSTERIOR, es.inf, gradient=True)
    assert value == es.risk(DENOISING, POSTERIOR, es.inf) and isinstance(slope, es.Layer)
    assert max(abs(matrix).max() for matrix in slope[:3]) < 1e-8  # nothing is better at L = inf
    assert error.kinds == "softmax" and all(np.all(matrix == 0) for matrix in error[:3])  # a lattice: nothing is drawn


def test_the_gradient_of_drawn_layers_has_an_error_that_holds():
    """Two softmax heads have no formula: against differences of the risk on other prompts."""
    two = es.Layer([np.array([[0.8]]), np.array([[-0.3]])], [np.array([[0.5]]), np.array([[0.4]])], np.array([[0.1]]))
    _, slope, error = es.risk(DENOISING, two, 6, gradient=True, draws=2000)
    h, steps = 0.05, (1, -1)
    up, down = (es.risk(DENOISING, two._replace(U=[two.U[0] + s * h, two.U[1]]), 6, draws=40000, seed=3) for s in steps)
    by_hand, sure = (up.value - down.value) / (2 * h), float(error.U[0][0, 0])
    assert 0 < sure < 0.05
    assert abs(float(slope.U[0][0, 0]) - by_hand) < 6 * (sure + np.hypot(up.std_error, down.std_error) / (2 * h)) + h**2
    assert repr(es.LayerGradient(up, slope, error)).endswith("2 heads)")


def test_the_best_layer_of_an_infinite_prompt_is_the_posterior_mean():
    row = es.optimum(DENOISING, [es.inf], restarts=2).rows[0]
    assert [row.u, row.v, row.w] == pytest.approx([float(m[0][0]) for m in POSTERIOR[:3]], abs=1e-4)
    assert row.risk == pytest.approx(row.bayes, abs=1e-8) and row.converged
    assert row.risk == pytest.approx(row.limit_risk, abs=1e-12)
    best = es.Layer(row.U, row.V, row.W)
    assert es.risk(DENOISING, best, es.inf).value == pytest.approx(row.risk, rel=1e-9)


def test_optimum_searches_factors():
    task = es.DenoisingTask([[1.5, 0.0], [-0.75, 1.3], [-0.75, -1.3]], gamma=0.6, xi=0.6)
    wide, narrow = (es.optimum(task, [es.inf], parametrisation="KQV", key_dim=k, restarts=1).rows[0] for k in (2, 1))
    assert narrow.risk > 1.1 * wide.risk and np.linalg.matrix_rank(narrow.U, tol=1e-9) == 1
    assert narrow.parametrisation == "KQV" and narrow.key_dim == 1 and narrow.sharp is None
    with pytest.raises(es.ArgumentError, match="full"):
        es.optimum(task, [es.inf], parametrisation="KQV", family="scalars")


def test_optimum_is_a_result(tmp_path):
    found = es.optimum(DENOISING, [20, es.inf], restarts=1, draws=500)
    assert repr(found).startswith("Optimum(L=20: 0.")
    found.save(tmp_path / "best.json")
    again = es.load(tmp_path / "best.json")
    assert isinstance(again, es.Optimum) and again.rows[0].risk == found.rows[0].risk
    np.testing.assert_array_equal(again.rows[0].U, found.rows[0].U)
    assert {row["prediction"] for row in found.chart()["data"]["values"]} >= {"best layer", "Bayes", "affine map"}


def test_a_table_over_two_lengths_is_that_of_the_program(program, tmp_path):
    task = es.ClassificationTask([[1.0], [-1.0]])
    start = es.Layer([[0.3, 0], [0, 0]], [[0, 0.3]])
    models = {}
    for length in (5, es.inf):
        out = tmp_path / str(length)
        models[length] = es.flow(task, start, length=length, family="scalars", t_end=1.0, rtol=1e-3, out=out).end
    found = es.risk_table(task, models, [5, 50, es.inf])
    assert found.matrix.shape == (2, 3) and found.matrix[1, 2] == es.risk(task, models[es.inf], es.inf).value
    command = [program, "icl", "risk", "--model", f"{tmp_path / '5'},{tmp_path / 'inf'}", "--length", "5,50,inf"]
    (tmp_path / "task.toml").write_text('[task]\ntype = "classification"\nmeans = [[1.0], [-1.0]]\n')
    command += ["--config", tmp_path / "task.toml", "--quiet", "--json"]
    said = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["rows"]
    rows = [row for row in said if row["trained"] is not None]
    assert np.allclose([row["risk"] for row in rows], found.rows["risk"], rtol=1e-12)
    assert [row["trained"] for row in rows] == [5, 5, 5, "inf", "inf", "inf"]
    assert len(found.to_pandas()) == 6 and found.chart()["mark"]
    with pytest.raises(es.ArgumentError, match="at least one model"):
        es.risk_table(task, {}, [5])
    with pytest.raises(es.ArgumentError, match="models is a list, expected a dict"):
        es.risk_table(task, [start], [5])


class TwoSlopes:
    """A user's task: a mixture of y = w x and y = -w x."""

    token_dim = 2

    def draw(self, stream):
        w, x = stream.normal(2)
        parts = [es.Gaussian([[1, s * w], [s * w, w * w]]) for s in (1, -1)]
        return es.Mixture([1, 1], parts), [x, 0.0], w * x


@pytest.mark.parametrize("task", [TwoSlopes(), es.LinearRegressionTask(1), es.PoolTask([[1.0], [-1.0]])])
def test_what_was_trained_is_tested_at_other_lengths(task):
    runs = {L: es.train(task, L, 3, batch=8) for L in (5, 20)}
    found = es.risk_table(task, {L: run.end for L, run in runs.items()}, [5, 50], draws=100)
    assert found.matrix.shape == (2, 2)
    assert found.matrix[1, 0] == es.risk(task, runs[20].end, 5, draws=100).value
    assert len(es.train(es.LinearRegressionTask(1), 5, 3, heads=2, init="torch").end) == 2


def test_links_of_names_and_of_python_agree():
    layer = small_layer(TASKS[3])
    named, written = es.SingleIndexTask(2, link="tanh"), es.SingleIndexTask(2, link=np.tanh)
    assert on_nodes(written, layer, 5)[0] == pytest.approx(on_nodes(named, layer, 5)[0], rel=1e-9)


def test_last_rows_of_square_matrices_act():
    task = TASKS[2]
    layer = small_layer(task)
    V, W = np.ones((3, 3)), np.ones((3, 3))
    V[-1:], W[-1:] = layer.V, layer.W
    square = es.risk(task, es.Layer(layer.U, V, W), 6, draws=FEW)
    assert square.value == es.risk(task, layer, 6, draws=FEW).value


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.type)
def test_tasks_pickle_copy_and_print(task):
    layer = small_layer(task)
    value = es.risk(task, layer, 4, engine="direct", draws=FEW).value
    for twin in (pickle.loads(pickle.dumps(task)), copy.deepcopy(task), eval(repr(task), {**vars(es)})):
        assert type(twin) is type(task) and repr(twin) == repr(task)
        assert es.risk(twin, layer, 4, engine="direct", draws=FEW).value == value
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(layer)).U, layer.U)


def test_repr_says_what_is_not_the_default():
    assert repr(DENOISING) == "DenoisingTask(means=[[1.5], [-1.5]], gamma=0.5, xi=0.75)"
    assert DENOISING.gamma == 0.5 and DENOISING.parameters["xi"] == 0.75 and DENOISING.type == "denoising"


def test_a_flow_ends_at_the_posterior_mean_here_and_in_a_run(tmp_path):
    start = es.Layer([[0.5]], [[0.4]], [[-0.1]])
    here = es.flow(DENOISING, start, family="scalars")
    assert here.status == "stationary" and here.theta.shape == (len(here.t), 3)
    for found, wanted in zip((here.end.U, here.end.V, here.end.W), (POSTERIOR.U, POSTERIOR.V, POSTERIOR.W)):
        np.testing.assert_allclose(found, wanted, atol=1e-5)
    assert np.isclose(here.risk[0], es.risk(DENOISING, start, es.inf).value, rtol=1e-9)
    kept = es.flow(DENOISING, start, family="scalars", out=tmp_path / "run")
    assert np.array_equal(kept.risk, here.risk) and np.array_equal(kept.end.U, here.end.U)
    assert (tmp_path / "run" / "report.html").exists()
    heads = es.flow(DENOISING, es.Layer([[[0.5]], [[0.2]]], [[[0.4]], [[0.1]]], kinds=["softmax", "linear"]), t_end=0.1)
    assert [kind for kind in heads.end.kinds] == ["softmax", "linear"] and heads.risk[-1] < heads.risk[0]


def test_training_is_a_pure_function_here_and_in_a_run(tmp_path):
    start = es.Layer([[[0.5]], [[0.2]]], [[[0.4]], [[0.1]]], kinds=["softmax", "linear"])
    how = dict(start=start, optimizer="adam", learning_rate=0.02, batch=32, curve_block=20)
    here = es.train(DENOISING, 8, 60, **how)
    assert here.status == "finished" and here.heads == [] and [p.last for p in here.curve] == [20, 40, 60]
    assert here.curve[-1].loss < here.curve[0].loss
    kept = es.train(DENOISING, 8, 60, out=tmp_path / "run", checkpoints=3, **how)
    assert np.array_equal(kept.layer.U, here.layer.U) and kept.layer.kinds == here.layer.kinds
    assert (tmp_path / "run" / "report.html").exists()
    for task in TASKS:
        trained = es.train(task, es.inf, 2, start=small_layer(task), family="full", batch=4)
        assert np.isfinite(trained.last_loss) and not np.array_equal(trained.layer.U, small_layer(task).U)


def test_factors_train_flow_and_compare():
    """K, Q, V and O from PyTorch's start, for two heads."""
    task = TASKS[3]
    ask = dict(heads=2, init="torch", parametrisation="KQVO", score_scale=0.5, learning_rate=0.05, batch=16)
    first, again, other = (es.train(task, 6, 40, seed=seed, **ask) for seed in (1, 1, 2))
    assert len(first.layer.U) == 2 and np.array_equal(first.layer.U, again.layer.U)
    assert not np.allclose(first.layer.U, other.layer.U)
    start = es.Layer([[0.5]], [[0.4]], [[-0.1]])
    plain, factors = (es.flow(DENOISING, start, t_end=1.0, parametrisation=name) for name in ("UV", "KQVO"))
    assert plain.risk[0] == pytest.approx(factors.risk[0], rel=1e-12) and plain.risk[-1] != factors.risk[-1]
    # k, q > 0 with k q = u and k = q move u at the speed 2u of its own gradient.
    small = es.flow(DENOISING, start, t_end=1e-3, parametrisation="KQV")
    other = es.flow(DENOISING, start, t_end=1e-3)
    moved, own = (float(f.end.U[0][0]) - 0.5 for f in (small, other))
    assert moved == pytest.approx(2 * 0.5 * own, rel=1e-2)
    rows = es.compare(DENOISING, [1000], start=start, t_end=0.5, parametrisation="KQV").rows
    assert rows[1].L == 1000 and rows[1].sup_distance > 0


def test_the_logistic_loss_of_drawn_classes():
    """An infinite prompt of classes at +-m: log odds 2m'x, which linear attention with U = 2 says."""
    task = es.ClassificationTask([[0.8], [-0.8]], loss="logistic")
    assert task.loss == "logistic" and DENOISING.loss == "squared"
    bayes = es.reference_risks(task, es.inf).bayes.value
    head = es.Layer([[2.0, 0.0], [0.0, 0.0]], [[0.0, 1.0]], kinds="linear")
    assert es.risk(task, head, es.inf).value == pytest.approx(bayes, rel=1e-10)
    x = np.random.default_rng(0).normal(size=200000) + 0.8
    by_hand = np.log1p(np.exp(-1.6 * x))  # of the class +1; that of -1 is its mirror image
    assert abs(by_hand.mean() - bayes) < 5 * by_hand.std() / len(x) ** 0.5
    finite = es.risk(task, head, 5)
    assert finite.engine == "direct" and finite.value - 5 * finite.std_error > bayes
    trained = es.train(task, es.inf, 300, start=es.Layer(0.1 * np.eye(2), [[0.0, 0.1]]), optimizer="adam", learning_rate=0.05)
    assert es.risk(task, trained.layer, es.inf).value < np.log(2) - 0.1


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.type)
def test_draws_are_those_of_the_risk(task):
    """A layer without heads, whose loss needs no prompt, on draws of the task; tokens have their shapes."""
    draws = [task.draw(es.Stream(5).split(i), 3) for i in range(4000)]
    assert draws[0].prompt.shape == (3, task.token_dim) and draws[0].query.shape == (task.token_dim,)
    W = 0.3 * np.eye(task.token_dim)[-task.out_dim :] + 0.1
    said = np.array([W @ d.query for d in draws])
    targets = np.array([d.target for d in draws])
    if task.loss == "logistic":
        losses = np.log1p(np.exp(-targets * said))[:, 0]
    else:
        losses = ((said - targets) ** 2).sum(axis=1) / 2
    zero = np.zeros((task.token_dim, task.token_dim))
    risk = es.risk(task, es.Layer(zero, zero, W), 3)
    assert abs(losses.mean() - risk.value) < 6 * np.hypot(losses.std() / 4000**0.5, risk.std_error)
    drift = (targets - [d.expected for d in draws]) * said  # E[target | law, query]
    assert abs(drift.mean()) < 6 * drift.std() / drift.size**0.5 + 1e-12


def test_posterior_means_of_a_pool_by_hand():
    pool = np.array([[1.0, 0.0], [0.0, -1.0], [0.5, 0.5]])
    task = es.PoolTask(pool, weights=[0.25, 0.25, 0.5], noise_variance=0.3)
    drawn = task.draw(3, 4)
    X, y = drawn.prompt[:, :2], drawn.prompt[:, 2]
    log = np.log([0.25, 0.25, 0.5]) - ((y - pool @ X.T) ** 2).sum(axis=1) / 0.6
    weights = np.exp(log - log.max())
    by_hand = weights @ (pool @ drawn.query[:2]) / weights.sum()
    assert task.posterior_mean(drawn.prompt, drawn.query)[0] == pytest.approx(by_hand, rel=1e-12)
    with pytest.raises(es.CapabilityError, match="there is no posterior of it"):
        DENOISING.posterior_mean([[1.0]], [1.0])


def test_twins_are_the_flows_side_by_side_here_and_in_a_run(tmp_path):
    pool = es.PoolTask([[1.0], [-1.0]], noise_variance=0.1)
    start = es.Layer(0.4 * np.eye(2), [[0.3, 0.3]], kinds="linear")
    here = es.compare(pool, [10, 100], start=start, t_end=1.0)
    assert [(row.model, row.L) for row in here.rows] == [("infinity", es.inf), ("linear", 10), ("linear", 100)]
    for row in here.rows:
        end = es.flow(pool, start, length=row.L, t_end=1.0).end
        np.testing.assert_allclose(row.U, end.U, atol=1e-6)
    kept = es.compare(pool, [10, 100], start=start, t_end=1.0, out=tmp_path / "run")
    assert [row.limiting_risk for row in kept.rows] == [row.limiting_risk for row in here.rows]


MISTAKES = [
    (lambda: es.DenoisingTask(), "DenoisingTask: means"),
    (lambda: es.DenoisingTask(MEANS, gamma=-1.0), "gamma"),
    (lambda: es.DenoisingTask(MEANS, weights=[1.0]), "weights"),
    (lambda: es.DenoisingTask(MEANS, means_law="cube"), "cube"),
    (lambda: es.DenoisingTask(MEANS, means_law="sphere"), "means_law"),
    (lambda: es.DenoisingTask(MEANS, gama=1.0), "gama"),
    (lambda: es.ClassificationTask([[1.0], [2.0], [3.0]]), "means"),
    (lambda: es.ClassificationTask([[1.0], [2.0]], cov=np.eye(2)), "cov"),
    (lambda: es.SingleIndexTask(2, link="cosh"), "cosh"),
    (lambda: es.SingleIndexTask(2, index_law="cube"), "cube"),
    (lambda: es.PoolTask([[1.0]], noise_variance=-1.0), "noise_variance"),
    (lambda: es.PoolTask([1.0, 2.0]), "PoolTask: pool has shape"),
    (lambda: es.ClassificationTask(1.0), "ClassificationTask: means has shape"),
    (lambda: es.optimum(DENOISING, [5], family="round"), "round"),
    (lambda: es.optimum(DENOISING, [5], kind="hard"), "hard"),
    (lambda: es.optimum(DENOISING, [5], restarts=0), "restarts"),
    (lambda: es.optimum(DENOISING, [5], heads=0), "heads"),
    (lambda: es.optimum(DENOISING, []), "lengths"),
    (lambda: es.optimum(es.LinearRegressionTask(2), [5]), "LinearRegressionTask"),
    (lambda: es.flow(DENOISING, es.Readout(np.eye(1), np.ones(1))), "expected a Layer"),
    (lambda: es.flow(es.LinearRegressionTask(2), POSTERIOR), "expected a Readout"),
    (lambda: es.flow(DENOISING, POSTERIOR, family="round"), "round"),
    (lambda: es.flow(DENOISING, es.Layer(np.eye(2), [[1.0]])), "U has shape"),
    (lambda: es.train(DENOISING, 5, 1, start=es.Readout(np.eye(1), np.ones(1))), "expected a Layer"),
    (lambda: es.train(es.LinearRegressionTask(2), 5, 1, start=POSTERIOR), "expected a Readout"),
    (lambda: es.train(DENOISING, 5, 1, heads=2), "heads is 2"),
    (lambda: es.train(DENOISING, 5, 1, batch=0), "batch"),
    (lambda: es.train(DENOISING, 5, 1, init="identity"), "init is 'identity'"),
    (lambda: es.train(DENOISING, 5, 1, start=POSTERIOR, init="torch"), "heads of its own"),
    (lambda: es.train(DENOISING, 5, 1, score_scale=2.0), "score_scale is 2"),
    (lambda: es.train(DENOISING, 5, 1, parametrisation="KQV", family="scalars"), "parametrisation is KQV"),
    (lambda: es.flow(DENOISING, POSTERIOR, parametrisation="block"), "parametrisation is block"),
    (lambda: es.ClassificationTask([[1.0], [2.0]], loss="hinge"), "hinge"),
    (lambda: es.train(TASKS[3], 5, 1, loss="mse"), "loss is mse"),
    (lambda: DENOISING.draw(0, 1.5), "n is 1.5"),
    (lambda: es.PoolTask([[1.0]]).posterior_mean(np.ones((2, 3)), [1.0, 0.0]), "prompt"),
    (lambda: es.compare(DENOISING, [5], start=es.Readout(np.eye(1), np.ones(1))), "expected a Layer"),
    (lambda: es.compare(es.LinearRegressionTask(2), [5], start=POSTERIOR), "expected a Readout"),
    (lambda: es.compare(DENOISING, [5], start=POSTERIOR, kinds=["linear"]), "kinds of its own"),
    (lambda: es.reference_risks(es.LinearRegressionTask(2), 5), "LinearRegressionTask"),
    (lambda: es.reference_risks(DENOISING, -1), "length"),
    (lambda: es.risk(DENOISING, es.Readout(np.eye(1), np.ones(1)), 5), "Layer"),
    (lambda: es.risk(es.LinearRegressionTask(2), POSTERIOR, 5), "Readout"),
    (lambda: es.risk(DENOISING, POSTERIOR, 5, kind="linear"), "kinds"),
    (lambda: es.risk(DENOISING, es.Layer(np.eye(2), [[1.0]]), 5), "U has shape"),
    (lambda: es.risk(DENOISING, es.Layer([[1.0]], np.ones((2, 1))), 5), "V has shape"),
    (lambda: es.risk(DENOISING, es.Layer(1.0, 1.0), 5), "U is 1.0"),
    (lambda: es.risk(DENOISING, es.Layer([], []), 5), "U is"),
    (lambda: es.risk(DENOISING, es.Layer([np.eye(1)] * 2, [np.eye(1)]), 5), "V has 1"),
    (lambda: es.risk(DENOISING, es.Layer([np.eye(1)] * 2, [np.eye(1)] * 2, kinds=["softmax"]), 5), "kinds has 1"),
    (lambda: es.risk(DENOISING, POSTERIOR._replace(kinds="hard"), 5), "hard"),
]


@pytest.mark.parametrize("call, said", MISTAKES, ids=[said for _, said in MISTAKES])
def test_mistakes_are_named(call, said):
    with pytest.raises((es.ArgumentError, es.DimensionError, TypeError), match=said):
        call()


def test_references_say_whether_bayes_is_a_bound():
    found = es.reference_risks(DENOISING, 20)
    assert found.to_pandas()["prediction"].tolist() == ["bayes", "affine", "linear"]
    assert found.to_xarray()["value"].sel(prediction="affine") == found.affine.value
    drawn = es.reference_risks(es.SingleIndexTask(8, link="sin"), 7, draws=200)
    assert drawn.bayes_is_bound and "bayes at least" in repr(drawn) and "at least" not in repr(found)
