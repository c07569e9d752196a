"""pip install .: CMake builds the module and the program, setuptools packs them with the libraries they need.

Without network: pip install --no-build-isolation .   (scripts/install build python pip installs what that needs)
The objects of build/wheel are kept. Where ccache is there, they come from those that ./run has compiled.
"""

import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "python"))

from packing import carry, requirements  # noqa: E402

VERSION = re.search(r'kVersion = "([^"]+)"', (ROOT / "esscher/base/version.h").read_text())[1]


def run(*command: str) -> None:
    subprocess.run(command, check=True)


def git(*words: str) -> str:
    """What git says about this repository, or nothing where these sources have none of their own."""
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        return ""
    return subprocess.run(["git", "-C", str(ROOT), *words], check=True, capture_output=True, text=True).stdout


def built() -> Path:
    """A build folder with the module and the program. ESSCHER_BUILD names one that is configured already."""
    requirements.check()
    ready = os.environ.get("ESSCHER_BUILD")
    build = Path(ready) if ready else ROOT / "build/wheel"
    if not ready:
        options = ["-DESSCHER_PYTHON=ON", "-DESSCHER_MPI=OFF", "-DESSCHER_INSTALL=OFF",
                   f"-DPython_EXECUTABLE={sys.executable}"]
        if importlib.util.find_spec("pybind11"):
            import pybind11
            options.append(f"-Dpybind11_DIR={pybind11.get_cmake_dir()}")
        # The preset of ./run, so that the compiler cache knows the objects.
        run("cmake", "-S", str(ROOT), "--preset", "release", "-B", str(build), *options)
    run("cmake", "--build", str(build), "--target", "_esscher", "esscher_carried")
    return build


class CMakeBuild(build_ext):
    """The module, the program in bin/, libraries in lib/, notices in licenses/, all inside the package."""

    def build_extension(self, ext: Extension) -> None:
        made = built() / "python"
        target = Path(self.get_ext_fullpath(ext.name)).resolve()
        package = target.parent
        program = package / "bin/esscher"
        program.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(next((made / "esscher").glob("_esscher*.so")), target)
        shutil.copy(made / "bin/esscher", program)
        libraries = carry.carry(package / "lib", [target, program])
        compiled_in = [name for name in requirements.packages() if name.endswith("-dev") and name != "python3-dev"]
        carry.notices(package / "licenses", libraries, compiled_in)


class Sdist(sdist):
    """The sources, with what a copy without git and npm cannot know: the commit, and the charts of reports."""

    def make_release_tree(self, base_dir: str, files: list) -> None:
        # In a clone, every file of the repository; MANIFEST.in says the same for copies without git.
        tracked = git("ls-files", "--", ".", ":!.ci", ":!.github", ":!.gitignore").splitlines()
        super().make_release_tree(base_dir, sorted({*files, *tracked}))
        if tracked:
            (Path(base_dir) / "esscher/commit.txt").write_text(git("rev-parse", "--short=12", "HEAD"))
        charts = [path for path in ROOT.glob("build/*/esscher/web/vega.js") if path.stat().st_size > 0]
        if charts:
            newest = max(charts, key=lambda path: path.stat().st_mtime)
            shutil.copyfile(newest, Path(base_dir) / "web/vega.js")
        elif not (ROOT / "web/vega.js").exists():
            self.warn("no build folder has the charts of reports; who builds this needs npm for them")


# Debian's C and C++ libraries are named by their version, so that pip refuses an older system in words.
libc, libc_version = platform.libc_ver()
options = {}
if libc == "glibc":
    tag = f"manylinux_{libc_version.replace('.', '_')}_{platform.machine()}"
    options = {"bdist_wheel": {"plat_name": tag}}

setup(
    version=VERSION,
    ext_modules=[Extension("esscher._esscher", sources=[])],
    cmdclass={"build_ext": CMakeBuild, "sdist": Sdist},
    options=options,
)
