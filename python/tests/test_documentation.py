"""help() tells everything: each public name has a text with an example (which runs as a doctest)."""

import inspect
import itertools
import pathlib
import re

import pytest

import esscher as es

NAMES = [name for name in es.__all__ if callable(getattr(es, name))]


def test_every_name_of_the_bridge_has_an_example():
    pytest.importorskip("torch")
    import esscher.torch as et

    for name in et.__all__:
        assert "esscher.torch as et" in (getattr(et, name).__doc__ or ""), f"esscher.torch.{name} has no example"


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_has_an_example(name):
    value = getattr(es, name)
    assert value.__module__.startswith("esscher."), "defined where doctests are collected"
    text = vars(value).get("__doc__") if isinstance(value, type) else value.__doc__
    assert text and ">>> import" in text and "esscher as es" in text, f"{name} has no example"
    assert "es." in text.split("esscher as es", 1)[1], f"the example of {name} does not use the package"


@pytest.mark.parametrize("name", [n for n in NAMES if inspect.isclass(getattr(es, n))])
def test_every_public_member_says_what_it_is(name):
    for member, value in vars(getattr(es, name)).items():
        if member.startswith("_") and member != "__call__":
            continue
        if inspect.isfunction(value) or isinstance(value, (property, classmethod, staticmethod)):
            assert inspect.getdoc(value), f"{name}.{member} has no docstring"


def test_arrays_have_shapes_in_the_text():
    """Who takes or gives an array says its axes, as in "z [n,d]"."""
    for name in NAMES:
        value = getattr(es, name)
        if not inspect.isfunction(value):
            continue
        said = str(inspect.signature(value))
        if "ArrayLike" in said or "-> Array" in said:
            assert "[" in (value.__doc__ or "").split(">>>")[0], f"{name} does not say its shapes"


def test_page_of_calibration_has_the_columns_of_its_script():
    root = pathlib.Path(__file__).resolve().parents[2]
    header = re.search(r'^HEADER = "(.*)"$', (root / "scripts/calibration/counting.py").read_text(), re.M).group(1)
    page = (root / "docs/calibration.md").read_text().splitlines()
    table = list(itertools.takewhile(lambda line: line.startswith("|"), page[page.index(header) + 2 :]))
    assert len(table) > 20 and all(line.count("|") == header.count("|") for line in table)
