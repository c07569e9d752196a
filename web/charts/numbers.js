// Numbers of charts: ends of axes, ticks, and how numbers are written. Pure functions of numbers,
// so that Node can test them. Values on a log axis are positive.
"use strict";
(() => {
  const charts = (globalThis.esscherCharts ??= {});
  const RAISED = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
  const ROUNDING = 1e-9;

  const raised = (n) => [...String(n)].map((c) => RAISED[c]).join("");
  const trimmed = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
  const signed = (text) => text.replace(/^-/, "−");

  // m × 10^e with few digits: "10⁶", "2×10⁻³", "1" and "10" as they are.
  function powerText(x, digits = 3) {
    if (x === 0) return "0";
    const [m, e] = Math.abs(x).toExponential(digits - 1).split("e");
    const mantissa = trimmed(m);
    const exponent = Number(e);
    const sign = x < 0 ? "−" : "";
    if (exponent === 0) return sign + mantissa;
    if (exponent === 1 && mantissa === "1") return sign + "10";
    return sign + (mantissa === "1" ? "" : mantissa + "×") + "10" + raised(exponent);
  }

  // A number for people: plain from 0.001 to 99999, else with a power of ten.
  function numberText(x, digits = 4) {
    if (x === null || x === undefined || Number.isNaN(x)) return "–";
    if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
    const size = Math.abs(x);
    if (x === 0) return "0";
    if (size < 1e-3 || size >= 99999.5) return powerText(x, digits);
    const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
    return signed(trimmed(x.toFixed(decimals)));
  }

  // Powers of ten inside a name, "L = 1e6" or "L = 1000000", as they are read: "L = 10⁶".
  function pretty(text) {
    return String(text)
      .replace(/(^|[^\w.])(-?)(\d+(?:\.\d+)?)e\+?(-?\d+)(?![\w.])/g, (_, before, sign, m, e) =>
        before + (sign ? "−" : "") + (m === "1" ? "" : m + "×") + "10" + raised(Number(e)))
      .replace(/ = (\d{1,3}0{5,})(?![\w.])/g, (_, whole) => " = " + powerText(Number(whole)))
      .replace(/\binf(inity)?\b/g, "∞");
  }

  // Steps of 1, 2 or 5 times a power of ten, all of them inside the ends.
  function linearTicks(low, high, count) {
    const span = high - low;
    if (!(span > 0)) return [low];
    const rough = span / Math.max(1, count);
    const unit = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((m) => m * unit).find((s) => s >= rough * (1 - ROUNDING));
    const ticks = [];
    for (let i = Math.ceil(low / step - ROUNDING); i * step <= high + ROUNDING * span; ++i) {
      ticks.push(Number((i * step).toPrecision(12)));
    }
    return ticks;
  }

  // Which names of a grid have a label, at most `count`: of numbers the round ones, else every second, third, ...
  function gridTicks(names, count) {
    const numbers = names.map(Number);
    if (names.length > count && numbers.every(Number.isFinite)) {
      const span = Math.max(...numbers) - Math.min(...numbers);
      for (let e = Math.floor(Math.log10(span)) - 2; 10 ** e <= span; ++e) {
        for (const step of [10 ** e, 2 * 10 ** e, 5 * 10 ** e]) {
          const round = names.filter((_, i) => Math.abs(numbers[i] / step - Math.round(numbers[i] / step)) < 1e-6);
          if (round.length >= 3 && round.length <= count) return round;
        }
      }
    }
    return names.filter((_, i) => i % Math.max(1, Math.ceil(names.length / count)) === 0);
  }

  // Powers of ten, every second or third of them if there are many; 1, 2 and 5 in between, or even
  // steps, if there are few.
  function logTicks(low, high, count) {
    const first = Math.floor(Math.log10(low) - 1);
    const last = Math.ceil(Math.log10(high) + 1);
    const within = (x) => x >= low * (1 - ROUNDING) && x <= high * (1 + ROUNDING);
    const decades = (every, mantissas) => {
      const ticks = [];
      for (let e = first; e <= last; ++e) {
        if (((e % every) + every) % every !== 0) continue;
        for (const m of mantissas) {
          const x = Number(`${m}e${e}`);
          if (within(x)) ticks.push(x);
        }
      }
      return ticks;
    };
    const whole = decades(1, [1]);
    if (whole.length >= 3) {
      for (let every = 1; ; ++every) {
        const ticks = decades(every, [1]);
        if (ticks.length <= Math.max(2, count)) return ticks.length >= 2 ? ticks : whole;
      }
    }
    for (const mantissas of [[1, 3], [1, 2, 5]]) {
      const ticks = decades(1, mantissas);
      if (ticks.length >= 3 && ticks.length <= Math.max(3, count)) return ticks;
    }
    // Even steps crowd at the upper end of an axis that spans decades.
    return whole.length === 2 ? whole : linearTicks(low, high, Math.min(count, 6));
  }

  // One style for all labels of an axis: plain numbers, or powers of ten.
  function tickTexts(ticks, log) {
    const sizes = ticks.filter((x) => x !== 0).map(Math.abs);
    const largest = Math.max(...sizes);
    const smallest = Math.min(...sizes);
    if (sizes.length > 0 && (largest >= 99999.5 || (log ? smallest < 0.00099 : largest < 0.00099))) {
      return ticks.map((x) => powerText(x));
    }
    if (log) return ticks.map((x) => numberText(x, 3));
    const decimals = Math.max(0, ...ticks.map((x) => (trimmed(x.toFixed(10)).split(".")[1] ?? "").length));
    return ticks.map((x) => signed(x.toFixed(Math.min(decimals, 8))));
  }

  // The ends of an axis. `values` must be seen. `lines` are seen unless they are further away than the
  // span of the values, `extra` may widen the axis by a share of its span, so that a far theory or a
  // wide band does not flatten the data, and `bands` by more of it. Nothing lies on the frame.
  function axisEnds(values, { log = false, min = null, max = null, lines = [], extra = [], bands = [], share = 0.25, pad = 0.045 } = {}) {
    const to = log ? Math.log10 : (x) => x;
    const from = log ? (x) => 10 ** x : (x) => x;
    const usable = (x) => typeof x === "number" && Number.isFinite(x) && (!log || x > 0) &&
      !(min !== null && x < min) && !(max !== null && x > max);
    const seen = values.filter(usable).map(to);
    const others = extra.filter(usable).map(to);
    if (seen.length === 0) seen.push(...(others.length > 0 ? others : [log ? 0 : 0, 1]));
    let low = Math.min(...seen);
    let high = Math.max(...seen);
    const span = high - low || (log ? 1 : Math.abs(high) || 1);
    if (high === low) (low -= span / 2), (high += span / 2);
    const [lowest, highest] = [low, high];
    // Data that hardly move, such as an exponent from 0.59 to 0.61, are not flattened by a line 5 % away.
    const near = Math.max(1.3 * span, log ? 0 : 0.05 * Math.max(Math.abs(lowest), Math.abs(highest)));
    for (const x of lines.filter(usable).map(to)) {
      if (x >= lowest - near && x <= highest + near) (low = Math.min(low, x)), (high = Math.max(high, x));
    }
    const widen = (x, part) => {
      low = Math.min(low, Math.max(x, lowest - part * span));
      high = Math.max(high, Math.min(x, highest + part * span));
    };
    for (const x of others) widen(x, share);
    for (const x of bands.filter(usable).map(to)) widen(x, 1.5);
    const room = pad * (high - low);
    const ends = [from(low - room), from(high + room)];
    // All data on one side of zero: the padding does not cross it.
    if (!log && low >= 0 && ends[0] < 0) ends[0] = low < 1e-3 * (high - low) ? -room / 2 : 0;
    if (min !== null && min !== undefined) ends[0] = min;
    if (max !== null && max !== undefined) ends[1] = max;
    return ends;
  }

  Object.assign(charts, { powerText, numberText, pretty, linearTicks, logTicks, gridTicks, tickTexts, axisEnds });
})();
