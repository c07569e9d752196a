"""One run made by several ranks: mpirun -np 2 python3 script.py, through mpi4py."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import esscher as es

pytest.importorskip("mpi4py", reason="needs mpi4py (Debian: python3-mpi4py)")
if shutil.which("mpirun") is None:
    pytest.skip("needs mpirun", allow_module_level=True)

SWEEP = """
import json, os, sys, time
import esscher as es

def point(L, tau):
    time.sleep(0.1)
    u = es.universal(L, tau)
    with open(f"who-{L}-{tau}", "w") as file:
        file.write(os.environ.get("OMPI_COMM_WORLD_RANK", "alone"))
    return {"H": u.H, "M1": u.M1}

told = []
found = es.sweep(point, {"L": [10, 100, 1000], "tau": [0.5, 1.0, 2.0]}, out="run", progress=lambda *now: told.append(now))
rank = os.environ.get("OMPI_COMM_WORLD_RANK", "0")
with open(f"told-{rank}.json", "w") as file:
    json.dump({"rows": [dict(row) for row in found.rows], "told": told, "threads": es.thread_count()}, file)
"""


# Scripts run elsewhere: the package of these tests, wherever PYTHONPATH found it.
os.environ["PYTHONPATH"] = str(pathlib.Path(es.__file__).resolve().parents[1])


def mpirun(folder: pathlib.Path, script: str, ranks: int = 2, **environment: str) -> "subprocess.CompletedProcess[str]":
    (folder / "script.py").write_text(script)
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", str(ranks), sys.executable, "script.py"]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=120, env={**os.environ, **environment}
    )


def test_a_sweep_over_ranks_is_the_sweep_alone(tmp_path):
    together, alone = tmp_path / "together", tmp_path / "alone"
    together.mkdir(), alone.mkdir()
    done = mpirun(together, SWEEP)
    assert done.returncode == 0, done.stderr
    (alone / "script.py").write_text(SWEEP)
    subprocess.run([sys.executable, "script.py"], cwd=alone, check=True, timeout=120)
    assert es.Run(together / "run").csv() == es.Run(alone / "run").csv()
    assert (together / "run" / "report.html").exists()
    # Both ranks worked, both have the whole table, one of them told how far it was.
    assert {path.read_text() for path in together.glob("who-*")} == {"0", "1"}
    first, second = (json.loads((together / f"told-{rank}.json").read_text()) for rank in (0, 1))
    assert len(first["rows"]) == 9 and first["rows"] == second["rows"]
    assert first["told"][-1] == [9, 9] and second["told"] == []
    assert es.Run(together / "run").provenance()["sessions"][0]["ranks"] == 2
    assert first["threads"] == max(1, (os.cpu_count() or 1) // 2)
    # The run is resumed alone, and by ranks: nothing is computed again.
    for path in together.glob("who-*"):
        path.unlink()
    assert mpirun(together, SWEEP, 3).returncode == 0
    assert list(together.glob("who-*")) == []


def test_other_calls_with_out_share_their_cells_too(tmp_path):
    script = """
import numpy as np, esscher as es
mu, head = es.Sphere(2), es.Attention(U=np.eye(2))
study = es.concentration(mu, head, mu, [10, 20], query_count=8, replicates=4, out="run", engine="direct")
run = es.train(es.LinearRegressionTask(1), 10, 40, curve_block=20, out="trained")
print(study.rows[0].value, run.curve[-1].loss)
"""
    done = mpirun(tmp_path, script)
    assert done.returncode == 0, done.stderr
    one, two = done.stdout.splitlines()
    assert one == two
    mu, head = es.Sphere(2), es.Attention(U=[[1.0, 0.0], [0.0, 1.0]])
    alone = es.concentration(mu, head, mu, [10, 20], query_count=8, replicates=4, engine="direct")
    assert float(one.split()[0]) == alone.rows[0].value
    assert float(one.split()[1]) == es.train(es.LinearRegressionTask(1), 10, 40, curve_block=20).curve[-1].loss


@pytest.mark.parametrize(
    "where, message",
    [
        ("x == 3", "ZeroDivisionError"),  # one point, on either rank
        ("x == 0", "ZeroDivisionError"),  # the point that shows the columns
    ],
)
def test_a_failure_ends_all_ranks_and_says_why(tmp_path, where, message):
    script = f"import esscher as es\nes.sweep(lambda x: 1 / 0 if {where} else x, {{'x': [0, 1, 2, 3]}}, out='run')\n"
    done = mpirun(tmp_path, script)
    assert done.returncode != 0 and message in done.stderr, done.stderr


def test_a_run_that_cannot_be_opened_ends_all_ranks(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.sqlite").write_text("nonsense")
    script = "import esscher as es\nes.concentration([[1.0]], es.Attention(U=[[1.0]]), [[1.0]], [2], out='run')\n"
    done = mpirun(tmp_path, script)
    assert done.returncode != 0 and "run.sqlite" in done.stderr, done.stderr


def test_ranks_must_mean_the_same_run_unless_they_are_left_alone(tmp_path):
    script = "import os, esscher as es\nout = 'run' + os.environ['OMPI_COMM_WORLD_RANK']\nes.sweep(lambda x: x, {'x': [1]}, out=out)\n"
    done = mpirun(tmp_path, script)
    assert done.returncode != 0 and "ESSCHER_MPI=0" in done.stderr, done.stderr
    shutil.rmtree(tmp_path / "run0", ignore_errors=True)
    assert mpirun(tmp_path, script, ESSCHER_MPI="0").returncode == 0
    assert es.Run(tmp_path / "run0").progress == es.Run(tmp_path / "run1").progress == (1, 1)
