"""A run made by the program, read in Python."""

import json
import subprocess

import numpy as np
import pytest

import esscher as es


@pytest.fixture
def run(program, tmp_path):
    X = np.random.default_rng(0).normal(size=(300, 4))
    heads = {f"{name}.{part}": X for name in "ab" for part in "QKV"}
    np.savez(tmp_path / "heads.npz", **heads)
    command = [program, "heads", str(tmp_path / "heads.npz"), "--out", str(tmp_path / "run"), "--quiet"]
    subprocess.run(command, check=True, capture_output=True)
    return es.Run(tmp_path / "run")


def test_rows_columns_pandas(run):
    rows = run.rows()
    assert run.verb == "heads" and run.progress[0] == run.progress[1] > 0
    names = [row["head"] for row in rows]
    assert {"a", "b"} <= set(names)
    columns = run.columns()
    assert all(len(column) == len(rows) for column in columns.values())
    frame = run.to_pandas()
    assert len(frame) == len(rows) and "head" in frame.columns


def test_exports_and_report(run):
    exported = json.loads(run.json())
    assert exported["verb"] == "heads" and len(exported["rows"]) == len(run.rows())
    assert run.csv().startswith("cell,")
    assert run.document("nothing") is None and "sessions" in run.provenance()
    assert run.report_html().lstrip().lower().startswith("<!doctype html>")
    for figure in run.figures():
        assert "<iframe" in figure._repr_mimebundle_()["text/html"] and "\n" not in repr(figure)
    assert "heads" in repr(run)


def test_same_numbers_as_the_package(run):
    X = np.random.default_rng(0).normal(size=(300, 4))
    (mine,) = es.heads(X, X, X)
    theirs = next(row for row in run.rows() if row.get("head") == "a")
    assert theirs["tau2"] == mine["tau2"] and theirs["verdict"] == mine["verdict"]
