"""Puts the shared libraries that programs and modules need beside them, so that a wheel runs where they are missing.

Only the C and C++ runtime is left to the machine (RUNTIME). Every other library is copied under a name with a hash of
its bytes, because a process that has loaded another libsqlite3.so.0 would otherwise get that one. The notices of what is
copied, and of the headers that were compiled in, come from Debian's /usr/share/doc.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

RUNTIME = re.compile(r"^(ld-linux[\w-]*|lib(c|m|pthread|dl|rt|stdc\+\+|gcc_s))\.so(\.\d+)*$")


def output(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def needed(file: Path) -> list[str]:
    """The names of the libraries that a file asks for itself."""
    return output("patchelf", "--print-needed", file).split()


def where(file: Path) -> dict[str, Path]:
    """Name to path of every library that is loaded with a file on this machine."""
    found = re.findall(r"^\s*(\S+) => (\S+)", output("ldd", file), re.M)
    lost = [name for name, path in found if path == "not"]
    if lost:
        raise FileNotFoundError(f"{file} needs {', '.join(lost)}, which this machine does not have")
    return {name: Path(path).resolve() for name, path in found}


def hashed_name(name: str, path: Path) -> str:
    stem, rest = name.split(".so", 1)
    return f"{stem}-{hashlib.sha256(path.read_bytes()).hexdigest()[:8]}.so{rest}"


def carry(folder: Path, roots: list[Path]) -> list[Path]:
    """Copies what `roots` need into `folder` and makes them look there; returns the libraries copied from."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    paths: dict[str, Path] = {}
    for root in roots:
        paths.update({name: path for name, path in where(root).items() if not RUNTIME.match(name)})
    names = {name: hashed_name(name, path) for name, path in paths.items()}
    copies = []
    for name, path in paths.items():
        copy = folder / names[name]
        shutil.copyfile(path, copy)
        copy.chmod(0o755)
        subprocess.run(["patchelf", "--set-soname", copy.name, copy], check=True)
        copies.append(copy)
    for file in [*copies, *roots]:
        look = "$ORIGIN" if file.parent == folder else f"$ORIGIN/{relative(folder, file.parent)}"
        renamed = [word for name in needed(file) if name in names for word in ("--replace-needed", name, names[name])]
        # In one call, patchelf 0.14 writes one change over the other.
        subprocess.run(["patchelf", "--set-rpath", look, file], check=True)
        if renamed:
            subprocess.run(["patchelf", *renamed, file], check=True)
    return list(paths.values())


def relative(folder: Path, start: Path) -> str:
    up, steps = start, ""
    while not folder.is_relative_to(up):
        up, steps = up.parent, steps + "../"
    return steps + str(folder.relative_to(up))


def notices(folder: Path, libraries: list[Path], packages: list[str]) -> None:
    """Copies the copyright files of Debian's `packages` and of those that `libraries` belong to."""
    if not shutil.which("dpkg-query"):
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    owners = {line.split(":")[0] for path in libraries for line in owner(path).splitlines()}
    for package in sorted(owners | set(packages)):
        text = Path("/usr/share/doc") / package / "copyright"
        if text.exists():
            shutil.copyfile(text, folder / f"{package}.txt")


def owner(path: Path) -> str:
    # Debian lists some libraries below /lib, which is a link to /usr/lib.
    for name in (str(path), str(path).removeprefix("/usr")):
        answer = subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True)
        if answer.returncode == 0:
            return answer.stdout
    return ""
