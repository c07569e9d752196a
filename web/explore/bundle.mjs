// node bundle.mjs ENGINE.js ENGINE.wasm VERSION OUT.html: joins the page, its styles and scripts and the engine into
// one file that asks nothing of a network.
import { readFileSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const read = (file) => readFileSync(join(here, file), "utf8");
const [glue, module, version, out] = process.argv.slice(2);
const safe = (text) => text.replace(/<\/(script)/gi, "<\\/$1");

const scripts = ["numbers.js", "chart.js", "panel.js", "engine.js", "layer.js", "prompt.js", "training.js", "temperature.js", "main.js"];
const parts = {
  css: read("../report.css") + read("explore.css"),
  version,
  engine: safe(readFileSync(glue, "utf8")),
  bytes: gzipSync(readFileSync(module), { level: 9 }).toString("base64"),
  script: safe(`"use strict";\n(() => {\nconst workerSource = ${JSON.stringify(read("worker.js"))};\n${scripts.map(read).join("\n")}\n})();`),
};
const page = read("page.html").replace(/\{\{(\w+)\}\}/g, (_, name) => parts[name]);
writeFileSync(out, page);
