"""Results: frames, grids, pictures, files, one line."""

import copy
import json
import pickle

import numpy as np
import pytest
from alike import same

import esscher as es

I = np.eye(2)
MU, HEAD = es.Gaussian(I), es.Attention(U=0.5 * I)
TASK = es.LinearRegressionTask(2, noise_variance=0.1)
X = np.random.default_rng(0).normal(size=(2, 200, 4))
DENOISING, LAYER = es.DenoisingTask([[1.0], [-1.0]], gamma=0.5, xi=0.5), es.Layer(np.array([[2.0]]), np.array([[0.5]]))

RESULTS = {
    "concentration": es.concentration(MU, HEAD, MU, [10, 100, 1000]),
    "slow": es.concentration(es.Gaussian([[1.0]]), es.Attention(U=[[0.9]]), es.Gaussian([[1.0]]), [10, 100]),
    "length": es.shortest_length(MU, HEAD, MU, 0.01),
    "flow": es.flow(TASK, t_end=0.5),
    "compare": es.compare(TASK, [10, 100], kinds=["linear"], parametrisation="block", eps=[0.1]),
    "train": es.train(TASK, 20, 200, learning_rate=0.05),
    "heads": es.heads(X, X, X, score_scale=0.1, components=[2]),
    "estimate": es.mean_square_error(es.Sphere(2), HEAD, [1.0, 0.0], 20, replicates=8),
    "sweep": es.sweep(lambda L, tau: es.universal(L, tau), {"L": [10, 100], "tau": [0.5, 1.0, 2.0]}),
    "check": es.check(es.Rademacher(2)),
    "claims": es.preset("zfb-shifts").check(),
    "kept": es.kept_factors(1.0, "ess", train=100, lengths=[100, 1000]),
    "scaling": es.scaling(1.0, [10, 100]),
    "token law": es.preset("bruno-2605.08505").run({"tokens.lengths": [100, 10000]}),
    "moments": es.output_moments(MU, HEAD, [20, 40, 80], replicates=4),
    "worst": es.sup_error(MU, es.Attention(U=0.5 * I), 1.0, [20, 80], replicates=4),
    "universal": es.universal(100, 1.0),
    "prompt gradients": es.mean_square_error(MU, HEAD, [1.0, 0.0], 20, gradient=True)[1],
    "risk gradient": es.risk(TASK, es.balanced_start(TASK), 20, gradient=True),
    "risk slopes": es.risk(TASK, es.balanced_start(TASK), 20, gradient=True).gradient,
    "several heads": es.risk(TASK, [es.balanced_start(TASK)] * 2, 20, gradient=True, draws=64),
    "attended": es.attend(MU, HEAD, [1.0, 0.0], 20),
    "score functions": es.universal(20, MU, HEAD, [1.0, 0.0]),
    "score gradients": es.universal(20, MU, HEAD, [1.0, 0.0], gradient=True)[1],
    "risk of factors": es.risk(TASK, es.Attention(K=0.3 * np.eye(3), Q=np.eye(3)), 20, gradient=True),
    "optimum": es.optimum(DENOISING, [20, es.inf], restarts=1, draws=200),
    "references": es.reference_risks(DENOISING, 20, draws=200),
    "layer gradient": es.risk(DENOISING, LAYER, 20, gradient=True),
    "risk table": es.risk_table(TASK, {L: es.block_optimum(TASK, L) for L in (5, 50)}, [5, 50, es.inf], kind="linear"),
    "risks": es.preset("gabet-denoising-one").run({"sweep.lengths": [20, 40, "inf"]}),
    "gradients": HEAD.vjp(MU, [1.0, 0.0], [1.0, 0.0]),
    "head gradients": es.MultiHead([HEAD, HEAD], np.ones((2, 4))).vjp(MU, [1.0, 0.0], [1.0, 0.0]),
}
# They compare by what they hold.
VALUES = (
    "estimate", "universal", "risk gradient", "several heads", "risk of factors", "score functions", "layer gradient", "gradients",
    "head gradients",
)
PICTURES = [
    "concentration", "slow", "flow", "compare", "train", "heads", "sweep", "moments", "optimum", "risk table", "risks", "kept", "scaling",
    "token law", "worst",
]


@pytest.mark.parametrize("name", RESULTS)
def test_results_come_back_from_files_pickles_and_copies(name, tmp_path):
    result = RESULTS[name]
    result.save(tmp_path / "result.json")
    for again in (es.load(tmp_path / "result.json"), pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
        assert type(again) is type(result) and repr(again) == repr(result)
        assert same(tuple(again) if isinstance(again, tuple) else vars(again), tuple(result) if isinstance(result, tuple) else vars(result))
    json.loads((tmp_path / "result.json").read_text(), parse_constant=lambda text: pytest.fail(f"{text} is no JSON"))


def test_no_kind_of_result_is_left_out():
    from esscher.results import Result

    kinds = {name for name, kind in Result._kinds.items() if not kind.__module__.startswith("esscher.torch")}
    assert kinds <= {type(result).__name__ for result in RESULTS.values()}


@pytest.mark.parametrize("name", RESULTS)
def test_one_line_that_answers(name):
    text = repr(RESULTS[name])
    assert "\n" not in text and len(text) < 250 and type(RESULTS[name]).__name__ in text


@pytest.mark.parametrize("name", [n for n in RESULTS if n not in VALUES])
def test_results_are_frozen_and_compare_by_identity(name):
    result = RESULTS[name]
    assert result == result and result != copy.deepcopy(result)
    with pytest.raises(AttributeError):
        result.rows = []


@pytest.mark.parametrize("name", VALUES)
def test_values_are_frozen_too(name):
    for field in ("value", "risk", "another"):
        with pytest.raises(AttributeError, match="cannot assign"):
            setattr(RESULTS[name], field, 0.0)


@pytest.mark.parametrize("name", RESULTS)
def test_frames(name):
    frame = RESULTS[name].to_pandas()
    assert len(frame) >= 1 and "ci" not in frame.columns


@pytest.mark.parametrize("name", RESULTS)
def test_every_number_of_every_result_is_in_its_grid(name):
    """Single numbers, arrays over axes of their own, and parts by name, at the place of their row."""
    result = RESULTS[name]
    rows, axes, grid = result._grid(), [axis for axis in result._axes() if axis in result._grid().columns], result.to_xarray()
    assert set(grid.dims) >= set(axes) and not any(grid[column].dtype == object for column in grid if is_wide(rows, column))
    compared = 0
    for i, row in enumerate(rows):
        at = grid.sel({axis: row[axis] for axis in axes}) if axes else grid if len(rows) == 1 else grid.isel(index=i)
        for column, value in row.items():
            if column in axes or column == "ci" or value is None:
                continue
            if isinstance(value, (bool, int, float, np.ndarray)) or is_wide(rows, column):
                expected = list(value.values()) if isinstance(value, dict) else value
                np.testing.assert_array_equal(np.asarray(at[column], dtype=float), np.asarray(expected, dtype=float))
                compared += 1
    assert compared >= 1


def is_wide(rows, column):
    """Whether all values of a column are arrays of one shape."""
    shapes = {np.shape(row.get(column)) for row in rows if row.get(column) is not None}
    values = [row.get(column) for row in rows if row.get(column) is not None]
    return len(shapes) == 1 and values and all(isinstance(v, np.ndarray) for v in values)


def test_arrays_of_results_have_axes_with_names():
    D = 3
    for name, dims in {
        "score gradients": {"U": ("function", "token", "query"), "cov": ("function", "token", "token_2"), "z": ("function", "query")},
        "prompt gradients": {"U": ("token", "query"), "V": ("output", "token"), "score_scale": ()},
        "risk gradient": {"U": ("what", "token", "query"), "r": ("what", "token"), "prompt_cov": ("what", "feature", "feature_2")},
        "several heads": {"U": ("what", "head", "token", "query"), "score_scale": ("what", "head")},
        "risk of factors": {"K": ("what", "score", "token"), "Q": ("what", "score", "query")},
        "head gradients": {"U": ("head", "token", "query"), "z": ("query",), "O": ("output", "value")},
        "attended": {"weights": ("part",), "output": ("coordinate",)},
        "flow": {"theta": ("t", "parameter"), "risk": ("t",)},
        "optimum": {"U": ("L", "token", "query")},
    }.items():
        grid = RESULTS[name].to_xarray()
        assert {column: grid[column].dims for column in dims} == dims, name
    assert RESULTS["several heads"].to_xarray().sizes["token"] == D
    assert "K" not in RESULTS["prompt gradients"].to_xarray()  # a head that was given by U has none
    attended = RESULTS["attended"]
    assert float(attended.to_xarray()["weights"].sel(part="gaussian")) == attended.weights["gaussian"]


def test_rows_that_no_axis_tells_apart_are_refused():
    twice = es.Sweep(["n"], es.Rows([{"n": 1, "value": 2.0}, {"n": 1, "value": 3.0}]))
    with pytest.raises(es.ArgumentError, match="two rows have the same n"):
        twice.to_xarray()


@pytest.mark.parametrize("name", RESULTS)
def test_every_result_shows_itself(name):
    """A picture in every form, or none in any: then a table where there are rows, and an error that says so."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    result = RESULTS[name]
    bundle = result._repr_mimebundle_()
    assert bundle["text/plain"] == repr(result) and bundle["text/html"]
    if result.chart():
        assert name in PICTURES and result.plot(Figure().subplots()).lines and "<svg" in bundle["image/svg+xml"]
        return
    assert name not in PICTURES and "image/svg+xml" not in bundle
    assert ("<table>" in bundle["text/html"]) == (len(result.to_pandas()) > 1)
    with pytest.raises(TypeError, match=f"{type(result).__name__} has no picture; to_pandas"):
        result.plot()


@pytest.mark.parametrize("name", VALUES)
def test_results_that_compare_by_what_they_hold(name):
    """One truth value, also where arrays are inside."""
    result = RESULTS[name]
    assert (result == copy.deepcopy(result)) in (True, False) and (result != copy.deepcopy(result)) in (True, False)
    assert result == result and result != RESULTS["flow"] and not (result == RESULTS["flow"])


def test_tuples_of_arrays_compare_by_what_they_hold():
    at = es.balanced_start(TASK)
    assert at == copy.deepcopy(at) and not (at != copy.deepcopy(at)) and at != es.Readout(at.U, at.r + 1)
    assert LAYER == copy.deepcopy(LAYER) and LAYER != es.Layer(LAYER.U + 1, LAYER.V)
    draw = TASK.draw(0, 5)
    assert draw == TASK.draw(0, 5) and draw != TASK.draw(1, 5) and draw != TASK.draw(0, 6)
    assert RESULTS["layer gradient"] == copy.deepcopy(RESULTS["layer gradient"])
    assert RESULTS["gradients"] == copy.deepcopy(RESULTS["gradients"]) and RESULTS["gradients"] != RESULTS["head gradients"]
    assert RESULTS["head gradients"] == copy.deepcopy(RESULTS["head gradients"])


def test_results_without_a_picture_show_their_rows_in_a_notebook():
    page = RESULTS["claims"]._repr_mimebundle_()["text/html"]
    assert page.count("<tr>") == 1 + len(RESULTS["claims"].rows) and "multiplies the risk by 4" in page
    assert "<table>" not in RESULTS["estimate"]._repr_mimebundle_()["text/html"]
    with pytest.raises(TypeError, match="Claims has no picture"):
        RESULTS["claims"].plot()


def test_the_frame_has_the_numbers():
    found = RESULTS["concentration"]
    frame = found.to_pandas()
    assert list(frame["value"]) == [row["value"] for row in found.rows] and list(frame["ci_low"]) == [row.ci[0] for row in found.rows]
    assert RESULTS["slow"].to_pandas()["asymptotic"].iloc[0] == np.inf
    train = RESULTS["train"].to_pandas()
    assert list(train["loss"]) == [p.loss for p in RESULTS["train"].curve]


def test_grids():
    grid = RESULTS["concentration"].to_xarray()
    assert grid.dims == {"metric": 3, "L": 3}
    row = RESULTS["concentration"].curve("grad_u")[1]
    assert float(grid["value"].sel(metric="grad_u", L=100)) == row.value
    sweep = RESULTS["sweep"].to_xarray()
    assert sweep["M1"].shape == (2, 3) and float(sweep["M1"].sel(L=100, tau=2.0)) == es.universal(100, 2.0).M1
    assert RESULTS["flow"].to_xarray().dims == {"t": len(RESULTS["flow"].t), "parameter": 12}
    twins = RESULTS["compare"].to_xarray()
    assert float(twins["limiting_risk"].sel(model="linear", L=100)) == RESULTS["compare"].rows[2].limiting_risk


@pytest.mark.parametrize("name", PICTURES)
def test_pictures(name):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    result = RESULTS[name]
    ax = Figure().subplots()
    assert result.plot(ax) is ax and ax.get_xlabel() and ax.get_ylabel() and ax.get_title()
    drawn = sum(len(line.get_xdata()) for line in ax.lines)
    assert drawn == len(result.chart()["data"]["values"]) > 0
    bundle = result._repr_mimebundle_()
    assert bundle["text/plain"] == repr(result) and "<svg" in bundle["image/svg+xml"]
    assert bundle["text/html"].startswith("<iframe srcdoc=")
    import matplotlib.pyplot as plt

    assert result.plot() is plt.gca()
    plt.close("all")


def test_a_plot_speaks_in_words_and_orders_lengths() -> None:
    """Names of columns are not shown, longer prompts are darker, and what is predicted is dashed."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    from esscher.results import Curve, Curves

    labels = ["L = 10", "L = 100", "limit", "grad_u", "bayes"]
    ax = Figure().add_subplot()
    Curves("t", "t", "lin_c", [Curve(label, [1, 2], [1, 2]) for label in labels], group="law").draw(ax)
    assert ax.get_xlabel() == "training time t" and ax.get_ylabel() == "error of the Gaussian limit"
    assert [line.get_label() for line in ax.lines][2:] == ["limit", "gradient in U", "Bayes"]
    short, long, limit = ax.lines[:3]
    assert sum(long.get_color()) < sum(short.get_color())
    assert limit.get_linestyle() == "--" and short.get_linestyle() == "-"


def test_a_single_answer_has_no_picture():
    assert "text/html" in RESULTS["length"]._repr_mimebundle_()
    with pytest.raises(TypeError, match="no picture"):
        RESULTS["length"].plot()


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "3", '{"type": "Flow"}', '{"type": "os.system", "fields": {}}', '{"type":"Flow","fields":{"dict":{}}}',
     '{"type":"Estimate","fields":{"dict":{"value":{"array":[1],"shape":[2],"dtype":"float64"}}}}',
     '{"type":"Estimate","fields":{"tuple":"nobody","values":[]}}', "[" * 100000],
)
def test_other_files_are_refused_by_name(text, tmp_path):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(es.FileError, match="x.json"):
        es.load(tmp_path / "x.json")


def test_missing_files(tmp_path):
    with pytest.raises(es.FileError, match="nothing.json"):
        es.load(tmp_path / "nothing.json")
    with pytest.raises(es.FileError, match="no/folder"):
        RESULTS["flow"].save("no/folder/x.json")


def test_a_study_too_short_for_a_rate_tells_its_last_row():
    found = es.concentration(MU, HEAD, MU, [10, 100], metrics=["output"])
    assert repr(found).startswith(f"Concentration(output {found.rows[-1].value:.4g} at L = 100; ")
