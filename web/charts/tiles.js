// Bars, histograms and heat maps as Vega-Lite.
"use strict";
(() => {
  const charts = (globalThis.esscherCharts ??= {});
  const finite = (x) => typeof x === "number" && Number.isFinite(x);
  const field = (column) => String(column).replace(/([.[\]\\])/g, "\\$1");
  const tip = (column, title) => ({ field: field(column), title: charts.pretty(title || column) });
  const place = (value) => ({ field: value, type: "quantitative", scale: null });

  function frameOf(width, legendRows, aspect = 1.6) {
    const narrow = charts.isNarrow(width);
    return Math.round(narrow ? Math.max(210, width / 1.4) : Math.min(430, width / aspect) - 22 * legendRows) - 46;
  }

  function references(lines, axis, frame, vertical) {
    return lines.filter((line) => line.value >= axis.ends[0] && line.value <= axis.ends[1]).flatMap((line) => {
      const at = axis.pixel(line.value);
      const one = { values: [{}] };
      const w = charts.textWidth(charts.pretty(line.label), 12, frame.theme.font);
      const [x, y] = vertical ? [at + 5 + w > frame.width ? at - 5 - w : at + 5, 8] : [frame.width - w - 4, at - 9];
      const text = { type: "text", align: "left", baseline: "middle", text: charts.pretty(line.label), x, y };
      const [channel, other] = vertical ? ["x", "y"] : ["y", "x"];
      const rule = { [other]: 0, [other + "2"]: vertical ? frame.height : frame.width };
      return [{ data: one, mark: { type: "rule", style: "reference", ...rule }, encoding: { [channel]: { value: at } } },
        { data: one, mark: { ...text, style: "halo" }, encoding: {} }, { data: one, mark: { ...text, style: "reference-label" }, encoding: {} }];
    });
  }

  function bars(chart, data, { width, theme, slots }) {
    const rows = (data[chart.data] ?? []).filter((row) => finite(row[chart.y.column]) && (!chart.y.log || row[chart.y.column] > 0));
    const names = chart.series ? [...new Set(rows.map((row) => String(row[chart.series])))] : [];
    const styles = charts.styles(names, slots, theme.dark);
    const legend = names.length > 0 ? charts.legendOf(styles.map((s) => s.label), chart.series_title, width, theme) : null;
    const height = frameOf(width, legend?.rows ?? 0);
    const lines = chart.references ?? [];
    const values = rows.flatMap((row) => [row[chart.y.column], row[chart.low], row[chart.high]]).filter(finite);
    const ends = charts.axisEnds([...values, ...(chart.y.log ? [] : [0])], { ...chart.y, lines: lines.map((line) => line.value) });
    if (!chart.y.log && ends[0] < 0 && values.every((x) => x >= 0)) ends[0] = 0;
    const y = charts.axisOf(chart.y, ends, height, { horizontal: false, theme });
    const inner = Math.max(120, Math.floor(width - y.widest - 42 - 15 * y.lines));
    const frame = { width: inner, height, theme };
    const order = chart.sorted ? "-y" : null;
    const x = { field: "_c", type: "nominal", sort: order, title: charts.pretty(chart.category_title || chart.category), axis: { labelAngle: 0, labelLimit: inner / 2 } };
    const all = rows.map((row) => ({ ...row, _c: charts.pretty(row[chart.category]), _s: String(row[chart.series] ?? ""), _y: row[chart.y.column], _zero: chart.y.log ? ends[0] : 0,
      _low: row[chart.low], _high: row[chart.high] }));
    const offset = names.length > 0 ? { xOffset: { field: "_s", sort: null, scale: { domain: styles.map((s) => s.name) } } } : {};
    const opacity = names.length > 0 ? { opacity: { condition: { param: "shown", value: 1 }, value: 0 } } : {};
    const layer = [{
      data: { values: all }, mark: { type: "bar", style: "column" },
      ...(names.length > 0 ? { params: [{ name: "shown", select: { type: "point", fields: ["_s"], toggle: "true" }, bind: "legend" }] } : {}),
      encoding: { x, y: { field: "_y", type: "quantitative", scale: y.scale, axis: y.axis, stack: null }, y2: { field: "_zero" }, ...offset, ...opacity,
        ...(names.length > 0 ? { color: { field: "_s", type: "nominal", sort: null, scale: { domain: styles.map((s) => s.name), range: styles.map((s) => s.colour) }, legend: legend.legend } } : {}),
        tooltip: [chart.category, chart.series, chart.y.column, chart.low, chart.high].filter(Boolean).map((c) => tip(c)) },
    }];
    if (chart.low) {
      layer.push({ data: { values: all.filter((row) => finite(row._low) && finite(row._high)) }, mark: { type: "rule", style: "error-bar" },
        encoding: { x, y: { field: "_low", type: "quantitative", scale: y.scale, axis: y.axis }, y2: { field: "_high" }, ...offset, ...opacity } });
    }
    layer.push(...references(lines, y, frame, false));
    return { notes: [], spec: { width: inner, height, autosize: { type: "pad" }, layer } };
  }

  // Counts per bin. On a log axis the bins are even in the logarithm.
  function histogram(chart, data, { width, theme }) {
    const values = (data[chart.data] ?? []).map((row) => row[chart.x.column]).filter(finite);
    const used = values.filter((x) => !chart.x.log || x > 0);
    const notes = used.length < values.length
      ? [`Not drawn: ${charts.several(values.length - used.length, "value")}, zero or negative, which a logarithmic axis cannot show.`] : [];
    const height = frameOf(width, 0, 2);
    const lines = chart.references ?? [];
    const ends = charts.axisEnds(used, { ...chart.x, lines: lines.map((line) => line.value), pad: 0.02 });
    const to = chart.x.log ? Math.log : (x) => x;
    const from = chart.x.log ? Math.exp : (x) => x;
    const [low, high] = [Math.min(...used), Math.max(...used)].map(to);
    const bins = Math.max(1, Math.min(chart.bins || 40, Math.ceil(2 * Math.sqrt(used.length))));
    const step = (high - low) / bins || 1;
    const counts = Array.from({ length: bins }, (_, i) => ({ _from: from(low + i * step), _to: from(low + (i + 1) * step), count: 0 }));
    for (const x of used) counts[Math.min(bins - 1, Math.max(0, Math.floor((to(x) - low) / step)))].count += 1;
    const y = charts.axisOf({ column: "count", title: chart.count_title || "count" }, [0, 1.06 * Math.max(...counts.map((c) => c.count), 1)], height, { horizontal: false, theme });
    const inner = Math.max(120, Math.floor(width - y.widest - 42 - 15 * y.lines));
    const x = charts.axisOf(chart.x, ends, inner, { horizontal: true, theme });
    const rows = counts.map((c) => ({ ...c, _left: x.pixel(c._from) + 0.5, _right: x.pixel(c._to) - 0.5, _zero: 0, range: `${charts.numberText(c._from, 3)} to ${charts.numberText(c._to, 3)}` }));
    const axis = { field: "_from", type: "quantitative", scale: x.scale, axis: x.axis };
    const layer = [
      { data: { values: rows }, mark: { type: "rule", opacity: 0 }, encoding: { x: axis } },
      { data: { values: rows }, mark: { type: "bar", style: "column" },
        encoding: { x: place("_left"), x2: { field: "_right" }, y: { field: "count", type: "quantitative", scale: y.scale, axis: y.axis, stack: null }, y2: { field: "_zero" },
          tooltip: [tip("range", chart.x.title || chart.x.column), tip("count")] } },
      ...references(lines, x, { width: inner, height, theme }, true)];
    return { notes, spec: { width: inner, height, autosize: { type: "pad" }, layer, resolve: { scale: { x: "independent" }, axis: { x: "independent" } } } };
  }

  // Lines over a grid of numbers: pixels between the middles of cells. What lies outside is not drawn.
  function gridLines(chart, data, panel, xs, ys, cell) {
    const rows = (data[chart.lines_data] ?? []).filter((row) => !chart.panel || row[chart.panel] === panel);
    const along = (values, v) => {
      const i = values.findIndex((a, k) => k + 1 < values.length && (a - v) * (values[k + 1] - v) <= 0);
      return i < 0 ? null : (i + 0.5 + (v - values[i]) / (values[i + 1] - values[i])) * cell;
    };
    const names = [...new Set((data[chart.lines_data] ?? []).map((row) => row[chart.line]))];
    return names.flatMap((name, k) => {
      const points = rows.filter((row) => row[chart.line] === name)
        .map((row) => ({ ...row, _x: along(xs, row[chart.x]), _y: along(ys, row[chart.y]) }))
        .filter((row) => row._x !== null && row._y !== null);
      const encoding = { x: place("_x"), y: place("_y"), order: { field: "_x", type: "quantitative" }, tooltip: [tip(chart.line, "boundary"), tip(chart.x), tip(chart.y)] };
      const line = (mark) => ({ data: { values: points }, mark: { type: "line", interpolate: "linear", ...mark }, encoding });
      return points.length < 2 ? [] : [line({ stroke: "#fff", strokeWidth: 4, opacity: 0.75 }), line({ stroke: "#111", strokeWidth: 1.6, strokeDash: [[], [6, 4], [1.5, 3]][k % 3] })];
    });
  }

  // Squares in a row, one panel per value of `panel`, with one slider and one scale for all. Parts of
  // different size are each relative to their largest entry, which the legend names.
  function heatmap(chart, data, { width, theme }) {
    const rows = data[chart.data] ?? [];
    const distinct = (column) => (column ? [...new Set(rows.map((row) => row[column]))] : [null]);
    const [panels, parts, xs, ys] = [chart.panel, chart.part, chart.x, chart.y].map(distinct);
    const inPart = (part) => rows.filter((row) => !chart.part || row[chart.part] === part).map((row) => row[chart.value.column]).filter(finite);
    const largest = new Map(parts.map((part) => [part, Math.max(...inPart(part).map(Math.abs), 1e-300)]));
    const relative = Boolean(chart.diverging) && parts.length > 1;
    const all = rows.map((row) => ({ ...row, _v: relative ? row[chart.value.column] / largest.get(chart.part ? row[chart.part] : null) : row[chart.value.column] }));

    const columns = Math.max(1, Math.min(panels.length, Math.floor(width / (charts.isNarrow(width) ? 165 : 175))));
    const labels = Math.max(...ys.map((y) => charts.textWidth(charts.pretty(y), 12, theme.font))) + 36;
    const side = Math.floor(Math.min((width - 28 * columns) / columns - labels, panels.length === 1 ? 380 : 260));
    const cell = Math.max(3, Math.floor(side / Math.max(xs.length, 1)));
    // Only so many labels that none covers the next: across, each is as wide as its text.
    const across = Math.max(...xs.map((x) => charts.textWidth(charts.pretty(x), charts.FONT, theme.font))) + 8;
    const axis = (names, title, room) => ({ labelAngle: 0, grid: false, ticks: false, domain: false, title,
      values: charts.gridTicks(names, Math.max(1, Math.floor((cell * names.length) / room))), labelOverlap: false });
    const scale = chart.diverging ? { domain: relative ? [-1, 1] : [-largest.get(parts[0]), largest.get(parts[0])], domainMid: 0, interpolate: "rgb" }
      : { domain: [chart.value.min ?? Math.min(...inPart(null)), chart.value.max ?? Math.max(...inPart(null))], ...(chart.value.log ? { type: "log" } : {}) };
    const size = (part) => charts.numberText(largest.get(part), 3);
    const sizes = parts.map((part) => `${size(part)} in the ${part}`);
    const whole = relative ? `1 is ${charts.list(sizes)}` : charts.pretty(chart.value.title || chart.value.column);
    const title = charts.textWidth(whole, 12, theme.font) > width - 80 ? ["1 is " + sizes[0], ...sizes.slice(1).map((text) => "and " + text)] : whole;
    // Ticks of the scale as those of an axis.
    const [least, most] = scale.domain;
    const ticks = relative ? [] : chart.value.log ? charts.logTicks(least, most, 4) : charts.linearTicks(least, most, 4);
    const texts = `${JSON.stringify(charts.tickTexts(ticks.length ? ticks : [0], Boolean(chart.value.log)))}[indexof(${JSON.stringify(ticks)}, datum.value)]`;
    const legend = { orient: "bottom", direction: "horizontal", gradientThickness: 10, gradientLength: Math.min(220, width / 2),
      title, titleLimit: 0, values: relative ? [-1, 0, 1] : ticks, labelExpr: relative ? "datum.value < 0 ? '−1' : datum.value > 0 ? '1' : '0'" : texts };
    const filter = chart.slider ? [{ filter: `datum[${JSON.stringify(chart.slider)}] == values[at]` }] : [];
    const tiles = (panel, i) => ({
      data: { values: all.filter((row) => !chart.panel || row[chart.panel] === panel) },
      transform: filter, mark: { type: "rect", style: "tile" },
      encoding: {
        x: { field: field(chart.x), type: "ordinal", sort: null, scale: { domain: xs }, axis: axis(xs, charts.pretty(chart.x_title || chart.x), across) },
        y: { field: field(chart.y), type: "ordinal", sort: null, scale: { domain: ys }, axis: axis(ys, i % columns === 0 ? charts.pretty(chart.y_title || chart.y) : null, 22) },
        color: { field: "_v", type: "quantitative", scale, legend },
        tooltip: [chart.panel, chart.slider, chart.part, chart.y, chart.x, chart.value.column].filter(Boolean).map((c) => tip(c)),
      },
    });
    const concat = panels.map((panel, i) => ({
      width: cell * xs.length, height: cell * ys.length,
      ...(chart.panel ? { title: charts.pretty(panel) } : {}),
      ...(chart.lines_data ? { layer: [tiles(panel, i), ...gridLines(chart, data, panel, xs, ys, cell)],
        resolve: { scale: { x: "independent", y: "independent" }, axis: { x: "independent", y: "independent" } } } : tiles(panel, i)),
    }));
    const spec = { autosize: { type: "pad" }, concat, columns, spacing: 14, resolve: { scale: { color: "shared" }, legend: { color: "shared" } } };
    if (chart.slider) {
      const slider = chart.slider_values ?? [];
      const name = chart.slider_title || chart.slider;
      spec.params = [{ name: "at", value: slider.length - 1, bind: { input: "range", min: 0, max: slider.length - 1, step: 1, name: name + " " } },
        { name: "values", value: slider }];
      spec.title = { text: { expr: `${JSON.stringify(name + " = ")} + ${JSON.stringify(slider.map((x) => charts.numberText(x, 4)))}[at]` } };
    }
    return { notes: [], spec };
  }

  Object.assign(charts, { bars, histogram, heatmap });
})();
