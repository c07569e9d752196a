// node report.mjs PAGE SHOTS: opens a report of the demo run in Chromium and looks at it the way a
// reader does. Prints "N passed, M failed"; screenshots go to SHOTS.
import { readFileSync, statSync } from "node:fs";
import { check, finish, open, shots } from "./browser.mjs";
import { check_figures } from "./figures.mjs";

// Opacities of the drawn lines, one per series, in the first figure.
const lineOpacities = (page) => page.$$eval(
  "#rate-curves .mark-line path", (paths) => paths.map((path) => getComputedStyle(path).opacity));

const { page, trouble, requests } = await open({ colorScheme: "light" });
check("no console error", trouble.length === 0, trouble.join(" | "));
check("no network request", requests.length === 1 && requests[0].startsWith("file:"), requests.join(" "));

const charts = await page.$$eval(".chart", (all) => all.map((chart) => ({
  id: chart.dataset.figure,
  marks: chart.querySelectorAll(
    "[class*=mark-line] path, [class*=mark-rect] path, [class*=mark-symbol] path").length,
  label: chart.getAttribute("aria-label"),
})));
check("five figures", charts.length === 5, String(charts.length));
for (const chart of charts) {
  check(`marks drawn in ${chart.id}`, chart.marks > 5, String(chart.marks));
  check(`label of ${chart.id}`, chart.label.length > 20, chart.label);
}
await page.screenshot({ path: `${shots}/light.png`, fullPage: true });

const dots = await page.$$("#rate-curves .mark-symbol.role-mark path");
await dots[3].scrollIntoViewIfNeeded();
// By position: points that are not seen, above all others, carry the tooltips.
const dot = await dots[3].boundingBox();
await page.mouse.move(dot.x + dot.width / 2, dot.y + dot.height / 2);
const tip = page.locator("#vg-tooltip-element.visible");
await tip.waitFor({ timeout: 5000 });
const tip_text = await tip.innerText();
check("tooltip on hover", /metric/.test(tip_text) && /value/.test(tip_text), tip_text);
await page.screenshot({ path: `${shots}/tooltip.png` });

const before = await lineOpacities(page);
// By position: Vega catches the click on a transparent shape above the text.
async function clickLegend() {
  await page.mouse.move(1, 1);
  const entry = page.locator("#rate-curves .role-legend-label text", { hasText: "output" });
  const box = await entry.boundingBox();
  await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
}
await clickLegend();
await page.waitForTimeout(300);
const after = await lineOpacities(page);
check("legend hides the other series",
  before.every((o) => o !== "0") && after.filter((o) => o === "0").length > 0 && after.some((o) => o !== "0"),
  JSON.stringify({ before, after }));
await page.screenshot({ path: `${shots}/legend.png` });
await clickLegend();
await page.waitForTimeout(300);
check("legend brings them back", (await lineOpacities(page)).every((o) => o !== "0"));

const header = page.locator("table.sortable").first().locator("th button", { hasText: "slope" });
await header.focus();
await page.keyboard.press("Enter");
const slopes = await page.$$eval("table.sortable:first-of-type tbody tr td:nth-child(2)",
  (cells) => cells.slice(0, 3).map((cell) => Number(cell.textContent.replace("−", "-"))));
check("table sorts by keyboard", slopes[0] <= slopes[1] && slopes[1] <= slopes[2], String(slopes));

const text = await page.locator("#others").innerText();
check("markup in data stays text", text.includes("<b>& markup") && text.includes("</script><script>alert(1)"), text);
check("unsafe MathML is not inserted", (await page.$$("#others .formula math")).length === 0);
check("MathML is drawn", (await page.$$("#rate .formula math")).length === 1);

for (const [label, kind] of [["SVG", "svg"], ["PNG", "png"], ["Chart (JSON)", "json"], ["Data (CSV)", "csv"]]) {
  const waiting = page.waitForEvent("download", { timeout: 20000 });
  await page.locator("#rate-curves .tools button", { hasText: label }).click();
  const file = await (await waiting).path();
  check(`saves ${kind}`, statSync(file).size > 500, String(statSync(file).size));
}
const waiting = page.waitForEvent("download", { timeout: 20000 });
await page.locator("#download-rows").click();
const rows = readFileSync(await (await waiting).path(), "utf8");
check("all rows download", rows.startsWith("cell,L,metric,value") && rows.split("\r\n").length === 302,
  rows.slice(0, 60));

const slider = page.locator("#others-heatmap input[type=range]");
await slider.fill("0");
await page.waitForTimeout(300);
const title = await page.locator("#others-heatmap .role-title-text").first().innerHTML();
check("slider moves the heatmap", title.includes("time = 0"), title);

await page.locator("#theme").click();
await page.waitForTimeout(1500);
const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
check("dark by the button", background === "rgb(18, 23, 30)", background);
check("still no console error", trouble.length === 0, trouble.join(" | "));

const dark = await open({ colorScheme: "dark" });
const ink = await dark.page.$eval("#rate-curves .role-axis-title text", (node) => node.getAttribute("fill"));
check("dark by preference", ink === "#e4e8ee", ink);
await dark.page.screenshot({ path: `${shots}/dark.png`, fullPage: true });

const phone = await open({ viewport: { width: 390, height: 800 }, colorScheme: "light" });
const overflow = await phone.page.evaluate(
  () => document.documentElement.scrollWidth - document.documentElement.clientWidth);
check("nothing sticks out on a phone", overflow <= 0, String(overflow));
await phone.page.screenshot({ path: `${shots}/phone.png`, fullPage: true });

await phone.page.emulateMedia({ media: "print" });
check("print hides the tools", !(await phone.page.locator(".tools").first().isVisible()));

await check_figures("demo");
await finish();
