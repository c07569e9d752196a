"""out= and progress= of long calls: runs, resuming, callbacks, bars."""

import os
import signal
import subprocess

import numpy as np
import pytest
from alike import same

import esscher as es

I = np.eye(2)
MU, HEAD = es.Gaussian(I), es.Attention(U=0.5 * I)
TASK = es.LinearRegressionTask(2, noise_variance=0.1)
X = np.random.default_rng(0).normal(size=(2, 200, 4))
DENOISING = es.DenoisingTask([[1.0], [-1.0]], gamma=0.5, xi=0.5)


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
