#!/usr/bin/env python3
"""What the program printed when this was recorded, it prints now.

    check.py PROGRAM            runs commands.txt and compares every document with recorded/NAME.json
    check.py PROGRAM --update   records again: only for a change of results that the CHANGELOG explains

commands.txt has lines NAME<TAB>ARGS. Keys, texts and integers must be equal. Floating-point numbers may
differ by rounding: the C library chooses its exponential by the processor, so TOLERANCE, not bits. Kernels
run on one instruction set, AVX2, for the same reason; a machine without it skips the test (exit code 77).
"""

import json
import math
import os
import pathlib
import shlex
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TOLERANCE = 1e-9
SKIPPED = 77


def commands():
    for line in (HERE / "commands.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, arguments = line.split("\t")
            yield name, shlex.split(arguments)


def document(program, arguments):
    done = subprocess.run(
        [program, *arguments, "--json", "--quiet"], cwd=ROOT, env={**os.environ, "ESSCHER_TARGET": "AVX2"},
        capture_output=True, text=True, check=False,
    )
    return json.loads(done.stdout) if done.returncode == 0 else {"error": done.stderr.strip().splitlines()[-1]}


def differences(old, new, path=""):
    if isinstance(old, dict) and isinstance(new, dict):
        for key in old | new:
            yield from differences(old.get(key, "(absent)"), new.get(key, "(absent)"), f"{path}.{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for i, (a, b) in enumerate(zip(old, new)):
            yield from differences(a, b, f"{path}[{i}]")
    elif isinstance(old, float) and isinstance(new, float):
        if not math.isclose(old, new, rel_tol=TOLERANCE):
            yield f"{path}: {old!r} -> {new!r}"
    elif old != new:
        yield f"{path}: {old!r} -> {new!r}"


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    targets = json.loads(subprocess.check_output([program, "targets", "--json", "--quiet"]))["targets"]
    if "AVX2" not in targets:
        print("this machine has no AVX2")
        return SKIPPED
    failed = passed = 0
    for name, arguments in commands():
        file, new = HERE / f"{name}.json", document(program, arguments)
        if "--update" in sys.argv:
            file.write_text(json.dumps(new, indent=1) + "\n")
            continue
        found = list(differences(json.loads(file.read_text()), new))
        passed, failed = passed + (not found), failed + bool(found)
        for line in found[:10]:
            print(f"{name}{line}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or (not passed and "--update" not in sys.argv) else 0


if __name__ == "__main__":
    sys.exit(main())
