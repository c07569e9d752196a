// Small charts in SVG, drawn by hand with colours written out, so that a saved file looks like the page.
//
//   chart(figure, {aspect, x: axis, y: axis, marks: [..]}),  axis: {log, from, to, title}
//
// Marks: line {points: [x, y] or [x, y, slope], colour, dash, width, label}, dots {points: [x, y, error], ..}, level {y, label},
// rule {x, label}, point {x, y, label}, area {points}, cells {xs, ys, colour(i, j)}.
const NS = "http://www.w3.org/2000/svg";
const theme = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

function node(parent, tag, attributes, text) {
  const made = document.createElementNS(NS, tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  parent?.append(made);
  return made;
}

function niceTicks(from, to, count) {
  const raw = (to - from) / count, size = 10 ** Math.floor(Math.log10(raw));
  const step = size * [1, 2, 5, 10].find((s) => s * size >= raw);
  const ticks = [];
  for (let t = Math.ceil(from / step - 1e-9) * step; t <= to + 1e-9 * step; t += step) ticks.push([t, String(Number(t.toPrecision(8)))]);
  return ticks;
}

function logTicks(from, to, count) {
  const low = Math.ceil(Math.log10(from) - 1e-9), high = Math.floor(Math.log10(to) + 1e-9);
  if (high - low < 1) {
    const ticks = [];
    for (let e = low - 1; e <= high; e++) for (const m of [1, 2, 5]) {
      const t = m * 10 ** e;
      if (t >= from * (1 - 1e-9) && t <= to * (1 + 1e-9)) ticks.push([t, brief(t)]);
    }
    return ticks;
  }
  const step = [1, 2, 3, 5, 10].find((s) => (high - low) / s <= count) ?? 20;
  const ticks = [];
  for (let e = Math.ceil(low / step) * step; e <= high; e += step) ticks.push([10 ** e, power(e)]);
  return ticks;
}

function scale({ log, from, to }, start, end) {
  const f = log ? Math.log : (v) => v;
  return (v) => start + (end - start) * (f(v) - f(from)) / (f(to) - f(from));
}

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, "DejaVu Sans", sans-serif';

// As wide as its figure, so that text has the same size in every window.
function chart(figure, { aspect = 0.62, x, y, marks, label, margin = {} }) {
  const width = Math.round(Math.max(280, figure.clientWidth || 640)), height = Math.round(width * (width < 450 ? Math.max(aspect, 0.8) : aspect));
  const box = { left: 54, right: 92, top: 26, bottom: 44, ...margin };
  const svg = node(null, "svg", { xmlns: NS, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, "font-family": FONT, "font-size": 12.5 });
  const sx = scale(x, box.left, width - box.right), sy = scale(y, height - box.bottom, box.top);
  const clip = "clip-" + Math.random().toString(36).slice(2);
  const defs = node(svg, "defs", {});
  node(node(defs, "clipPath", { id: clip }), "rect", { x: box.left, y: box.top - 3, width: width - box.right - box.left, height: height - box.top - box.bottom + 6 });
  const back = node(svg, "g", {});
  const inside = node(svg, "g", { "clip-path": `url(#${clip})` });
  const over = node(svg, "g", {});
  const soft = theme("soft"), grid = theme("grid"), ink = theme("ink");
  const ticks = (axis, count) => (axis.log ? logTicks : niceTicks)(axis.from, axis.to, count);
  const cells = marks.some((mark) => mark.kind === "cells");
  for (const [v, text] of ticks(x, (width - box.left - box.right) / 62)) {
    if (!cells) node(back, "line", { x1: sx(v), x2: sx(v), y1: box.top, y2: height - box.bottom, stroke: grid });
    node(back, "text", { x: sx(v), y: height - box.bottom + 17, fill: soft, "text-anchor": "middle", class: "tick" }, text);
  }
  for (const [v, text] of ticks(y, (height - box.top - box.bottom) / 38)) {
    if (!cells) node(back, "line", { x1: box.left, x2: width - box.right, y1: sy(v), y2: sy(v), stroke: grid });
    node(back, "text", { x: box.left - 8, y: sy(v) + 4, fill: soft, "text-anchor": "end", class: "tick" }, text);
  }
  node(back, "text", { x: (box.left + width - box.right) / 2, y: height - 7, fill: soft, "text-anchor": "middle" }, x.title);
  node(back, "text", { x: 2, y: 11, fill: soft }, y.title);
  const labels = [];
  const usable = (p) => p[1] !== null && Number.isFinite(p[1]) && (!y.log || p[1] > 0);
  const path = (points) => points.filter(usable).map((p, i) => `${i ? "L" : "M"}${sx(p[0]).toFixed(2)},${sy(p[1]).toFixed(2)}`).join("");
  // A point may have the slope d log y / d log x: the curve is then a cubic between neighbours.
  const curve = (points) => {
    const unit = (sy(y.from * Math.E) - sy(y.from)) / (sx(x.from * Math.E) - sx(x.from));
    let d = "", before = null;
    for (const p of points.filter(usable)) {
      const here = { x: sx(p[0]), y: sy(p[1]), slope: p[2] * unit };
      const third = before ? (here.x - before.x) / 3 : 0;
      d += before ? `C${(before.x + third).toFixed(2)},${(before.y + third * before.slope).toFixed(2)} ${(here.x - third).toFixed(2)},${(here.y - third * here.slope).toFixed(2)} ${here.x.toFixed(2)},${here.y.toFixed(2)}` : `M${here.x.toFixed(2)},${here.y.toFixed(2)}`;
      before = here;
    }
    return d;
  };
  for (const mark of marks) {
    const colour = mark.colour ?? ink;
    if (mark.kind === "cells") {
      const { xs, ys } = mark;
      for (let i = 0; i + 1 < xs.length; i++) for (let j = 0; j + 1 < ys.length; j++) {
        const left = sx(xs[i]), top = sy(ys[j + 1]);
        node(inside, "rect", { x: left.toFixed(2), y: top.toFixed(2), width: (sx(xs[i + 1]) - left + .6).toFixed(2), height: (sy(ys[j]) - top + .6).toFixed(2), fill: mark.fill(i, j) });
      }
    } else if (mark.kind === "line") {
      node(inside, "path", { d: (mark.points[0]?.length > 2 ? curve : path)(mark.points), fill: "none", stroke: colour, "stroke-width": mark.width ?? 2, "stroke-linejoin": "round", "stroke-linecap": "round", ...(mark.dash ? { "stroke-dasharray": mark.dash } : {}), ...(mark.opacity ? { opacity: mark.opacity } : {}) });
      const shown = mark.points.filter((p) => usable(p) && p[0] <= x.to * (1 + 1e-9));
      const last = shown.at(-1);
      if (mark.label && last) labels.push({ y: Math.min(height - box.bottom, Math.max(box.top + 6, sy(last[1]))), text: mark.label, colour });
    } else if (mark.kind === "dots") {
      for (const [px, py, error] of mark.points) {
        if (error) node(inside, "line", { x1: sx(px), x2: sx(px), y1: sy(Math.max(py - error, y.from / 10)), y2: sy(py + error), stroke: colour, "stroke-width": 1.4 });
        node(inside, "circle", { cx: sx(px), cy: sy(py), r: mark.r ?? 3, fill: colour });
      }
    } else if (mark.kind === "level") {
      if (!usable([0, mark.y])) continue;
      node(inside, "line", { x1: box.left, x2: width - box.right, y1: sy(mark.y), y2: sy(mark.y), stroke: colour, "stroke-width": mark.width ?? 1.4, "stroke-dasharray": mark.dash ?? "3 4" });
      if (mark.label && mark.y >= y.from && mark.y <= y.to) labels.push({ y: sy(mark.y), text: mark.label, colour });
    } else if (mark.kind === "rule") {
      node(inside, "line", { x1: sx(mark.x), x2: sx(mark.x), y1: box.top, y2: height - box.bottom, stroke: colour, "stroke-width": 1.2, "stroke-dasharray": mark.dash ?? "2 4" });
      const right = sx(mark.x) > box.left + 0.62 * (width - box.left - box.right);
      if (mark.label) node(over, "text", { x: sx(mark.x) + (right ? -7 : 7), y: height - box.bottom - 9, fill: colour, "font-weight": 600, "text-anchor": right ? "end" : "start", class: "end" }, mark.label);
    } else if (mark.kind === "point") {
      if (!usable([mark.x, mark.y])) continue;
      node(over, "circle", { cx: sx(mark.x), cy: sy(mark.y), r: mark.r ?? 5.5, fill: mark.fill ?? colour, stroke: theme("paper"), "stroke-width": 2, class: mark.class ?? "" });
    } else if (mark.kind === "text") {
      node(over, "text", { x: sx(mark.x), y: sy(mark.y), fill: colour, "text-anchor": mark.anchor ?? "start", "font-size": mark.size ?? 12.5, ...(mark.turn ? { transform: `rotate(${mark.turn} ${sx(mark.x)} ${sy(mark.y)})` } : {}) }, mark.text);
    }
  }
  // Labels stand at the ends of their lines, moved apart where they would touch.
  labels.sort((a, b) => a.y - b.y);
  for (let i = 1; i < labels.length; i++) labels[i].y = Math.max(labels[i].y, labels[i - 1].y + 15);
  for (let i = labels.length - 1, lowest = height - box.bottom - 7; i >= 0; i--, lowest -= 15) labels[i].y = Math.min(labels[i].y, lowest);
  for (const { y: at, text, colour } of labels) node(over, "text", { x: width - box.right + 6, y: at + 4, fill: colour, "font-weight": 600, class: "end" }, text);
  figure.querySelector("svg")?.remove();
  figure.prepend(svg);
  return { svg, sx, sy, box, width };
}
