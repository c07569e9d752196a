// Draws charts: esscherCharts.build makes the Vega-Lite of a described chart for a width and a theme,
// esscherCharts.draw puts it into an element. A specification without a description is drawn as it is.
"use strict";
(() => {
  const charts = (globalThis.esscherCharts ??= {});
  const KINDS = { curve: "curves", scatter: "curves", bar: "bars", histogram: "histogram", heatmap: "heatmap" };

  const described = (spec) => spec.usermeta?.esscher ?? null;

  // Names of datasets at any depth of a specification.
  function dataNames(spec) {
    const names = new Set();
    (function walk(node) {
      if (!node || typeof node !== "object") return;
      if (node.data && typeof node.data.name === "string") names.add(node.data.name);
      Object.values(node).forEach(walk);
    })(spec);
    return names;
  }

  // The specification with the rows that it names.
  function withData(spec, datasets) {
    const own = {};
    for (const name of dataNames(spec)) if (name in datasets) own[name] = datasets[name];
    return { ...spec, datasets: { ...(spec.datasets || {}), ...own } };
  }

  // The colours of all categories of a page, so that a name keeps its colour from chart to chart.
  function slotsOfPage(specs, datasets) {
    return charts.slotsOf(specs.map((spec) => {
      const chart = described(spec);
      if (!chart?.series || chart.quiet) return [];
      const rows = { ...datasets, ...(spec.datasets || {}) }[chart.data] ?? [];
      return [...(chart.series_order ?? []), ...rows.map((row) => String(row[chart.series]))];
    }));
  }

  // { spec, notes }: what Vega-Lite draws, and what a reader must be told about it.
  function build(spec, datasets, { width, dark, slots }) {
    const theme = charts.themeOf(dark);
    const chart = described(spec);
    const config = charts.configOf(theme);
    if (!chart || !KINDS[chart.kind]) {
      const fitted = { ...withData(spec, datasets) };
      if (fitted.width === "container") fitted.width = width;
      return { spec: { ...fitted, config: { ...config, ...(spec.config || {}) } }, notes: [] };
    }
    const rows = { ...datasets, ...(spec.datasets || {}) };
    const made = charts[KINDS[chart.kind]](chart, rows, { width, theme, slots: slots ?? slotsOfPage([spec], datasets) });
    return { notes: made.notes, spec: { $schema: spec.$schema, ...made.spec, ...(spec.title ? { title: spec.title } : {}), config } };
  }

  async function draw(holder, spec, datasets, options) {
    const made = build(spec, datasets, { width: Math.floor(holder.clientWidth), ...options });
    const result = await vegaEmbed(holder, { ...made.spec, description: options.description ?? "" }, {
      mode: "vega-lite", actions: false, renderer: "svg", tooltip: { theme: options.dark ? "dark" : "light" },
    });
    return { view: result, notes: made.notes };
  }

  Object.assign(charts, { described, withData, slotsOfPage, build, draw });
})();
