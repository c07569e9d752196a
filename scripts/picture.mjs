// node picture.mjs PAGE.html SELECTOR OUT.svg [PAGE.html SELECTOR OUT.svg ...]: charts of built pages as SVG, as the
// page draws them on white: OUT.svg, about 580 wide, and OUT-narrow.svg for phones. Needs Chromium and the node modules
// of the browser tests (ESSCHER_NODE_MODULES).
import { createRequire } from "node:module";
import { writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { chromium } = createRequire(process.env.ESSCHER_NODE_MODULES + "/")("playwright-core");
const jobs = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });

// The chart with a box of its own, on white; a chart of several parts is laid out by Vega as one.
const drawn = (svg) => {
  const copy = svg.cloneNode(true);
  const width = Number(svg.getAttribute("width"));
  const height = Number(svg.getAttribute("height"));
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("viewBox", `0 0 ${width} ${height}`);
  copy.removeAttribute("style");
  const paper = copy.querySelector("rect.background") ?? copy.insertBefore(document.createElementNS("http://www.w3.org/2000/svg", "rect"), copy.firstChild);
  for (const [name, value] of Object.entries({ width, height, fill: "#ffffff" })) paper.setAttribute(name, value);
  // What only screen readers of the page use, and what marks without ink carry.
  copy.querySelectorAll("*").forEach((node) => {
    for (const name of [...node.getAttributeNames()]) if (/^aria-|^role$|^class$/.test(name)) node.removeAttribute(name);
  });
  const text = new XMLSerializer().serializeToString(copy);
  // Places need no more than two decimals; words, such as the 0.005 of a tick, keep all of theirs.
  const short = (places) => places.replace(/-?\d+\.\d{3,}/g, (number) => String(Math.round(Number(number) * 100) / 100));
  return text.replace(/="[^"]*"/g, short);
};

// Widths of the window; a page of docs/ leaves 358 px to a picture on a phone of 390 px.
for (const [width, ending] of [[640, ".svg"], [390, "-narrow.svg"]]) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: "light" });
  for (let i = 0; i < jobs.length; i += 3) {
    const [file, selector, out] = jobs.slice(i, i + 3);
    const page = await context.newPage();
    await page.goto(pathToFileURL(file).href);
    await page.waitForSelector("html[data-ready=yes]", { timeout: 120000 });
    const chart = page.locator(`${selector} svg`).first();
    await chart.scrollIntoViewIfNeeded();
    writeFileSync(out.replace(/\.svg$/, ending), (await chart.evaluate(drawn)) + "\n");
    await page.close();
  }
  await context.close();
}
await browser.close();
