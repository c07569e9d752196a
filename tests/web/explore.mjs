// node explore.mjs PAGE SHOTS: opens the explorer in Chromium and looks at it the way a reader does. Every number of a
// settled state is compared with the native program (PAGE's folder has it as ./esscher), which runs the very command
// that the page shows. Prints "N passed, M failed"; screenshots go to SHOTS.
import { execFileSync } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { check, finish, open, shots } from "./browser.mjs";

const file = process.argv[2];
const program = `${dirname(file)}/esscher`;
function native(command) {
  try {
    return JSON.parse(execFileSync("bash", ["-c", command.replaceAll("esscher ", `${program} `)], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], maxBuffer: 1 << 28 }));
  } catch (error) {
    check(`the program runs ${command.slice(0, 60)} ..`, false, String(error.stderr).slice(0, 200));
    return { rows: [], regime: {}, path: [] };
  }
}

// The largest relative difference of numbers at the same place; infinite where the documents differ otherwise.
function difference(a, b, only) {
  if (typeof a === "number" && typeof b === "number") return a === b ? 0 : Math.abs(a - b) / Math.max(Math.abs(a), Math.abs(b));
  if (a === null || b === null || typeof a !== "object" || typeof b !== "object") return a === b ? 0 : Infinity;
  const keys = only ?? Object.keys(a);
  return Math.max(0, ...keys.map((key) => (key in a && key in b ? difference(a[key], b[key]) : Infinity)));
}
const columns = (rows, keys) => rows.map((row) => Object.fromEntries(keys.map((key) => [key, row[key]])));

const { page, trouble, requests } = await open({ viewport: { width: 1400, height: 900 }, colorScheme: "light" });
check("the page is below 6 MB", statSync(file).size < 6e6, String(statSync(file).size));

// Playwright's own waiting evaluates text, which the page forbids.
async function until(where, condition, argument, timeout = 120000) {
  for (const end = Date.now() + timeout; Date.now() < end;) {
    if (await where.evaluate(condition, argument)) return;
    await new Promise((later) => setTimeout(later, 20));
  }
  throw new Error(`timeout: ${condition}`);
}
const settled_yes = (id) => document.getElementById(id)?.dataset.settled === "yes";

async function go(hash) {
  await page.evaluate((h) => { document.querySelector(".panel").dataset.settled = "no"; location.hash = h; }, hash);
  await until(page, settled_yes, hash.split("?")[0].slice(1));
}
const of = (id, what) => page.evaluate(([i, w]) => window.explorer[i][w], [id, what]);
function same(name, ours, theirs, keys, tolerance = 1e-12) {
  const far = difference(ours, theirs, keys);
  check(`${name}: equal to the native program`, far <= tolerance, `relative difference ${far}`);
}

const rowKeys = ["L", "value", "ess", "asymptotic", "variance", "frozen"];
for (const [hash, kind] of [
  ["#layer?law=gaussian&d=4&s=1&p=0&u=0.4&L=6&e=-3", "exact"], ["#layer?law=gaussian&d=9&s=0.8&p=0.7&u=1.2&L=7.3&e=-2", "exact"],
  ["#layer?law=rademacher&d=3&s=1&p=0&u=0.5&L=3&e=-3", "drawn"], ["#layer?law=sphere&d=5&s=0.7&p=0.5&u=0.8&L=2&e=-2", "drawn"],
]) {
  await go(hash);
  const [curve, length] = await of("layer", "commandLines");
  const settled = await of("layer", "settled"), theirs = native(curve);
  same(`${hash} curve`, columns(settled.rows, rowKeys), columns(theirs.rows, rowKeys));
  same(`${hash} regime`, settled.regime, theirs.regime, ["regime", "lambda", "gamma", "constants"].filter((k) => k in theirs.regime));
  const draft = await of("layer", "draft");
  if (kind === "exact") {
    same(`${hash} L(eps)`, await of("layer", "answer"), native(length), ["length", "status", "eps", "value", "value_before", "clt"]);
    const known = new Map(settled.rows.map((row) => [row.L, row]));
    same(`${hash} while moving`, columns(draft.rows, ["value", "ess"]), draft.rows.map(({ L }) => ({ value: known.get(L).value, ess: known.get(L).ess })), undefined, 1e-10);
  }
}

await go("#prompt?u=1.5&k=3&z=100,40&x=" + Array.from({ length: 30 }, (_, i) => `${Math.round(200 * Math.cos(i * i))},${Math.round(170 * Math.sin(3 * i))}`).join("_"));
{
  const [gaussian, mixture] = (await of("prompt", "commandLines")).map(native);
  const answer = await of("prompt", "answer"), keys = ["output", "tilted_mean", "tilted_cov", "tau2", "log_mgf"];
  same("prompt", answer.prompt, gaussian.rows[0], [...keys, "effective_sample_size"]);
  same("Gaussian of the prompt", answer.gaussian, gaussian.rows[0].limit, keys);
  same("mixture of the prompt", answer.mixture, mixture.rows[0]?.limit ?? {}, keys);
  same("path of the prompt", answer.path.at(-1).prompt, gaussian.rows[0].output);
}

for (const hash of ["#training?d=4&L=2&n=0.25&p=0&a=0.5&T=1.5", "#training?d=7&L=3.4&n=0&p=0.8&a=0.3&T=1", "#training?d=2&L=1&n=1&p=0.5&a=0.8&T=2"]) {
  await go(hash);
  const settled = await of("training", "settled"), commands = await of("training", "commandLines");
  Object.keys(settled).forEach((name, i) => {
    const theirs = native(commands[i]);
    same(`${hash} ${name}`, settled[name], theirs, ["status", "steps", "t", "risk", "risk_std_error", "bayes", "bayes_std_error"]);
    // Entries of U that only the asymmetry of the nodes makes are small against the others.
    const [U, V] = [settled[name], theirs].map((doc) => (doc.U ?? []).flat());
    const far = Math.max(...U.map((u, k) => Math.abs(u - V[k]))) / Math.max(...U.map(Math.abs));
    check(`${hash} U of ${name}: equal to the native program`, U.length === V.length && far <= 1e-12, String(far));
    // Far below the start a risk is a difference of numbers of order one.
    const path = (doc) => doc.path.map(({ t, risk }) => ({ t, risk: risk + 1e-3 * doc.path[0].risk }));
    same(`${hash} path of ${name}`, path(settled[name]), path(theirs));
  });
}

for (const hash of ["#temperature?rule=constant&s=3&t=1&L=6", "#temperature?rule=root&c=1.6&L=12", "#temperature?rule=log&g=0.3&L=4.5"]) {
  await go(hash);
  const rows = (await of("temperature", "answer")).rows;
  const theirs = native((await of("temperature", "commandLines"))[0]);
  same(hash, rows.at(-1), theirs, ["L", "tau", "H", "M1", "M2c"]);
}

// Every state is a link.
await go("#layer?law=gaussian&d=6&s=0.5&p=1&u=0.9&L=4&e=-5");
await until(page, () => location.hash.includes("d=6"));
const link = page.url();
await page.locator("#layer-d").focus();
await page.keyboard.press("ArrowRight");
await until(page, () => location.hash.includes("d=7"));
check("a key moves a slider and the link", (await of("layer", "state")).d === 7);
await page.goto("about:blank");
await page.goto(link);
await page.waitForSelector("html[data-ready=yes]");
check("a link restores the state", JSON.stringify(await of("layer", "state")) === JSON.stringify({ law: "gaussian", d: 6, s: 0.5, p: 1, u: 0.9, L: 4, e: -5 }), JSON.stringify(await of("layer", "state")));
// A move writes its address 200 ms later; a link that was followed just before that moment is not written over.
await go("#temperature?rule=log&g=0.3&L=5");
await page.evaluate(() => {
  const { setTimeout } = window;
  let write = null;
  window.setTimeout = (f, ms) => (ms === 200 ? void (write = f) : setTimeout(f, ms));
  window.explorer.temperature.set({ L: 4 });
  window.setTimeout = setTimeout;
  location.hash = "#layer?law=gaussian&d=11&s=0.5&p=1&u=0.9&L=4&e=-5";
  write();
});
await new Promise((later) => setTimeout(later, 300));
check("a link that is followed right after a move is read", (await of("layer", "state")).d === 11, await page.evaluate(() => location.hash));
await go("#layer?law=nonsense&d=1e9&L=abc");
check("a broken link is bounded", (await of("layer", "state")).d === 16 && (await of("layer", "state")).law === "gaussian");

// Each slider move answers soon: the time of the engine itself, the middle of several, since tests share the machine.
async function moves(id, key, values, ready = () => true) {
  await go(`#${id}?d=4&L=2`);
  await until(page, ready);
  const times = [];
  for (const value of values) {
    await page.evaluate(([i, k, v]) => { window.explorer[i].took = null; window.explorer[i].set({ [k]: v }); }, [id, key, value]);
    await until(page, (i) => window.explorer[i].took !== null, id);
    times.push(await of(id, "took"));
  }
  times.sort((a, b) => a - b);
  console.log(`     ${id}.${key}: ${times.map((t) => t.toFixed(1)).join(", ")} ms`);
  const middle = times[times.length >> 1];
  check(`${id}: a move of ${key} takes below 50 ms`, middle < 50, String(middle));
}
await moves("layer", "u", [0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65]);
await moves("training", "n", [0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65]);
const warm = () => window.explorer.training.root.dataset.warm === "yes";
await moves("training", "L", [2.1, 2.2, 2.3, 1.9, 1.8, 1.7], warm);
await moves("training", "L", [6, 0.3, 4.5, 1, 5.5, 0.7], warm);  // far jumps
await moves("temperature", "L", [3, 4, 5, 6, 7, 8, 9, 10]);

// The hand: a click adds a token, the query is dragged, keys work too.
await go("#prompt?u=1&k=2&z=100,40&x=-100,0_-120,20_150,30");
const plane = page.locator("#prompt .plane");
const box = await plane.locator("svg").boundingBox();
await page.mouse.click(box.x + box.width * 0.3, box.y + box.height * 0.3);
await until(page, () => window.explorer.prompt.answer?.weights.length === 4);
check("a click adds a token", (await of("prompt", "tokens")).length === 4);
const query = await plane.locator("circle.query").boundingBox();
await page.mouse.move(query.x + query.width / 2, query.y + query.height / 2);
await page.mouse.down();
await page.mouse.move(box.x + box.width * 0.7, box.y + box.height * 0.8, { steps: 4 });
await page.mouse.up();
check("the query is dragged", (await of("prompt", "query"))[1] < -1, JSON.stringify(await of("prompt", "query")));
await plane.focus();
await page.keyboard.press("Enter");
await page.keyboard.press("ArrowLeft");
check("keys add a token and move the query", (await of("prompt", "tokens")).length === 5);
for (let i = 0; i < 5; i++) await page.keyboard.press("Backspace");
check("an empty prompt asks for tokens", (await page.locator("#prompt h2").innerText()).includes("Draw"));

// Pictures: nothing is cut, nothing overlaps, and each is saved as SVG.
const PANELS = ["layer", "prompt", "training", "temperature"];
const bad = (page_) => page_.evaluate(() => {
  const out = [];
  for (const svg of document.querySelectorAll(".picture svg")) {
    const frame = svg.getBoundingClientRect();
    // Turned words have turned boxes. They cover each other if no side of either parts their corners, up to a pixel along
    // the words and three across, where letters leave room.
    const corners = (t) => {
      const b = t.getBBox(), m = t.getScreenCTM();
      return [[b.x, b.y], [b.x + b.width, b.y], [b.x + b.width, b.y + b.height], [b.x, b.y + b.height]].map(([x, y]) => [m.a * x + m.c * y + m.e, m.b * x + m.d * y + m.f]);
    };
    const texts = [...svg.querySelectorAll("text")].map((t) => ({ text: t.textContent, box: t.getBoundingClientRect(), corners: corners(t) })).filter((t) => t.text);
    for (const { text, box } of texts) if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 2 || box.bottom > frame.bottom + 1) out.push(`cut: ${text}`);
    const shared = (a, b) => Math.min(...[a, b].flatMap((box) => [0, 1].map((i) => {
      const [dx, dy] = [box[i + 1][0] - box[i][0], box[i + 1][1] - box[i][1]], length = Math.hypot(dx, dy);
      const [p, q] = [a, b].map((c) => c.map(([x, y]) => (x * dx + y * dy) / length));
      return Math.min(Math.max(...p), Math.max(...q)) - Math.max(Math.min(...p), Math.min(...q)) - [1, 3][i];
    })));
    texts.forEach((a, i) => texts.slice(i + 1).forEach((b) => {
      if (shared(a.corners, b.corners) > 0) out.push(`overlap: ${a.text} | ${b.text}`);
    }));
  }
  return out;
});
const STATES = { layer: "#layer?law=gaussian&d=4&s=1&p=0&u=0.4&L=6&e=-3", prompt: "#prompt?u=1&k=2&z=100,40&x=-140,-40_-120,20_150,30_160,80_120,60_-150,-90_130,10_170,50", training: "#training?d=4&L=2&n=0.25&p=0&a=0.5&T=1.5", temperature: "#temperature?rule=constant&s=3&t=1&L=6" };
for (const id of PANELS) {
  await go(STATES[id]);
  const found = await bad(page);
  check(`${id}: no text cut or overlapping at 1400 px`, found.length === 0, found.join("; "));
  await page.screenshot({ path: `${shots}/wide-${id}.png`, fullPage: true });
  const waiting = page.waitForEvent("download", { timeout: 20000 });
  await page.locator(`#${id} .tools button`, { hasText: "SVG" }).first().click();
  const svg = readFileSync(await (await waiting).path(), "utf8");
  check(`${id}: saves SVG`, svg.startsWith("<svg") && svg.includes("http://www.w3.org/2000/svg") && !svg.includes("var(--") && svg.length > 1500, svg.slice(0, 80));
}
await page.locator("#tab-layer").focus();
await page.keyboard.press("ArrowRight");
check("arrow keys change the panel", await page.locator("#prompt").isVisible());
check("no console error", trouble.length === 0, trouble.join(" | "));
check("no network request", requests.every((url) => url.startsWith("file:") || url === "about:blank"), requests.join(" "));

const dark = await open({ viewport: { width: 1400, height: 900 }, colorScheme: "dark" });
await dark.page.waitForSelector("#layer[data-settled=yes]", { timeout: 120000 });
const ink = await dark.page.$eval("#layer svg text", (text) => text.getAttribute("fill"));
check("dark by preference", ink === "#a7b1bf", ink);
await dark.page.screenshot({ path: `${shots}/dark-layer.png`, fullPage: true });

const phone = await open({ viewport: { width: 390, height: 800 }, colorScheme: "light", hasTouch: true, isMobile: true });
for (const id of PANELS) {
  await phone.page.evaluate((h) => { location.hash = h; }, STATES[id]);
  await until(phone.page, settled_yes, id);
  const overflow = await phone.page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  check(`${id}: nothing sticks out on a phone`, overflow <= 0, String(overflow));
  const found = await bad(phone.page);
  check(`${id}: no text cut or overlapping at 390 px`, found.length === 0, found.join("; "));
  const size = await phone.page.evaluate(() => {  // in one step: a picture is drawn anew at any time
    const svg = document.querySelector(".picture svg");
    return svg.getBoundingClientRect().width / svg.viewBox.baseVal.width * 12.5;
  });
  check(`${id}: text is readable on a phone`, size > 10, String(size));
  await phone.page.screenshot({ path: `${shots}/phone-${id}.png`, fullPage: true });
}
await finish();
