#!/usr/bin/env python3
"""inspect_wheel.py WHEEL: fails unless the wheel holds the program, its command, complete metadata and every library
that its files need beside the C and C++ runtime."""

import email
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from packing.carry import RUNTIME, needed  # noqa: E402

FIELDS = ("Author", "Summary", "Keywords", "Classifier", "License", "Project-URL", "Requires-Dist", "Requires-Python")
LARGEST = 30e6  # bytes


def faults(wheel: Path, folder: Path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
        modes = {entry.filename: entry.external_attr >> 16 for entry in archive.infolist()}
    info = next(folder.glob("*.dist-info"))
    record = (info / "RECORD").read_text()
    for name in ("esscher/bin/esscher", "_esscher_program.py", "esscher/py.typed", "esscher/_esscher.pyi"):
        if f"{name},sha256=" not in record:
            yield f"RECORD has no {name}"
    if not modes.get("esscher/bin/esscher", 0) & 0o111:
        yield "esscher/bin/esscher is not executable"
    if "esscher = _esscher_program:main" not in (info / "entry_points.txt").read_text():
        yield "there is no command esscher"
    metadata = email.message_from_string((info / "METADATA").read_text())
    for field in FIELDS:
        if not metadata[field]:
            yield f"METADATA has no {field}"
    if "# Esscher" not in metadata.get_payload():
        yield "METADATA has no description"
    if not re.search(r"-manylinux_\d+_\d+_\w+\.whl$", wheel.name):
        yield f"{wheel.name} does not say which C library it needs"
    files = [*folder.glob("esscher/*.so"), *folder.glob("esscher/lib/*"), folder / "esscher/bin/esscher"]
    carried = {file.name for file in folder.glob("esscher/lib/*")}
    for file in files:
        for name in needed(file):
            if name not in carried and not RUNTIME.match(name):
                yield f"{file.relative_to(folder)} needs {name}, which the wheel does not carry"
        looks = subprocess.run(["patchelf", "--print-rpath", file], check=True, capture_output=True, text=True).stdout
        if any(not part.startswith("$ORIGIN") for part in looks.strip().split(":")):
            yield f"{file.relative_to(folder)} looks for libraries in {looks.strip()}"
    notices = {file.stem for file in folder.glob("esscher/licenses/*.txt")}
    for name in ("libeigen3-dev", "libtbb12", "pybind11-dev"):
        if name not in notices:
            yield f"there is no notice of {name}"
    if wheel.stat().st_size > LARGEST:
        yield f"{wheel.name} has {wheel.stat().st_size} bytes"


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        found = list(faults(Path(sys.argv[1]), Path(folder)))
    for fault in found:
        print(f"{sys.argv[1]}: {fault}")
    return len(found) > 0


if __name__ == "__main__":
    sys.exit(main())
