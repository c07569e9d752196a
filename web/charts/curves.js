// Curves and points over two axes as Vega-Lite: one frame, or small multiples that share their axes.
// `chart` is what report/chart.h describes, `data` maps names of datasets to rows.
"use strict";
(() => {
  const charts = (globalThis.esscherCharts ??= {});

  const field = (column) => String(column).replace(/([.[\]\\])/g, "\\$1");
  const finite = (x) => typeof x === "number" && Number.isFinite(x);
  const drawable = (axis, x) => finite(x) && (!axis.log || x > 0);

  // Rows with their places (_x, _y), series (_s), dash (_d) and panel (_f); what cannot be drawn is counted.
  function readRows(chart, rows, role) {
    const undrawn = new Map();
    const gaps = [];
    const out = [];
    for (const row of rows) {
      const [x, y] = [row[chart.x.column], row[chart.y.column]];
      const name = chart.series ? String(row[chart.series]) : "";
      const who = { _s: name, _d: chart.dash ? String(row[chart.dash]) : "", _f: chart.facet ? String(row[chart.facet]) : "" };
      if (!drawable(chart.x, x) || !drawable(chart.y, y)) {
        if (finite(x) && finite(y) && role === "data") undrawn.set(name, (undrawn.get(name) ?? 0) + 1);
        if (drawable(chart.x, x) && finite(y)) gaps.push({ ...who, _x: x, _y: null });
        continue;
      }
      out.push({ ...row, ...who, _x: x, _y: y, _role: role,
        _low: finite(row[chart.low]) ? row[chart.low] : null, _high: finite(row[chart.high]) ? row[chart.high] : null });
    }
    return { rows: out, undrawn, gaps };
  }

  const several = (n, one) => (n === 1 ? `one ${one}` : `${n} ${one}s`);
  const list = (parts) => parts.length < 2 ? parts.join("") : parts.slice(0, -1).join(", ") + " and " + parts.at(-1);

  function undrawnNote(undrawn) {
    if (undrawn.size === 0) return [];
    const parts = [...undrawn].map(([name, n]) => several(n, "value") + (name ? ` of “${charts.pretty(name)}”` : ""));
    return [`Not drawn: ${list(parts)}, zero or negative, which a logarithmic axis cannot show.`];
  }

  function outsideNote(rows, x, y) {
    const out = rows.filter((row) => row._role === "data" &&
      (row._y < y.ends[0] || row._y > y.ends[1] || row._x < x.ends[0] || row._x > x.ends[1]));
    if (out.length === 0) return [];
    const low = Math.min(...out.map((row) => row._y));
    const high = Math.max(...out.map((row) => row._y));
    const range = low === high ? `at ${charts.numberText(low, 3)}` : `between ${charts.numberText(low, 3)} and ${charts.numberText(high, 3)}`;
    return [`${several(out.length, "value").replace(/^o/, "O")} ${out.length === 1 ? "lies" : "lie"} outside the axes (${range}).`];
  }

  // A band that the axis does not show as a whole: of a logarithm, below zero too.
  function bandNote(rows, y) {
    const above = rows.some((row) => row._high > y.ends[1]);
    const below = rows.some((row) => row._low !== null && row._low < y.ends[0]);
    if (!above && !below) return [];
    return [`The band goes on ${above && below ? "above and below" : above ? "above" : "below"} the axes.`];
  }

  // Curves that are seen as one, because they lie on each other at all of their points.
  function hiddenNote(rows, styles, frame) {
    const pixels = styles.map((style) => rows.filter((row) => row._s === style.name && row._role === "data")
      .map((row) => [frame.x.pixel(row._x), frame.y.pixel(row._y)]));
    const same = (a, b) => a.length > 1 && a.length === b.length && a.every(([x, y], i) => Math.abs(x - b[i][0]) < 1 && Math.abs(y - b[i][1]) < 1.2);
    const parts = [];
    pixels.forEach((b, j) => {
      const i = pixels.findIndex((a, k) => k < j && same(a, b));
      if (i >= 0) parts.push(`The curves of “${styles[i].label}” and “${styles[j].label}” lie on each other.`);
    });
    return parts;
  }

  function tooltipOf(chart, columns) {
    return (chart.tooltip?.length ? chart.tooltip : columns).filter(Boolean)
      .map((column) => ({ field: field(column), title: charts.pretty(column), format: undefined }));
  }

  function colourChannels(styles, chart, legend, points) {
    if (!chart.series) return {};
    const names = styles.map((s) => s.name);
    const labels = `${JSON.stringify(styles.map((s) => s.label))}[indexof(${JSON.stringify(names)}, datum.value)]`;
    const stroke = chart.kind !== "scatter" && !chart.points ? { symbolType: "stroke", symbolSize: 500 } : {};
    const key = legend ? { ...legend, ...stroke, labelExpr: labels } : null;
    const by = (range) => ({ field: "_s", type: "nominal", sort: null, scale: { domain: names, range }, legend: key });
    const out = { color: by(styles.map((s) => s.colour)) };
    if (!chart.dash && styles.some((s) => s.dash !== charts.DASHES[0])) out.strokeDash = by(styles.map((s) => s.dash));
    if (points && styles.some((s) => !s.ordered)) out.shape = by(styles.map((s) => s.shape));
    return out;
  }

  // The second channel of a chart with a dash column: one dash per value, with a legend of its own.
  function dashChannel(chart, kinds, legend) {
    if (!chart.dash) return {};
    const range = kinds.map((_, i) => charts.DASHES[i % charts.DASHES.length]);
    return { strokeDash: { field: "_d", type: "nominal", sort: null, scale: { domain: kinds, range },
      legend: kinds.length > 1 ? { ...legend, symbolType: "stroke", symbolSize: 500, title: null } : null } };
  }

  const shown = (value) => ({ condition: { param: "shown", value }, value: 0 });

  // Labels at the end of ordered lines. Those that end at the right side stand beside the frame, at
  // distances that can be read, with a thin line to their curve; others stand at their end.
  function endLabels(rows, styles, frame) {
    const ends = [];
    for (const style of styles.filter((s) => s.ordered)) {
      const last = rows.filter((row) => row._s === style.name && row._role === "data" && row._y >= frame.y.ends[0] && row._y <= frame.y.ends[1])
        .reduce((best, row) => (!best || row._x >= best._x ? row : best), null);
      if (last) ends.push({ text: style.label, colour: style.colour, x: frame.x.pixel(last._x), y: frame.y.pixel(last._y) });
    }
    ends.sort((a, b) => a.y - b.y);
    // Every label stands in the margin: inside the frame it would cover a curve.
    const places = charts.spread(ends.map((end) => end.y), frame.height);
    return ends.map((end, i) => ({ ...end, at: places[i] }));
  }

  function endLayers(labels, frame) {
    if (labels.length === 0) return [];
    const place = (value) => ({ field: value, type: "quantitative", scale: null });
    const colour = { field: "colour", type: "nominal", scale: null };
    const left = frame.width + 6;
    const rows = labels.map((l) => ({ ...l, from: l.x + 3, to: left + 6 }));
    return [
      { data: { values: rows }, mark: { type: "rule", strokeWidth: 0.8, opacity: 0.6 },
        encoding: { x: place("from"), x2: { field: "to" }, y: place("y"), y2: { field: "at" }, color: colour } },
      { data: { values: rows }, mark: { type: "text", style: "end-label", x: left + 9 },
        encoding: { y: place("at"), text: { field: "text" }, color: colour } },
    ];
  }

  // Straight lines with their names, where few points are covered and no other name is.
  function referenceLayers(chart, rows, frame, notes) {
    const layers = [];
    const taken = [];
    const dots = rows.map((row) => ({ x: frame.x.pixel(row._x), y: frame.y.pixel(row._y) }));
    for (const line of chart.references ?? []) {
      const vertical = line.axis === "x";
      const axis = vertical ? frame.x : frame.y;
      if (!(line.value >= axis.ends[0] && line.value <= axis.ends[1])) {
        notes.push(`The line “${charts.pretty(line.label)}” at ${charts.numberText(line.value, 3)} lies outside the axes.`);
        continue;
      }
      const at = axis.pixel(line.value);
      const one = { values: [{}] };
      const [channel, other] = vertical ? ["x", "y"] : ["y", "x"];
      layers.push({ data: one, mark: { type: "rule", style: "reference", [other]: 0, [other + "2"]: vertical ? frame.height : frame.width },
        encoding: { [channel]: { value: at } } });
      if (!line.label) continue;
      const text = charts.pretty(line.label);
      const w = charts.textWidth(text, 12, frame.theme.font);
      const places = vertical
        ? [[at + 5, 3], [at + 5, frame.height - 18], [at - 5 - w, 3], [at - 5 - w, frame.height - 18], [at + 5, frame.height / 2]]
        : [[frame.width - w - 4, at - 17], [4, at - 17], [frame.width - w - 4, at + 3], [4, at + 3], [frame.width / 2, at - 17]];
      let best = null;
      for (const [x, y] of places) {
        const box = { x, y, w, h: 14 };
        if (x < 0 || y < 0 || x + w > frame.width || y + 14 > frame.height) continue;
        const cost = 1000 * taken.filter((other_box) => charts.overlaps(box, other_box)).length +
          dots.filter((dot) => dot.x > x - 4 && dot.x < x + w + 4 && dot.y > y - 4 && dot.y < y + 18).length;
        if (!best || cost < best.cost) best = { ...box, cost };
      }
      if (!best) continue;
      taken.push(best);
      const mark = { type: "text", align: "left", baseline: "middle", text, x: best.x, y: best.y + 7 };
      layers.push({ data: one, mark: { ...mark, style: "halo" }, encoding: {} }, { data: one, mark: { ...mark, style: "reference-label" }, encoding: {} });
    }
    return layers;
  }

  // The layers of one frame.
  function frameLayers(chart, rows, styles, frame, legends, notes, { single, switchable }) {
    const layers = [];
    const data = rows.filter((row) => row._role === "data");
    const theory = rows.filter((row) => row._role === "theory");
    const xy = { x: { field: "_x", type: "quantitative", scale: frame.x.scale, axis: frame.x.axis },
      y: { field: "_y", type: "quantitative", scale: frame.y.scale, axis: frame.y.axis } };
    const channels = colourChannels(styles, chart, legends.colour, false);
    const fade = switchable ? { opacity: shown(1) } : {};
    const select = switchable ? { params: [{ name: "shown",
      select: { type: "point", fields: ["_s"], toggle: "true" }, bind: "legend" }] } : {};
    const scatter = chart.kind === "scatter";
    if (!scatter) {
      const line = { type: "line", style: chart.quiet ? "quiet" : "curve", clip: true };
      // A curve breaks where a value has no place on the axis: a line across would show another value.
      const gaps = frame.gaps.filter((gap) => !chart.facet || gap._f === data[0]?._f);
      const look = chart.quiet ? { detail: { field: "_s" }, color: { value: frame.theme.quiet } } : { ...channels, ...dashChannel(chart, legends.kinds, legends.dash), ...fade };
      layers.push({ data: { values: [...data, ...gaps] }, ...select, mark: line, encoding: { ...xy, ...look } });
    }
    const bands = data.filter((row) => row._low !== null && row._high !== null && row._high > row._low)
      .map((row) => ({ ...row, _low: Math.max(row._low, frame.y.ends[0]), _high: Math.min(row._high, frame.y.ends[1]) }));
    if (bands.length > 0) {
      const opacity = switchable ? { opacity: shown(0.16) } : {};
      const { color } = channels;
      layers.push({ data: { values: bands }, mark: { type: "area", style: "band", line: false, clip: true },
        encoding: { ...xy, y: { ...xy.y, field: "_low" }, y2: { field: "_high" }, ...(color ? { color } : {}), ...opacity } });
    }
    const marks = scatter || (chart.points && !chart.quiet);
    const tooltip = tooltipOf(chart, [chart.facet, chart.series, chart.dash, chart.x.column, chart.y.column, chart.low, chart.high]);
    if (marks) {
      const dots = { ...xy, ...colourChannels(styles, chart, legends.colour, true), ...(scatter ? { tooltip } : {}) };
      delete dots.strokeDash;
      if (switchable) dots.opacity = shown(scatter ? 0.85 : 1);
      layers.push({ data: { values: data }, ...(scatter ? select : {}),
        mark: { type: "point", style: scatter ? "scatter" : "dot", clip: true }, encoding: dots });
    }
    if (theory.length > 0) {
      const dash = { datum: chart.reference_title || "prediction", type: "nominal",
        scale: { domain: [chart.reference_title || "prediction"], range: [[6, 4]] },
        legend: { ...legends.dash, symbolType: "stroke", symbolSize: 500, symbolStrokeColor: frame.theme.ink, title: null } };
      const encoding = { ...xy, detail: { field: "_s" }, color: { value: frame.theme.ink } };
      const plain = chart.dash || styles.some((s) => s.dash !== charts.DASHES[0]);
      if (!plain) encoding.strokeDash = dash;
      const opacity = switchable ? { opacity: shown(1) } : {};
      layers.push({ data: { values: theory }, mark: { type: "line", style: "theory", clip: true, ...(plain ? { strokeDash: [6, 4] } : {}) },
        encoding: { ...encoding, ...opacity } });
    }
    if (chart.diagonal) {
      const low = Math.max(frame.x.ends[0], frame.y.ends[0]);
      const high = Math.min(frame.x.ends[1], frame.y.ends[1]);
      if (high > low) {
        layers.push({ data: { values: [{ _x: low, _y: low }, { _x: high, _y: high }] }, mark: { type: "line", style: "reference", stroke: frame.theme.soft, clip: true }, encoding: xy });
      }
    }
    layers.push(...referenceLayers(chart, rows, frame, notes));
    if (single && !scatter) layers.push(...endLayers(frame.labels, frame));
    // The tooltips of curves belong to points that are not seen and that nothing lies above.
    if (!scatter) {
      layers.push({ data: { values: data }, mark: { type: "point", style: "hover", clip: true }, encoding: { ...xy, opacity: { value: 0 }, tooltip } });
    }
    if (chart.label) {
      const points = charts.beside(data.map((row) => ({ x: frame.x.pixel(row._x), y: frame.y.pixel(row._y), text: String(row[chart.label]) })),
        frame.width, frame.height, frame.theme).filter((p) => p.shown);
      const place = (value) => ({ field: value, type: "quantitative", scale: null });
      const encoding = { x: place("left"), y: place("middle"), text: { field: "text" } };
      const mark = { type: "text", align: "left", baseline: "middle", fontSize: 11.5 };
      const apart = points.filter((p) => p.to_x !== undefined);
      if (apart.length > 0) {
        layers.push({ data: { values: apart }, mark: { type: "rule", strokeWidth: 0.8, opacity: 0.6, color: frame.theme.soft },
          encoding: { x: place("x"), x2: { field: "to_x" }, y: place("y"), y2: { field: "to_y" } } });
      }
      layers.push({ data: { values: points }, mark: { ...mark, style: "halo" }, encoding }, { data: { values: points }, mark: { ...mark, style: "reference-label" }, encoding });
    }
    return layers;
  }

  function curves(chart, data, { width, theme, slots }) {
    const read = readRows(chart, data[chart.data] ?? [], "data");
    const theory = chart.reference_data ? readRows(chart, data[chart.reference_data] ?? [], "theory").rows : [];
    const rows = [...read.rows, ...theory];
    const notes = undrawnNote(read.undrawn);
    const names = [...new Set([...(chart.series_order ?? []), ...read.rows.map((row) => row._s)])]
      .filter((name) => read.rows.some((row) => row._s === name));
    const styles = chart.series ? charts.styles(names, slots, theme.dark) : [];
    const kinds = chart.dash ? [...new Set(["softmax", "linear", ...read.rows.map((row) => row._d)])]
      .filter((kind) => read.rows.some((row) => row._d === kind)) : [];
    const ordered = styles.length > 0 && styles.every((s) => s.ordered) && chart.kind !== "scatter" && !chart.facet;

    const refs = (axis) => (chart.references ?? []).filter((line) => line.axis === axis).map((line) => line.value);
    const xEnds = charts.axisEnds(read.rows.map((row) => row._x), { ...chart.x, lines: refs("x"), extra: theory.map((row) => row._x), share: 0.12 });
    const seen = { ...chart.y, lines: refs("y"), share: 0.3,
      extra: theory.map((row) => row._y), bands: read.rows.flatMap((row) => [row._low, row._high]) };
    let yEnds = charts.axisEnds(read.rows.map((row) => row._y), seen);
    // A prediction that would lie outside as a whole is treated as a line: seen unless it is far away.
    const inside = (y) => y >= yEnds[0] && y <= yEnds[1];
    if (theory.length > 0 && !theory.some((row) => inside(row._y))) {
      const off = (y) => Math.min(...yEnds.map((end) => Math.abs(y - end)));
      const nearest = theory.map((row) => row._y).reduce((a, b) => (off(b) < off(a) ? b : a));
      yEnds = charts.axisEnds(read.rows.map((row) => row._y), { ...seen, lines: [...seen.lines, nearest] });
      if (!inside(nearest)) notes.push(`The dashed ${charts.pretty(chart.reference_title || "prediction")} lies outside the axes (near ${charts.numberText(nearest, 3)}).`);
    }

    const named = styles.filter((s) => !ordered && (!s.ordered || chart.kind === "scatter" || chart.facet));
    const title = chart.series_title ? charts.pretty(chart.series_title) : "";
    const colour = chart.quiet || named.length === 0 || !chart.series ? null : charts.legendOf(named.map((s) => s.label), title, width, theme);
    if (colour) colour.legend.values = named.map((s) => s.name);
    // One dash alone tells nothing apart and needs no legend.
    const dashed = chart.dash ? (kinds.length > 1 ? kinds : []) : theory.length > 0 ? [chart.reference_title || "prediction"] : [];
    const dash = dashed.length > 0 ? charts.legendOf(dashed, "", width, theme) : null;
    const legends = { colour: colour?.legend ?? null, dash: dash?.legend ?? {}, kinds };
    const legendRows = (colour?.rows ?? 0) + (dash?.rows ?? 0);

    const panels = chart.facet ? [...new Set(rows.map((row) => row._f))] : [""];
    const columns = !chart.facet ? 1 : charts.isNarrow(width) ? 1 : Math.min(panels.length, width > 700 ? 3 : 2);
    const labelled = chart.kind !== "scatter" && !chart.facet && !chart.quiet ? styles.filter((s) => s.ordered) : [];
    const margin = labelled.length > 0 ? 22 + Math.max(...labelled.map((s) => charts.textWidth(s.label, 12, theme.font))) : 14;
    const room = (width - 24 * (columns - 1)) / columns;
    const high = Math.round(chart.facet ? room / 1.5 : charts.isNarrow(width) ? Math.max(230, width / 1.3) : Math.min(470, width / 1.6) - 22 * legendRows);
    const height = Math.max(high - 46, 130, labelled.length * charts.LINE);
    const probe = charts.axisOf(chart.y, yEnds, height, { horizontal: false, theme });
    const inner = Math.max(120, Math.floor(room - probe.widest - 28 - 15 * probe.lines - margin));
    const frame = { width: inner, height, theme, gaps: read.gaps, y: probe, x: charts.axisOf(chart.x, xEnds, inner, { horizontal: true, theme }) };
    frame.labels = labelled.length > 0 ? endLabels(rows, styles, frame) : [];
    notes.push(...outsideNote(rows, frame.x, frame.y), ...bandNote(read.rows, frame.y));
    if (chart.kind !== "scatter" && !chart.quiet && !chart.facet && !chart.dash) notes.push(...hiddenNote(rows, styles, frame));

    const switchable = !chart.facet && !chart.quiet && Boolean(legends.colour);
    const base = { autosize: { type: "pad" }, config: {}, usermeta: undefined };
    if (!chart.facet) {
      const layer = frameLayers(chart, rows, styles, frame, legends, notes, { single: true, switchable });
      return { notes, spec: { ...base, width: inner, height, layer } };
    }
    const concat = panels.map((panel, i) => {
      const bottom = i + columns >= panels.length;
      const left = i % columns === 0;
      const part = { ...frame,
        x: { ...frame.x, axis: { ...frame.x.axis, title: bottom ? frame.x.axis.title : null } },
        y: { ...frame.y, axis: { ...frame.y.axis, title: left ? frame.y.axis.title : null } } };
      return { width: inner, height, title: charts.pretty(panel),
        layer: frameLayers(chart, rows.filter((row) => row._f === panel), styles, part, legends, i === 0 ? notes : [], { single: false, switchable: false }) };
    });
    return { notes, spec: { ...base, concat, columns, spacing: 18, resolve: { scale: { color: "shared", shape: "shared", strokeDash: "shared" }, legend: { color: "shared", shape: "shared", strokeDash: "shared" } } } };
  }

  Object.assign(charts, { curves, list, several });
})();
