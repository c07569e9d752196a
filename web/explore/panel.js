// What the four panels share: controls made from a description, a state that is the address of the page, pictures
// with their tools, and the command that gives the same numbers.
const element = (tag, className, text) => {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
};

function save(name, text, type) {
  const link = element("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

async function copy(button, text) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    const area = element("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    button.textContent = document.execCommand("copy") ? "Copied" : "Not copied";
    area.remove();
  }
  setTimeout(() => { button.textContent = before; }, 1200);
}

// A description of a control: {key, label, from, to, step, start, show} or {key, label, words: {value: text}, start}.
class Panel {
  constructor(id, { controls, pictures, extra }) {
    this.id = id;
    this.controls = controls;
    this.state = Object.fromEntries(controls.map((c) => [c.key, c.start]));
    this.root = element("section", "panel");
    this.root.id = id;
    this.root.setAttribute("role", "tabpanel");
    this.root.setAttribute("aria-labelledby", "tab-" + id);
    this.headline = element("div", "headline");
    this.title = element("h2");
    this.title.setAttribute("aria-live", "polite");
    this.text = element("p");
    this.headline.append(this.title, this.text);
    this.side = element("form", "controls");
    this.side.addEventListener("submit", (event) => event.preventDefault());
    this.inputs = {};
    for (const control of controls) this.addControl(control);
    extra?.(this);
    const shown = element("div", "pictures");
    this.figures = pictures.map((caption, i) => this.addPicture(shown, caption, i));
    this.more = element("div", "more");
    this.numbers = element("dl", "numbers");
    this.commands = element("div", "command");
    const folded = element("details");
    folded.append(element("summary", "", "The same numbers from the command line"), this.commands);
    this.status = element("p", "status");
    this.more.append(this.numbers, this.status, folded);
    this.root.append(this.headline, shown, this.side, this.more);
  }

  addControl({ key, label, from, to, step, words, start }) {
    const row = element("div", "control");
    const name = element("label", "", label);
    const input = element(words ? "select" : "input");
    input.id = name.htmlFor = `${this.id}-${key}`;
    const shown = element("output");
    if (words) {
      for (const [value, text] of Object.entries(words)) input.append(new Option(text, value));
    } else {
      Object.assign(input, { type: "range", min: from, max: to, step });
      name.append(shown);
    }
    input.value = start;
    input.addEventListener("input", () => this.set({ [key]: words ? input.value : Number(input.value) }));
    row.append(name, input);
    this.side.append(row);
    this.inputs[key] = { input, shown, row };
  }

  addPicture(parent, caption, i) {
    const figure = element("figure", "picture");
    const text = element("figcaption", "", caption);
    const tools = element("div", "tools");
    const button = element("button", "", "SVG");
    button.type = "button";
    button.title = "Save this picture";
    button.addEventListener("click", () => save(`esscher-${this.id}-${i + 1}.svg`, this.svgText(figure), "image/svg+xml"));
    tools.append(button);
    if (i === 0) {
      const link = element("button", "", "Copy link");
      link.type = "button";
      link.addEventListener("click", () => copy(link, location.href));
      tools.append(link);
    }
    figure.append(text, tools);
    parent.append(figure);
    return figure;
  }

  svgText(figure) {
    const svg = figure.querySelector("svg").cloneNode(true);
    const [, , width, height] = svg.getAttribute("viewBox").split(" ");
    svg.setAttribute("width", width);
    svg.setAttribute("height", height);
    svg.prepend(Object.assign(node(null, "rect", { width: "100%", height: "100%", fill: theme("paper") })));
    return svg.outerHTML;
  }

  set(change) {
    Object.assign(this.state, change);
    this.show();
    this.changed();
  }

  show() {
    for (const control of this.controls) {
      const { input, shown, row } = this.inputs[control.key];
      const value = this.state[control.key];
      if (String(input.value) !== String(value)) input.value = value;
      const text = control.words ? "" : (control.show ?? String)(value);
      shown.textContent = text;
      input.setAttribute("aria-valuetext", text || value);
      row.hidden = control.when ? !control.when(this.state) : false;
    }
  }

  // Controls that the address may set: only values that the control can have.
  read(parameters) {
    for (const control of this.controls) {
      if (!parameters.has(control.key)) continue;
      const text = parameters.get(control.key);
      if (control.words) {
        if (text in control.words) this.state[control.key] = text;
      } else if (Number.isFinite(Number(text)) && text !== "") {
        this.state[control.key] = Math.min(control.to, Math.max(control.from, Number(text)));
      }
    }
    this.show();
  }

  write() {
    return new URLSearchParams(Object.entries(this.state).map(([key, value]) => [key, String(value)]));
  }

  setNumbers(pairs) {
    this.numbers.replaceChildren(...pairs.map(([name, value]) => {
      const item = element("div");
      item.append(element("dt", "", name), element("dd", "", value));
      return item;
    }));
  }

  // Commands as [label, verb with options, assignments].
  setCommands(list) {
    this.commandLines = list.map(([, verb, sets]) => commandLine(verb, sets));
    this.commands.replaceChildren(...list.flatMap(([label], i) => {
      const row = element("div");
      const button = element("button", "copy", "Copy");
      button.type = "button";
      button.addEventListener("click", () => copy(button, this.commandLines[i]));
      row.append(element("span", "", label), button);
      return [row, element("pre", "", this.commandLines[i])];
    }));
  }
}

const quote = (word) => (/^[\w.=\/:-]+$/.test(word) ? word : `'${word}'`);
const commandLine = (verb, sets) => ["esscher " + verb, ...sets.map((s) => "--set " + quote(s)), "--json"].join(" ");
