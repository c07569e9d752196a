"""write.py BUNDLE.js FOLDER: outputs of Python as JupyterLab shows them, in a notebook that it trusts and in one that it does
not. Writes FOLDER/report.html for lab.mjs."""

import json
import pathlib
import sys

import numpy as np

import esscher as es

script, folder = map(pathlib.Path, sys.argv[1:])
folder.mkdir(parents=True, exist_ok=True)
law, layer = es.Gaussian(0.5 * np.eye(2)), es.Attention(U=0.7 * np.eye(2))
results = [
    es.concentration(law, layer, es.Gaussian(np.eye(2)), [10, 100, 1000]),
    es.Chart.lines([{"x": x, "y": x**k, "k": f"k = {k}"} for k in (3, 1, 2) for x in (1.0, 2.0)], "x", "y", "k"),
    es.risk(es.LinearRegressionTask(np.eye(2)), es.Readout(np.zeros((3, 3)), np.zeros(3)), 10),
]
bundles = [
    result._repr_mimebundle_() if hasattr(result, "_repr_mimebundle_") else {"text/plain": repr(result)} for result in results
]
outputs = json.dumps([{"words": repr(result), "data": bundle} for result, bundle in zip(results, bundles)])
(folder / "report.html").write_text(f"""<!doctype html><html><head><meta charset="utf-8"></head><body>
<section id="trusted"></section><section id="untrusted"></section>
<script id="outputs" type="application/json">{outputs.replace("</", "<" + chr(92) + "/")}</script>
<script>{script.read_text().replace("</script", "<" + chr(92) + "/script")}</script>
<script>
(async () => {{
  const outputs = JSON.parse(document.getElementById("outputs").textContent);
  for (const place of document.querySelectorAll("section")) {{
    for (const {{ data }} of outputs) {{
      const cell = document.createElement("div");
      place.append(cell);
      cell.dataset.type = await showOutput(data, place.id === "trusted", cell);
    }}
  }}
  const frames = [...document.querySelectorAll("iframe")];
  const timer = setInterval(() => {{
    if (frames.every((f) => f.contentDocument?.documentElement?.dataset.ready === "yes")) {{
      document.documentElement.dataset.ready = "yes";
      clearInterval(timer);
    }}
  }}, 100);
}})();
</script></body></html>""")
