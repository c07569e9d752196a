"""Pictures of results: one line of text, one page of HTML that needs nothing else."""

import html
import json
import re

import pytest

import esscher as es
from esscher.charts import frame, lines, page, title_of

ROWS = [
    {"t": t, "risk": 1 / (t + k), "twin": f"softmax L={L}"}
    for k, L in ((1, "10"), (2, "1000"), (3, "inf"))
    for t in (0.0, 1.0, 2.0)
]


def test_lengths_and_models_are_told_apart():
    spec = lines(ROWS, "t", "risk", "twin", log_y=True, title="risk")
    described = spec["usermeta"]["esscher"]
    assert described["series"] == "twin" and described["dash"] == "model"
    assert {row["twin"] for row in spec["datasets"]["rows"]} == {"L = 10", "L = 1000", "L = ∞"}
    assert len(spec["data"]["values"]) == len(ROWS)


def test_rows_that_a_log_axis_cannot_show_are_kept_for_the_note():
    spec = lines([{"x": 1.0, "y": 0.0}, {"x": 2.0, "y": 1.0}], "x", "y", log_y=True)
    assert len(spec["data"]["values"]) == 1 and len(spec["datasets"]["rows"]) == 2


def test_a_page_needs_no_network_and_cannot_be_broken_by_its_data():
    made = page(lines([{"x": float("nan"), "y": 1.0, "c": "</script><script>alert(1)"}], "x", "y", "c"))
    assert "default-src 'none'" in made and "<script>alert(1)" not in made
    assert not re.search(r"(src|href)=.?https?:", made)
    stored = re.search(r'id="spec">(.*?)</script>', made, re.S)
    assert stored and json.loads(stored[1])["datasets"]["rows"][0]["x"] is None
    with pytest.raises(es.Error):
        es._esscher.chart_page("[]")


def test_a_picture_prints_as_one_line_and_shows_as_a_frame():
    chart = es.Chart(lines(ROWS, "t", "risk", "twin", title="risk along\nthe flow"))
    assert str(chart) == "Chart(risk along the flow)"
    shown = chart._repr_mimebundle_()
    assert shown["text/plain"] == repr(chart)
    inner = re.fullmatch(r'<iframe srcdoc="([^"]*)" .*></iframe><p>(.*)</p>', shown["text/html"], re.S)
    assert inner and html.unescape(inner[1]) == page(chart.chart())
    assert inner[2] == "Chart(risk along the flow). Trust this notebook to see the picture."
    assert len(frame(chart.chart())) < 700_000 and title_of({}) == "layers"
