// Reads one JSON array of [TeX, display] per line and answers with one JSON array of HTML, by Debian's KaTeX. A formula
// that KaTeX does not understand is answered by {"error": ".."}.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const katex = createRequire(import.meta.url)("/usr/share/javascript/katex/katex.js");

function render([tex, displayMode]) {
  try {
    return katex.renderToString(tex, { displayMode, output: "htmlAndMathml", strict: "error", throwOnError: true });
  } catch (error) {
    return { error: `${error.message} in "${tex}"` };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(JSON.stringify(JSON.parse(line).map(render)) + "\n");
}
