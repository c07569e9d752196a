"""Every error and interval that is printed has a row in docs/calibration.md, or a reason why there is none."""

import importlib.util
import pathlib

import pytest

PLACE = pathlib.Path(__file__).resolve().parents[2] / "scripts/calibration/columns.py"


@pytest.fixture(scope="module")
def columns():
    spec = importlib.util.spec_from_file_location("calibrated_columns", PLACE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_interval_that_is_printed_is_named(columns):
    known = {*columns.COUNTED, *columns.NOT_COUNTED}
    assert columns.printed() - known == set(), "a new interval needs a row of scripts/calibrate, or a reason"
    assert known - columns.printed() == set(), "named, but no longer printed"
    assert not set(columns.COUNTED) & set(columns.NOT_COUNTED)


def test_every_kind_of_interval_is_counted_and_every_row_of_the_page_has_one(columns):
    named = {row for rows in columns.COUNTED.values() for row in rows}
    assert [row for row in named if not columns.is_counted(row)] == []
    assert columns.rows_of_page() - {"interval"} <= named
    assert not columns.is_counted("a kind that nobody counts")


def test_the_scan_sees_columns_documents_and_fields(columns):
    assert {"StudyRow.ci", "concentration.cc: bracket", "es.Estimate.std_error"} <= columns.printed()
