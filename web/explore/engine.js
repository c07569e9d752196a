// The engine, as two workers: one answers while a slider moves, the other takes its time afterwards. Only the
// newest request of each kind counts; a slow answer that nobody waits for any more is ended with its worker.
const Engine = (() => {
  let module = null, script = null;

  async function start() {
    const text = document.getElementById("engine-bytes").textContent.trim();
    const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    module = await WebAssembly.compile(await new Response(stream).arrayBuffer());
    const code = [document.getElementById("engine-code").textContent, workerSource].join("\n");
    script = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  }

  function makeWorker() {
    const worker = new Worker(script);
    const waiting = new Map();
    let count = 0;
    worker.postMessage(module);
    worker.onmessage = ({ data }) => {
      waiting.get(data.id)?.(data);
      waiting.delete(data.id);
    };
    return {
      busy: () => waiting.size > 0,
      end: () => worker.terminate(),
      ask: (request) => new Promise((resolve) => {
        waiting.set(++count, resolve);
        worker.postMessage({ id: count, request });
      }),
    };
  }

  // Asks of one panel: while one is under way, only the last of those that follow is kept.
  let quick = null, slow = null;
  function lane() {
    let running = false, next = null;
    async function run() {
      running = true;
      while (next) {
        const { request, done } = next;
        next = null;
        quick ??= makeWorker();
        done(await quick.ask(request));
      }
      running = false;
    }
    return (request, done) => {
      next = { request, done };
      if (!running) run();
    };
  }

  // Asks that may take long, one after another; a new list ends the one before.
  function slowLane() {
    let generation = 0;
    return {
      cancel() {
        generation += 1;
        if (slow?.busy()) { slow.end(); slow = null; }
      },
      async ask(requests, done) {
        this.cancel();
        const mine = generation;
        slow ??= makeWorker();
        for (const [name, request] of Object.entries(requests)) {
          const { answer } = await slow.ask(request);
          if (mine !== generation) return;
          done(name, answer);
        }
      },
    };
  }

  return { start, lane, slowLane };
})();
