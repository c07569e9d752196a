// What every browser test needs: a page of a report (PAGE SHOTS on the command line) opened in
// Chromium, checks that are counted, and the end "N passed, M failed".
import { createRequire } from "node:module";
import { mkdirSync } from "node:fs";
import { pathToFileURL } from "node:url";

const require = createRequire(process.env.ESSCHER_NODE_MODULES + "/");
const { chromium } = require("playwright-core");
const [page_file, folder] = process.argv.slice(2);
export const shots = folder;
mkdirSync(shots, { recursive: true });

let passed = 0;
let failed = 0;
export function check(name, condition, detail = "") {
  if (condition) passed += 1;
  else failed += 1;
  console.log(`${condition ? "ok  " : "FAIL"} ${name}${condition ? "" : ": " + detail}`);
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu"],
});

// The page, what it complained about and what it asked of the network.
export async function open(options) {
  const context = await browser.newContext({ viewport: { width: 1100, height: 900 }, ...options });
  const page = await context.newPage();
  const trouble = [];
  const requests = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) trouble.push(message.text());
  });
  page.on("pageerror", (error) => trouble.push(String(error)));
  page.on("dialog", (dialog) => { trouble.push("dialog"); dialog.dismiss(); });
  page.on("request", (request) => {
    if (!/^(data|blob):/.test(request.url())) requests.push(request.url());
  });
  await page.goto(pathToFileURL(page_file).href);
  await page.waitForSelector("html[data-ready=yes]", { timeout: 120000 });
  return { page, trouble, requests };
}

export async function finish() {
  await browser.close();
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed === 0 ? 0 : 1);
}
