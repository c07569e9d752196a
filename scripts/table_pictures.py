"""Charts of the tables of docs/speed.md and docs/calibration.md, for the marks `<!-- picture: table NAME -->` that
scripts/pictures draws. Every row of a table is read and drawn, and a row that cannot be read is an error, so that a
picture shows what its table says and nothing else.

    >>> given('''### Given tokens
    ... | task | Esscher | peers | error | remark |
    ... |---|---|---|---|---|
    ... | n = 8 | 1 (1) ms | NumPy 2 (3): 3 times; PyTorch 0.5 (0.5): 0.5 times | 2e-08 | |
    ... ''')["data"]["values"]
    [{'task': 'n = 8', 'peer': 'NumPy', 'times': 3.0}, {'task': 'n = 8', 'peer': 'PyTorch', 'times': 0.5}]
    >>> read_rows("## T\\n| task | peers |\\n|---|---|\\n| a | b | c |\\n", "task")
    Traceback (most recent call last):
    ValueError: 3 cells under 2 heads: | a | b | c |
"""

import re

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
PEER = re.compile(r"^(.+?) [\d.]+ \([\d.]+\): ([\d.]+) times$")
ROW, LINE = 21, 12  # pixels of a row of a picture, and of another line of its name
SHORT = 24  # letters of a name that has one line, so that a phone has room for the points


def split(line):
    """The cells of a line of a table."""
    return [cell.strip() for cell in line.strip()[1:-1].split("|")]


def read_rows(text, head, after=""):
    """The rows of the first table behind the line `after` whose first column is called `head`, as dictionaries."""
    lines = text[text.index(after):].splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {head} |"))
    cells = split(lines[start])
    rows = []
    for line in lines[start + 2:]:
        if not line.startswith("|"):
            break
        row = split(line)
        if len(row) != len(cells):
            raise ValueError(f"{len(row)} cells under {len(cells)} heads: {line}")
        rows.append(dict(zip(cells, row)))
    return rows


def in_lines(name):
    """A long name in two lines, cut at the comma or blank nearest to its middle.

    >>> in_lines("1024 queries, n = 4096, d = 16"), in_lines("sup over queries")
    ('1024 queries,\\nn = 4096, d = 16', 'sup over queries')
    """
    cuts = [found.start() for found in re.finditer(r"(?<=,) | (?!= )(?<!= )", name)]
    if len(name) <= SHORT or not cuts:
        return name
    at = min(cuts, key=lambda cut: abs(cut - len(name) / 2))
    return name[:at] + "\n" + name[at + 1:]


def dots(values, x, y, kind, height, rules):
    """A picture of points: one line per name, one colour and shape per kind, rules across all lines."""
    values = [{**value, y: in_lines(value[y])} for value in values]
    step = ROW + LINE * any("\n" in value[y] for value in values)
    axis = {"labelLimit": 360, "grid": True, "labelExpr": "split(datum.label, '\\n')"}
    row = {"field": y, "type": "nominal", "sort": None, "title": None, "axis": axis}
    kinds = len({value[kind] for value in values})
    legend = {"title": None, "orient": "top", "columns": kinds if kinds < 3 else 1}
    key = {"field": kind, "type": "nominal", "sort": None, "legend": legend}
    return {
        "$schema": SCHEMA, "width": "container", "autosize": {"type": "fit-x", "contains": "padding"},
        "height": step * height, "data": {"values": values},
        "layer": [*rules, {"mark": {"type": "point", "filled": True, "size": 70, "opacity": 0.9},
                           "encoding": {"x": x, "y": row, "color": key, "shape": key}}],
    }


def rule_at(value, x):
    """A line across the picture."""
    return {"data": {"values": [{"at": value}]}, "mark": {"type": "rule", "strokeDash": [4, 4], "color": "#888888"},
            "encoding": {"x": {**x, "field": "at"}}}


def speed(text, heading):
    """How many times as fast as each peer, task by task."""
    values = []
    for row in read_rows(text, "task", f"### {heading}\n"):
        for peer in row["peers"].split("; "):
            found = PEER.match(peer)
            if found is None:
                raise ValueError(f"no ratio in “{peer}”")
            values.append({"task": row["task"], "peer": found[1], "times": float(found[2])})
    most = max(value["times"] for value in values)
    x = {"field": "times", "type": "quantitative", "title": "times as fast",
         "scale": {"type": "log", "domain": [0.7, 1.2 * most], "nice": False},
         "axis": {"values": [n for n in (1, 2, 3, 5, 10, 20, 50, 100) if n <= 1.2 * most], "format": "d"}}
    return dots(values, x, "task", "peer", len({value["task"] for value in values}), [rule_at(1, x)])


def given(text):
    """Given tokens, of docs/speed.md."""
    return speed(text, "Given tokens")


def training(text):
    """Training steps, of docs/speed.md."""
    return speed(text, "Training steps")


def coverage(text):
    """How often intervals miss the truth, of docs/calibration.md, by kind of interval."""
    values = []
    for row in read_rows(text, "interval"):
        misses = 100 - float(row["covers"].removesuffix(" %"))
        values.append({"interval": row["interval"], "verdict": row["verdict"], "misses": round(misses, 1)})
    x = {"field": "misses", "type": "quantitative", "title": "intervals that miss the truth, %",
         "scale": {"type": "sqrt", "domain": [0, 100], "nice": False},
         "axis": {"values": [0, 1, 3, 5, 7, 10, 20, 40, 60, 100]}}
    band = {"data": {"values": [{"low": 3, "high": 7}]}, "mark": {"type": "rect", "opacity": 0.25, "color": "#888888"},
            "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}}}
    return dots(values, x, "interval", "verdict", len({value["interval"] for value in values}), [band])


CHARTS = {"given": given, "training": training, "coverage": coverage}
