// What the series of a chart look like. A series called "SYMBOL = NUMBER" is ordered: such series
// share one sequential scale, in numeric order, and are labelled at the end of their line. All others
// are categories: a name has the same colour in every chart of a page, no two names of a chart have
// the same colour and dash, and points also differ in shape. A category that ever stands beside
// ordered series has a colour that the sequential scale does not pass.
"use strict";
(() => {
  const charts = (globalThis.esscherCharts ??= {});

  // Okabe and Ito with two more, which people with any colour vision can tell apart.
  const CATEGORIES = {
    light: ["#0072b2", "#d55e00", "#009e73", "#a8539b", "#b07d00", "#c2185b", "#5b6470", "#3a9bd6", "#8c3b00", "#2c3e8f"],
    dark: ["#56b4e9", "#ff8a4c", "#3fcf9f", "#e19ccb", "#f0c04a", "#ff7da8", "#aab4c0", "#9ad2f5", "#d9a27c", "#9fa8ff"],
  };
  const SEQUENCE = {
    light: ["#e0a226", "#dd6a3c", "#bb3a6a", "#7a2f92", "#27306f"],
    dark: ["#6d6ff0", "#a873e8", "#e07bb5", "#f5a57a", "#f9e08a"],
  };
  const DIVERGING = {
    light: ["#b2560b", "#eda55d", "#f7f5f2", "#7fb3dd", "#1d5c9c"],
    dark: ["#ffa65c", "#94541c", "#1b222b", "#2b5f92", "#74bdff"],
  };
  // Names that many pages use have their colour by name, the same on every page.
  // Green, sky blue, grey and blue are far from every colour of SEQUENCE.
  const OFF_SEQUENCE = [2, 7, 6, 0];
  // These are told apart at a glance; the rest serves charts with more names.
  const FIRST = 6;
  const PREFERRED = { linear: 0, softmax: 1, Bayes: 2, output: 0, "gradient in V": 1, "gradient in U": 2 };
  const DASHES = [[1, 0], [7, 3], [2, 2.5], [8, 3, 2, 3]];
  const SHAPES = ["circle", "square", "diamond", "triangle-up", "cross", "triangle-down", "triangle-right", "triangle-left"];

  const parse = (colour) => [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
  // The colour at a place 0..1 of a scale of colours.
  function colourAt(scale, place) {
    const at = Math.min(Math.max(place, 0), 1) * (scale.length - 1);
    const i = Math.min(Math.floor(at), scale.length - 2);
    const [a, b] = [parse(scale[i]), parse(scale[i + 1])];
    return "#" + a.map((x, k) => Math.round(x + (at - i) * (b[k] - x)).toString(16).padStart(2, "0")).join("");
  }

  // { symbol, value } of "L = 1e6", "σ = 1.2", "L = ∞"; null for any other name.
  function orderOf(name) {
    const found = /^(\S{1,12}) = ([-−]?[\d.]+(?:e[+-]?\d+)?|∞|inf(?:inity)?)$/.exec(String(name));
    if (!found) return null;
    const value = /∞|inf/.test(found[2]) ? Infinity : Number(found[2].replace("−", "-"));
    return Number.isNaN(value) ? null : { symbol: found[1], value };
  }

  // The names in the order of a legend: ordered ones by their number, others as they come.
  function inOrder(names) {
    const ordered = names.filter(orderOf).sort((a, b) => orderOf(a).value - orderOf(b).value);
    return [...ordered, ...names.filter((name) => !orderOf(name))];
  }

  // A slot of the palette for each category name of a page. A new name gets the slot that its chart
  // does not use and that the page uses least.
  function slotsOf(listOfNames) {
    const slots = new Map();
    const uses = CATEGORIES.light.map(() => 0);
    const mixed = new Set(listOfNames.filter((names) => names.some(orderOf)).flat());
    const choices = (name, here) => {
      const everywhere = uses.map((_, slot) => slot);
      const lists = [mixed.has(name) ? OFF_SEQUENCE : everywhere.slice(0, FIRST), everywhere];
      return lists.map((list) => list.filter((slot) => !here.has(slot))).find((list) => list.length > 0) ?? everywhere;
    };
    for (const names of listOfNames) {
      const categories = [...new Set(names)].filter((name) => !orderOf(name));
      const here = new Set(categories.filter((name) => slots.has(name)).map((name) => slots.get(name)));
      for (const name of categories) {
        if (slots.has(name)) continue;
        const preferred = PREFERRED[name];
        const slot = preferred !== undefined && !here.has(preferred)
          ? preferred : choices(name, here).reduce((best, next) => (uses[next] < uses[best] ? next : best));
        uses[slot] += 1;
        here.add(slot);
        slots.set(name, slot);
      }
    }
    return slots;
  }

  // [{ name, label, colour, dash, shape, ordered }] for the names of one chart.
  function styles(names, slots, dark) {
    const shade = dark ? "dark" : "light";
    const all = inOrder(names);
    const ordered = all.filter(orderOf);
    const known = new Map(slots);
    const taken = new Map();  // how often this chart has used a slot
    let place_of_shape = 0;
    return all.map((name) => {
      const label = charts.pretty(name);
      const place = ordered.indexOf(name);
      if (place >= 0) {
        const colour = colourAt(SEQUENCE[shade], ordered.length === 1 ? 1 : place / (ordered.length - 1));
        return { name, label, colour, dash: DASHES[0], shape: "circle", ordered: true };
      }
      if (!known.has(name)) known.set(name, known.size % CATEGORIES[shade].length);
      const slot = known.get(name);
      const again = taken.get(slot) ?? 0;
      taken.set(slot, again + 1);
      return {
        name, label, ordered: false, colour: CATEGORIES[shade][slot],
        dash: DASHES[again % DASHES.length], shape: SHAPES[place_of_shape++ % SHAPES.length],
      };
    });
  }

  Object.assign(charts, { CATEGORIES, SEQUENCE, DIVERGING, DASHES, SHAPES, colourAt, orderOf, inOrder, slotsOf, styles });
})();
