// node bundle.mjs NODE_MODULES OUT: joins the browser builds of the chart libraries, each with its
// licence, into one script that may stand inside a <script> element.
import { readFileSync, writeFileSync } from "node:fs";

const [modules, out] = process.argv.slice(2);
const parts = ["vega", "vega-lite", "vega-embed"].map((name) => {
  const read = (file) => readFileSync(`${modules}/${name}/${file}`, "utf8");
  const version = JSON.parse(read("package.json")).version;
  const licence = read("LICENSE").replaceAll("*/", "* /");
  const code = read(`build/${name}.min.js`).replace(/^\/\/# sourceMappingURL=.*$/gm, "");
  return `/* ${name} ${version}\n${licence}*/\n${code}`;
});
writeFileSync(out, parts.join("\n").replace(/<\/(script)/gi, "<\\/$1"));
