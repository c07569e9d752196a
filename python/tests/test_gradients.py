"""Exact gradients as NumPy arrays, by differences; a descent over a whole layer."""

import numpy as np
import pytest

import esscher as es
from user_laws import Coin

RNG = np.random.default_rng(3)
B = RNG.normal(size=(3, 3))
PARAMETERS = {
    "K": 0.5 * RNG.normal(size=(2, 3)),
    "Q": 0.5 * RNG.normal(size=(2, 3)),
    "V": RNG.normal(size=(2, 3)),
    "z": RNG.normal(size=3),
    "mean": RNG.normal(size=3),
    "cov": B @ B.T / 3 + 0.2 * np.eye(3),
    "score_scale": np.array(0.8),
}
G = RNG.normal(size=2)


def ask(what, length, gradient=False, **changed):
    p = {**PARAMETERS, **changed}
    head = es.Attention(K=p["K"], Q=p["Q"], V=p["V"], score_scale=float(p["score_scale"]))
    mu = es.Gaussian(p["cov"], p["mean"])
    if what == "error":
        found = es.mean_square_error(mu, head, p["z"], length, gradient=gradient)
        return found if gradient else found.value
    if gradient:
        return es.expected_output(mu, head, p["z"], length, cotangent=G)
    return G @ es.expected_output(mu, head, p["z"], length)


def difference(f, value, direction, h):
    """Central differences of order 4."""
    return (8 * (f(value + h * direction) - f(value - h * direction)) - f(value + 2 * h * direction) + f(value - 2 * h * direction)) / (12 * h)


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize("length", [1, 7, 1000, es.inf])
@pytest.mark.parametrize("what", ["error", "output"])
def test_finite_prompts(what, length, name):
    direction = RNG.normal(size=PARAMETERS[name].shape)
    if name == "cov":
        direction = direction + direction.T
    slope = difference(lambda x: ask(what, length, **{name: x}), PARAMETERS[name], direction, 1e-3)
    value, found = ask(what, length, gradient=True)
    assert np.sum(getattr(found, name) * direction) == pytest.approx(slope, rel=1e-7, abs=1e-9)
    plain = ask(what, length)
    assert (value.value if what == "error" else G @ value) == pytest.approx(plain, rel=1e-14)


def test_a_head_given_by_u():
    U, z = 0.4 * RNG.normal(size=(3, 3)), PARAMETERS["z"]
    mu = es.Gaussian(PARAMETERS["cov"])
    _, found = es.mean_square_error(mu, es.Attention(U=U), z, 50, gradient=True)
    direction = RNG.normal(size=U.shape)
    slope = difference(lambda x: es.mean_square_error(mu, es.Attention(U=x), z, 50).value, U, direction, 1e-3)
    assert np.sum(found.U * direction) == pytest.approx(slope, rel=1e-7)
    assert found.K is None and found.score_scale == pytest.approx(np.sum(found.U * U), rel=1e-12)


@pytest.mark.parametrize("length, tau", [(2, 0.5), (100, 1.0), (10**6, 3.0), (50, 1e-4), (1, 2.0)])
def test_universal_functions(length, tau):
    u, slope = es.universal(length, tau, gradient=True)
    assert u == es.universal(length, tau)
    h = 1e-3 * tau
    for name in ("M1", "M2c", "H", "M1_ratio", "M2c_ratio"):
        by_hand = difference(lambda x: getattr(es.universal(length, x), name), tau, 1.0, h)
        assert getattr(slope, name) == pytest.approx(by_hand, rel=1e-5, abs=1e-9 * abs(getattr(u, name)) / h)


@pytest.mark.parametrize("name", sorted(set(PARAMETERS) - {"V"}))
@pytest.mark.parametrize("function", ["H", "M1", "M2c", "free_energy", "entropy"])
def test_functions_of_gaussian_scores(function, name):
    def ask_universal(gradient=False, **changed):
        p = {**PARAMETERS, **changed}
        head = es.Attention(K=p["K"], Q=p["Q"], V=p["V"], score_scale=float(p["score_scale"]))
        return es.universal(30, es.Gaussian(p["cov"], p["mean"]), head, p["z"], gradient=gradient)

    direction = RNG.normal(size=PARAMETERS[name].shape)
    if name == "cov":
        direction = direction + direction.T
    by_hand = difference(lambda x: getattr(ask_universal(**{name: x}), function), PARAMETERS[name], direction, 3e-3)
    _, slope = ask_universal(gradient=True)
    assert np.sum(getattr(getattr(slope, function), name) * direction) == pytest.approx(by_hand, rel=1e-6, abs=1e-8)
    assert not np.any(getattr(slope, function).V)


def test_a_risk_has_derivatives_in_keys_queries_and_values():
    """The exact risk at infinity, by differences in every matrix of the head."""
    K, Q, V = (0.5 * RNG.normal(size=(3, 3)) for _ in range(3))

    def risk(**changed):
        given = {"K": K, "Q": Q, "V": V, "score_scale": 0.8, **changed}
        return es.risk(TASK, es.Attention(**given), es.inf)

    head = es.Attention(K=K, Q=Q, V=V, score_scale=0.8)
    value, slope, error = es.risk(TASK, head, es.inf, gradient=True)
    assert value == risk() == es.risk(TASK, es.Readout(head.U, V[-1]), es.inf)
    for name, matrix in {"K": K, "Q": Q, "V": V}.items():
        direction = RNG.normal(size=matrix.shape)
        by_hand = difference(lambda x: risk(**{name: x}).value, matrix, direction, 1e-2)
        assert np.sum(getattr(slope, name) * direction) == pytest.approx(by_hand, rel=1e-7), name
    by_hand = difference(lambda x: risk(score_scale=x).value, 0.8, 1.0, 1e-2)
    assert slope.score_scale == pytest.approx(by_hand, rel=1e-7)
    finite = es.risk(TASK, head, 20, gradient=True)
    np.testing.assert_allclose(finite.gradient.K, 0.8 * Q @ finite.gradient.U.T, rtol=1e-9, atol=1e-12)
    assert np.all(finite.std_error.K > 0)
    assert es.risk(TASK, AT, 20, gradient=True).gradient.K is None
    with pytest.raises(es.DimensionError, match="expected"):
        es.risk(TASK, es.Attention(U=np.eye(4)), 10)


COV = PARAMETERS["cov"][:2, :2]
LAWS = {
    "sphere": es.Sphere(2, 1.3),
    "ball": es.Ball(2, 1.2),
    "coins": es.Rademacher(2),
    "cube": es.Uniform(2),
    "laplace": es.Laplace(2, 0.5),
    "student": es.Student(6.0, COV),
    "categorical": np.array([[1.0, -0.5, 0.3], [0.2, 1.0, -1.0]]) @ es.Categorical([0.5, 0.2, 0.3]),
    "prompt of tokens": es.Empirical(RNG.normal(size=(7, 2))),
    "two clusters": es.Mixture([0.3, 0.7], [es.Gaussian(COV, [1.0, 0.0]), es.Gaussian(0.5 * COV)]),
    "mixture": es.Mixture([0.3, 0.7], [es.Gaussian(COV, [0.5, 0.0]), es.Ball(2)]),
    "affine": np.array([[1.0, 0.4], [0.0, 0.8]]) @ es.Sphere(2) + np.array([0.3, -0.2]),
    "product": es.Product([es.Gaussian([[0.7]]), es.Rademacher(1)]),
    "sum": es.Rademacher(2) + es.Sphere(2, 0.5),
    "elliptical": es.Elliptical(COV, [0.5, 1.5], [0.4, 0.6]),
    "single index": es.SingleIndex([[1.0]], [1.0], "tanh", 0.1),
}
NEEDLES = es.Prompt(
    [es.Group(es.Sphere(2), count=4, bias=0.3), es.Rademacher(2)], given=[[1.0, 0.5]], sink_logits=[0.2], include_query=True,
)
PROMPTS = {
    "needles": NEEDLES,
    "given": es.Prompt(es.Ball(2), given=[[0.5, 1.0], [-1.0, 0.2]]),
    "alibi": es.Prompt(es.Gaussian(COV), bias={"kind": "alibi", "slope": 0.2}),
}
SMALL_HEAD = {name: 0.6 * RNG.normal(size=shape) for name, shape in (("K", (2, 2)), ("Q", (2, 2)), ("V", (3, 2)), ("z", 2))}
OUT = RNG.normal(size=3)


def number(what, law, length, gradient=False, **changed):
    """One number of a finite prompt of any law, or its gradients."""
    p = {**SMALL_HEAD, "score_scale": 0.9, **changed}
    head, z = es.Attention(K=p["K"], Q=p["Q"], V=p["V"], score_scale=float(p["score_scale"])), p["z"]
    if what == "error":
        found = es.mean_square_error(law, head, z, length, gradient=gradient)
        return found[1] if gradient else found.value
    if what == "output":
        found = es.expected_output(law, head, z, length, **({"cotangent": OUT} if gradient else {}))
        return found[1] if gradient else OUT @ found
    found = es.universal(length, law, head, z, gradient=gradient)
    return getattr(found[1] if gradient else found, what)


@pytest.mark.parametrize("name", [*LAWS, *PROMPTS])
@pytest.mark.parametrize("what", ["error", "output", "H", "M1", "M2c", "free_energy", "entropy"])
def test_gradients_of_every_law_of_the_exact_engine(what, name):
    """In every parameter of the head, by differences of another order and step; the law by moving and stretching it."""
    law = {**LAWS, **PROMPTS}[name]
    if what in ("error", "M2c") and name == "student":
        return  # there is no limit to be near
    for length in (6, 300):
        found = number(what, law, length, gradient=True)
        for parameter in ("z", "K", "Q", "V", "score_scale"):
            at = np.asarray({**SMALL_HEAD, "score_scale": 0.9}[parameter])
            direction = RNG.normal(size=at.shape)
            by_hand = difference(lambda x: number(what, law, length, **{parameter: x}), at, direction, 1e-3)
            claimed = np.sum(getattr(found, parameter) * direction)
            size = abs(number(what, law, length))
            assert claimed == pytest.approx(by_hand, rel=2e-6, abs=1e-7 * size), (parameter, length)
        if name in PROMPTS:
            assert found.mean is None and found.cov is None
            continue
        moved = difference(lambda t: number(what, law + t * np.array([0.7, -0.4]), length), 0.0, 1.0, 2e-3)
        assert found.mean @ [0.7, -0.4] == pytest.approx(moved, rel=2e-6, abs=1e-7 * size)
        m, turn = law.mean, np.array([[0.3, 0.5], [0.5, -0.8]])
        values, E = np.linalg.eigh(law.tilted_cov([0.0, 0.0]))
        B = E @ ((E.T @ turn @ E) / np.add.outer(values, values)) @ E.T  # symmetric, B G + G B = turn

        def stretched(t):
            A = np.eye(2) + t * B
            return number(what, A @ law + (m - A @ m), length)

        by_hand = difference(stretched, 0.0, 1.0, 2e-3)
        assert np.sum(found.cov * turn) == pytest.approx(by_hand, rel=2e-6, abs=1e-7 * size), length


@pytest.mark.parametrize("length", [1, 20, 10**6, es.inf])
def test_the_gradients_of_any_law_are_those_of_formulas_for_gaussian_tokens(length):
    from esscher import law_gradients as any_law
    from esscher.gradients import _pulled

    head = es.Attention(U=0.5 * B[:2, :2], V=SMALL_HEAD["V"])
    mu, z = es.Gaussian(COV, [0.4, -0.2]), SMALL_HEAD["z"]
    subject = any_law.Subject(mu, head, z)
    pairs = [
        (es.expected_output(mu, head, z, length, cotangent=OUT)[1], any_law.output_slopes(subject, length, OUT)),
        (es.mean_square_error(mu, head, z, length, gradient=True)[1], any_law.error_slopes(subject, length)),
    ]
    if length != es.inf:
        slopes = es.universal(length, mu, head, z, gradient=True)[1]
        pairs += [(getattr(slopes, name), one) for name, one in zip(("H", "M1", "M2c", "free_energy", "entropy"), any_law.score_slopes(subject, length))]
    for formula, found in pairs:
        again = _pulled(head, z, found)
        for name in ("z", "U", "V", "mean", "cov", "score_scale"):
            expected = np.asarray(getattr(formula, name))
            scale = np.abs(expected).max()
            np.testing.assert_allclose(getattr(again, name), expected, rtol=1e-7, atol=1e-7 * scale + 1e-12, err_msg=name)


def test_a_query_of_zero_and_a_law_without_a_full_covariance():
    head, flat = es.Attention(U=np.eye(2)), es.Affine([0.0, 0.0], [[1.0], [2.0]], es.Rademacher(1))
    value, slope = es.expected_output(es.Sphere(2), head, [0.0, 0.0], 9, cotangent=[1.0, 0.0])
    by_hand = difference(lambda h: es.expected_output(es.Sphere(2), head, [h, 0.0], 9)[0], 0.0, 1.0, 1e-2)
    assert slope.z == pytest.approx([by_hand, 0.0], abs=1e-9) and not slope.U.any()
    slope = es.expected_output(flat, head, [0.3, 0.1], 9, cotangent=[1.0, 0.0])[1]
    assert slope.cov is None and slope.mean.tolist() == [1.0, 0.0]
    assert es.mean_square_error(es.Sphere(2), head, [1.0, 0.0], es.inf, gradient=True)[1].z.tolist() == [0.0, 0.0]


def test_what_has_no_gradient_says_so():
    with pytest.raises(es.CapabilityError, match="without a needle"):
        es.universal(10, es.Gaussian([[1.0]]), es.Attention(U=[[1.0]]), [1.0], gradient=True, needle=1.0)
    head = es.Attention(U=np.eye(2))
    with pytest.raises(es.CapabilityError, match="direct"):
        es.universal(10, Coin(2), head, [1.0, 0.0], gradient=True)
    with pytest.raises(es.CapabilityError, match="engine direct has no exact gradient"):
        es.mean_square_error(Coin(2), head, [1.0, 0.0], 10, gradient=True)
    with pytest.raises(es.CapabilityError, match="no exact gradient"):
        es.mean_square_error(es.Gaussian(np.eye(2)), head, [1.0, 0.0], 10, metric="grad_u", gradient=True)
    with pytest.raises(es.CapabilityError, match="several heads have no formula"):
        es.risk(TASK, [AT, AT], 10, gradient=True, engine="exact")


TASK = es.LinearRegressionTask(2, noise_variance=0.1)
AT = es.Readout(0.4 * np.eye(3) + 0.1 * RNG.normal(size=(3, 3)), np.array([0.1, -0.2, 0.7]))


@pytest.mark.parametrize("length, kind", [(5, "softmax"), (200, "softmax"), (20, "linear"), (es.inf, "softmax")])
def test_the_gradient_of_a_risk_function_is_its_own(length, kind):
    f = es.risk_function(TASK, length, kind=kind)
    value, slope = f.gradient(AT)
    dU, dr = RNG.normal(size=(3, 3)), RNG.normal(size=3)
    by_hand = difference(lambda x: f(es.Readout(AT.U + x * dU, AT.r + x * dr)), 0.0, 1.0, 1e-3)
    assert np.sum(slope.U * dU) + slope.r @ dr == pytest.approx(by_hand, rel=1e-8)
    assert f(AT) == value


def test_the_gradient_of_a_risk_has_an_error_that_holds():
    """Against the linear twin's closed form at infinity, and against differences of independent risks."""
    exact = es.risk(TASK, AT, es.inf, gradient=True)
    _, slope = es.linear_risk(TASK, AT, es.inf, gradient=True)
    np.testing.assert_allclose(exact.gradient.U, slope.U, rtol=1e-12, atol=1e-14)
    assert np.all(exact.std_error.U == 0) and exact.risk.std_error == 0
    found = es.risk(TASK, AT, 30, gradient=True)
    dU = RNG.normal(size=(3, 3))
    up, down = (es.risk(TASK, es.Readout(AT.U + h * dU, AT.r), 30, seed=5) for h in (0.01, -0.01))
    by_hand = (up.value - down.value) / 0.02
    error = np.sum(np.abs(found.std_error.U * dU)) + 100 * up.std_error + 1e-3 * abs(by_hand)  # and h^2
    assert abs(np.sum(found.gradient.U * dU) - by_hand) < 6 * error
    assert found.risk == es.risk(TASK, AT, 30)


@pytest.mark.parametrize("length, kind", [(7, "softmax"), (300, "softmax"), (7, "linear"), (es.inf, "softmax")])
def test_derivatives_in_the_task_and_in_the_temperature(length, kind):
    """Against differences of risks on other nodes, in every parameter, within the stated errors."""
    given = {"query_cov": np.array([[0.8, 0.2], [0.2, 1.1]]), "task_variance": 0.6, "noise_variance": 0.2}
    cov = np.array([[1.0, -0.3], [-0.3, 0.7]])
    ask = {"kind": kind, "seed": 11}

    def risk(prompt_cov=cov, scale=1.0, **changes):
        task = es.LinearRegressionTask(prompt_cov, **{**given, "query_noise": True, **changes})
        return es.risk(task, es.Readout(scale * AT.U, AT.r), length, **ask)

    task = es.LinearRegressionTask(cov, query_noise=True, **given)
    _, slope, error = es.risk(task, AT, length, kind=kind, gradient=True)
    turn = np.array([[0.5, 0.4], [0.4, -0.6]])
    directions = {
        "prompt_cov": (lambda h: risk(cov + h * turn), turn),
        "query_cov": (lambda h: risk(query_cov=given["query_cov"] + h * turn), turn),
        "noise_variance": (lambda h: risk(noise_variance=0.2 + h), 1.0),
        "task_variance": (lambda h: risk(task_variance=0.6 + h), 1.0),
        "score_scale": (lambda h: risk(scale=1.0 + h), 1.0),
    }
    h, factors = 0.04, {-2: 1, -1: -8, 1: 8, 2: -1}
    for name, (value, direction) in directions.items():
        found = [(factor / (12 * h), value(step * h)) for step, factor in factors.items()]
        by_hand = sum(factor * e.value for factor, e in found)
        spread = np.sqrt(sum((factor * e.std_error) ** 2 for factor, e in found))
        sure = float(np.sqrt(np.sum((getattr(error, name) * direction) ** 2)))
        claimed = float(np.sum(getattr(slope, name) * direction))
        assert abs(claimed - by_hand) < 6 * (spread + sure) + 1e-5 * abs(by_hand), name
        assert sure < 0.05 * abs(by_hand) or sure < 2e-3, name
    if kind == "linear" or length == es.inf:
        assert error.noise_variance == 0 and np.all(error.query_cov == 0)


@pytest.mark.parametrize("length, kind", [(10, "softmax"), (10, "linear"), (es.inf, "softmax")])
def test_several_heads_have_the_gradient_of_the_head_that_they_are_cut_from(length, kind):
    """U with r/3 and U with 2r/3 predict what (U, r) does, whose gradient has a formula."""
    one = es.risk(TASK, AT, length, kind=kind, gradient=True)
    cut = [es.Readout(AT.U, AT.r / 3), es.Readout(AT.U, 2 * AT.r / 3)]
    value, slope, error = es.risk(TASK, cut, length, kind=kind, gradient=True, draws=4000)
    assert slope.U.shape == (2, 3, 3) and slope.score_scale.shape == (2,)
    assert np.all(error.U[..., :2] > 0) and np.all(error.r > 0) and np.all(slope.U[..., 2] == 0)  # a query has no label
    for head, share in enumerate((1 / 3, 2 / 3)):
        gap = (slope.U[head] - share * one.gradient.U)[:, :2] / np.hypot(error.U[head], share * one.std_error.U)[:, :2]
        assert np.abs(gap).max() < 8  # eight repetitions: Student's law of 7 degrees
        gap = (slope.r[head] - one.gradient.r) / np.hypot(error.r[head], one.std_error.r)
        assert np.abs(gap).max() < 8
    assert abs(value.value - one.risk.value) < 6 * np.hypot(value.std_error, one.risk.std_error)


@pytest.mark.parametrize("features", ["gaussian", "rademacher"])
def test_the_risk_function_of_several_heads_is_smooth(features):
    f = es.risk_function(es.LinearRegressionTask(2, features=features), 10, draws=300)
    heads = [AT, es.Readout(-0.5 * AT.U, AT.r + 0.3)]
    value, slopes = f.gradient(heads)
    assert value == f(heads) and len(slopes) == 2
    dU, dr = RNG.normal(size=(3, 3)), RNG.normal(size=3)
    by_hand = difference(lambda x: f([heads[0], es.Readout(heads[1].U + x * dU, heads[1].r + x * dr)]), 0.0, 1.0, 3e-3)
    assert np.sum(slopes[1].U * dU) + slopes[1].r @ dr == pytest.approx(by_hand, rel=1e-4)
    with pytest.raises(es.DimensionError, match="expected D = 3"):
        f([AT, es.Readout(np.eye(2), np.ones(2))])
    with pytest.raises(es.ArgumentError, match="at least one head"):
        f([])


@pytest.mark.parametrize("length, kind", [(7, "softmax"), (7, "linear"), (es.inf, "softmax"), (es.inf, "linear")])
def test_several_heads_have_derivatives_in_the_task(length, kind):
    """U with r/3 and U with 2r/3 predict what (U, r) does, whose derivatives in the task have a formula."""
    given = {"query_cov": np.array([[0.8, 0.2], [0.2, 1.1]]), "task_variance": 0.6, "noise_variance": 0.2, "query_noise": True}
    task = es.LinearRegressionTask(np.array([[1.0, -0.3], [-0.3, 0.7]]), **given)
    one = es.risk(task, AT, length, kind=kind, gradient=True)
    cut = [es.Readout(AT.U, AT.r / 3), es.Readout(AT.U, 2 * AT.r / 3)]
    _, slope, error = es.risk(task, cut, length, kind=kind, gradient=True, draws=4000)
    for name in ("noise_variance", "task_variance", "prompt_cov", "query_cov"):
        by_formula, found, sure = (np.asarray(getattr(part, name)) for part in (one.gradient, slope, error))
        off = np.asarray(getattr(one.std_error, name))
        assert np.all(np.abs(found - by_formula) < 8 * np.hypot(sure, off) + 1e-12), name  # Student's law of 7 degrees
        assert np.linalg.norm(sure) < 0.1 * np.linalg.norm(by_formula), name
    assert np.array_equal(slope.prompt_cov, slope.prompt_cov.T) and np.array_equal(slope.query_cov, slope.query_cov.T)


@pytest.mark.parametrize("kind", ["softmax", "linear"])
def test_derivatives_in_the_task_are_those_of_the_same_prompts(kind):
    """Two heads that differ. The average itself is differentiated: prompts of another task from the same draws."""
    from esscher.task_slopes import task_slopes

    heads = [AT, es.Readout(-0.5 * AT.U.T, AT.r + 0.3)]
    cov, other = np.array([[1.0, -0.3], [-0.3, 0.7]]), np.array([[0.8, 0.2], [0.2, 1.1]])

    def average(features, cov=cov, other=other, s2=0.6):
        task = es.LinearRegressionTask(cov, query_cov=other, task_variance=s2, noise_variance=0.2, features=features)
        loss = 0.0
        for i in range(40):
            w, x, _, prompt = task.draw(es.Stream(3).split(i), 6)
            z = np.append(x, 0.0)
            of = [es.Attention(U=head.U) for head in heads]
            says = [T(prompt, z) if kind == "softmax" else T.linear(prompt, z) for T in of]
            loss += (sum(m @ head.r for m, head in zip(says, heads)) - w @ x) ** 2 / 2
        return loss / 40

    turn = np.array([[0.5, 0.4], [0.4, -0.6]])
    for features in ("gaussian", "rademacher", "sphere"):
        task = es.LinearRegressionTask(cov, query_cov=other, task_variance=0.6, noise_variance=0.2, features=features)
        _, variance, prompt, query = task_slopes(task, heads, kind, 6, 40, es.Stream(3))
        for claimed, value in [
            (variance, lambda h: average(features, s2=0.6 + h)),
            (np.sum(prompt * turn), lambda h: average(features, cov=cov + h * turn)),
            (np.sum(query * turn), lambda h: average(features, other=other + h * turn)),
        ]:
            assert claimed == pytest.approx(difference(value, 0.0, 1.0, 3e-3), rel=1e-7), features


def test_the_derivative_in_the_noise_holds_without_noise():
    """By Stein's identity; a difference of the averages of many prompts, whose noise has one sign and the other."""
    from esscher.task_slopes import task_slopes

    heads = [AT, es.Readout(-0.5 * AT.U.T, AT.r + 0.3)]
    task = es.LinearRegressionTask(2)
    found = [task_slopes(task, heads, "softmax", 6, 4000, es.Stream(5).split(i))[0] for i in range(8)]

    def risk(sig2, seed):
        return es.risk(es.LinearRegressionTask(2, noise_variance=sig2), heads, 6, draws=100_000, seed=seed).value

    h = 0.1  # the same seed, so that the draws of the noise only grow
    by_hand = [(-3 * risk(0.0, i) + 4 * risk(h, i) - risk(2 * h, i)) / (2 * h) for i in range(8)]
    gap, sure = np.mean(found) - np.mean(by_hand), np.hypot(np.std(found, ddof=1), np.std(by_hand, ddof=1)) / np.sqrt(8)
    assert abs(gap) < 8 * sure < 0.3 * np.mean(found)  # Student of 7 degrees


def test_where_derivatives_in_the_task_end():
    """Features that are not Gaussian have them by drawn prompts, singular covariances have nan, and long prompts none."""
    task = es.LinearRegressionTask(2, features="rademacher")
    slope = es.risk(task, AT, 10, gradient=True, draws=50).gradient
    assert slope.prompt_cov.shape == (2, 2) and np.isfinite(slope.noise_variance) and slope.U.shape == (3, 3)
    assert slope.score_scale == pytest.approx(np.sum(slope.U * AT.U))
    frame = slope.to_pandas()
    assert "score_scale" in frame
    assert es.risk(task, AT, es.inf, gradient=True, draws=50).gradient.prompt_cov is None
    long = es.risk(es.LinearRegressionTask(2), [AT, AT], 10**6, gradient=True, draws=64).gradient
    assert long.noise_variance is None and long.U.shape == (2, 3, 3)
    flat = es.LinearRegressionTask(2, query_cov=[[1.0, 0.0], [0.0, 0.0]], task_variance=0.0)
    slope = es.risk(flat, [AT, AT], 5, gradient=True, draws=64).gradient
    assert np.isnan(slope.task_variance) and np.isnan(slope.query_cov).all() and np.isfinite(slope.prompt_cov).all()


def test_own_tasks_have_gradients():
    class Slope:
        token_dim = 2

        def draw(self, stream):
            w, x = stream.normal(2)
            return es.Gaussian([[1.0, w], [w, w * w + 0.1]]), [x, 0.0], w * x

    f = es.risk_function(Slope(), 10, draws=50)
    at = es.balanced_start(Slope())
    value, slope = f.gradient(at)
    by_hand = difference(lambda x: f(es.Readout(at.U, at.r + x * np.array([0.0, 1.0]))), 0.0, 1.0, 1e-3)
    assert slope.r[1] == pytest.approx(by_hand, rel=1e-7)


def test_scipy_minimises_over_the_whole_layer():
    """R_L over all of (U, r) by L-BFGS with the exact gradient, below where the flow of linear attention ends."""
    optimize = pytest.importorskip("scipy.optimize")
    f, D = es.risk_function(TASK, 30), 3

    def fun(x):
        value, slope = f.gradient(es.Readout(x[: D * D].reshape(D, D), x[D * D :]))
        return value, np.concatenate([slope.U.ravel(), slope.r])

    start = es.block_optimum(TASK, 30)
    found = optimize.minimize(fun, np.concatenate([start.U.ravel(), start.r]), jac=True, method="L-BFGS-B", options={"maxiter": 40})
    assert found.fun < f(start) and np.linalg.norm(found.jac) < 1e-2
    at = es.Readout(found.x[: D * D].reshape(D, D), found.x[D * D :])
    fresh = es.risk(TASK, at, 30)  # on nodes that the optimiser did not see
    assert es.bayes_risk(TASK, 30).value < fresh.value < es.risk(TASK, start, 30).value
