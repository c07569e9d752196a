"""notebook.py FOLDER: a notebook whose cells show results of Python, exported by nbconvert, beside a module loader, as
classic Jupyter has one, and the same outputs under the rules of VS Code. Writes FOLDER/report.html for notebook.mjs."""

import html
import json
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
bundles = [result._repr_mimebundle_() for result in results]
cells = [
    nb.new_code_cell("result", outputs=[nb.new_output("execute_result", bundle, execution_count=1)]) for bundle in bundles
]
# The template "basic" is what every other one puts around outputs, without scripts of nbconvert's own.
body, _ = HTMLExporter(template_name="basic").from_notebook_node(nb.new_notebook(cells=cells))
# VS Code puts the HTML of outputs into a frame of its own, which has these rules (its 1.139; 'self' is its own origin).
RULES = "default-src 'none'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; " \
    "img-src 'self' https: http: data:; font-src 'self' https:; connect-src https:; child-src https: data:;"
outputs = json.dumps([bundle["text/html"] for bundle in bundles]).replace("</", "<\\/")
webview = f"""<!doctype html><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{RULES}"><body><script>
for (const output of {outputs}) {{
  const place = document.createElement("div");
  place.innerHTML = output;
  document.body.append(place);
}}
</script></body>"""
(folder / "report.html").write_text(
    f"""<!doctype html><html><head><meta charset="utf-8"><script>
window.define = () => {{ throw new Error("a script of the page loader was called"); }};
window.define.amd = {{}};
const timer = setInterval(() => {{
  const vscode = document.getElementById("vscode");
  const inner = [...(vscode?.contentDocument?.querySelectorAll("iframe") ?? [])];
  const all = [...document.querySelectorAll("main iframe"), ...inner];
  if (inner.length === {len(results)} && all.every((f) => f.contentDocument?.documentElement?.dataset.ready === "yes")) {{
    document.documentElement.dataset.ready = "yes";
    clearInterval(timer);
  }}
}}, 100);
</script></head><body><main>{body}</main>
<iframe id="vscode" style="width: 100%; height: 1200px" srcdoc="{html.escape(webview)}"></iframe></body></html>"""
)
