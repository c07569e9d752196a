// node numbers.mjs: ticks, ends of axes, number texts and colours of charts, without a browser.
// Prints "N passed, M failed".
import { readFileSync } from "node:fs";

for (const file of ["numbers", "series", "layout"]) {
  (0, eval)(readFileSync(new URL(`../../web/charts/${file}.js`, import.meta.url), "utf8"));
}
const charts = globalThis.esscherCharts;
let [passed, failed] = [0, 0];
function equal(name, got, expected) {
  const [a, b] = [JSON.stringify(got), JSON.stringify(expected)];
  if (a === b) passed += 1;
  else (failed += 1), console.log(`FAIL ${name}: ${a} instead of ${b}`);
}
const holds = (name, truth) => equal(name, Boolean(truth), true);

equal("numbers", [0, 1, 0.25, 1e6, 2.5e-7, -3, 12345.6, Infinity].map((x) => charts.numberText(x)),
  ["0", "1", "0.25", "10⁶", "2.5×10⁻⁷", "−3", "12346", "∞"]);
equal("names", ["L = 1e6", "L = 2e-3", "σ = 1.2", "L = inf", "model1e5x", "1e4 of 1e12"].map(charts.pretty),
  ["L = 10⁶", "L = 2×10⁻³", "σ = 1.2", "L = ∞", "model1e5x", "10⁴ of 10¹²"]);
equal("long whole numbers", ["L = 1000000000", "L = 2500000, softmax", "L = 10000", "L = 1234567", "head 1000000"].map(charts.pretty),
  ["L = 10⁹", "L = 2.5×10⁶, softmax", "L = 10000", "L = 1234567", "head 1000000"]);
equal("decades", charts.logTicks(1, 1e6, 8), [1, 10, 100, 1000, 1e4, 1e5, 1e6]);
equal("every third decade", charts.logTicks(0.5, 2e12, 5), [1, 1e3, 1e6, 1e9, 1e12]);
equal("few decades", charts.logTicks(9, 1100, 8), [10, 100, 1000]);
equal("two decades", charts.logTicks(8, 120, 6), [10, 30, 100]);
equal("half a decade", charts.logTicks(2.1, 4.9, 6), [2.5, 3, 3.5, 4, 4.5]);
equal("even steps", charts.linearTicks(-0.13, 1.07, 6), [0, 0.2, 0.4, 0.6, 0.8, 1]);
equal("plain labels", charts.tickTexts([0.01, 0.1, 1, 10], true), ["0.01", "0.1", "1", "10"]);
equal("powers of ten on the whole axis", charts.tickTexts([1e-4, 1e-2, 1, 100], true), ["10⁻⁴", "10⁻²", "1", "10²"]);
equal("one number of decimals", charts.tickTexts([0, 0.5, 1], false), ["0.0", "0.5", "1.0"]);
equal("minus signs", charts.tickTexts([-2, 0, 2], false), ["−2", "0", "2"]);

const [low, high] = charts.axisEnds([10, 1000], { log: true });
holds("padding of a log axis", low < 10 && low > 7 && high > 1000 && high < 1400);
holds("a far theory does not flatten the data", charts.axisEnds([1, 10], { log: true, extra: [1e9] })[1] < 30);
holds("a band is seen", charts.axisEnds([1, 10], { log: true, bands: [0.1, 100] })[1] > 100);
holds("a far band does not flatten the data", charts.axisEnds([1, 10], { log: true, bands: [1e9] })[1] < 500);
holds("a near line is seen", charts.axisEnds([1, 10], { log: true, lines: [0.2] })[0] < 0.2);
holds("a far line is not", charts.axisEnds([1, 10], { log: true, lines: [1e-9] })[0] > 0.5);
holds("positive data do not show negative numbers", charts.axisEnds([0.01, 1], {})[0] >= 0);
holds("a line 3 % away from data that hardly move is seen", charts.axisEnds([0.5997, 0.6066], { lines: [0.618] })[1] > 0.618);
holds("a line far from data that hardly move is not", charts.axisEnds([0.5997, 0.6066], { lines: [1] })[1] < 0.65);
const steps = (from, to, by) => Array.from({ length: Math.round((to - from) / by) + 1 }, (_, i) => Number((from + i * by).toPrecision(12)));
equal("labels of a grid are round", charts.gridTicks(steps(0.4, 12, 0.4), 10), [2, 4, 6, 8, 10, 12]);
equal("labels of a fine grid are round", charts.gridTicks(steps(0.15, 3, 0.15), 5), [0.6, 1.2, 1.8, 2.4, 3]);
equal("a grid of few cells has all its labels", charts.gridTicks([1, 2, 3], 5), [1, 2, 3]);
equal("names that are no numbers", charts.gridTicks(["1", "2", "3", "V"], 2), ["1", "3"]);
equal("fixed ends", charts.axisEnds([1e-20, 1], { log: true, min: 1e-3, max: 2 }), [1e-3, 2]);
holds("values beyond a fixed end do not widen the other", charts.axisEnds([1e-20, 0.5, 1], { log: true, min: 0.1 })[1] < 2);

const names = ["L = 1e6", "L = 30", "L = ∞", "L = 100", "coin"];
equal("numeric order", charts.inOrder(names), ["L = 30", "L = 100", "L = 1e6", "L = ∞", "coin"]);
const many = Array.from({ length: 24 }, (_, i) => `category ${i}`);
const slots = charts.slotsOf([["softmax", "linear"], many, ["linear", "Bayes", "softmax"]]);
const looks = (list, dark = false) => charts.styles(list, slots, dark).map((s) => s.colour + s.dash);
for (const dark of [false, true]) {
  equal(`no look twice, dark ${dark}`, new Set(looks(many, dark)).size, many.length);
  equal(`ordered looks, dark ${dark}`, new Set(looks(names, dark)).size, names.length);
}
const colour = (list, name) => charts.styles(list, slots, false).find((s) => s.name === name).colour;
equal("a concept keeps its colour", colour(["softmax", "linear"], "linear"), colour(["linear", "Bayes", "softmax"], "linear"));

const places = charts.spread([10, 11, 12, 300], 300, 15);
holds("labels keep their distance", places.every((y, i) => i === 0 || y - places[i - 1] >= 15 - 1e-9));
holds("labels stay inside", places.every((y) => y >= 0 && y <= 300));

// Two points at the right edge: the second name has no room beside its point.
const named = charts.beside([{ x: 270, y: 50, text: "a rather long name" }, { x: 296, y: 50, text: "another long name" }], 300, 100, {});
holds("every point at the edge has its name", named.every((p) => p.shown && p.left >= 0));

// All points of a crowd have names: those in the middle stand apart, with a line, and none covers another.
const crowd = [...Array(9).keys()].map((i) => ({ x: 150 + 14 * (i % 3), y: 100 + 14 * Math.floor(i / 3), text: `L${i}.H${i}` }));
crowd.push({ x: 30, y: 30, text: "above" }, { x: 30, y: 42, text: "below" });
const all = charts.beside(crowd, 320, 220, {});
const boxes = all.map((p) => ({ x: p.left, y: p.middle - 7, w: charts.textWidth(p.text, 11.5), h: 14 }));
const apart = (a, b) => a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y;
holds("every point of a crowd has its name", all.every((p) => p.shown));
holds("some names stand apart", all.some((p) => p.to_x !== undefined) && all.some((p) => p.to_x === undefined));
holds("no name covers another", boxes.every((a, i) => boxes.every((b, j) => i === j || apart(a, b))));
holds("names stay inside", boxes.every((b) => b.x >= 0 && b.y >= 0 && b.x + b.w <= 320 && b.y + b.h <= 220));
const full = charts.beside([...Array(200).keys()].map((i) => ({ x: i % 20, y: i / 20, text: "a long name" })), 60, 40, {});
holds("a name without room is left out", full.some((p) => !p.shown));

console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
