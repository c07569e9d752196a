// The behaviour of a report page. This script draws the figures in the colours of the page, saves
// them, and sorts tables. It reads nothing but the page itself.
"use strict";
(() => {
  const page = JSON.parse(document.getElementById("page-data").textContent);
  const root = document.documentElement;
  const darkMedia = matchMedia("(prefers-color-scheme: dark)");
  const views = new Map();

  function isDark() {
    const chosen = root.dataset.theme;
    return chosen ? chosen === "dark" : darkMedia.matches;
  }

  const charts = globalThis.esscherCharts;
  const slots = charts.slotsOfPage(Object.values(page.figures), page.datasets);

  async function draw(holder) {
    const id = holder.dataset.figure;
    views.get(id)?.finalize();
    const figure = holder.closest("figure");
    // Vega takes the label of its container from the description.
    const description = figure.querySelector("figcaption").textContent;
    const dark = isDark();
    const drawn = await charts.draw(holder, page.figures[id], page.datasets, { dark, slots, description });
    views.set(id, drawn.view);
    const note = figure.querySelector(".note");
    note.textContent = drawn.notes.join(" ");
    note.hidden = drawn.notes.length === 0;
    holder.dataset.drawn = dark ? "dark" : "light";  // paper has to know
    holder.dataset.width = holder.clientWidth;
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

  // A figure is made for one width: when the page changes its width, it is made again.
  let waiting = 0;
  function redrawLater() {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      const changed = [...document.querySelectorAll(".chart")].some((holder) => Math.abs(holder.clientWidth - holder.dataset.width) > 8);
      if (changed) drawAll();
    }, 250);
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
  const printSpec = (id) => charts.build(page.figures[id], page.datasets, { width: 720, dark: false, slots }).spec;
  async function printView(id) {
    const spec = printSpec(id);
    spec.config = { ...spec.config, background: "#ffffff" };
    return new vega.View(vega.parse(vegaLite.compile(spec).spec), { renderer: "none" });
  }

  const savers = {
    SVG: async (id) => save(id + ".svg", "image/svg+xml", await (await printView(id)).toSVG()),
    PNG: async (id) => {
      const canvas = await (await printView(id)).toCanvas(2);
      canvas.toBlob((blob) => save(id + ".png", "image/png", blob));
    },
    "Chart (JSON)": (id) => save(id + ".vl.json", "application/json", JSON.stringify(printSpec(id), null, 1)),
    "Data (CSV)": (id) => {
      const sets = Object.values(charts.withData(page.figures[id], page.datasets).datasets);
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
      const cell = row.cells[column];
      const text = cell ? cell.dataset.value ?? cell.textContent.trim() : "";
      const number = Number(text);
      return text !== "" && !Number.isNaN(number) ? number : text;
    };
    const compare = (a, b) =>
      typeof a === "number" && typeof b === "number" ? a - b
        : typeof a === typeof b ? a.localeCompare(b) : typeof a === "number" ? -1 : 1;
    const rows = [...table.tBodies[0].rows].map((row) => [key(row), row]);
    rows.sort((a, b) => (up ? 1 : -1) * compare(a[0], b[0]));
    table.tBodies[0].append(...rows.map((pair) => pair[1]));
  }

  // A table that is higher than its place says how many rows it has: the last one that is seen may look like the end.
  function sayRows() {
    for (const place of document.querySelectorAll(".table-wrap")) {
      const long = place.scrollHeight > place.clientHeight + 1;
      const caption = place.querySelector("caption");
      let words = caption.querySelector(".rows");
      if (!words) {
        words = document.createElement("span");
        words.className = "rows";
        caption.append(words);
      }
      words.textContent = long ? ` · ${place.querySelectorAll("tbody tr").length} rows, scroll to see all` : "";
    }
  }

  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    drawAll();
  });
  darkMedia.addEventListener("change", drawAll);
  addEventListener("resize", redrawLater);
  addEventListener("resize", sayRows);
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
  sayRows();
  drawAll();
})();
