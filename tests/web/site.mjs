// node site.mjs SITE: the pages of the documentation in Chromium, as a reader sees them on a desk and on a phone, light and
// dark: nothing sticks out, no line of code is cut, every picture is there and a chart can be read, the search finds, nothing is asked of another
// host. Prints "N passed, M failed".
import { createReadStream, existsSync, readdirSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { extname, join, relative } from "node:path";

const require = createRequire(process.env.ESSCHER_NODE_MODULES + "/");
const { chromium } = require("playwright-core");
const site = process.argv[2];
let passed = 0, failed = 0;
function check(name, condition, detail = "") {
  if (condition) passed += 1;
  else (failed += 1), console.log(`FAIL ${name}: ${detail}`);
}

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json", ".svg": "image/svg+xml", ".png": "image/png", ".woff2": "font/woff2" };
const server = createServer((request, response) => {
  let file = join(site, decodeURIComponent(new URL(request.url, "http://x").pathname));
  if (existsSync(file) && statSync(file).isDirectory()) file = join(file, "index.html");
  if (!existsSync(file)) return response.writeHead(404).end();
  response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" });
  createReadStream(file).pipe(response);
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
const base = `http://127.0.0.1:${server.address().port}/`;
const pagesOf = (folder) => readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
  entry.isDirectory() ? pagesOf(join(folder, entry.name)) : entry.name === "index.html" ? [relative(site, folder)] : []);

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
for (const [width, colorScheme] of [[1400, "light"], [390, "dark"]]) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme });
  const page = await context.newPage();
  const trouble = [], elsewhere = [];
  page.on("console", (message) => { if (message.type() === "error") trouble.push(message.text()); });
  page.on("pageerror", (error) => trouble.push(String(error)));
  page.on("request", (request) => { if (!request.url().startsWith(base) && !/^(data|blob):/.test(request.url())) elsewhere.push(request.url()); });
  for (const name of pagesOf(site)) {
    await page.goto(base + (name ? name + "/" : ""));
    const at = `${name || "home"} at ${width} px, ${colorScheme}`;
    const seen = await page.evaluate(() => ({
      wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
      cut: [...document.querySelectorAll(".code.input pre")].filter((pre) => pre.scrollWidth > pre.clientWidth + 1).map((pre) => pre.textContent.slice(0, 50)),
      lost: [...document.images].filter((image) => !(image.complete && image.naturalWidth > 0)).map((image) => image.src),
      small: [...document.querySelectorAll("article > p img")].filter((image) => /\.svg$/.test(image.currentSrc) && (image.clientWidth < (image.closest("picture") ? 0.9 : 0.6) * image.naturalWidth || image.getBoundingClientRect().right > document.documentElement.clientWidth + 1)).map((image) => image.currentSrc),
      bars: (document.querySelector("article").innerText.match(/.{0,20}\\\|.{0,20}/g) ?? []).filter((text) => !text.includes("grep")),
      unset: [...document.querySelectorAll(".formula")].filter((formula) => !formula.querySelector(".katex math")).length,
      paper: getComputedStyle(document.body).backgroundColor,
    }));
    check(`${at}: nothing sticks out`, seen.wide <= 0, `${seen.wide} px`);
    check(`${at}: code is not cut`, seen.cut.length === 0, JSON.stringify(seen.cut));
    check(`${at}: pictures are there`, seen.lost.length === 0, JSON.stringify(seen.lost));
    check(`${at}: no escaped bar is seen`, seen.bars.length === 0, JSON.stringify(seen.bars));
    check(`${at}: charts are neither cut nor too small to read`, seen.small.length === 0, JSON.stringify(seen.small));
    check(`${at}: formulas are set`, seen.unset === 0, String(seen.unset));
    check(`${at}: the paper is ${colorScheme}`, (colorScheme === "dark") === (seen.paper === "rgb(18, 23, 30)"), seen.paper);
  }
  check(`no console error, ${colorScheme}`, trouble.length === 0, trouble.slice(0, 3).join(" | "));
  check(`nothing is asked of another host, ${colorScheme}`, elsewhere.length === 0, elsewhere.slice(0, 3).join(" "));
  await page.goto(base);
  await page.locator("#mkdocs-search-query").pressSequentially("needle");
  const first = page.locator("#mkdocs-search-results article a").first();
  await first.waitFor({ timeout: 20000 });
  const found = await page.locator("#mkdocs-search-results article").count();
  check(`the search finds, ${width} px`, found > 2, String(found));
  const target = await first.evaluate((link) => link.href);
  await first.click();
  await page.waitForURL(target);
  check(`a result leads to its page, ${width} px`, (await page.locator("article").first().innerText()).toLowerCase().includes("needle"), page.url());
  await page.locator("#theme").click();
  const after = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  check(`the button turns ${colorScheme}`, (colorScheme === "light") === (after === "rgb(18, 23, 30)"), after);
  await context.close();
}
await browser.close();
server.close();
console.log(`site in Chromium: ${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
