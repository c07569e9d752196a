// node paper.mjs PAGE SHOTS: opens the report of `esscher paper --size tiny` in Chromium: every
// section is there with a verdict, every figure is drawn. Prints "N passed, M failed".
import { createRequire } from "node:module";
import { mkdirSync } from "node:fs";
import { pathToFileURL } from "node:url";

const require = createRequire(process.env.ESSCHER_NODE_MODULES + "/");
const { chromium } = require("playwright-core");
const [page_file, shots] = process.argv.slice(2);
mkdirSync(shots, { recursive: true });

const SECTIONS = ["lemma-2.1", "almost-sure", "prop-3.1", "prop-3.4", "stability", "theorem-4.3",
  "theorem-5.1", "transfer", "experiment"];
let passed = 0;
let failed = 0;
function check(name, condition, detail = "") {
  if (condition) passed += 1;
  else failed += 1;
  console.log(`${condition ? "ok  " : "FAIL"} ${name}${condition ? "" : ": " + detail}`);
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu"],
});
const page = await (await browser.newContext({ viewport: { width: 1100, height: 900 } })).newPage();
const trouble = [];
page.on("console", (message) => {
  if (["error", "warning"].includes(message.type())) trouble.push(message.text());
});
page.on("pageerror", (error) => trouble.push(String(error)));
await page.goto(pathToFileURL(page_file).href);
await page.waitForSelector("html[data-ready=yes]", { timeout: 120000 });
check("no console error", trouble.length === 0, trouble.join(" | "));

for (const id of SECTIONS) {
  const section = page.locator(`[id="${id.replaceAll(".", "-")}"]`);  // as the page writes it
  if ((await section.count()) !== 1) {
    check(`section ${id}`, false, `${await section.count()} elements with this id`);
    continue;
  }
  const text = await section.innerText();
  check(`verdict of ${id}`, /holds/i.test(text) && !/\bfails\b/i.test(text), text.slice(0, 200));
  check(`rerun of ${id}`, text.includes(`--section ${id}`), text.slice(-200));
  check(`formula of ${id}`, (await section.locator("math").count()) > 0);
  const marks = await section.locator(".chart").evaluateAll((charts) => charts.map((chart) =>
    chart.querySelectorAll("[class*=mark-line] path, [class*=mark-rect] path, [class*=mark-symbol] path").length));
  check(`figures of ${id}`, marks.length > 0 && marks.every((n) => n > 0), JSON.stringify(marks));
}
await page.screenshot({ path: `${shots}/paper.png`, fullPage: true });
await browser.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
