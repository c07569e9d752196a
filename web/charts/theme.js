// Fonts, colours and line widths of charts, for a light and a dark page.
"use strict";
(() => {
  const charts = (globalThis.esscherCharts ??= {});
  const SANS = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, "DejaVu Sans", sans-serif';

  const themeOf = (dark) => dark
    ? { dark, ink: "#e4e8ee", soft: "#a7b1bf", grid: "#232b36", paper: "#12171e", quiet: "#4d5866", font: SANS }
    : { dark, ink: "#1c2430", soft: "#566273", grid: "#e9edf1", paper: "#ffffff", quiet: "#b4bdc9", font: SANS };

  function configOf(theme) {
    const shade = theme.dark ? "dark" : "light";
    const { ink, soft } = theme;
    return {
      background: null, font: theme.font, padding: 4,
      range: {
        category: charts.CATEGORIES[shade], diverging: charts.DIVERGING[shade],
        heatmap: charts.SEQUENCE[shade], ramp: charts.SEQUENCE[shade], ordinal: charts.SEQUENCE[shade],
      },
      mark: { color: charts.CATEGORIES[shade][0] },
      view: { stroke: null },
      rule: { color: ink }, text: { color: soft, font: theme.font },
      axis: {
        labelColor: soft, titleColor: ink, domainColor: soft, tickColor: soft, gridColor: theme.grid,
        labelFontSize: charts.FONT, titleFontSize: 12.5, titleFontWeight: 500, titlePadding: 8, labelPadding: 4, tickSize: 4,
      },
      legend: {
        labelColor: ink, titleColor: soft, labelFontSize: 12.5, titleFontSize: 12, titleFontWeight: 500,
        symbolStrokeWidth: 2.2, offset: 10, columnPadding: 16, rowPadding: 3, symbolOpacity: 1, gradientLength: 180,
        layout: { top: { anchor: "start", direction: "vertical", margin: 3 }, bottom: { anchor: "start", direction: "vertical", margin: 3 } },
      },
      header: { labelColor: ink, titleColor: soft, labelFontSize: 12.5 },
      title: { color: ink, fontSize: 13, fontWeight: 500, anchor: "start", offset: 6 },
      style: {
        curve: { strokeWidth: 2.5, strokeJoin: "round" },
        quiet: { strokeWidth: 1, strokeJoin: "round" },
        theory: { strokeWidth: 1.3 },
        band: { opacity: 0.16 },
        dot: { filled: true, size: 62, stroke: theme.paper, strokeWidth: 1 },
        hover: { filled: true, size: 110 },
        scatter: { filled: true, size: 50 },
        column: { cornerRadiusEnd: 2 },
        tile: {},
        "error-bar": { stroke: ink, strokeWidth: 1.4 },
        reference: { stroke: ink, strokeWidth: 1.2, strokeDash: [3, 3] },
        "reference-label": { fill: soft, fontSize: 12 },
        "end-label": { fontSize: 12, align: "left", baseline: "middle" },
        halo: { stroke: theme.paper, strokeWidth: 4, strokeJoin: "round", fontSize: 12 },
      },
    };
  }

  Object.assign(charts, { themeOf, configOf });
})();
