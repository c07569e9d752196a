"""notebook.py FOLDER: a notebook whose cells show results of Python, exported by nbconvert, beside a module loader, as
classic Jupyter has one. Writes FOLDER/report.html for notebook.mjs."""

import pathlib
import sys

import nbformat.v4 as nb
import numpy as np
from nbconvert import HTMLExporter

import esscher as es

folder = pathlib.Path(sys.argv[-1])
folder.mkdir(parents=True, exist_ok=True)
law, layer = es.Gaussian(0.5 * np.eye(2)), es.Attention(U=0.7 * np.eye(2))
results = [
    es.concentration(law, layer, es.Gaussian(np.eye(2)), [10, 100, 1000]),
    es.Chart(es.charts.lines([{"x": x, "y": x**k, "k": f"k = {k}"} for k in (3, 1, 2) for x in (1.0, 2.0)], "x", "y", "k")),
]
cells = [
    nb.new_code_cell("result", outputs=[nb.new_output("execute_result", result._repr_mimebundle_(), execution_count=1)])
    for result in results
]
# The template "basic" is what every other one puts around outputs, without scripts of nbconvert's own.
body, _ = HTMLExporter(template_name="basic").from_notebook_node(nb.new_notebook(cells=cells))
(folder / "report.html").write_text(
    f"""<!doctype html><html><head><meta charset="utf-8"><script>
window.define = () => {{ throw new Error("a script of the page loader was called"); }};
window.define.amd = {{}};
const timer = setInterval(() => {{
  const all = [...document.querySelectorAll("iframe")];
  if (all.every((f) => f.contentDocument?.documentElement?.dataset.ready === "yes")) {{
    document.documentElement.dataset.ready = "yes";
    clearInterval(timer);
  }}
}}, 100);
</script></head><body>{body}</body></html>"""
)
