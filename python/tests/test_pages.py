"""What pages of the reference promise, tried with the program."""

import json
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("ESSCHER", str(ROOT / "build/dev/cli/esscher"))
GAUSSIAN = ["--set", "measure.type=gaussian", "--set", "measure.dim=1"]
DENOISING = ["--set", "task.type=denoising", "--set", "task.means=[[1],[-1]]"]
HEADS = str(ROOT / "tests/data/sample-heads.safetensors")

# Commands whose documents together have every key that docs/reference/json.md names for a verb.
COMMANDS = {
    "limit": [[*GAUSSIAN, "--set", "query.z=[2]"]],
    "universal": [["--length", "100", "--tau", "1", "--needle", "5"]],
    "length": [[*GAUSSIAN, "--error", "5%"]],
    "icl risk": [["--set", "task.dim=1", "--length", "10"],
                 ["--set", "task.dim=1", "--length", "10", "--temperature", "1,2", "--shift", "noise=0.1"]],
    "icl flow": [["--set", "task.dim=1", "--length", "inf"], [*DENOISING, "--length", "inf"]],
    "icl train": [["--set", "task.dim=1", "--length", "10", "--set", "train.steps=200"],
                  [*DENOISING, "--length", "10", "--set", "train.steps=20"]],
    "icl compare": [["--set", "task.dim=1", "--length", "10", "--set", "flow.log2_nodes=6", "--set", "sweep.eps=[0.5]"],
                    [*DENOISING, "--length", "10", "--set", "flow.log2_nodes=4", "--set", "flow.t_end=0.1", "--set", "flow.points=3"]],
    "presets": [["--show", "audit-d4"]],
    "scaling": [["--tau", "2", "--needle", "12", "--lengths", "1e3,1e5", "--draws", "0"],
                ["--keep", "ess", "--train", "100", "--lengths", "1e3"],
                ["--set", "tokens.kind=equiangular", "--set", "tokens.gamma=[1]"],
                ["--set", "tokens.kind=sphere", "--set", "tokens.kappa=[1]"]],
    "concentration --metric sup": [[*GAUSSIAN, "--radius", "1", "--set", "sweep.lengths=[10]"]],
    "paper": [["--section", "lemma-2.1", "--size", "tiny", "--out", "paper"]],
    "heads": [[HEADS, "--components", "2", "--window", "16", "--plan", "400000"], [HEADS, "--components", "2", "--budget", "16"]],
}
# Keys that only other inputs bring; the pages of those inputs show them.
ELSEWHERE = {"limit": {"limit", "reason", "saturation"}, "icl train": {"heads"}}


def keys(value):
    if isinstance(value, dict):
        return set(value).union(*map(keys, value.values()))
    return set().union(*map(keys, value)) if isinstance(value, list) else set()


def promised(verb):
    """The words in code of the row of a verb, without what stands in parentheses of plain words."""
    page = (ROOT / "docs/reference/json.md").read_text()
    row = re.search(rf"^\| `{re.escape(verb)}` \|(.*)\|$", page, re.M).group(1)
    return set(re.findall(r"`([A-Za-z_]\w*)`", row))


@pytest.mark.parametrize("verb", COMMANDS)
def test_the_page_of_json_names_keys_that_are_there(verb, tmp_path):
    found = set()
    for arguments in COMMANDS[verb]:
        done = subprocess.run([PROGRAM, *verb.split(), *arguments, "--json", "--quiet"], cwd=tmp_path, check=True,
                              capture_output=True, text=True)
        found |= keys(json.loads(done.stdout))
    missing = promised(verb) - found - ELSEWHERE.get(verb, set())
    assert not missing, f"esscher {verb} --json has no {sorted(missing)}"
    assert len(promised(verb)) >= 3


def test_the_page_of_the_paper_has_every_section():
    listed = subprocess.run([PROGRAM, "paper", "--help"], check=True, capture_output=True, text=True).stdout
    shown = re.findall(r"^\| `([\w.-]+)` \|", (ROOT / "docs/paper.md").read_text().split("## One section")[0], re.M)
    papers = re.findall(r"^--which \S+:.*\n((?:  .*\n)+)", listed, re.M)
    assert shown == [section for paper in papers for section in re.findall(r"^  (\S+) ", paper, re.M)]
