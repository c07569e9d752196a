"""Published settings: what they say of themselves, and the same numbers as the program."""

import json
import pathlib
import re
import subprocess

import numpy as np
import pytest

import esscher as es

EXPERIMENTS = pathlib.Path(__file__).resolve().parents[2] / "experiments"
SHORT = {
    "icl flow": {"flow.t_end": 0.2, "flow.log2_nodes": 6, "flow.draws": 50, "train.length": es.inf},
    "icl compare": {"task.dim": 2, "sweep.lengths": [10, 100], "flow.log2_nodes": 6, "flow.points": 5},
    "icl train": {"train.steps": 20, "train.length": 10, "train.curve_block": 10},
    "icl risk": {"sweep.lengths": [es.inf], "flow.log2_nodes": 6},
    "concentration": {"sweep.lengths": [10, 100, 1000]},
    "scaling": {"tokens.lengths": [100, 10000]},
}
KINDS = {
    "icl flow": es.Flow,
    "icl compare": es.Comparison,
    "icl train": es.Training,
    "icl risk": es.Risks,
    "concentration": es.Concentration,
    "scaling": es.TokenLaw,
}
NAMES = [p.name for p in es.presets()]


def test_every_experiment_is_there():
    assert NAMES == sorted(path.stem for path in EXPERIMENTS.glob("*.toml"))
    for p in es.presets():
        assert p.title and p.provenance and p.expected and p.verb in KINDS
        assert p.toml == (EXPERIMENTS / f"{p.name}.toml").read_text()
        assert "preset" not in p.config() and repr(p).startswith(f"Preset('{p.name}'")


@pytest.mark.parametrize("name", NAMES)
def test_a_short_version_runs(name):
    p = es.preset(name)
    found = p.run(SHORT[p.verb])
    assert type(found) is KINDS[p.verb]
    assert found._repr_mimebundle_()


@pytest.mark.parametrize(
    "name",
    ["zfb-shifts", "zhang-saxe-merged", "zhang-saxe-separate", "bohbot-rates", "ahn-2306.00297", "von-oswald", "audit-suite",
     "bohbot-moments", "he-2503.12734", "lu-2405.11751", "gabet-classification", "gabet-denoising-one", "gabet-denoising-two",
     "gabet-residual", "raventos-2306.15063", "single-index-hermite2", "single-index-sign", "smart-clusters",
     "smart-linear", "smart-sphere", "bruno-2605.08505", "chen-2510.05554"],
)
def test_claims_of_the_sources_hold(name):
    found = es.preset(name).check()
    assert found.ok and any(row.verdict == "holds" for row in found.rows), found.to_pandas()


@pytest.mark.parametrize(
    "name, changes",
    [
        ("gabet-classification", {"task.cov": 2.0}),
        ("gabet-denoising-one", {"task.gamma": 0.5}),
        ("gabet-denoising-two", {"task.xi": 0.8}),
        ("gabet-residual", {"task.gamma": 1.0}),
        ("single-index-hermite2", {"task.coefficients": [0.0, 0.70710678, 0.70710678]}),
        ("smart-clusters", {"attention.U": 3.0}),
        ("smart-linear", {"attention.U": 0.2}),
        ("smart-sphere", {"attention.U": 9.0}),
        ("bruno-2605.08505", {"tokens.kappa": [3.0, 4.0]}),  # neither few nor many tokens in reach
        ("chen-2510.05554", {"tokens.lengths": [1000]}),  # far from the limit
        ("he-2503.12734", {"train.learning_rate": 1e-5}),  # heads that have not learned
        ("von-oswald", {"train.learning_rate": 1e-6}),
        ("ahn-2306.00297", {"train.learning_rate": 1e-6}),
    ],
)
def test_claims_about_tasks_fail_where_they_are_false(name, changes):
    assert not es.preset(name).check(changes).ok


def test_claims_fail_where_they_are_false(program):
    # Other matrices than the audit drew, scores too small to slow anything down, tasks of another variance.
    assert not es.preset("audit-suite").check({"attention.V": 1.0}).ok
    assert not es.preset("bohbot-moments").check({"measure.cov": 0.0001}).ok
    small = {"task.dim": 5, "task.prompt_cov": 0.2, "task.query_cov": 0.2, "train.length": 5}
    assert not es.preset("lu-2405.11751").check({**small, "task.task_variance": 2.0}).ok
    assert not es.preset("bohbot-rates").check({"measure.cov": 1.0}).ok  # scores too sharp for 1/n
    assert not es.preset("zfb-shifts").check({"task.noise_variance": 1.0}).ok  # noise does not scale with the task
    done = subprocess.run([program, "presets", "check", "bohbot-rates", "--set", "measure.cov=1.0"], capture_output=True, text=True)
    assert done.returncode != 0 and "fails" in done.stdout and "icl flow" not in done.stdout
    wrong = subprocess.run([program, "presets", "check", "nobody"], capture_output=True, text=True)
    assert wrong.returncode != 0 and "zfb-shifts" in wrong.stderr


def arguments(changes):
    for key, value in changes.items():
        yield from ("--set", f"{key}={json.dumps('inf' if value == es.inf else value)}")


def as_json(row):
    """A row as the document has it: an infinite length is a word, other numbers that are not finite are
    null, and the parameters are left out."""
    row = {key: x for key, x in row.items() if key not in ("U", "r")}
    word = {key: "inf" for key in ("L", "length") if row.get(key) == es.inf}
    null = {key: None for key, x in row.items() if isinstance(x, float) and not np.isfinite(x)}
    return {**row, **null, **word}


def without_status(row):
    return {key: value for key, value in row.items() if key != "not_finite"}


@pytest.mark.parametrize("name", ["zfb-shifts", "audit-d4", "he-2503.12734", "bruno-2605.08505", "chen-2510.05554"])
def test_the_program_gives_the_same_numbers(program, name):
    p = es.preset(name)
    mine = p.run(SHORT[p.verb], seed=3)
    command = [program, *p.verb.split(), "--preset", name, "--seed", "3", "--json", "--quiet"]
    done = subprocess.run([*command, *arguments(SHORT[p.verb])], check=True, capture_output=True, text=True)
    theirs = json.loads(done.stdout)
    if isinstance(mine, es.Flow):
        assert [row["risk"] for row in theirs["path"]] == mine.risk.tolist()
    elif isinstance(mine, es.Comparison):
        assert [as_json(row) for row in mine.rows] == [without_status(row) for row in theirs["rows"]]
        assert [as_json(row) for row in mine.path] == [without_status(row) for row in theirs["path"]]
    elif isinstance(mine, es.TokenLaw):
        assert [dict(row) for row in mine.rows] == theirs["rows"] and mine.kind == theirs["tokens"]
    else:
        assert [row["loss"] for row in theirs["loss"]] == [p.loss for p in mine.curve]
        assert theirs["parameters"]["heads"][0]["U"] == mine.heads[0].U.tolist()


def test_changes_are_checked():
    assert es.preset("audit-d4").config({"model.init": {"kind": "identity"}})["model"]["init"] == {"kind": "identity"}
    for begun, meant in (("raventos", "raventos-2306.15063"), ("smart", "smart-clusters or smart-linear or smart-sphere"),
                         ("garg-2208.0106", "garg-2208.01066"), ("audit-sute", "audit-suite")):
        with pytest.raises(es.ConfigError, match=rf"; did you mean {meant}\?$"):
            es.preset(begun)
    with pytest.raises(es.ConfigError, match="changes: task.dims=3: unknown key task.dims, did you mean dim"):
        es.preset("audit-d4").check({"task.dims": 3})
    with pytest.raises(TypeError, match="has no argument 'directory'; did you mean 'out'"):
        es.preset("audit-d4").run(directory="here")
    with pytest.raises(es.ConfigError, match="preset is 'nobody', expected one of: ahn-2306.00297, audit-d4, audit-suite"):
        es.preset("nobody")
    with pytest.raises(es.ConfigError, match="train.stepz"):
        es.preset("boursier-boyer").run({"train.stepz": 3})
    with pytest.raises(es.ConfigError, match="task.dim"):
        es.preset("zfb-shifts").run({"task.dim": "many"})
    with pytest.raises(es.CapabilityError, match="icl train"):
        es.preset("zfb-shifts").run({"model.heads": 2})


def test_exact_gradient_of_softmax():
    task = es.LinearRegressionTask(2)
    found = es.train(task, 30, 20, gradient="exact", learning_rate=0.05, curve_block=1)
    losses = [p.loss for p in found.curve]
    assert losses == sorted(losses, reverse=True)
    # Each seed has nodes of its own, so their mean and its error can be compared with the risk.
    risk = es.risk(task, es.balanced_start(task, 0.1), 30)
    first = [es.train(task, 30, 1, gradient="exact", curve_block=1, seed=s).curve[0].loss for s in range(12)]
    error = np.std(first, ddof=1) / np.sqrt(len(first))
    assert 0 < error < 0.01
    assert abs(np.mean(first) - risk.value) < 6 * (error + risk.std_error)


PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "presets.md"


@pytest.mark.parametrize("name", NAMES)
def test_the_page_has_every_preset_in_its_own_words(name):
    """scripts/preset_page writes the page; it has to be run again where a preset changes its words."""
    page, p = " ".join(PAGE.read_text().replace("\\", "").split()), es.preset(name)
    for words in (p.title, p.provenance, p.expected):
        assert " ".join(words.split()) in page
    section = PAGE.read_text().partition(f"## {name}\n")[2].partition("\n## ")[0]
    shown = PAGE.parent / re.search(rf"\]\((images/presets/{re.escape(name)}\.\w+)\)", section)[1]
    assert shown.stat().st_size > 3000
    if shown.suffix == ".svg":  # a chart has a narrow one for phones
        assert shown.with_stem(shown.stem + "-narrow").stat().st_size > 3000
    assert "holds" in section and "fails" not in section
    assert not re.search(r"\de[-+]\d|Gamma|Sigma|sqrt|infinity|\+-", section)
