// The behaviour of a report page. This script draws the figures in the colours of the page, saves
// them, and sorts tables. It reads nothing but the page itself.
"use strict";
(() => {
  const page = JSON.parse(document.getElementById("page-data").textContent);
  const root = document.documentElement;
  const darkMedia = matchMedia("(prefers-color-scheme: dark)");
  // The colours of Okabe and Ito, which people with any colour vision can tell apart. A dark page
  // gets lighter ones.
  const palette = {
    light: ["#0072b2", "#d55e00", "#009e73", "#a8539b", "#b07d00", "#3a9bd6", "#5b6470", "#8c3b00"],
    dark: ["#56b4e9", "#ff8a4c", "#3fcf9f", "#e19ccb", "#f0c04a", "#9ad2f5", "#aab4c0", "#d9a27c"],
  };
  const views = new Map();

  function isDark() {
    const chosen = root.dataset.theme;
    return chosen ? chosen === "dark" : darkMedia.matches;
  }

  function chartConfig(print) {
    const css = getComputedStyle(root);
    const pick = (name) => css.getPropertyValue(name).trim();
    const dark = isDark() && !print;
    const ink = print ? "#1c2430" : pick("--ink");
    const soft = print ? "#566273" : pick("--soft");
    const sans = pick("--sans");
    return {
      background: null, font: sans, padding: 4,
      range: { category: palette[dark ? "dark" : "light"] },
      mark: { color: palette[dark ? "dark" : "light"][0] },
      view: { stroke: null },
      rule: { color: soft }, text: { color: soft },
      axis: {
        labelColor: soft, titleColor: ink, domainColor: soft, tickColor: soft,
        gridColor: print ? "#e9edf1" : pick("--grid"), labelFontSize: 12, titleFontSize: 12.5,
        titleFontWeight: 500, titlePadding: 10, labelPadding: 4, tickSize: 4,
      },
      legend: {
        labelColor: ink, titleColor: soft, labelFontSize: 12.5, titleFontSize: 12, titleFontWeight: 500,
        symbolStrokeWidth: 2.5, orient: "top", direction: "horizontal", offset: 12, labelLimit: 320,
        columnPadding: 18, symbolOpacity: 1, columns: { signal: "width < 480 ? 1 : 4" },
        gradientLength: 200,
      },
      header: { labelColor: ink, titleColor: soft, labelFontSize: 12.5 },
      title: { color: ink, fontSize: 13, fontWeight: 500, anchor: "start" },
      style: {
        curve: { strokeWidth: 2.2, strokeJoin: "round" },
        theory: { strokeWidth: 1.6, strokeDash: [6, 4] },
        band: { opacity: 0.18 },
        dot: { filled: true, size: 42, stroke: print ? "#fff" : pick("--paper"), strokeWidth: 1 },
        hover: { filled: true, size: 90 },
        scatter: { filled: true, size: 44 },
        column: { cornerRadiusEnd: 2 },
        tile: {},
        "error-bar": { stroke: ink, strokeWidth: 1.4 },
        reference: { stroke: soft, strokeWidth: 1.2, strokeDash: [3, 3] },
        "reference-label": { fill: soft, fontSize: 12 },
      },
    };
  }

  // Finds named data at any depth of a specification.
  function withData(spec) {
    const names = new Set();
    (function walk(node) {
      if (!node || typeof node !== "object") return;
      if (node.data && typeof node.data.name === "string") names.add(node.data.name);
      Object.values(node).forEach(walk);
    })(spec);
    const datasets = {};
    for (const name of names) if (name in page.datasets) datasets[name] = page.datasets[name];
    return { ...spec, datasets: { ...(spec.datasets || {}), ...datasets } };
  }

  async function draw(holder) {
    const id = holder.dataset.figure;
    const old = views.get(id);
    if (old) old.finalize();
    // Vega takes the label of its container from the description.
    const description = holder.closest("figure").querySelector("figcaption").textContent;
    const result = await vegaEmbed(holder, { ...withData(page.figures[id]), description }, {
      mode: "vega-lite", actions: false, renderer: "svg", config: chartConfig(false),
      tooltip: { theme: isDark() ? "dark" : "light" },
    });
    views.set(id, result);
    holder.dataset.drawn = "yes";
  }

  async function drawAll() {
    if (typeof vegaEmbed === "undefined") return;
    for (const holder of document.querySelectorAll(".chart")) {
      try {
        await draw(holder);
      } catch (error) {
        holder.textContent = "This figure could not be drawn: " + error.message;
        console.error(error);
      }
    }
    root.dataset.ready = "yes";
  }

  function save(name, type, content) {
    const link = document.createElement("a");
    link.href = typeof content === "string" && content.startsWith("data:")
      ? content : URL.createObjectURL(new Blob([content], { type }));
    link.download = name;
    link.click();
  }

  function toCsv(rows) {
    const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
    const quote = (value) => {
      const text = value === null || value === undefined ? "" : String(value);
      return /[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
    };
    const lines = rows.map((row) => columns.map((column) => quote(row[column])).join(","));
    return [columns.map(quote).join(","), ...lines].join("\r\n") + "\r\n";
  }

  // Saved figures are meant for paper, so they are light and on white, whatever the page looks like.
  async function printView(id) {
    const config = { ...chartConfig(true), background: "#ffffff" };
    const spec = withData(page.figures[id]);
    if (spec.width === "container") spec.width = 720;
    return new vega.View(vega.parse(vegaLite.compile(spec, { config }).spec), { renderer: "none" });
  }

  const savers = {
    SVG: async (id) => save(id + ".svg", "image/svg+xml", await (await printView(id)).toSVG()),
    PNG: async (id) => {
      const canvas = await (await printView(id)).toCanvas(2);
      canvas.toBlob((blob) => save(id + ".png", "image/png", blob));
    },
    "Chart (JSON)": (id) =>
      save(id + ".vl.json", "application/json", JSON.stringify(withData(page.figures[id]), null, 1)),
    "Data (CSV)": (id) => {
      const sets = Object.values(withData(page.figures[id]).datasets);
      save(id + ".csv", "text/csv", toCsv(sets.flat()));
    },
  };

  function addTools() {
    const charts = typeof vegaEmbed !== "undefined";
    for (const tools of document.querySelectorAll(".tools")) {
      for (const [label, action] of Object.entries(savers)) {
        if (!charts && (label === "SVG" || label === "PNG")) continue;
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = label;
        button.addEventListener("click", () => action(tools.dataset.for));
        tools.append(button);
      }
    }
  }

  async function downloadRows() {
    const bytes = Uint8Array.from(atob(document.getElementById("rows").textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    save("rows.csv", "text/csv", await new Response(stream).blob());
  }

  function sortTable(header) {
    const table = header.closest("table");
    const column = header.cellIndex;
    const up = header.getAttribute("aria-sort") !== "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = (row) => {
      const text = row.cells[column] ? row.cells[column].textContent : "";
      const number = text === "inf" ? Infinity : Number(text);
      return text !== "" && !Number.isNaN(number) ? number : text;
    };
    const compare = (a, b) =>
      typeof a === "number" && typeof b === "number" ? a - b
        : typeof a === typeof b ? a.localeCompare(b) : typeof a === "number" ? -1 : 1;
    const rows = [...table.tBodies[0].rows].map((row) => [key(row), row]);
    rows.sort((a, b) => (up ? 1 : -1) * compare(a[0], b[0]));
    table.tBodies[0].append(...rows.map((pair) => pair[1]));
  }

  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    drawAll();
  });
  darkMedia.addEventListener("change", drawAll);
  document.getElementById("download-rows")?.addEventListener("click", downloadRows);
  for (const button of document.querySelectorAll("table.sortable th button")) {
    button.addEventListener("click", () => sortTable(button.closest("th")));
  }
  for (const button of document.querySelectorAll("button.copy")) {
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.previousElementSibling.textContent);
      button.textContent = "Copied";
    });
  }
  addTools();
  drawAll();
})();
