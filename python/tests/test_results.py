"""Results: frames, grids, pictures, files, one line; runs, resuming, progress; sweeps; one vocabulary."""

import copy
import dataclasses
import json
import os
import pickle
import signal

import numpy as np
import pytest

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


def same(a, b):
    """Equality that looks inside: arrays bit by bit, NaN equal to itself."""
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if dataclasses.is_dataclass(a):
        return type(a) is type(b) and same(vars(a), vars(b))
    if isinstance(a, dict):
        return type(a) is type(b) and list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple, es.Rows)):
        return type(a) is type(b) and len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    return type(a) is type(b) and (a == b or (a != a and b != b))


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


# ---- runs


def calls(out):
    return {
        "concentration": lambda: es.concentration(es.Sphere(2), HEAD, MU, [5, 10], metrics=["output"], query_count=8, replicates=4, out=out),
        "icl flow": lambda: es.flow(TASK, t_end=0.5, out=out),
        "icl compare": lambda: es.compare(TASK, [10], kinds=["linear"], parametrisation="block", out=out),
        "icl train": lambda: es.train(TASK, 20, 60, curve_block=10, checkpoints=3, out=out),
        "heads": lambda: es.heads(X, X, X, score_scale=0.1, components=[2], out=out),
        "scaling": lambda: es.scaling((MU, HEAD, [1.0, 0.0]), [10, 1e4], schedule="sqrt-log", needle=2.0, draws=11, out=out),
        "icl optimum": lambda: es.optimum(DENOISING, [20, es.inf], restarts=1, draws=100, out=out),
    }


@pytest.mark.parametrize("verb", list(calls(None)))
def test_out_makes_a_run_with_the_same_numbers(verb, tmp_path):
    here = calls(None)[verb]()
    there = calls(tmp_path / "run")[verb]()
    skipped = {"theta", "conserved_drift", "energy_defect"} if verb == "icl flow" else set()
    for name, value in vars(here).items():
        assert name in skipped or same(value, vars(there)[name]), name
    run = es.load(tmp_path / "run")
    assert run.verb == verb and run.progress[0] == run.progress[1] > 0
    assert (tmp_path / "run" / "report.html").read_text().lstrip().lower().startswith("<!doctype html>")
    assert "[python]" in run.config
    assert sum(session["seconds"] for session in run.provenance()["sessions"]) > 0
    before = run.csv()
    del run
    calls(tmp_path / "run")[verb]()  # complete: nothing is computed again
    assert es.Run(tmp_path / "run").csv() == before


def test_another_call_does_not_resume_a_run(tmp_path):
    es.train(TASK, 20, 60, out=tmp_path / "run")
    with pytest.raises(es.ConfigError, match="run"):
        es.train(TASK, 20, 60, seed=1, out=tmp_path / "run")
    with pytest.raises(es.ConfigError):
        es.train(es.LinearRegressionTask(2, noise_variance=0.2), 20, 60, out=tmp_path / "run")


def test_an_interrupted_training_goes_on_where_it_was(tmp_path):
    """Ctrl-C, and an exception of the callback: the rest gives the bits of the whole."""
    ask = dict(length=200, steps=4000, checkpoints=200, learning_rate=0.01)

    class Stop(Exception):
        pass

    def stop(done, total):
        if done >= 1000:
            raise Stop

    def interrupt(done, total):
        if done >= 500:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        es.train(TASK, **ask, out=tmp_path / "cut", progress=interrupt)
    first = es.Run(tmp_path / "cut").progress[0]
    assert 0 < first < 200
    with pytest.raises(Stop):
        es.train(TASK, **ask, out=tmp_path / "cut", progress=stop)
    assert first < es.Run(tmp_path / "cut").progress[0] < 200
    again = es.train(TASK, **ask, out=tmp_path / "cut")
    whole = es.train(TASK, **ask)
    assert np.array_equal(again.heads[0].U, whole.heads[0].U) and again.curve == whole.curve


def test_a_preset_makes_the_run_of_the_program(program, tmp_path):
    import subprocess

    p = es.preset("zfb-shifts")
    p.run({"flow.t_end": 0.5}, out=tmp_path / "run")
    before = es.Run(tmp_path / "run").csv()
    command = [program, *p.verb.split(), "--preset", p.name, "--set", "flow.t_end=0.5", "--out", str(tmp_path / "run")]
    subprocess.run([*command, "--quiet"], check=True, capture_output=True)  # resumes it: the same study
    assert es.Run(tmp_path / "run").csv() == before


@pytest.mark.parametrize("name, verb", [("gabet-denoising-one", "icl risk"), ("chen-2510.05554", "scaling")])
def test_a_preset_without_seeds_makes_the_run_of_the_program(name, verb, program, tmp_path):
    import subprocess

    changes = {"sweep.lengths": [20, 40]} if verb == "icl risk" else {"tokens.lengths": [100, 10000]}
    found = es.preset(name).run(changes, out=tmp_path / "run")
    assert same(found.rows, es.preset(name).run(changes).rows)
    before = es.Run(tmp_path / "run").csv()
    assert (tmp_path / "run" / "report.html").exists() and es.Run(tmp_path / "run").verb == verb
    asked = [part for key, value in changes.items() for part in ("--set", f"{key}={value}")]
    subprocess.run([program, *verb.split(), "--preset", name, *asked, "--out", str(tmp_path / "run"), "--quiet"], check=True,
                   capture_output=True)
    assert es.Run(tmp_path / "run").csv() == before
    es.preset(name).run(changes, out=tmp_path / "run")


@pytest.mark.parametrize("call", [
    lambda hear: es.optimum(DENOISING, [20, 40], restarts=1, draws=100, progress=hear),
    lambda hear: es.output_moments(MU, HEAD, [20, 40], replicates=3, progress=hear),
    lambda hear: es.sup_error(MU, HEAD, 1.0, [20], replicates=3, progress=hear),
    lambda hear: es.scaling(1.0, [100, 1000], draws=11, progress=hear),
])
def test_progress_of_studies(call):
    seen = []
    call(lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1] > 0 and seen == sorted(seen)


def test_progress():
    seen = []
    es.train(TASK, 500, 3000, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (3000, 3000) and seen == sorted(seen)
    seen.clear()
    es.concentration(es.Sphere(2), HEAD, MU, [50, 100], query_count=50, progress=lambda *now: seen.append(now))
    assert seen[-1][0] == seen[-1][1] > 0
    with pytest.raises(ZeroDivisionError):
        es.train(TASK, 1000, 10**7, progress=lambda done, total: 1 / 0)


def test_bar(capsys, monkeypatch):
    from esscher import progress

    monkeypatch.setattr(progress, "_DELAY", 0.0)
    es.train(TASK, 200, 1000, progress=True)
    text = capsys.readouterr().err
    assert "train [" in text and "of 1000" in text and text.endswith("\r")
    es.train(TASK, 200, 1000)  # nobody looks: silence
    assert capsys.readouterr().err == ""


# ---- sweeps


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


# ---- one vocabulary


def test_training_reports_the_risk():
    """The loss of a training at rest is the risk of its start, not twice that."""
    at = es.balanced_start(TASK, 0.5)
    for loss in ("half", "mse"):
        still = es.train(TASK, 30, 400, alpha=0.5, learning_rate=1e-9, curve_block=400, loss=loss)
        risk = es.risk(TASK, at, 30)
        assert abs(still.curve[0].loss - risk.value) < 6 * np.hypot(still.curve[0].std_error, risk.std_error)
    half, whole = (es.train(TASK, 30, 50, learning_rate=lr, loss=loss) for lr, loss in ((0.02, "half"), (0.01, "mse")))
    np.testing.assert_allclose(half.heads[0].U, whole.heads[0].U, rtol=1e-12)
    with pytest.raises(es.ArgumentError, match='"half" or "mse"'):
        es.train(TASK, 30, 1, loss="full")


def test_wrong_keywords_suggest():
    for call, meant in [
        (lambda: es.train(TASK, 10, 1, lr=0.1), "learning_rate"),
        (lambda: es.train(TASK, 10, 1, batch_size=4), "batch"),
        (lambda: es.concentration(MU, HEAD, MU, [10], replicate=4), "replicates"),
        (lambda: es.risk(TASK, es.balanced_start(TASK), 10, samples=5), "draws"),
        (lambda: es.flow(TASK, lenght=10), "length"),
        (lambda: es.sweep(cube, {"n": [1]}, directory="x"), "out"),
    ]:
        with pytest.raises(TypeError, match=f"did you mean '{meant}'"):
            call()
    with pytest.warns(DeprecationWarning, match="kind"):
        assert es.train(TASK, 10, 1, model="linear").steps == 1
    with pytest.warns(DeprecationWarning, match="seed"):
        assert es.bayes_risk(TASK, 10, stream=1) == es.bayes_risk(TASK, 10, seed=es.Stream(1))


def test_lengths_are_counts_in_any_type():
    for length in (100, 100.0, np.int32(100), np.float64(100), np.float32(100)):
        assert es.mean_square_error(MU, HEAD, [1.0, 0.0], length).value == es.mean_square_error(MU, HEAD, [1.0, 0.0], 100).value
    assert es.concentration(MU, HEAD, MU, np.logspace(1, 3, 3), metrics=["output"]).rows["L"].tolist() == [10, 100, 1000]
    assert es.train(TASK, np.float64(10), np.int64(5)).steps == 5
    with pytest.raises(es.ArgumentError, match="31.6"):
        es.mean_square_error(MU, HEAD, [1.0, 0.0], 31.6)


def test_infinity_is_a_number():
    answer = es.shortest_length(es.Laplace(1, 1.0), es.Attention(U=[[1.0]]), [[2.0]], 0.01)
    assert answer.status == "never" and answer.length == es.inf


# ---- es.check


class Coin:
    """Signs; each test breaks one formula."""

    dim = 2
    factor = dict(log_mgf=1.0, tilted_mean=1.0, tilted_cov=1.0, sample=1.0)

    def log_mgf(self, a):
        return self.factor["log_mgf"] * np.log(np.cosh(a)).sum()

    def tilted_mean(self, a):
        return self.factor["tilted_mean"] * np.tanh(a)

    def tilted_cov(self, a):
        return self.factor["tilted_cov"] * np.diag(1 / np.cosh(a) ** 2)

    def sample(self, stream, n):
        return self.factor["sample"] * np.sign(stream.normal(2 * n)).reshape(n, 2)


@pytest.mark.parametrize("mu", [Coin(), MU, es.Sphere(3), es.Laplace(2, 0.5), es.Mixture([1, 2], [MU, es.Ball(2)]), X[0]], ids=repr)
def test_right_formulas_pass(mu):
    found = es.check(mu)
    assert found.ok, found
    assert len(found.rows) > 8


@pytest.mark.parametrize("what, size", [("log_mgf", 1.001), ("tilted_mean", 1.001), ("tilted_cov", 0.999), ("sample", 1.1)])
def test_wrong_formulas_are_named(what, size):
    wrong = Coin()
    wrong.factor = {**Coin.factor, what: size}
    found = es.check(wrong)
    assert not found and any(what in sentence or "samples" in sentence for sentence in found.wrong)


def test_tokens_that_ignore_their_stream_are_found():
    class Loose(Coin):
        def sample(self, stream, n):
            return np.sign(np.random.default_rng().normal(size=(n, 2)))

    assert any("same stream" in sentence for sentence in es.check(Loose()).wrong)


def test_tasks_are_checked():
    class Good:
        token_dim = 2

        def draw(self, stream):
            w, x = stream.normal(2)
            return es.Affine([0.0, 0.0], [[1.0], [w]], es.Rademacher(1)), [x, 0.0], w * x

    class Forgetful(Good):
        def draw(self, stream):
            law, query, _ = super().draw(stream)
            return law, query, float(np.random.default_rng().normal())

    class Constant(Good):
        def draw(self, stream):
            law, query, _ = super().draw(stream)
            return law, query, 1.0

    assert es.check(Good()).ok and es.check(TASK).ok
    assert any("same stream" in s for s in es.check(Forgetful()).wrong)
    assert any("nothing to learn" in s for s in es.check(Constant()).wrong)
    with pytest.raises(es.ArgumentError, match="expected a measure or a task"):
        es.check(3)


def test_a_study_too_short_for_a_rate_tells_its_last_row():
    found = es.concentration(MU, HEAD, MU, [10, 100], metrics=["output"])
    assert repr(found).startswith(f"Concentration(output {found.rows[-1].value:.4g} at L = 100; ")
