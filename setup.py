"""pip install .: CMake builds the compiled module, setuptools packs it.

Without network: pip install --no-build-isolation .   (needs the packages of scripts/packages.txt)
"""

import os
import re
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
VERSION = re.search(r'kVersion = "([^"]+)"', (ROOT / "esscher/base/version.h").read_text())[1]


class CMakeBuild(build_ext):
    def build_extension(self, ext: Extension) -> None:
        target = Path(self.get_ext_fullpath(ext.name)).resolve()
        # ESSCHER_BUILD names a configured build folder whose objects are taken instead of new ones.
        ready = os.environ.get("ESSCHER_BUILD")
        build = Path(ready) if ready else ROOT / "build/wheel"
        configure = [
            "cmake", "-S", str(ROOT), "-B", str(build), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
            "-DESSCHER_PYTHON=ON", "-DESSCHER_CLI=OFF", "-DESSCHER_MPI=OFF", "-DESSCHER_INSTALL=OFF",
            f"-DPython_EXECUTABLE={sys.executable}",
        ]
        if not ready:
            subprocess.run(configure, check=True)
        subprocess.run(["cmake", "--build", str(build), "--target", "_esscher"], check=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        self.copy_file(str(next((build / "python/esscher").glob("_esscher*.so"))), str(target))


setup(
    version=VERSION,
    ext_modules=[Extension("esscher._esscher", sources=[])],
    cmdclass={"build_ext": CMakeBuild},
)
