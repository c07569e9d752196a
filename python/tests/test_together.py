"""Sources are compiled in one file only where neither can change what the other means (cmake/together.py)."""

import pathlib
import re
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "cmake/together.py"
HEADERS = {
    "plain.h": "namespace e { struct Point { double x; }; double length(Point p); }",
    "wide.h": '#include "plain.h"\nnamespace e { long length(long x); inline int hidden() { return quiet(1); } }',
}


@pytest.fixture
def grouped(tmp_path):
    def call(sources, most=16):
        for name, text in {**HEADERS, **sources}.items():
            (tmp_path / name).write_text(text)
        paths = [str(tmp_path / name) for name in sources]
        done = subprocess.run([sys.executable, "-B", SCRIPT, tmp_path, tmp_path / "out", "t", str(most), *paths],
                              capture_output=True, text=True, check=True)
        files = [pathlib.Path(word) for word in done.stdout.split(";")]
        return sorted(
            sorted(re.findall(r'"(\w+\.cc)"', file.read_text())) if file.parent.name == "out" else [file.name] for file in files)

    return call


A = '#include "plain.h"\nnamespace e { namespace { int helper() { return 1; } struct Row { int helped; }; } int a() { return helper(); } }'


@pytest.mark.parametrize(
    ("b", "apart"),
    [
        ("namespace e { int b() { return other(); } }", False),
        ("namespace e { namespace { int helper(int x) { return x; } } }", True),  # both keep a helper
        ("namespace e { int b() { return helper(2); } }", True),  # what A keeps would be called here
        ("namespace e { /* helper */ const char* b() { return \"helper Row\"; } // Row\n }", False),
        ("namespace e { int b() { return x.helped; } }", False),  # a member is no name of A's own
        ("namespace e { int b() { int helper = 2; return helper; } }", False),  # not a call
        ("namespace e { int b() { Row row; return 0; } }", True),
        ("namespace e { int b() { return x.helper() + other::helper(); } }", False),
        ("namespace e { int b() { return esscher::helper(1); } }", True),
        ("#define helped 7\n", True),  # a macro reaches everything
        ("namespace e { using namespace std; int b(); }", True),
        ('#include "hwy/foreach_target.h"\nnamespace e { int b(); }', True),  # a kernel includes itself
        ('#include "wide.h"\nnamespace e { int b() { return 1; } }', False),
    ],
)
def test_names_of_one_source_keep_others_apart(grouped, b, apart):
    assert grouped({"a.cc": A, "b.cc": b}) == ([["a.cc"], ["b.cc"]] if apart else [["a.cc", "b.cc"]])


def test_an_overload_that_a_source_does_not_see_keeps_it_apart(grouped):
    calls = '#include "plain.h"\nnamespace e { double c() { return length({3}); } }'
    wide = '#include "wide.h"\nnamespace e { int w() { return 1; } }'
    assert grouped({"c.cc": calls, "w.cc": wide}) == [["c.cc"], ["w.cc"]]
    # Both see it: nothing changes.
    assert grouped({"c.cc": calls.replace("plain", "wide"), "w.cc": wide}) == [["c.cc", "w.cc"]]


def test_an_alias_may_stand_in_both_if_it_says_the_same(grouped):
    a, b = ("namespace py = snake;\nint %s() { return py::one(); }" % name for name in "ab")
    assert grouped({"a.cc": a, "b.cc": b}) == [["a.cc", "b.cc"]]
    assert grouped({"a.cc": a, "b.cc": b.replace("snake", "python")}) == [["a.cc"], ["b.cc"]]
    assert grouped({"a.cc": a, "b.cc": "int b(int py) { return py; }"}) == [["a.cc"], ["b.cc"]]


def test_a_using_directive_inside_of_a_function_stays_there(grouped):
    inside = "int a() { using namespace std; return 1; }"
    assert grouped({"a.cc": inside, "b.cc": "int b() { return 2; }"}) == [["a.cc", "b.cc"]]


def test_headers_are_read_before_any_source(grouped, tmp_path):
    keeps = "namespace e { namespace { int quiet(long x) { return 2; } } int k() { return quiet(3); } }"
    assert grouped({"a_keeps.cc": keeps, "b.cc": '#include "wide.h"\nnamespace e { int b() { return 1; } }'}) == [
        ["a_keeps.cc", "b.cc"]]
    (file,) = (tmp_path / "out").glob("*.cc")
    lines = file.read_text().splitlines()
    assert lines.index('#include "wide.h"') < lines.index('#include "a_keeps.cc"')


def test_headers_beside_a_source_are_found(grouped, tmp_path):
    (tmp_path / "room").mkdir()
    (tmp_path / "room/near.h").write_text("namespace e { int far(int x); }")
    sources = {"room/a.cc": '#include "near.h"\nint a() { return 1; }', "room/b.cc": "int b() { return 2; }"}
    grouped(sources)
    (file,) = (tmp_path / "out").glob("*.cc")
    assert '#include "room/near.h"' in file.read_text()
    assert len(grouped(sources | {"room/b.cc": "int b() { return far(2); }"})) == 2  # b would see another far


def test_no_file_holds_more_than_asked_and_what_stays_the_same_is_not_written(grouped, tmp_path):
    sources = {f"{name}.cc": f"int {name}() {{ return 0; }}" for name in "abcde"}
    assert grouped(sources, most=2) == [["a.cc", "b.cc"], ["c.cc", "d.cc"], ["e.cc"]]
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()}
    grouped(sources, most=2)
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()}
