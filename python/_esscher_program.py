"""The command `esscher` of an installed package: becomes the program that the package carries.

This module stands beside the package, so that starting the program does not import NumPy.
"""

import importlib.util
import os
import sys
from pathlib import Path


def main() -> None:
    spec = importlib.util.find_spec("esscher")
    assert spec is not None and spec.origin is not None
    program = str(Path(spec.origin).parent / "bin" / "esscher")
    os.execv(program, [program, *sys.argv[1:]])
