// node paper.mjs PAGE SHOTS: opens the report of `esscher paper --size tiny` in Chromium: every
// section is there with a verdict, every figure is drawn. Prints "N passed, M failed".
import { execFileSync } from "node:child_process";
import { check, finish, open, shots } from "./browser.mjs";
import { check_figures } from "./figures.mjs";

const SECTIONS = ["lemma-2.1", "almost-sure", "prop-3.1", "prop-3.4", "stability", "theorem-4.3",
  "theorem-5.1", "transfer", "experiment"];

const { page, trouble } = await open({});
check("no console error", trouble.length === 0, trouble.join(" | "));

for (const id of SECTIONS) {
  const section = page.locator(`[id="${id.replaceAll(".", "-")}"]`);  // as the page writes it
  if ((await section.count()) !== 1) {
    check(`section ${id}`, false, `${await section.count()} elements with this id`);
    continue;
  }
  const text = await section.innerText();
  const badges = await section.locator(".verdict .badge").allInnerTexts();
  check(`verdict of ${id}`, badges.length === 1 && /holds/i.test(badges[0]), badges.join(" | ") + text.slice(0, 200));
  check(`rerun of ${id}`, text.includes(`--section ${id}`), text.slice(-200));
  check(`formula of ${id}`, (await section.locator("math").count()) > 0);
  const marks = await section.locator(".chart").evaluateAll((charts) => charts.map((chart) =>
    chart.querySelectorAll("[class*=mark-line] path, [class*=mark-rect] path, [class*=mark-symbol] path").length));
  check(`figures of ${id}`, marks.length > 0 && marks.every((n) => n > 0), JSON.stringify(marks));
}
await page.screenshot({ path: `${shots}/paper.png`, fullPage: true });

// On paper a table that goes on repeats its head: with 200 rows more, three sheets more have one.
async function sheets_with_head() {
  await page.pdf({ path: `${shots}/paper.pdf`, preferCSSPageSize: true });
  const sheets = execFileSync("pdftotext", ["-layout", `${shots}/paper.pdf`, "-"]).toString().split("\f");
  return sheets.filter((sheet) => /figure\s+value\s+error/.test(sheet)).length;
}
const heads = await sheets_with_head();
await page.evaluate(() => {
  const body = document.querySelector("table tbody");
  for (let i = 0; i < 200; ++i) body.append(body.rows[0].cloneNode(true));
});
const more = await sheets_with_head();
check("a printed table repeats its head", more >= heads + 3, `${heads}, then ${more} sheets`);
await check_figures("paper");
await finish();
