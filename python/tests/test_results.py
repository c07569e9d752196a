"""Results: frames, grids, pictures, files, one line."""

import copy
import html
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
CURVES = [
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
    """A picture with words on it in every form: for matplotlib, as a specification, in a notebook."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    result = RESULTS[name]
    ax = Figure().subplots()
    assert result.plot(ax) is ax and ax.get_title() and ax.get_xlabel() and ax.get_ylabel()
    assert ax.lines or ax.patches or ax.images
    chart = result.chart()
    assert chart["data"]["values"] and chart["usermeta"]["esscher"]["kind"] in ("curve", "scatter", "bar", "heatmap")
    json.dumps(chart, allow_nan=False)
    bundle = result._repr_mimebundle_()
    assert bundle["text/plain"] == repr(result) and "<svg" in bundle["image/svg+xml"]
    assert bundle["text/html"].startswith("<iframe srcdoc=") and f"<p>{html.escape(repr(result))}</p>" in bundle["text/html"]


def test_every_kind_of_result_has_a_picture_of_its_own():
    """Also those that need a package: nothing falls back to the base."""
    pytest.importorskip("torch")
    import esscher.torch  # noqa: F401
    from esscher.results import Result

    assert not [name for name, kind in Result._kinds.items() if kind._picture is Result._picture]


def bars_of(result):
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    result.plot(ax)
    return dict(zip([label.get_text() for label in ax.get_xticklabels()], [patch.get_height() for patch in ax.patches])), ax


def test_bars_are_the_numbers():
    attended, seen = bars_of(RESULTS["attended"]), RESULTS["attended"]
    assert attended[0] == seen.weights and attended[1].get_ylabel() == "expected weight"
    functions = RESULTS["score functions"]
    assert bars_of(functions)[0] == {name: getattr(functions, name) for name in ("H", "M1", "M2c", "free_energy", "entropy")}
    u = RESULTS["universal"]
    assert bars_of(u)[0] == {name: getattr(u, name) for name in ("M1", "M2c", "H", "M1_ratio", "M2c_ratio")}
    e = es.mean_square_error(es.Sphere(2), HEAD, [1.0, 0.0], 20, replicates=8, engine="direct")
    heights, ax = bars_of(e)
    assert heights == {e.engine: e.value}
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [e.value - 1.96 * e.std_error, e.value + 1.96 * e.std_error], rtol=1e-12)
    (row,) = e.chart()["data"]["values"]
    assert row["value"] == e.value and row["low"] == pytest.approx(e.value - 1.96 * e.std_error)
    found = RESULTS["references"]
    assert bars_of(found)[0] == {name: getattr(found, name).value for name in ("bayes", "affine", "linear")}
    # What is infinite has no bar, and an exact number no interval.
    exact = es.Estimate(2.0, 0.0, 0, "exact")
    assert bars_of(exact)[1].lines[0].get_ydata() == [0.0, 0.0] and len(bars_of(exact)[1].lines) == 1
    assert list(bars_of(u._replace(M2c=np.inf))[0]) == ["M1", "H", "M1_ratio", "M2c_ratio"]


def test_tiles_are_the_entries():
    from matplotlib.figure import Figure

    slope = RESULTS["prompt gradients"]
    rows = slope.chart()["data"]["values"]
    for name in ("z", "U", "V", "mean", "cov", "score_scale"):
        values = np.atleast_2d(getattr(slope, name))
        panel = {(row["row"], row["column"]): row for row in rows if row["parameter"].startswith(f"{name}, up to")}
        assert len(panel) == values.size, name
        for at, row in panel.items():
            assert row["entry"] == values[at] and abs(row["share"]) <= 1
        assert max(abs(row["share"]) for row in panel.values()) == (1.0 if values.any() else 0.0)
    ax = Figure().subplots()
    slope.plot(ax)
    labels = [text.get_text() for text in ax.texts]
    assert labels[1] == f"U\nup to {np.abs(slope.U).max():.3g}" and len(ax.images) == len(labels) == 6
    np.testing.assert_allclose(ax.images[1].get_array(), slope.U / np.abs(slope.U).max())
    heads = [text for text in {row["parameter"] for row in RESULTS["head gradients"].chart()["data"]["values"]}]
    assert sorted(text.split(",")[0] for text in heads) == ["O", "U of head 0", "U of head 1", "V of head 0", "V of head 1", "z"]
    several = {row["parameter"].split(",")[0] for row in RESULTS["several heads"].chart()["data"]["values"]}
    assert {"U of head 0", "U of head 1", "r", "noise_variance", "prompt_cov"} <= several


def test_tiles_of_large_matrices_keep_their_largest_entries():
    from esscher.pictures import TILES, Tiles

    values = np.random.default_rng(0).normal(size=(200, 3 * TILES))
    values[17, 5] = -50.0
    rows = Tiles.of("t", [("A", values), ("B", None)]).spec()["data"]["values"]
    assert len(rows) == TILES**2 and min(row["entry"] for row in rows) == -50.0 and {row["parameter"] for row in rows} == {"A, up to 50"}
    blocks = {(row["row"], row["column"]): row["entry"] for row in rows}
    assert blocks[5, 1] == -50.0  # 200 rows in 64 blocks: row 17 is in the sixth
    first = values[:3, :3]
    assert blocks[0, 0] == first.ravel()[np.argmax(np.abs(first))]


def test_the_picture_of_a_length_has_the_answer_and_the_bound():
    from matplotlib.figure import Figure

    answer = RESULTS["length"]
    ax = Figure().subplots()
    answer.plot(ax)
    bound, predicted, D = ax.lines
    assert {answer.length, answer.length - 1} <= set(D.get_xdata()) and answer.value in D.get_ydata()
    assert set(bound.get_ydata()) == {0.01} and predicted.get_linestyle() == "--"
    at = np.argmin(np.abs(predicted.get_xdata() - answer.details["clt"]))
    assert predicted.get_ydata()[at] == pytest.approx(0.01 * answer.details["clt"] / predicted.get_xdata()[at])
    # No limit, and no length that is enough, have pictures too.
    head = es.Attention(U=[[1.0]])
    for never in (es.shortest_length(es.Laplace(1, 1.0), head, [[2.0]], 0.01),
                  es.shortest_length(es.Gaussian([[1.0]]), es.Attention(U=[[40.0]]), [[1.0]], 1e-3)):
        assert never.length == es.inf
        ax = Figure().subplots()
        never.plot(ax)
        assert ax.get_title() == "no length is enough" and len(ax.lines) >= 2


def test_judged_results_show_how_far_they_are():
    from matplotlib.figure import Figure

    claims = RESULTS["claims"]
    points = [row for row in claims.chart()["data"]["values"] if row["relation"] != "expected"]
    judged = [row for row in claims.rows if row.verdict != "no number"]
    assert sorted(row["found / expected"] for row in points) == pytest.approx(sorted(row.found / row.expected for row in judged))

    class Wrong:
        dim = 1

        def log_mgf(self, a):
            return float(a @ a) / 2

        def tilted_mean(self, a):
            return 3 * a

        def tilted_cov(self, a):
            return np.eye(1)

        def sample(self, stream, n):
            return stream.normal(n)[:, None]

    check = es.check(Wrong())
    ax = Figure().subplots()
    check.plot(ax)
    agrees, wrong = ax.lines
    assert max(agrees.get_ydata()) <= 1 < min(wrong.get_ydata()) and len(wrong.get_ydata()) == len(check.wrong)
    page = check._repr_mimebundle_()["text/html"]
    assert page.count("<tr>") == 1 + len(check.wrong) and "a factor of 3" in page


@pytest.mark.parametrize("function, kind", [
    (lambda name: {"a": 1.0, "b": 2.0}[name], "bar"),
    (lambda name: f"the {name}", "bar"),
    (lambda name: np.arange(4.0) * (name == "b"), "heatmap"),
    (lambda name: np.arange(1.0 + (name == "b")), "bar"),
])
def test_sweeps_over_names_and_of_other_things_than_numbers(function, kind):
    found = es.sweep(function, {"name": ["a", "b"]})
    chart = found.chart()
    assert chart["usermeta"]["esscher"]["kind"] == kind and chart["data"]["values"]
    found._repr_mimebundle_()


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


def test_verdicts_stand_below_their_picture():
    page = RESULTS["claims"]._repr_mimebundle_()["text/html"]
    assert page.count("<tr>") == 1 + len(RESULTS["claims"].rows) and "multiplies the risk by 4" in page
    assert "<table>" not in RESULTS["estimate"]._repr_mimebundle_()["text/html"]


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


@pytest.mark.parametrize("name", CURVES)
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
