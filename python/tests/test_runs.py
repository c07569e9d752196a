"""A run made by the program, read in Python."""

import io
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


def test_the_table_of_heads(run, program, tmp_path):
    """One row per head with the numbers of the run, in every format."""

    def export(*words):
        done = subprocess.run([program, "export", "--table", "heads", *words, str(tmp_path / "run")], capture_output=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    header, *lines = export("--csv").decode().splitlines()
    names = header.split(",")
    rows = {line.split(",")[names.index("head")]: line.split(",") for line in lines}
    assert sorted(rows) == ["a", "b"]
    told = {row["head"]: row for row in json.loads(export("--json"))["rows"]}
    for row in run.rows():
        for column in ("tau2", "lin_c"):
            assert float(rows[row["head"]][names.index(column)]) == row[column] == told[row["head"]][column]
    arrays = np.load(io.BytesIO(export("--npz")))
    np.testing.assert_array_equal(arrays["tau2"], [row["tau2"] for row in run.rows()])
    assert b"tau2" in export("--columns")
    wrong = subprocess.run([program, "export", "--csv", "--table", "head", str(tmp_path / "run")], capture_output=True)
    assert wrong.returncode != 0 and b"heads" in wrong.stderr and not wrong.stdout


def test_same_numbers_as_the_package(run):
    X = np.random.default_rng(0).normal(size=(300, 4))
    (mine,) = es.heads(X, X, X)
    theirs = next(row for row in run.rows() if row.get("head") == "a")
    assert theirs["tau2"] == mine["tau2"] and theirs["verdict"] == mine["verdict"]
