"""What a build of the package needs from the system, looked for before anything is compiled."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GROUPS = ("build", "python")


def packages() -> list[str]:
    """The Debian packages of scripts/packages.txt that compile the wheel."""
    lines = (ROOT / "scripts/packages.txt").read_text().splitlines()
    return [words[1] for words in map(str.split, lines) if words and words[0] in GROUPS]


def missing() -> list[str]:
    """Those that are not installed, as far as Debian's dpkg can tell and no other copy was found."""
    if not shutil.which("dpkg-query"):
        return [name for name, command in (("cmake", "cmake"), ("ninja-build", "ninja"), ("patchelf", "patchelf"))
                if not shutil.which(command)]
    answer = subprocess.run([ROOT / "scripts/install", "--missing", *GROUPS], check=True, capture_output=True, text=True)
    return [name for name in answer.stdout.split() if not found_elsewhere(name)]


def found_elsewhere(package: str) -> bool:
    if package == "pybind11-dev":
        return importlib.util.find_spec("pybind11") is not None
    if package == "python3-dev":
        return (Path(sysconfig.get_path("include")) / "Python.h").exists()
    command = {"cmake": "cmake", "ninja-build": "ninja", "g++": "c++", "patchelf": "patchelf"}.get(package)
    return command is not None and shutil.which(command) is not None


def check() -> None:
    """Ends with the names of the packages that are missing, if any are."""
    if os.environ.get("ESSCHER_UNCHECKED"):
        return
    lacking = missing()
    if lacking:
        raise SystemExit(
            "esscher: this system lacks what the package is compiled with. On Debian 12:\n"
            f"  sudo apt-get install {' '.join(lacking)}\n"
            f"In all it needs: {' '.join(packages())}.\n"
            "If they are there under other names, ESSCHER_UNCHECKED=1 goes on without this check."
        )
