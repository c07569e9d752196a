"""Shared by the tests: where the repository and the built program are."""

import os
import pathlib

import pytest

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
