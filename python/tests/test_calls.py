"""What every call of the package has in common: keywords, counts, lengths, seeds, names."""

import inspect

import numpy as np
import pytest

import esscher as es

TASK = es.LinearRegressionTask(2)
AT = es.balanced_start(TASK)
MU, HEAD = es.Gaussian(np.eye(2)), es.Attention(U=np.eye(2))
FUNCTIONS = [name for name in es.__all__ if inspect.isfunction(getattr(es, name))]
# Their one argument is taken by position, or there is none.
PLAIN = {"commit", "load", "measure", "preset", "presets", "set_progress", "set_thread_count", "thread_count"}


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - PLAIN))
def test_an_unknown_keyword_is_answered_with_those_that_exist(name):
    with pytest.raises(TypeError, match=rf"{name}\(\) has no argument 'nonsense'; it takes "):
        getattr(es, name)(nonsense=1)


def test_functions_of_torch_do_the_same():
    et = pytest.importorskip("esscher.torch")
    for name in et.__all__:
        if inspect.isfunction(getattr(et, name)) and name != "risk":  # which hands its options to risk_function
            with pytest.raises(TypeError, match=rf"{name}\(\) has no argument 'nonsense'; it takes "):
                getattr(et, name)(nonsense=1)
    with pytest.raises(TypeError, match="did you mean 'batch'"):
        et.Trainer(None, TASK, 10, batch_size=3)
    with pytest.raises(es.ArgumentError, match="Trainer: length is 20.5, expected an integer"):
        et.Trainer(None, TASK, 20.5)
    with pytest.raises(es.CapabilityError, match="softmax heads and the squared loss"):
        et.Trainer(None, es.PoolTask(np.eye(2)), 20, kind="linear")
    assert dir(et) == sorted(et.__all__)
    with pytest.raises(TypeError, match="did you mean 'draws'"):
        et.risk(TASK, None, None, 10, samples=1)


@pytest.mark.parametrize(
    "call, word, meant",
    [
        (es.linear_risk, "grad", "gradient"),
        (es.bayes_risk, "samples", "replicates"),
        (es.risk, "samples", "draws"),
        (es.block_optimum, "L", "length"),
        (es.check, "n", "samples"),
        (es.power_covariance, "d", "dim"),
        (es.asymptotic_constant, "query", "z"),
        (es.heads, "q", "Q"),
        (es.Layer, "kind", "kinds"),
        (es.expected_output, "gradient", "cotangent"),
        (es.train, "lr", "learning_rate"),
        (es.Sphere, "R", "radius"),
        (es.Attention, "temperature", "score_scale"),
    ],
)
def test_words_of_other_libraries(call, word, meant):
    with pytest.raises(TypeError, match=f"did you mean '{meant}'"):
        call(**{word: 1})


LENGTHS = {
    "risk": lambda L: es.risk(TASK, AT, L, kind="linear"),
    "train": lambda L: es.train(TASK, L, 2),
    "concentration": lambda L: es.concentration(MU, HEAD, MU, [L], metrics="output"),
    "mean_square_error": lambda L: es.mean_square_error(MU, HEAD, [1.0, 0.0], L),
    "linear_risk": lambda L: es.linear_risk(TASK, AT, L),
    "bayes_risk": lambda L: es.bayes_risk(TASK, L, replicates=2),
    "universal": lambda L: es.universal(L, 1.0),
    "flow": lambda L: es.flow(TASK, length=L, kind="linear", t_end=0.01),
    "block_optimum": lambda L: es.block_optimum(TASK, L),
}


def test_lengths_inside_a_graph():
    torch = pytest.importorskip("torch")
    import esscher.torch as et

    z, U = torch.ones(1, 2), torch.eye(2)
    for f in (et.mean_square_error, et.expected_output):
        assert torch.equal(f(MU, z, 100.0, U=U), f(MU, z, np.int64(100), U=U))
        for wrong in (31.6, "100"):
            with pytest.raises(es.ArgumentError, match=f"{f.__name__}: length is {wrong!r}, expected an integer"):
                f(MU, z, wrong, U=U)
    with pytest.raises(es.ArgumentError, match="universal: length is 10.5"):
        et.universal(10.5, torch.tensor(1.0))


def test_scores_of_scaling_are_named():
    assert es.scaling(np.float64(2.0), [100], draws=0).rows[0].L == 100
    for wrong in (np.ones(5), [1.0, 2.0], "two", (MU, HEAD)):
        with pytest.raises(es.ArgumentError, match=r"scaling: scores is a \w+, expected the deviation of Gaussian scores, or"):
            es.scaling(wrong, [100])


def test_check_refuses_tasks_that_are_ours():
    with pytest.raises(es.ArgumentError, match="DenoisingTask has no formulas of yours"):
        es.check(es.DenoisingTask([[1.0], [-1.0]]))


@pytest.mark.parametrize("layout, axes", [("bhnd", (0, 1, 2, 3)), ("bnhd", (0, 2, 1, 3))])
def test_heads_of_a_batch(layout, axes):
    Q, K = np.random.default_rng(0).normal(size=(2, 2, 4, 60, 3))  # two prompts of four heads
    stacked = es.heads(Q.reshape(8, 60, 3), K.reshape(8, 60, 3), K.reshape(8, 60, 3), components=[])
    shared = K[:, ::2]  # two heads share their keys
    batch = es.heads(*(x.transpose(axes) for x in (Q, K, K)), layout=layout, components=[])
    assert [row["tau2"] for row in batch] == [row["tau2"] for row in stacked]
    groups = es.heads(*(x.transpose(axes) for x in (Q, shared, shared)), layout=layout, components=[])
    assert [row["tau2"] for row in groups][::2] == [row["tau2"] for row in stacked][::2]
    assert groups[5]["tau2"] == es.heads(Q[1, 1], K[1, 0], K[1, 0], components=[])[0]["tau2"]


def test_four_axes_without_a_layout_name_those_that_there_are():
    X = np.ones((1, 2, 6, 3))
    with pytest.raises(es.DimensionError, match=r"Q has shape \[1, 2, 6, 3\] and layout is None, expected 'bhnd' or 'bnhd'"):
        es.heads(X, X, X)


@pytest.mark.parametrize("name", LENGTHS)
def test_lengths(name):
    ask = LENGTHS[name]
    one = repr(ask(10))
    for same in (10.0, np.int32(10), np.float64(10), np.logspace(1, 1, 1)[0]):
        assert repr(ask(same)) == one
    for wrong in (31.6, "100", True, -1, -1.0, float("nan"), None):
        with pytest.raises(es.ArgumentError, match="expected"):
            ask(wrong)


@pytest.mark.parametrize("law", [es.Rademacher, es.Uniform, es.Laplace, es.Sphere, es.Ball])
def test_dimensions(law):
    assert law(3.0).dim == law(np.int64(3)).dim == 3
    with pytest.raises(es.ArgumentError, match=f"{law.__name__.lower()}: dim is 2.5, expected an integer"):
        law(2.5)


def test_seeds():
    one = es.train(TASK, 10, 5, seed=3)
    for same in (3.0, np.int64(3)):
        assert np.array_equal(es.train(TASK, 10, 5, seed=same).heads[0].U, one.heads[0].U)
    for wrong in (es.Stream(3), 0.5, "3", -1, 2**64):
        with pytest.raises(es.ArgumentError, match="train: seed is"):
            es.train(TASK, 10, 5, seed=wrong)
    with pytest.raises(es.ArgumentError, match="seed is 0.5"):
        es.risk(TASK, AT, 10, seed=0.5)


def test_a_single_metric_is_a_list_of_one():
    found = es.concentration(MU, HEAD, MU, [10], metrics="output")
    assert list(found.rows["metric"]) == ["output"]


def test_short_trainings_have_a_curve():
    found = es.train(TASK, 10, 7)
    assert [p.last for p in found.curve] == [7] and "loss=" in repr(found)
    empty = es.train(TASK, 10, 7, curve_block=100)
    assert empty.curve == [] and dict(empty.to_xarray().sizes) == {"index": 0}


def test_only_public_names_are_listed():
    assert dir(es) == sorted(es.__all__)
    assert inspect.ismodule(es.icl)  # there, and not advertised


def test_changes_of_a_preset_speak_of_changes():
    with pytest.raises(es.ConfigError, match=r"changes: train.step=3: unknown key train.step, did you mean steps\?"):
        es.preset("zfb-shifts").run({"train.step": 3})


def test_a_risk_function_prints_how_it_was_made():
    f = es.risk_function(TASK, 10)
    assert repr(eval(repr(f), vars(es))) == repr(f) == "risk_function(LinearRegressionTask(cov=2), 10, kind='softmax')"
