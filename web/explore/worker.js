// Runs beside the page. The code of the engine stands before this in the same script. The first message is the
// compiled module; every later one is {id, request} and is answered by {id, answer, took}.
let engine = null;
const early = [];

function serve({ id, request }) {
  const start = performance.now();
  const text = engine.ccall("esscher_answer", "string", ["string"], [JSON.stringify(request)]);
  postMessage({ id, answer: JSON.parse(text), took: performance.now() - start });
}

onmessage = async ({ data }) => {
  if (data instanceof WebAssembly.Module) {
    engine = await EsscherEngine({
      instantiateWasm(imports, done) {
        WebAssembly.instantiate(data, imports).then((instance) => done(instance, data));
        return {};
      },
    });
    early.splice(0).forEach(serve);
  } else if (engine) {
    serve(data);
  } else {
    early.push(data);
  }
};
