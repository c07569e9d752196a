// The page: one panel at a time, its state in the address (#layer?law=gaussian&d=4 ..), light or dark.
const PANELS = { layer, prompt, training, temperature };
let current = null, own = "";

// The newest address is written at most every 200 ms: browsers refuse more. A link that was followed in the meantime
// is not written over: its hashchange comes next and still has to read it.
let addressTimer = 0;
function changedAddress() {
  clearTimeout(addressTimer);
  const before = location.hash;
  addressTimer = setTimeout(() => {
    if (location.hash !== before) return;
    own = `#${current.id}?${current.write()}`.replaceAll("%2C", ",");
    history.replaceState(null, "", own);
  }, 200);
}

function open(id) {
  for (const panel of Object.values(PANELS)) {  // what was left to settle waits until its panel is seen again
    clearTimeout(panel.timer);
    panel.slow?.cancel();
  }
  current = PANELS[id];
  document.getElementById("main").replaceChildren(current.root);
  for (const tab of document.querySelectorAll("[role=tab]")) {
    const selected = tab.dataset.panel === id;
    tab.setAttribute("aria-selected", selected);
    tab.tabIndex = selected ? 0 : -1;
  }
  current.show();
  current.changed();
}

function follow() {
  if (location.hash === own && current) return;
  const [id, parameters = ""] = location.hash.slice(1).split("?");
  const panel = PANELS[id] ?? layer;
  panel.read(new URLSearchParams(parameters));
  open(panel.id);
}

function addTheme() {
  const root = document.documentElement;
  document.getElementById("theme").addEventListener("click", () => {
    const dark = getComputedStyle(root).colorScheme === "dark";
    root.dataset.theme = dark ? "light" : "dark";
    current?.draw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => current?.draw());
}

// Pictures are as wide as the window allows.
function addResize() {
  let timer = 0;
  addEventListener("resize", () => {
    clearTimeout(timer);
    timer = setTimeout(() => current?.draw(), 100);
  });
}

function addTabs() {
  const tabs = [...document.querySelectorAll("[role=tab]")];
  tabs.forEach((tab, i) => {
    tab.addEventListener("click", () => open(tab.dataset.panel));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = tabs[(i + step + tabs.length) % tabs.length];
      next.focus();
      open(next.dataset.panel);
    });
  });
}

async function begin() {
  addTheme();
  addTabs();
  addResize();
  try {
    await Engine.start();
  } catch (error) {
    document.querySelector(".starting").textContent = `This browser cannot run the engine (${error.message}). It needs WebAssembly with exceptions and SIMD, and DecompressionStream: any browser since 2023.`;
    return;
  }
  follow();
  addEventListener("hashchange", follow);
  document.documentElement.dataset.ready = "yes";
}
window.explorer = PANELS;  // for tests and for the curious
begin();
