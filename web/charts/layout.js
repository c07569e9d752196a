// The frame of a chart: axes with explicit ends and ticks, sizes in pixels, and labels that do not
// cover each other. Sizes are fixed before Vega draws, so that labels can be placed here.
"use strict";
(() => {
  const charts = (globalThis.esscherCharts ??= {});
  const FONT = 12;
  const LINE = 15;  // the distance of two lines of labels

  let canvas = null;
  function textWidth(text, size = FONT, font = "system-ui, sans-serif") {
    if (typeof document === "undefined") return 0.58 * size * String(text).length;
    canvas ??= document.createElement("canvas").getContext("2d");
    canvas.font = `${size}px ${font}`;
    return canvas.measureText(text).width;
  }

  const isNarrow = (width) => width < 520;

  // A title that is longer than its axis, in two lines.
  function inLines(title, size, theme) {
    if (textWidth(title, 12.5, theme.font) <= size) return title;
    const spaces = [...title.matchAll(/ /g)].map((m) => m.index);
    if (spaces.length === 0) return title;
    const middle = title.length / 2;
    const at = spaces.reduce((best, i) => (Math.abs(i - middle) < Math.abs(best - middle) ? i : best));
    return [title.slice(0, at), title.slice(at + 1)];
  }

  // An axis of Vega-Lite, and the map from values to pixels. `size` is its length in pixels.
  function axisOf(axis, ends, size, { horizontal, theme, title = true }) {
    const log = Boolean(axis.log);
    const count = Math.max(2, Math.floor(size / (horizontal ? 62 : 46)));
    let ticks = log ? charts.logTicks(...ends, count) : charts.linearTicks(...ends, count);
    let texts = charts.tickTexts(ticks, log);
    const length = horizontal ? Math.max(...texts.map((t) => textWidth(t, FONT, theme.font))) + 14 : LINE;
    while (ticks.length > 2 && length * ticks.length > size) {
      ticks = ticks.filter((_, i) => i % 2 === 0);
      texts = texts.filter((_, i) => i % 2 === 0);
    }
    const to = log ? Math.log : (x) => x;
    const pixel = (x) => {
      const part = (to(x) - to(ends[0])) / (to(ends[1]) - to(ends[0]));
      return horizontal ? part * size : (1 - part) * size;
    };
    const scale = { domain: ends, nice: false, ...(log ? { type: "log" } : { zero: false }) };
    return {
      ends, ticks, texts, pixel, scale,
      lines: title && Array.isArray(inLines(charts.pretty(axis.title || axis.column), size, theme)) ? 2 : 1,
      widest: Math.max(...texts.map((t) => textWidth(t, FONT, theme.font))),
      // labelOverlap has to be off: it would drop labels that this file has made room for.
      axis: {
        values: ticks, labelExpr: `${JSON.stringify(texts)}[indexof(${JSON.stringify(ticks)}, datum.value)]`,
        labelOverlap: false, labelFlush: false, labelBound: false,
        title: title ? inLines(charts.pretty(axis.title || axis.column), size, theme) : null,
      },
    };
  }

  // Places for labels of this height that want to be at `wanted`, inside 0..size, in the order given
  // (from the top). Pushing down and pushing up both keep the distance, and so does their mean.
  function spread(wanted, size, line = LINE) {
    const n = wanted.length;
    const inside = wanted.map((y, i) => Math.min(Math.max(y, i * line), size - (n - 1 - i) * line));
    const down = [...inside];
    for (let i = 1; i < n; ++i) down[i] = Math.max(down[i], down[i - 1] + line);
    const up = [...inside];
    for (let i = n - 2; i >= 0; --i) up[i] = Math.min(up[i], up[i + 1] - line);
    return down.map((y, i) => (y + up[i]) / 2);
  }

  const overlaps = (a, b) => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;

  const LEADER = 20;  // from this distance on a line leads from a point to its label

  // Boxes for a label of width w, nearest first: at the four sides of its point, moved into the frame above and below
  // it, so that a point at the edge has its name too, and then on rings around it.
  function boxesAround(point, w, width, near) {
    const at = (x, y) => ({ x, y, w, h: 14 });
    const middle = Math.min(Math.max(point.x - w / 2, 0), width - w);
    if (near) return [at(point.x + 9, point.y - 7), at(point.x - 9 - w, point.y - 7), at(middle, point.y - 22), at(middle, point.y + 8)];
    const boxes = [];
    for (let r = LEADER; r <= 5 * LEADER; r += LEADER / 2) {
      for (let k = 0; k < 16; ++k) {
        const [c, s] = [Math.cos((k * Math.PI) / 8), Math.sin((k * Math.PI) / 8)];
        boxes.push(at(point.x + r * c - (w * (1 - c)) / 2, point.y + r * s - 7));
      }
    }
    return boxes;
  }

  // Small boxes on the line from a point to its label.
  function leaderOf(point, box) {
    const to = { x: Math.min(Math.max(point.x, box.x), box.x + box.w), y: Math.min(Math.max(point.y, box.y), box.y + box.h) };
    const steps = [0.3, 0.45, 0.6, 0.75, 0.9];
    return { to, path: steps.map((t) => ({ x: point.x + t * (to.x - point.x) - 1, y: point.y + t * (to.y - point.y) - 1, w: 2, h: 2 })) };
  }

  // Labels beside points: each at the first place where it covers neither a point nor another label nor leaves the frame.
  // All names that stand beside their points come first; the others stand apart, with a line to their point. A label
  // without such a place is left out (its tooltip has the name).
  function beside(points, width, height, theme) {
    const dots = (r) => points.map((p) => ({ x: p.x - r, y: p.y - r, w: 2 * r, h: 2 * r }));
    const [wide, narrow] = [dots(5), dots(3)];  // a line may pass close by a point
    const placed = [], found = points.map(() => null);
    for (const near of [true, false]) {
      points.forEach((point, index) => {
        if (found[index]) return;
        const w = textWidth(point.text, 11.5, theme.font);
        found[index] = boxesAround(point, w, width, near).find((box) => {
          const outside = box.x < 0 || box.y < 0 || box.x + w > width || box.y + box.h > height;
          const free = (part, others) => !placed.some((other) => overlaps(other, part)) && !others.some((dot, i) => i !== index && overlaps(dot, part));
          return !outside && free(box, wide) && (near || leaderOf(point, box).path.every((part) => free(part, narrow)));
        }) ?? null;
        if (!found[index]) return;
        placed.push(found[index]);
        if (!near) placed.push(...leaderOf(point, found[index]).path);
        found[index] = { ...found[index], line: near ? null : leaderOf(point, found[index]).to };
      });
    }
    return points.map((point, i) => {
      const box = found[i];
      if (!box) return { ...point, shown: false };
      const place = { ...point, shown: true, left: box.x, middle: box.y + 7 };
      return box.line ? { ...place, to_x: box.line.x, to_y: box.line.y } : place;
    });
  }

  // The legend in as many columns as fit; `rows` says how much height it takes.
  function legendOf(labels, title, width, theme) {
    const longest = Math.max(...labels.map((label) => textWidth(label, 12.5, theme.font)));
    const columns = Math.max(1, Math.min(labels.length, Math.floor((width - 60) / (longest + 44))));
    const narrow = isNarrow(width);
    // The legend begins where the frame does, about 60 pixels from the left, and its symbols take 30.
    const size = Math.min(12.5, Math.floor(125 * (width - 92) / longest) / 10);
    return {
      rows: Math.ceil(labels.length / columns) + (title ? 1 : 0),
      legend: {
        orient: narrow ? "bottom" : "top", direction: "horizontal", columns, title: title || null,
        labelLimit: 0, labelFontSize: size, symbolLimit: 0,
      },
    };
  }

  Object.assign(charts, { FONT, LINE, textWidth, isNarrow, axisOf, spread, overlaps, beside, legendOf });
})();
