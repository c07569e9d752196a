"""Shared by the tests: where the repository and the built program are."""

import os
import pathlib
import signal

import pytest

# A shell that starts us in the background leaves SIGINT ignored; Ctrl-C tests need Python's handler.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def data() -> pathlib.Path:
    """The known answers that the C++ tests read too."""
    return ROOT / "tests" / "data"


@pytest.fixture
def program() -> str:
    path = os.environ.get("ESSCHER", str(ROOT / "build/dev/cli/esscher"))
    if not os.path.exists(path):
        pytest.fail(f"the program is not built: {path}")
    return path
