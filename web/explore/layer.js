// A layer: D(L) = E|T[prompt of length L] - T[limit]|² over queries N(0, I), and how long is long enough.
const LAWS = {
  gaussian: { name: "Gaussian" },
  rademacher: { name: "Rademacher, ±1", unit: 1 },
  uniform: { name: "uniform on a cube", unit: Math.sqrt(3) },
  sphere: { name: "uniform on a sphere", unit: null },
  laplace: { name: "Laplace, heavier tails", unit: Math.SQRT1_2 },
};

// Variances of the coordinates: sigma² k^-p.
const spectrum = ({ d, p, s }) => Array.from({ length: d }, (_, k) => exact(s * s * (k + 1) ** -p));

function measureSets(state) {
  const values = spectrum(state);
  if (state.law === "gaussian") {
    return ["measure.type=gaussian", `measure.dim=${state.d}`, `measure.cov={kind="diagonal",values=${list(values)}}`];
  }
  const unit = LAWS[state.law].unit ?? 1;
  const part = state.law === "sphere" ? `{type="sphere",dim=${state.d},radius=${toml(exact(Math.sqrt(state.d)))}}` : `{type="${state.law}",dim=${state.d}}`;
  return ["measure.type=affine", `measure.matrix={kind="diagonal",values=${list(values.map((v) => exact(unit * Math.sqrt(v))))}}`, `measure.parts=[${part}]`];
}

const layer = new Panel("layer", {
  controls: [
    { key: "law", label: "Law of tokens", words: Object.fromEntries(Object.entries(LAWS).map(([k, v]) => [k, v.name])), start: "gaussian" },
    { key: "d", label: "Dimension d", from: 1, to: 16, step: 1, start: 4 },
    { key: "s", label: "Deviation σ of a coordinate", from: 0.1, to: 2, step: 0.05, start: 1, show: (v) => v.toFixed(2) },
    { key: "p", label: "Spectrum: variance of coordinate k is σ² k⁻ᵖ", from: 0, to: 2, step: 0.1, start: 0, show: (v) => "p = " + v.toFixed(1) },
    { key: "u", label: "Sharpness: U = u I", from: 0.05, to: 2, step: 0.05, start: 0.4, show: (v) => "u = " + v.toFixed(2) },
    { key: "L", label: "Length of the prompt", from: 1, to: 15, step: 0.1, start: 6, show: (v) => "L = " + lengthText(lengthOf(v)) },
    { key: "e", label: "Error allowed, ε", from: -12, to: 0, step: 0.5, start: -3, show: (v) => "ε = " + brief(10 ** v, 2) },
  ],
  pictures: ["", ""],
});

layer.sets = (lengths) => [
  ...measureSets(layer.state), `attention.U=${toml(layer.state.u)}`, 'sweep.metrics=["output"]', `sweep.lengths=[${lengths.join(",")}]`,
];
layer.eps = () => exact(10 ** layer.state.e);
const GAUSSIAN_GRID = decades(1, 15, 1);
const SAMPLED = ["sweep.queries=64", "sweep.replicates=4"];

// Lengths of the settled answer: the grid with the chosen length in it; others than Gaussian are drawn, up to 10⁴.
layer.lengths = () => {
  const gaussian = layer.state.law === "gaussian";
  const grid = gaussian ? GAUSSIAN_GRID : decades(1, 3.5, 2);
  const L = lengthOf(layer.state.L);
  const all = gaussian || L <= 10 ** 4 ? [...grid, L] : grid;
  return [...new Set(all)].sort((a, b) => a - b);
};

layer.quick = Engine.lane();
layer.slow = Engine.slowLane();

layer.changed = () => {
  const { law } = layer.state;
  const gaussian = law === "gaussian";
  layer.slow.cancel();
  layer.settled = null;
  layer.answer = null;
  layer.root.dataset.settled = "no";
  layer.quick({ verb: "layer", set: [...layer.sets(GAUSSIAN_GRID), ...(gaussian ? [] : SAMPLED)] }, ({ answer, took }) => {
    layer.draft = answer;
    layer.took = took;
    layer.draw();
  });
  const sets = [...layer.sets(layer.lengths()), ...(gaussian ? [] : SAMPLED)];
  const lengthSets = [...measureSets(layer.state), `attention.U=${toml(layer.state.u)}`];
  const eps = String(layer.eps());
  layer.setCommands([
    ["The curve" + (gaussian ? "" : " (longer lengths and more queries take minutes, not for a page)"), "concentration", sets],
    ["The shortest prompt" + (gaussian ? "" : " (drawn prompts: too heavy for a page, run it)"), `length --eps ${eps}`, lengthSets],
  ]);
  changedAddress();
  clearTimeout(layer.timer);
  layer.timer = setTimeout(() => {
    const requests = { curve: { verb: "concentration", set: sets } };
    if (gaussian) requests.length = { verb: "length", set: lengthSets, eps: Number(eps) };
    layer.slow.ask(requests, (name, answer) => {
      layer[name === "curve" ? "settled" : "answer"] = answer;
      layer.draw();
    });
  }, 150);
};

// D at any length between those that are known, by straight lines in the logarithms.
function between(rows, key, L) {
  const i = rows.findIndex((row) => row.L >= L);
  if (i < 0) return NaN;
  if (rows[i].L === L || i === 0) return rows[i][key];
  const [a, b] = [rows[i - 1], rows[i]];
  const w = Math.log(L / a.L) / Math.log(b.L / a.L);
  return Math.exp((1 - w) * Math.log(a[key]) + w * Math.log(b[key]));
}

// Where the curve crosses eps for the first time, roughly.
function crossing(rows, eps) {
  for (let i = 0; i < rows.length; i++) {
    if (rows[i].value > eps) continue;
    if (i === 0) return rows[0].L;
    const [a, b] = [rows[i - 1], rows[i]];
    return a.L * (b.L / a.L) ** (Math.log(a.value / eps) / Math.log(a.value / b.value));
  }
  return NaN;
}

layer.draw = () => {
  if (!layer.draft) return;
  const { draft, settled, answer } = layer;
  if (draft?.error || settled?.error) {
    layer.title.textContent = "The engine cannot answer this.";
    layer.text.textContent = draft?.error ?? settled.error;
    return;
  }
  const state = layer.state, eps = layer.eps(), L = lengthOf(state.L);
  const rows = settled ? settled.rows : draft.rows;
  const constant = draft.constant;
  const gaussian = state.law === "gaussian", drawn = rows.some((row) => row.std_error > 0);
  const at = rows.length && L <= rows.at(-1).L ? between(rows, "value", L) : NaN;
  const ess = rows.length && L <= rows.at(-1).L ? between(rows, "ess", L) : NaN;
  const value = Number.isFinite(at) ? at : constant / L;
  const slow = draft.regime === "slow";
  const roughly = gaussian ? crossing(rows, eps) : constant / eps;
  const enough = answer?.length ?? null;
  const never = answer && answer.length === null;
  const enoughText = enough ? lengthText(enough) : never ? "more than 10¹⁵" : Number.isFinite(roughly) && roughly <= 1e15 ? "≈ " + brief(roughly, 2) : "more than 10¹⁵";
  layer.title.textContent = `At L = ${lengthText(L)} the mean-square error is ${Number.isFinite(value) ? brief(value) : "unknown"}.`;
  layer.text.textContent = slow
    ? `λ = ${brief(draft.lambda)} ≥ ½: rare queries see a frozen softmax. The error falls slowly, about as L${raised(-draft.gamma)} (a prediction); no 1/L law holds.`
    : draft.regime === "slower_somewhere"
      ? "Some queries see tokens of infinite weight: the error falls more slowly than 1/L there."
      : gaussian ? `λ = ${brief(draft.lambda)} < ½: the error falls as ${brief(constant)} / L.`
        : `For long prompts the error falls as ${brief(constant)} / L at these queries (closed form). ${drawn ? "Dots are simulated, with their standard errors." : ""}`;
  const low = Math.min(...rows.map((r) => r.value).filter((v) => v > 0), Number.isFinite(constant) ? constant / 1e15 : Infinity, eps);
  const high = Math.max(...rows.map((r) => r.value), eps, Number.isFinite(constant) ? Math.min(constant / 10, 1e3) : 0);
  const y = { log: true, from: 10 ** Math.floor(Math.log10(low)), to: 10 ** Math.ceil(Math.log10(high) + .05), title: "D(L), mean-square error of the output" };
  const x = { log: true, from: 10, to: 1e15, title: "L, tokens in the prompt" };
  const marks = [];
  const blue = theme("blue"), orange = theme("orange"), faint = theme("faint"), green = theme("green");
  marks.push({ kind: "level", y: eps, colour: green, label: "ε = " + brief(eps, 2) });
  if (Number.isFinite(constant)) marks.push({ kind: "line", points: [[10, constant / 10], [1e15, constant / 1e15]], colour: gaussian ? faint : blue, dash: gaussian ? "5 5" : "", width: gaussian ? 1.4 : 2.4, label: "constant/L" });
  else if (Number.isFinite(draft.gamma) && rows.length) {
    const end = rows.at(-1);
    marks.push({ kind: "line", points: [[10, end.value * (end.L / 10) ** draft.gamma], [end.L, end.value]], colour: faint, dash: "5 5", width: 1.4, label: `L${raised(-draft.gamma)}` });
  }
  if (gaussian) marks.push({ kind: "line", points: rows.map((r) => [r.L, r.value]), colour: blue, width: 2.6, label: "D(L)" });
  else marks.push({ kind: "dots", points: rows.map((r) => [r.L, r.value, r.std_error]), colour: orange });
  const cross = enough ?? (roughly <= 1e15 ? roughly : null);
  if (cross) marks.push({ kind: "rule", x: cross, colour: green, label: "L(ε) " + (enough ? "= " : "≈ ") + (enough ? lengthText(enough) : brief(cross, 2)) });
  marks.push({ kind: "point", x: L, y: value, colour: blue });
  chart(layer.figures[0], { x, y, marks, label: `Mean-square error against prompt length: ${layer.title.textContent}` });
  layer.figures[0].querySelector("figcaption").textContent = gaussian
    ? "Exact: no token is drawn at any length. Queries N(0, I) are averaged in closed form."
    : "The line is the limit law in closed form, averaged over 64 drawn queries" + (drawn ? "; dots are drawn prompts." : ".");
  const essMarks = [{ kind: "line", points: [[10, 10], [1e15, 1e15]], colour: faint, dash: "5 5", width: 1.4, label: "L" }];
  essMarks.push(gaussian ? { kind: "line", points: rows.map((r) => [r.L, r.ess]), colour: blue, width: 2.6, label: "ESS" } : { kind: "dots", points: rows.map((r) => [r.L, r.ess]), colour: orange });
  if (Number.isFinite(ess)) essMarks.push({ kind: "point", x: L, y: ess, colour: blue });
  chart(layer.figures[1], { aspect: 0.8, x, y: { log: true, from: 1, to: 1e15, title: "effective number of tokens" }, marks: essMarks, margin: { right: 44 }, label: "Effective sample size against prompt length" });
  layer.figures[1].querySelector("figcaption").textContent = Number.isFinite(ess) ? `A query averages over ${brief(ess)} of ${lengthText(L)} tokens.` : "How many tokens a query averages over.";
  const frozen = rows.length && gaussian ? rows.reduce((best, r) => (Math.abs(Math.log(r.L / L)) < Math.abs(Math.log(best.L / L)) ? r : best)).frozen : null;
  layer.setNumbers([
    ["D(L)", brief(value)], ["λ", brief(draft.lambda)], ["Exponent γ", brief(draft.gamma)],
    ["Constant", brief(constant)], ["Effective tokens", brief(ess)], ["Frozen queries", brief(frozen, 2)], ["L(ε)", enoughText],
  ]);
  layer.status.textContent = settled && (answer || !gaussian) ? (answer ? `L(ε) is ${answer.status}.` : "") : "Settling to all digits …";
  layer.root.dataset.settled = settled && (answer || !gaussian) ? "yes" : "no";
};
