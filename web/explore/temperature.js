// Temperature: scores of deviation tau among L tokens are a random-energy model. What one query averages over,
// by length and deviation, with the line L = e^(tau²) and the freezing line tau² = 2 log L.
const temperature = new Panel("temperature", {
  controls: [
    { key: "rule", label: "How the scores grow with length", words: { constant: "not at all: τ is constant", root: "τ = c √log L", log: "τ = s log L (scalable softmax)" }, start: "constant" },
    { key: "s", label: "Deviation of the scores at temperature 1", from: 0.1, to: 8, step: 0.1, start: 3, show: (v) => v.toFixed(1), when: (s) => s.rule === "constant" },
    { key: "t", label: "Temperature", from: 0.25, to: 4, step: 0.05, start: 1, show: (v) => v.toFixed(2), when: (s) => s.rule === "constant" },
    { key: "c", label: "c, in units of √log L", from: 0.1, to: 2.5, step: 0.05, start: 1, show: (v) => v.toFixed(2), when: (s) => s.rule === "root" },
    { key: "g", label: "s, per log L", from: 0.02, to: 0.6, step: 0.01, start: 0.2, show: (v) => v.toFixed(2), when: (s) => s.rule === "log" },
    { key: "L", label: "Length of the prompt", from: 0.3, to: 15, step: 0.1, start: 6, show: (v) => "L = " + lengthText(lengthOf(v)) },
  ],
  pictures: ["", ""],
});

const TOP = 9;  // of the picture, in tau
const MAP_X = Array.from({ length: 65 }, (_, i) => 10 ** (0.3 + i * 14.7 / 64));
const MAP_Y = Array.from({ length: 46 }, (_, j) => TOP * j / 45);
const PATH = decades(0.5, 15, 2);

temperature.tauAt = (L) => {
  const { rule, s, t, c, g } = temperature.state;
  return exact(rule === "constant" ? s / t : rule === "root" ? c * Math.sqrt(Math.log(L)) : g * Math.log(L));
};
temperature.quick = Engine.lane();
temperature.slow = Engine.slowLane();
temperature.map = [];

temperature.changed = () => {
  const L = lengthOf(temperature.state.L), tau = temperature.tauAt(L);
  const constant = temperature.state.rule === "constant";
  const pairs = [...PATH.map((l) => [l, temperature.tauAt(l)]), [L, tau]];
  temperature.quick({ verb: "temperature", pairs }, ({ answer, took }) => {
    temperature.took = took;
    temperature.answer = answer;
    temperature.draw();
  });
  if (!temperature.map.length) {
    const mid = (list, f) => list.slice(1).map((v, i) => f(list[i], v));
    const Ls = mid(MAP_X, (p, q) => Math.max(2, Math.round(Math.sqrt(p * q)))), taus = mid(MAP_Y, (p, q) => (p + q) / 2);
    const request = { verb: "temperature", pairs: Ls.flatMap((l) => taus.map((v) => [l, v])) };
    clearTimeout(temperature.timer);
    temperature.timer = setTimeout(() => temperature.slow.ask({ map: request }, (_, answer) => {
      temperature.map = answer.rows.map((row) => Math.min(1, Math.max(0, -Math.log(row.H) / Math.log(row.L))));
      temperature.draw();
    }), 100);
  }
  temperature.setCommands([["The point", `universal --length ${L} --tau ${tau}`, []],
    ["The curve", `universal --length $L --tau ${constant ? tau : "$tau"}`, []]]);
  temperature.commandLines[1] = constant
    ? `for L in ${PATH.join(" ")}; do esscher universal --length $L --tau ${tau} --json; done`
    : PATH.map((l) => `esscher universal --length ${l} --tau ${temperature.tauAt(l)} --json`).join("; ");
  temperature.commands.querySelectorAll("pre")[1].textContent = temperature.commandLines[1];
  changedAddress();
};

// Pale where a query averages over all tokens, dark where it sees few.
function shade(share) {
  const mix = (a, b) => a.map((v, i) => Math.round(v + (b[i] - v) * (1 - share)));
  const dark = matchMedia("(prefers-color-scheme: dark)").matches ? document.documentElement.dataset.theme !== "light" : document.documentElement.dataset.theme === "dark";
  const [r, g, b] = dark ? mix([22, 32, 44], [74, 148, 205]) : mix([246, 250, 253], [30, 92, 150]);
  return `rgb(${r},${g},${b})`;
}

temperature.draw = () => {
  if (!temperature.answer) return;
  const rows = temperature.answer.rows, here = rows.at(-1);
  const { L, tau } = here, ess = 1 / here.H, c = tau / Math.sqrt(Math.log(L));
  const phase = c > Math.SQRT2 ? "frozen" : c > 1 ? "few" : "many";
  temperature.title.textContent = `Of ${lengthText(L)} tokens a query averages over ${ess < 10 ? brief(ess, 2) : brief(ess)}.`;
  temperature.text.textContent = {
    frozen: `τ = ${brief(tau)} is beyond the freezing line √(2 log L) = ${brief(Math.sqrt(2 * Math.log(L)))}: one token keeps a finite share of the weight, however long the prompt.`,
    few: `τ = ${brief(tau)} is above √log L = ${brief(Math.sqrt(Math.log(L)))}: few tokens carry most of the weight, and the prompt says little about its limit.`,
    many: `τ = ${brief(tau)} is below √log L = ${brief(Math.sqrt(Math.log(L)))}: the prompt averages, and its limit describes it.`,
  }[phase];
  const x = { log: true, from: 2, to: 1e15, title: "L, tokens in the prompt" };
  const line = (factor) => PATH.map((l) => [l, Math.sqrt(factor * Math.log(l))]);
  const ink = theme("ink"), orange = theme("orange"), blue = theme("blue"), faint = theme("faint");
  const marks = [];
  if (temperature.map.length) marks.push({ kind: "cells", xs: MAP_X, ys: MAP_Y, fill: (i, j) => shade(temperature.map[i * (MAP_Y.length - 1) + j]) });
  marks.push({ kind: "line", points: line(2), colour: ink, width: 2, label: "" }, { kind: "line", points: line(1), colour: ink, width: 1.4, dash: "5 5" });
  marks.push({ kind: "line", points: rows.slice(0, -1).map((r) => [r.L, r.tau]), colour: orange, width: 2.2 });
  const onDark = { colour: "#ffffff" };
  const narrow = temperature.figures[0].clientWidth < 480;  // the lines are steeper there, and words have less room
  marks.push({ kind: "text", x: 20, y: 8.1, text: narrow ? "frozen" : "frozen: one token keeps a share", ...onDark, size: 13.5 });
  marks.push({ kind: "text", x: 3e14, y: Math.sqrt(Math.log(1e14)) * 1.13 + .2, text: "few tokens", ...onDark, anchor: "end", turn: narrow ? -17 : -12 });
  marks.push({ kind: "text", x: 3e14, y: 1.2, text: "averages over many", colour: ink, anchor: "end", size: 14 });
  marks.push({ kind: "text", x: 2e12, y: Math.sqrt(2 * Math.log(2e12)) + .2, text: "τ² = 2 log L", ...onDark, anchor: "end", turn: narrow ? -21 : -15 });
  marks.push({ kind: "text", x: 2e12, y: Math.sqrt(Math.log(2e12)) - (narrow ? .8 : .6), text: "τ² = log L", colour: ink, anchor: "end", turn: narrow ? -15 : -11 });
  marks.push({ kind: "point", x: L, y: tau, colour: orange, r: 7 });
  chart(temperature.figures[0], { x, y: { from: 0, to: TOP, title: "τ, deviation of the scores" }, marks, margin: { right: 14 }, label: "Map of prompt length and score deviation: " + temperature.title.textContent });
  temperature.figures[0].querySelector("figcaption").textContent = "Colour: log of the effective number of tokens over log L, exact for Gaussian scores. The orange line is what the schedule does as prompts grow.";
  const top = 10 ** 15;
  chart(temperature.figures[1], {
    aspect: 0.8, x, y: { log: true, from: 1, to: top, title: "effective number of tokens" }, margin: { right: 82 },
    marks: [
      { kind: "line", points: [[2, 2], [1e15, 1e15]], colour: faint, dash: "5 5", width: 1.4, label: "L" },
      { kind: "line", points: rows.slice(0, -1).map((r) => [r.L, r.L * Math.exp(-r.tau * r.tau)]), colour: faint, width: 1.4, label: "L exp(−τ²)" },
      { kind: "line", points: rows.slice(0, -1).map((r) => [r.L, 1 / r.H]), colour: orange, width: 2.6, label: "1/H" },
      { kind: "point", x: L, y: ess, colour: orange },
    ],
    label: "Effective number of tokens along the schedule",
  });
  temperature.figures[1].querySelector("figcaption").textContent = "Along the schedule: exact (orange), and the long-prompt law L exp(−τ²).";
  temperature.setNumbers([["τ", brief(tau)], ["Effective tokens 1/H", brief(ess)], ["H = E Σ ω²", brief(here.H)], ["Shrink M₁/τ²", brief(here.M1 / (tau * tau))], ["τ / √log L", brief(c)], ["Phase", { frozen: "frozen", few: "few tokens", many: "averaging" }[phase]]]);
  temperature.root.dataset.settled = temperature.map.length ? "yes" : "no";
};
