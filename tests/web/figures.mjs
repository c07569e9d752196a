// node figures.mjs PAGE SHOTS: every chart of a report at 1400 and at 390 px, as a reader with a ruler
// would check it. Other tests call check_figures for the reports that they open.
//   in the dark its words are light; no text is cut or covers another one; nothing is wider than its place; no tick lies outside its
//   axis; no two series of a chart have the same colour and dash, and a category beside ordered
//   series is far from their colours; legends of ordered series are in numeric order; a category has
//   one colour on the whole page; at 1400 px no table is wider than its place; a table that is higher says so; formulas are drawn and
//   no TeX is left in the text.
import { pathToFileURL } from "node:url";
import { check, finish, open, shots } from "./browser.mjs";

// What one chart shows, measured in the page.
function measured(holder) {
  const svg = holder.querySelector("svg");
  if (!svg) return { id: holder.dataset.figure, empty: true };
  const frame = svg.getBoundingClientRect();
  const box = (node) => {
    const b = node.getBoundingClientRect();
    return { left: b.left, right: b.right, top: b.top, bottom: b.bottom };
  };
  const texts = [...svg.querySelectorAll("text")]
    .filter((node) => node.textContent.trim() !== "" && !node.hasAttribute("stroke") && Number(node.getAttribute("opacity") ?? 1) > 0)
    .map((node) => ({ text: node.textContent, ...box(node) }));
  const cut = texts.filter((t) => t.left < frame.left - 1 || t.right > frame.right + 1 || t.top < frame.top - 1 || t.bottom > frame.bottom + 1);
  const covered = [];
  for (let i = 0; i < texts.length; ++i) {
    for (let j = i + 1; j < texts.length; ++j) {
      const [a, b] = [texts[i], texts[j]];
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 1 && high > 3) covered.push(`${a.text} / ${b.text}`);
    }
  }
  const ticks = [];
  for (const axis of svg.querySelectorAll(".role-axis")) {
    const domain = axis.querySelector(".role-axis-domain line");
    if (!domain) continue;
    const d = box(domain);
    for (const tick of axis.querySelectorAll(".role-axis-tick line")) {
      const t = box(tick);
      const outside = d.right - d.left > d.bottom - d.top ? t.left < d.left - 1.5 || t.right > d.right + 1.5 : t.top < d.top - 1.5 || t.bottom > d.bottom + 1.5;
      if (outside) ticks.push(JSON.stringify(t));
    }
  }
  // The lines of the first layer of each panel are its series.
  const looks = new Map();
  for (const group of svg.querySelectorAll(".mark-line.role-mark")) {
    const name = [...group.classList].find((c) => /(^|_)layer_0_marks$/.test(c));
    if (!name) continue;
    for (const path of group.querySelectorAll("path")) {
      if (!looks.has(name)) looks.set(name, []);
      looks.get(name).push(path.getAttribute("stroke") + " " + (path.getAttribute("stroke-dasharray") ?? ""));
    }
  }
  const legend = [...svg.querySelectorAll(".role-legend-label text")].map((node) => node.textContent);
  return {
    id: holder.dataset.figure, cut: cut.map((t) => t.text), covered, ticks, legend, texts: texts.length,
    looks: [...looks.values()], wide: holder.scrollWidth - holder.clientWidth,
    quiet: Boolean(JSON.parse(document.getElementById("page-data").textContent).figures[holder.dataset.figure].usermeta?.esscher?.quiet),
  };
}

const order = (name) => {
  const found = /^(\S+) = (.+)$/.exec(name);
  if (!found) return null;
  const raised = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  const plain = found[2].replace("∞", "Infinity").replace("−", "-")
    .replace(/(?:([\d.]+)×)?10(⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)/, (_, m, e) => (m ?? "1") + "e" + [...e].map((c) => (c === "⁻" ? "-" : raised.indexOf(c))).join(""));
  const number = Number(plain);
  return Number.isNaN(number) ? null : number;  // "d = 1, α = 2" is not ordered by one number
};

// The words of charts on a dark page are light and stand on no white ground.
async function check_dark(name) {
  const { page } = await open({ viewport: { width: 1400, height: 1000 }, colorScheme: "dark" });
  const dark = await page.$$eval(".chart", (all) => all.flatMap((holder) => {
    const light = (colour) => { const parts = /rgb\((\d+), (\d+), (\d+)/.exec(colour); return parts ? (Number(parts[1]) + Number(parts[2]) + Number(parts[3])) / 765 : 1; };
    const words = [...holder.querySelectorAll(".role-axis-label text, .role-axis-title text, .role-legend-label text, .role-title-text text")];
    const ground = getComputedStyle(holder.querySelector("svg")).backgroundColor;
    const bad = words.filter((text) => light(getComputedStyle(text).fill) < 0.45).map((text) => text.textContent);
    if (!/rgba\(0, 0, 0, 0\)|transparent/.test(ground) && light(ground) > 0.3) bad.push("ground " + ground);
    return bad.length ? [[holder.dataset.figure, bad]] : [];
  }));
  check(`${name}, dark: words are light on dark ground`, dark.length === 0, JSON.stringify(dark));
  await page.screenshot({ path: `${shots}/${name}-dark.png`, fullPage: true });
  await page.emulateMedia({ media: "print" });
  // In one step: the sheet has another width, so charts are drawn anew soon.
  const filter = await page.evaluate(() => getComputedStyle(document.querySelector(".chart svg")).filter);
  check(`${name}, dark: charts are turned light on paper`, filter.includes("invert(1)"), filter);
  await page.context().close();
}

export async function check_figures(name) {
  await check_dark(name);
  for (const width of [1400, 390]) {
    const { page, trouble } = await open({ viewport: { width, height: 1000 }, colorScheme: "light" });
    const charts = await page.$$eval(".chart", (all, source) => all.map(eval(`(${source})`)), measured.toString());
    const bad = (test) => charts.filter((c) => !c.empty && test(c)).map((c) => c.id);
    const at = `${name} at ${width} px`;
    check(`${at}: charts are drawn`, charts.length > 0 && charts.every((c) => !c.empty && c.texts > 3), JSON.stringify(charts.filter((c) => c.empty)));
    check(`${at}: no text is cut`, bad((c) => c.cut.length > 0).length === 0, JSON.stringify(charts.filter((c) => c.cut?.length).map((c) => [c.id, c.cut])));
    check(`${at}: no text covers another`, bad((c) => c.covered.length > 0).length === 0, JSON.stringify(charts.filter((c) => c.covered?.length).map((c) => [c.id, c.covered])));
    check(`${at}: charts fit their place`, bad((c) => c.wide > 1).length === 0, JSON.stringify(charts.map((c) => [c.id, c.wide])));
    check(`${at}: ticks lie on their axes`, bad((c) => c.ticks.length > 0).length === 0, JSON.stringify(charts.map((c) => c.ticks)));
    check(`${at}: series differ in colour or dash`,
      bad((c) => !c.quiet && c.looks.some((looks) => new Set(looks).size < looks.length)).length === 0,
      JSON.stringify(charts.filter((c) => !c.quiet).map((c) => [c.id, c.looks])));
    const sorted = (legend) => { const n = legend.map(order).filter((x) => x !== null); return n.every((x, i) => i === 0 || n[i - 1] <= x); };
    check(`${at}: ordered legends`, bad((c) => !sorted(c.legend)).length === 0, JSON.stringify(charts.map((c) => c.legend)));
    const nearest = await page.evaluate(() => {
      const { slotsOf, styles, colourAt, SEQUENCE } = globalThis.esscherCharts;
      const names = ["σ = 1", "σ = 2", "±1 tokens", "uniform tokens"];
      const parts = (colour) => [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
      const distance = (a, b) => Math.hypot(...parts(a).map((x, i) => x - parts(b)[i]));
      return Math.min(...[false, true].flatMap((dark) => styles(names, slotsOf([names]), dark).filter((s) => !s.ordered)
        .flatMap((s) => Array.from({ length: 101 }, (_, k) => distance(s.colour, colourAt(SEQUENCE[dark ? "dark" : "light"], k / 100))))));
    });
    check(`${at}: categories beside ordered series are far from their colours`, nearest > 50, String(nearest));
    const names = charts.filter((c) => !c.empty).flatMap((c) => c.legend);
    check(`${at}: legends are words`, names.every((n) => !/_/.test(n)), JSON.stringify(names.filter((n) => /_/.test(n))));
    // The demo shows on purpose that markup in data stays text.
    if (name !== "demo") {
      const formulas = await page.$$eval(".formula", (all) => all.filter((f) => !f.querySelector("math")).map((f) => f.textContent.slice(0, 60)));
      check(`${at}: formulas are drawn`, formulas.length === 0, JSON.stringify(formulas));
      const words = await page.$eval("main", (main) => main.innerText);
      const tex = words.match(/.{0,30}(?:\^\{|_\{|\\[a-z]+\{|\bL = inf\b|\bmu is\b|sigma >=).{0,20}/g) ?? [];
      check(`${at}: no TeX and no ASCII mathematics in the text`, tex.length === 0, JSON.stringify(tex));
      const ticks = await page.$$eval(".role-axis-label text, .role-legend-label text", (all) => all.map((t) => t.textContent).filter((t) => /\de[+-]?\d|\d{7}|^-/.test(t)));
      check(`${at}: ticks are written as people read them`, ticks.length === 0, JSON.stringify(ticks.slice(0, 5)));
    }
    const silent = await page.$$eval(".table-wrap", (all) => all.filter((t) => (t.scrollHeight > t.clientHeight + 1) !== /\d+ rows, scroll/.test(t.querySelector("caption").textContent)).map((t) => t.getAttribute("aria-label")));
    check(`${at}: tables say when they go on below`, silent.length === 0, JSON.stringify(silent));
    check(`${at}: no console message`, trouble.length === 0, trouble.slice(0, 3).join(" | "));
    if (width === 1400) {
      const wide = await page.$$eval(".table-wrap", (all) => all.map((t) => [t.getAttribute("aria-label"), t.scrollWidth - t.clientWidth]).filter((t) => t[1] > 1));
      check(`${at}: tables fit their place`, wide.length === 0, JSON.stringify(wide));
    }
    await page.screenshot({ path: `${shots}/${name}-${width}.png`, fullPage: true });
    await page.context().close();
  }
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  await check_figures("report");
  await finish();
}
