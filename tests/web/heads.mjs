// node heads.mjs PAGE SHOTS: opens the report of `esscher heads` on the four sample heads in
// Chromium: the table sorts, the heads are coloured by verdict, every head has its three figures.
// Prints "N passed, M failed".
import { check, finish, open, shots } from "./browser.mjs";
import { check_figures } from "./figures.mjs";

const { page, trouble } = await open({ colorScheme: "light" });
check("a scatter and four figures per head", (await page.$$(".chart")).length === 17);
const colours = await page.$$eval("#overview .mark-symbol.role-mark path",
  (dots) => dots.map((dot) => dot.getAttribute("stroke") + dot.getAttribute("fill")));
check("four heads in the scatter", colours.length === 4, String(colours.length));
check("coloured by verdict", new Set(colours).size === 3, colours.join(" "));

const table = page.locator("#overview table.sortable");
const column = (index) => table.locator(`tbody tr td:nth-child(${index})`).allInnerTexts();
const numbers = async (index) => (await column(index)).map(Number);
const rises = (values) => values.every((value, i) => i === 0 || values[i - 1] <= value);
const titles = await table.locator("th").allInnerTexts();
for (const title of ["error of the limit", "Gaussian keys would show", "τ²", "ESS"]) {
  const index = titles.findIndex((text) => text.trim() === title) + 1;
  const header = table.locator("th button", { hasText: new RegExp(`^${title}$`) });
  await header.click();
  check(`sorts by ${title}`, index > 0 && rises(await numbers(index)), String(await column(index)));
  await header.click();
  check(`sorts by ${title}, falling`, rises((await numbers(index)).reverse()), String(await column(index)));
}
await table.locator("th button", { hasText: "verdict" }).click();
const verdicts = await column(2);
check("sorts by verdict", rises(verdicts) && verdicts[3].startsWith("too short"), verdicts.join(" | "));

for (let head = 0; head < 4; ++head) {
  const bands = await page.$$(`#head-${head} .mark-area path`);
  check(`bands of head ${head}: exact prediction, histogram`, bands.length >= 2, String(bands.length));
}
await page.screenshot({ path: `${shots}/light.png`, fullPage: true });
await (await open({ colorScheme: "dark" })).page.screenshot({ path: `${shots}/dark.png`, fullPage: true });
const { page: phone } = await open({ viewport: { width: 390, height: 800 } });
const overflow = await phone.evaluate(
  () => document.documentElement.scrollWidth - document.documentElement.clientWidth);
check("nothing sticks out on a phone", overflow <= 0, String(overflow));
await phone.screenshot({ path: `${shots}/phone.png`, fullPage: true });
check("no console error", trouble.length === 0, trouble.join(" | "));

await check_figures("heads");
await finish();
