// node notebook.mjs PAGE SHOTS: results of Python in a notebook that nbconvert exported: drawn, as high as they
// are, without a network, whatever scripts the notebook has, and also under the rules of VS Code. Prints "N passed, M failed".
import { check, finish, open, shots } from "./browser.mjs";

for (const width of [1000, 390]) {
  const { page, trouble, requests } = await open({ viewport: { width, height: 900 } });
  check(`no console message at ${width}`, trouble.length === 0, trouble.join(" | "));
  check(`no network request at ${width}`, requests.every((url) => url.startsWith("file:") || url.startsWith("about:")), requests.join(" "));
  for (const place of ["nbconvert", "VS Code"]) {
    const at = `${place} at ${width}`;
    const frames = await page.evaluate((inside) => {
      const root = inside ? document.getElementById("vscode").contentDocument : document.querySelector("main");
      return [...root.querySelectorAll("iframe")].map((frame) => {
        const svg = frame.contentDocument.querySelector("svg");
        return { lines: svg.querySelectorAll(".mark-line path").length, texts: [...svg.querySelectorAll("text")].map((t) => t.textContent),
          cut: svg.getBoundingClientRect().bottom > frame.clientHeight + 1 || svg.getBoundingClientRect().right > frame.clientWidth + 1,
          words: frame.nextElementSibling?.textContent ?? "" };
      });
    }, place === "VS Code");
    check(`${at}: two pictures`, frames.length === 2 && frames.every((f) => f.lines >= 3), JSON.stringify(frames));
    check(`${at}: nothing is cut`, frames.every((f) => !f.cut), JSON.stringify(frames.map((f) => f.cut)));
    check(`${at}: names are words`, frames[0].texts.includes("gradient in V"), frames[0].texts.join(" "));
    check(`${at}: no words stand in for the pictures`, frames.every((f) => !f.words.includes("Trust this notebook")), frames.map((f) => f.words).join(" | "));
    const ends = frames[1].texts.filter((t) => t.startsWith("k = "));
    check(`${at}: labels at the ends`, ends.join() === "k = 3,k = 2,k = 1", ends.join());
  }
  await page.screenshot({ path: `${shots}/notebook-${width}.png`, fullPage: true });
}
await finish();
