// In-context regression: the risk along gradient flow of one head, trained at length L, beside ridge regression.
const training = new Panel("training", {
  controls: [
    { key: "d", label: "Dimension d", from: 1, to: 10, step: 1, start: 4 },
    { key: "L", label: "Length of the prompt", from: 0.3, to: 6, step: 0.1, start: 2, show: (v) => "L = " + lengthText(lengthOf(v)) },
    { key: "n", label: "Noise variance of the labels", from: 0, to: 2, step: 0.05, start: 0.25, show: (v) => v.toFixed(2) },
    { key: "p", label: "Covariance: eigenvalue k is k⁻ᵖ", from: 0, to: 1.5, step: 0.1, start: 0, show: (v) => "p = " + v.toFixed(1) },
    { key: "a", label: "Size of the start, of the theorem's bound", from: 0.05, to: 0.95, step: 0.05, start: 0.5, show: (v) => v.toFixed(2) },
    { key: "T", label: "Time of training", from: 0.5, to: 2.5, step: 0.1, start: 1.5, show: (v) => "t = " + brief(10 ** v, 2) },
  ],
  pictures: [""],
});
training.root.querySelector(".pictures").style.gridTemplateColumns = "minmax(0, 1fr)";

training.sets = () => {
  const { d, n, p, a, T } = training.state;
  const values = Array.from({ length: d }, (_, k) => exact((k + 1) ** -p));
  const alpha = exact(a * Math.SQRT2 / d ** 0.25 / values[0]);
  return [
    `task.dim=${d}`, `task.noise_variance=${toml(n)}`, `task.prompt_cov={kind="diagonal",values=${list(values)}}`, "model.parametrisation=block",
    `model.init={kind="balanced",alpha=${toml(alpha)}}`, "flow.stepping=runge-kutta", `flow.t_end=${toml(exact(10 ** T))}`, "flow.stationary=1e-7",
  ];
};
// Coarser while a slider moves; many dimensions take longer per node.
const draftSets = (d) => ["flow.rtol=1e-3", "flow.atol=1e-4", `flow.log2_nodes=${d > 4 ? 5 : 6}`];
const FINE = ["flow.rtol=1e-6", "flow.atol=1e-8", "flow.log2_nodes=9", "flow.scramblings=8"];
const FLOWS = { softmax: "softmax", linear: "linear", limit: "infinite prompt" };

training.own = (name) => {
  const L = lengthOf(training.state.L);
  return name === "limit" ? ["model.kind=softmax", 'train.length="inf"'] : ["model.kind=" + name, `train.length=${L}`];
};
training.quick = Engine.lane();
training.slow = Engine.slowLane();
training.warmLane = Engine.lane();

// A new length needs tables of its own. They are made for every place of the slider while nobody moves anything, so
// that a far jump finds them too.
const NEAREST_FIRST = Array.from({ length: 57 }, (_, k) => [k + 1, -k - 1]).flat();
training.warm = (offsets, state) => {
  training.root.dataset.warm = offsets.length ? "no" : "yes";
  if (!offsets.length || JSON.stringify(training.state) !== state) return;
  const next = () => training.warm(offsets.slice(1), state);
  const place = training.state.L + offsets[0] / 10;
  if (place < 0.25 || place > 6.05) next();
  else training.warmLane({ verb: "warm", L: lengthOf(place) }, next);
};

training.changed = () => {
  const sets = training.sets();
  training.slow.cancel();
  training.settled = {};
  training.root.dataset.settled = "no";
  training.quick({ verb: "flows", set: [...sets, ...draftSets(training.state.d)], flows: Object.keys(FLOWS).map(training.own) }, ({ answer, took }) => {
    training.draft = answer;
    training.took = took;
    training.draw();
  });
  training.setCommands(Object.entries(FLOWS).map(([name, text]) => [
    name === "softmax" ? "Softmax; ridge is its “bayes”" : name === "linear" ? "Linear attention" : "Infinite prompt", "icl flow", [...sets, ...FINE, ...training.own(name)]]));
  changedAddress();
  clearTimeout(training.timer);
  training.timer = setTimeout(() => {
    const requests = Object.fromEntries(Object.keys(FLOWS).map((name) => [name, { verb: "flow", set: [...sets, ...FINE, ...training.own(name)] }]));
    training.slow.ask(requests, (name, answer) => {
      training.settled[name] = answer;
      training.draw();
    });
  }, 150);
};

training.draw = () => {
  const { draft, settled } = training;
  if (!draft) return;
  const wrong = draft.error ?? Object.values(settled).find((answer) => answer.error)?.error;
  if (wrong) {
    training.title.textContent = "The engine cannot answer this.";
    training.text.textContent = wrong;
    return;
  }
  const L = lengthOf(training.state.L);
  const paths = Object.keys(FLOWS).map((name, i) => settled[name]?.path ?? draft.flows[i]);
  const end = (name, i) => settled[name]?.risk ?? paths[i].at(-1).risk;
  const [softmax, linear] = [end("softmax", 0), end("linear", 1)];
  const bayes = settled.softmax?.bayes ?? draft.bayes;
  const best = softmax < linear * 0.995 ? "softmax learns more than linear attention" : linear < softmax * 0.995 ? "linear attention learns more than softmax" : "softmax and linear attention learn the same";
  training.title.textContent = `From ${lengthText(L)} tokens, ${best}.`;
  training.text.textContent = `Risks after training: softmax ${brief(softmax)}, linear ${brief(linear)}. Ridge regression, the best prediction from the same prompts, has ${brief(bayes)}.`;
  const T = 10 ** training.state.T;
  const first = 0.02;
  const values = paths.slice(0, 2).flat().map((p) => p.risk).concat(bayes > 0 ? [bayes] : []);
  const low = Math.max(Math.min(...values), 1e-8), high = Math.max(...values);
  const from = 10 ** Math.floor(Math.log10(low) - 0.15), to = 10 ** Math.ceil(Math.log10(high) + 0.02);
  const blue = theme("blue"), orange = theme("orange"), green = theme("green"), faint = theme("faint");
  // R' = -|grad R|², so that the curve knows its slope at every step of the solver.
  const points = (path) => [
    [first, path[0].risk - first * path[0].gradient_norm ** 2, -first * path[0].gradient_norm ** 2 / path[0].risk],
    ...path.filter((p) => p.t > first && p.risk > from / 1e6).map((p) => [p.t, p.risk, -p.t * p.gradient_norm ** 2 / p.risk]),
  ];
  const extend = (list) => (list.at(-1)[0] < T ? [...list, [T, list.at(-1)[1], 0]] : list);
  const marks = [
    { kind: "line", points: paths[2].at(-1).risk >= from ? extend(points(paths[2])) : points(paths[2]), colour: faint, dash: "5 5", width: 1.6, label: paths[2].at(-1).risk >= from ? "L = ∞" : "" },
    { kind: "level", y: bayes, colour: green, width: 2, dash: "1 0", label: "ridge " + brief(bayes) },
    { kind: "line", points: extend(points(paths[1])), colour: orange, width: 2.6, label: "linear " + brief(linear) },
    { kind: "line", points: extend(points(paths[0])), colour: blue, width: 2.6, label: "softmax " + brief(softmax) },
  ];
  chart(training.figures[0], { aspect: 0.46, x: { log: true, from: first, to: T, title: "t, time of gradient flow" }, y: { log: true, from, to, title: "risk, half the mean squared error" }, marks, margin: { right: 128 }, label: training.title.textContent });
  training.figures[0].querySelector("figcaption").textContent = `One head is trained by gradient flow at length ${lengthText(L)}. The dashed line is the same flow on infinite prompts, where softmax and linear attention are one${paths[2].at(-1).risk < from ? "; it leaves the picture below" : ""}.`;
  const done = Object.keys(FLOWS).every((name) => settled[name]);
  const error = settled.softmax?.risk_std_error;
  training.setNumbers([
    ["Softmax risk", brief(softmax) + (error ? " ± " + brief(error, 2) : "")], ["Linear risk", brief(linear)], ["Ridge (Bayes) risk", brief(bayes) + (settled.softmax ? " ± " + brief(settled.softmax.bayes_std_error, 2) : "")],
    ["Infinite prompt", brief(end("limit", 2), 2)], ["Softmax over ridge", bayes > 0 ? brief(softmax / bayes) + " ×" : "–"],
  ]);
  training.status.textContent = done ? "" : "Settling on finer nodes …";
  training.root.dataset.settled = done ? "yes" : "no";
  if (done) training.warm(NEAREST_FIRST, JSON.stringify(training.state));
};
