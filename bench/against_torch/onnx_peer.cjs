// onnx_peer.cjs PACKAGES DATA Q N D: attention by ONNX Runtime on one thread. Reads q [Q,D], k [N,D] and v [N,D] as
// float32 from the folder DATA, computes once for every line of input, prints the CPU seconds of each, and leaves the
// first answer in DATA/out. The graph is Gemm(q, k'), Softmax, MatMul(., v), written here as protocol buffers.
const fs = require("fs");
const path = require("path");
const readline = require("readline");

const [, , packages, data, ...sizes] = process.argv;
const [q, n, d] = sizes.map(Number);
const ort = require(path.join(packages, "node_modules", "onnxruntime-node"));

function varint(x) {
  const bytes = [];
  for (; x >= 128; x = Math.floor(x / 128)) bytes.push((x % 128) + 128);
  return Buffer.from([...bytes, x]);
}
const number = (field, x) => Buffer.concat([varint(field * 8), varint(x)]);
const block = (field, x) => Buffer.concat([varint(field * 8 + 2), varint(x.length), x]);
const text = (field, x) => block(field, Buffer.from(x));

const node = (op, inputs, output, attributes = []) =>
  block(1, Buffer.concat([...inputs.map((x) => text(1, x)), text(2, output), text(4, op), ...attributes]));
const kInt = 2;
const attribute = (name, x) => block(5, Buffer.concat([text(1, name), number(3, x), number(20, kInt)]));
const value = (field, name, shape) => {
  const dims = Buffer.concat(shape.map((x) => block(1, number(1, x))));
  const tensor = Buffer.concat([number(1, 1), block(2, dims)]);  // 1: float32
  return block(field, Buffer.concat([text(1, name), block(2, block(1, tensor))]));
};

function model() {
  const graph = Buffer.concat([
    node("Gemm", ["q", "k"], "s", [attribute("transB", 1)]),
    node("Softmax", ["s"], "w"),
    node("MatMul", ["w", "v"], "out"),
    text(2, "attention"),
    value(11, "q", [q, d]),
    value(11, "k", [n, d]),
    value(11, "v", [n, d]),
    value(12, "out", [q, d]),
  ]);
  return Buffer.concat([number(1, 8), block(8, Buffer.concat([text(1, ""), number(2, 13)])), block(7, graph)]);
}

function tensor(name, rows) {
  const bytes = fs.readFileSync(path.join(data, name));
  return new ort.Tensor("float32", new Float32Array(bytes.buffer, bytes.byteOffset, rows * d), [rows, d]);
}

async function main() {
  const session = await ort.InferenceSession.create(model(), {
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
    executionMode: "sequential",
  });
  const feeds = { q: tensor("q", q), k: tensor("k", n), v: tensor("v", n) };
  let first = true;
  for await (const _ of readline.createInterface({ input: process.stdin })) {
    const start = process.cpuUsage();
    const { out } = await session.run(feeds);
    const used = process.cpuUsage(start);
    if (first) fs.writeFileSync(path.join(data, "out"), Buffer.from(out.data.buffer, out.data.byteOffset, 4 * q * d));
    first = false;
    console.log((used.user + used.system) * 1e-6);
  }
}

main();
