// A prompt in the plane: tokens by hand, a query to drag, softmax weights, and the outputs of the prompt and of the
// Gaussian and the mixture fitted to it. U = u I and V = I, so that outputs live among the tokens.
const REACH = 3;  // the plane is [-REACH, REACH]²
const MOST = 150; // tokens
const grid = (v) => Math.round(Math.min(REACH, Math.max(-REACH, v)) * 100) / 100;

// Positions of ready-made prompts, by a small fixed generator, so that a link and a picture stay the same.
function draws(seed) {
  let state = seed;
  const uniform = () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x6d2b79f5) | 0;
    return ((state ^ (state >>> 13)) >>> 0) / 4294967296;
  };
  return { uniform, normal: () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform()) };
}
const SHAPES = {
  blob: (r) => [0.9 * r.normal() + 0.2, 0.55 * r.normal() + 0.1],
  clusters: (r) => { const side = r.uniform() < 0.5 ? -1 : 1; return [side * 1.4 + 0.3 * r.normal(), side * 0.6 + 0.3 * r.normal()]; },
  ring: (r) => { const a = 2 * Math.PI * r.uniform(); return [1.7 * Math.cos(a) + 0.08 * r.normal(), 1.7 * Math.sin(a) + 0.08 * r.normal()]; },
};
const ready = (shape, n) => { const r = draws(shape.length * 77 + 5); return Array.from({ length: n }, () => SHAPES[shape](r).map(grid)); };

const prompt = new Panel("prompt", {
  controls: [
    { key: "u", label: "Sharpness: U = u I", from: 0, to: 6, step: 0.1, start: 1, show: (v) => "u = " + v.toFixed(1) },
    { key: "k", label: "Components of the mixture", from: 1, to: 5, step: 1, start: 2 },
  ],
  pictures: ["", ""],
  extra(panel) {
    const row = element("div", "choices");
    const button = (text, act) => {
      const made = element("button", "", text);
      made.type = "button";
      made.addEventListener("click", act);
      row.append(made);
    };
    for (const shape of Object.keys(SHAPES)) button(shape, () => panel.setTokens(ready(shape, 40)));
    button("undo", () => panel.setTokens(panel.tokens.slice(0, -1)));
    button("clear", () => panel.setTokens([]));
    panel.side.prepend(row, element("p", "hint", "Click or draw in the plane to add tokens. Drag the query. Drag a token away from the plane to remove it. Keys: arrows move the query, Enter adds a token there, Backspace removes the last."));
  },
});
prompt.tokens = ready("clusters", 40);
prompt.query = [1, 0.4];
prompt.quick = Engine.lane();

prompt.setTokens = (tokens) => {
  prompt.tokens = tokens.slice(0, MOST);
  prompt.changed();
};

const baseRead = prompt.read.bind(prompt), baseWrite = prompt.write.bind(prompt);
prompt.read = (parameters) => {
  baseRead(parameters);
  const points = (text) => text.split("_").map((pair) => pair.split(",").map((v) => grid(Number(v) / 100))).filter((p) => p.length === 2 && p.every(Number.isFinite));
  if (parameters.has("z")) prompt.query = points(parameters.get("z"))[0] ?? prompt.query;
  if (parameters.has("x")) prompt.tokens = points(parameters.get("x")).slice(0, MOST);
};
prompt.write = () => {
  const parameters = baseWrite();
  const text = (p) => p.map((v) => Math.round(v * 100)).join(",");
  parameters.set("z", text(prompt.query));
  parameters.set("x", prompt.tokens.map(text).join("_"));
  return parameters;
};

prompt.changed = () => {
  changedAddress();
  if (!prompt.tokens.length) {
    prompt.answer = null;
    prompt.setCommands([]);
    prompt.draw();
    return;
  }
  const pair = (p) => list(p);
  const sets = ["measure.type=empirical", `measure.tokens=[${prompt.tokens.map(pair).join(",")}]`, `attention.U=${toml(prompt.state.u)}`, `query.z=${pair(prompt.query)}`];
  const k = Math.min(prompt.state.k, prompt.tokens.length);
  prompt.setCommands([["Beside the fitted Gaussian", "attend", sets], ["Beside the fitted mixture", `attend --reference mixture-fit --components ${k}`, sets]]);
  prompt.quick({ verb: "prompt", set: sets, components: k }, ({ answer, took }) => {
    prompt.answer = answer;
    prompt.took = took;
    prompt.draw();
  });
};

// An ellipse of one standard deviation.
function ellipse(parent, view, mean, cov, attributes) {
  const half = (cov[0][0] + cov[1][1]) / 2, gap = Math.hypot((cov[0][0] - cov[1][1]) / 2, cov[0][1]);
  const angle = Math.atan2(2 * cov[0][1], cov[0][0] - cov[1][1]) / 2;
  const unit = view.sx(1) - view.sx(0);
  node(parent, "ellipse", {
    rx: unit * Math.sqrt(Math.max(0, half + gap)), ry: unit * Math.sqrt(Math.max(0, half - gap)), fill: "none",
    transform: `translate(${view.sx(mean[0])} ${view.sy(mean[1])}) rotate(${-angle * 180 / Math.PI})`, ...attributes,
  });
}

prompt.draw = () => {
  const { answer, tokens, query } = prompt;
  const blue = theme("blue"), orange = theme("orange"), green = theme("green"), ink = theme("ink"), faint = theme("faint"), paper = theme("paper");
  if (answer?.error) {
    prompt.title.textContent = "The engine cannot answer this.";
    prompt.text.textContent = answer.error;
    return;
  }
  const axis = { from: -REACH, to: REACH };
  const view = chart(prompt.figures[0], { aspect: 1, x: { ...axis, title: "" }, y: { ...axis, title: "" }, marks: [], margin: { left: 34, right: 12, top: 12, bottom: 26 }, label: "Tokens, query and outputs in the plane" });
  const { svg, sx, sy } = view;
  prompt.view = view;
  const fresh = answer && answer.weights.length === tokens.length;
  if (fresh) {
    ellipse(svg, view, answer.mean, answer.cov, { stroke: orange, "stroke-width": 1.4, "stroke-dasharray": "5 5" });
    for (const part of answer.parts) ellipse(svg, view, part.mean, part.cov, { stroke: green, "stroke-width": 1.4, "stroke-dasharray": "2 4" });
    const path = answer.path.map(({ prompt: p }, i) => `${i ? "L" : "M"}${sx(p[0])},${sy(p[1])}`).join("");
    node(svg, "path", { d: path, fill: "none", stroke: blue, "stroke-width": 1, opacity: .35 });
  }
  const n = tokens.length;
  tokens.forEach((p, i) => {
    const weight = fresh ? answer.weights[i] : 1 / n;
    node(svg, "circle", { cx: sx(p[0]), cy: sy(p[1]), r: Math.max(2.2, 5 * Math.sqrt(Math.min(60, weight * n))).toFixed(2), fill: blue, opacity: .28 + .4 * Math.min(1, weight * n / 3), class: "token", "data-index": i });
    node(svg, "circle", { cx: sx(p[0]), cy: sy(p[1]), r: 1.8, fill: ink, opacity: .7, "pointer-events": "none" });
  });
  node(svg, "line", { x1: sx(0), y1: sy(0), x2: sx(query[0]), y2: sy(query[1]), stroke: ink, "stroke-width": 1.6, opacity: .6, "pointer-events": "none" });
  node(svg, "circle", { cx: sx(query[0]), cy: sy(query[1]), r: 10, fill: paper, stroke: ink, "stroke-width": 2, class: "query" });
  node(svg, "text", { x: sx(query[0]), y: sy(query[1]) + 4, "text-anchor": "middle", fill: ink, "font-size": 12, "font-weight": 600, "pointer-events": "none" }, "z");
  if (fresh) {
    const place = (p, make) => make(node(svg, "g", { transform: `translate(${sx(p[0])} ${sy(p[1])})`, "pointer-events": "none" }));
    place(answer.gaussian.output, (g) => node(g, "circle", { r: 7.5, fill: orange, stroke: paper, "stroke-width": 2 }));
    place(answer.mixture.output, (g) => node(g, "rect", { x: -6.5, y: -6.5, width: 13, height: 13, fill: green, stroke: paper, "stroke-width": 2 }));
    place(answer.prompt.output, (g) => node(g, "path", { d: "M0,-9 L9,0 L0,9 L-9,0 Z", fill: blue, stroke: paper, "stroke-width": 2 }));
  }
  prompt.figures[0].querySelector("figcaption").textContent = "Discs: softmax weights. ◆ output of the prompt, ● of the fitted Gaussian, ■ of the fitted mixture. Thin line: the output as tokens are added. Ellipses: one standard deviation.";
  if (!fresh) {
    prompt.title.textContent = tokens.length ? "…" : "Draw some tokens.";
    prompt.text.textContent = tokens.length ? "" : "Every click is a token; the query z looks at all of them.";
    if (!tokens.length) { prompt.setNumbers([]); prompt.figures[1].querySelector("svg")?.remove(); prompt.root.dataset.settled = "yes"; }
    return;
  }
  const gap = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]);
  const [T, G, M] = [answer.prompt.output, answer.gaussian.output, answer.mixture.output];
  const ess = answer.prompt.effective_sample_size;
  prompt.title.textContent = `The prompt is ${brief(gap(T, G))} from its Gaussian limit and ${brief(gap(T, M))} from its mixture limit.`;
  prompt.text.textContent = `The query sees ${brief(ess)} of ${n} tokens. Under the Gaussian the output is linear in z, mean + u Cov z, and may leave the tokens behind; softmax cannot.`;
  const rows = answer.path.map((row) => [row.n, gap(row.prompt, row.gaussian)]);
  const far = Math.max(...rows.map((r) => r[1]), gap(T, M), 0.1) * 1.1;
  chart(prompt.figures[1], {
    aspect: 0.8, margin: { right: 72 }, x: { from: 1, to: Math.max(2, n), title: "tokens so far" }, y: { from: 0, to: far, title: "distance of the outputs" },
    marks: [{ kind: "line", points: rows, colour: orange, width: 2.2, label: "Gaussian" }, { kind: "level", y: gap(T, M), colour: green, label: "mixture" }], label: "Distance between the outputs of the prompt and of its fits as tokens are added",
  });
  prompt.figures[1].querySelector("figcaption").textContent = "Between the output of the first n tokens and of the Gaussian fitted to them; the mixture is fitted to all.";
  const show = (p) => `(${brief(p[0])}, ${brief(p[1])})`;
  prompt.setNumbers([["T of the prompt", show(T)], ["T of the Gaussian", show(G)], ["T of the mixture", show(M)], ["Tokens seen", `${brief(ess)} of ${n}`], ["τ², variance of scores", brief(answer.prompt.tau2)]]);
  prompt.root.dataset.settled = "yes";
};

// The hand: the query is dragged first, then a token; elsewhere a stroke adds tokens.
{
  const plane = prompt.figures[0];
  plane.classList.add("plane");
  plane.tabIndex = 0;
  let held = null, last = null;
  const place = (event) => {
    const svg = plane.querySelector("svg"), box = svg.getBoundingClientRect();
    const { box: m, width } = prompt.view, unit = box.width / width, side = width - m.left - m.right, high = width - m.top - m.bottom;
    const x = ((event.clientX - box.left) / unit - m.left) / side, y = ((event.clientY - box.top) / unit - m.top) / high;
    return { at: [(2 * x - 1) * REACH, (1 - 2 * y) * REACH], outside: x < -0.02 || x > 1.02 || y < -0.02 || y > 1.02, pixels: (a) => Math.hypot(a[0] - (2 * x - 1) * REACH, a[1] - (1 - 2 * y) * REACH) * side * unit / (2 * REACH) };
  };
  plane.addEventListener("pointerdown", (event) => {
    if (!event.target.closest("svg")) return;
    const { at, pixels, outside } = place(event);
    if (outside) return;
    plane.setPointerCapture(event.pointerId);
    const reach = event.pointerType === "touch" ? 24 : 13;
    const near = prompt.tokens.findIndex((p) => pixels(p) < reach / 2);
    held = pixels(prompt.query) < reach ? "query" : near >= 0 ? near : "draw";
    if (held === "draw") { prompt.setTokens([...prompt.tokens, at.map(grid)]); last = at; }
    event.preventDefault();
    plane.focus({ preventScroll: true });
  });
  plane.addEventListener("pointermove", (event) => {
    if (held === null) return;
    const { at, outside, pixels } = place(event);
    if (held === "query") { prompt.query = at.map(grid); prompt.changed(); }
    else if (held === "draw") { if (!outside && pixels(last) > 16) { prompt.setTokens([...prompt.tokens, at.map(grid)]); last = at; } }
    else if (outside) { prompt.setTokens(prompt.tokens.filter((_, i) => i !== held)); held = null; }
    else { prompt.tokens[held] = at.map(grid); prompt.changed(); }
  });
  for (const end of ["pointerup", "pointercancel"]) plane.addEventListener(end, () => { held = null; });
  plane.addEventListener("keydown", (event) => {
    const step = event.shiftKey ? 0.5 : 0.1;
    const move = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] }[event.key];
    if (event.target !== plane) return;
    if (move) { prompt.query = prompt.query.map((v, i) => grid(v + move[i])); prompt.changed(); }
    else if (event.key === "Enter") prompt.setTokens([...prompt.tokens, [...prompt.query]]);
    else if (event.key === "Backspace" || event.key === "Delete") prompt.setTokens(prompt.tokens.slice(0, -1));
    else return;
    event.preventDefault();
  });
}
