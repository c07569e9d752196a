// node explore_commands.mjs PROGRAM: the part of the explorer that needs neither emscripten nor a browser. The panels run
// without a page; the commands that they show for their first state must be ones that the program understands, and
// numbers must read as people and TOML expect them. Prints "N passed, M failed".
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import vm from "node:vm";

const program = process.argv[2];
const folder = new URL("../../web/explore/", import.meta.url);
const read = (name) => readFileSync(new URL(name, folder), "utf8");
let passed = 0, failed = 0;
function check(name, condition, detail = "") {
  if (condition) passed += 1;
  else failed += 1;
  console.log(`${condition ? "ok  " : "FAIL"} ${name}${condition ? "" : ": " + detail}`);
}
function same(name, got, expected) {
  check(name, got === expected, `${got}, expected ${expected}`);
}

// Anything that a page would have: every property and every answer is such a thing again.
const anything = new Proxy(function () {}, { get: (_, key) => (key === Symbol.iterator ? undefined : key === Symbol.toPrimitive ? () => "" : anything), apply: () => anything, construct: () => anything, set: () => true });
const requests = [];
const context = vm.createContext({
  console, URLSearchParams, document: anything, navigator: anything, location: { hash: "" }, getComputedStyle: () => anything, matchMedia: () => anything, Option: anything,
  setTimeout: (action, wait) => (wait >= 100 ? action() : 0), clearTimeout() {}, changedAddress() {},
  Engine: { lane: () => (request) => requests.push(request), slowLane: () => ({ cancel() {}, ask: (list) => requests.push(...Object.values(list)) }) },
});
vm.runInContext(["numbers.js", "chart.js", "panel.js", "layer.js", "prompt.js", "training.js", "temperature.js"].map(read).join("\n") +
  "\nglobalThis.tools = { brief, lengthText, raised, toml, exact, quote }; globalThis.panels = { layer, prompt, training, temperature };", context);

const { brief, lengthText, raised, toml, exact, quote } = context.tools;
same("small numbers", brief(1.234e-7), "1.23·10⁻⁷");
same("a power of ten", brief(1e-9), "10⁻⁹");
same("numbers in between", brief(0.01234), "0.0123");
same("large numbers", brief(462345), "462 000");
same("infinity", brief(Infinity), "∞");
same("lengths", [lengthText(100), lengthText(10595), lengthText(1e6), lengthText(3162277660)].join(" | "), "100 | 10 595 | 10⁶ | 3.16·10⁹");
same("exponents", raised(-0.193), "⁻⁰·¹⁹");
same("TOML has floats", [toml(1), toml(0.25), toml(1e-7), toml(1e21)].join(" "), "1.0 0.25 1e-7 1e21");
same("a slider is rounded", exact(0.1 + 0.2), 0.3);
same("words are quoted where a shell asks for it", quote('a={b="c"}') + quote("x.y=1e-3"), `'a={b="c"}'x.y=1e-3`);

const run = (command) => JSON.parse(execFileSync("bash", ["-c", command.replaceAll("esscher ", `${program} `)], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], maxBuffer: 1 << 28 }));
for (const [id, panel] of Object.entries(context.panels)) {
  requests.length = 0;
  panel.changed();
  check(`${id} asks the engine`, requests.length > 0);
  // The second command of a temperature is a loop of the first.
  for (const command of panel.commandLines.slice(0, id === "temperature" ? 1 : undefined)) {
    let answer = null, why = "";
    try { answer = run(command); } catch (error) { why = String(error.stderr ?? error); }
    check(`the program understands ${command.slice(0, 50)} ..`, answer !== null, why);
  }
  // What is shown is what was asked.
  for (const { set } of requests.filter((request) => ["concentration", "flow", "prompt"].includes(request.verb))) {
    check(`${id} shows what it asks`, panel.commandLines.some((line) => set.every((assignment) => line.includes(assignment))), set.join(" "));
  }
}
for (const law of ["rademacher", "uniform", "sphere", "laplace"]) {
  const { layer } = context.panels;
  layer.state.law = law;
  const sets = layer.sets([10]).map((set) => "--set " + quote(set)).join(" ");
  const answer = run(`esscher concentration ${sets} --set sweep.queries=2 --set sweep.replicates=2 --json`);
  check(`tokens of ${law}`, answer.rows.length === 1 && answer.rows[0].value > 0);
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
