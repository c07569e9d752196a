// node notebook.mjs PAGE SHOTS: results of Python in a notebook that nbconvert exported: drawn, as high as they
// are, without a network, whatever scripts the notebook has. Prints "N passed, M failed".
import { check, finish, open, shots } from "./browser.mjs";

for (const width of [1000, 390]) {
  const { page, trouble, requests } = await open({ viewport: { width, height: 900 } });
  check(`no console message at ${width}`, trouble.length === 0, trouble.join(" | "));
  check(`no network request at ${width}`, requests.every((url) => url.startsWith("file:") || url.startsWith("about:")), requests.join(" "));
  const frames = await page.$$eval("iframe", (all) => all.map((frame) => {
    const svg = frame.contentDocument.querySelector("svg");
    return { lines: svg.querySelectorAll(".mark-line path").length, texts: [...svg.querySelectorAll("text")].map((t) => t.textContent),
      cut: svg.getBoundingClientRect().bottom > frame.clientHeight + 1 || svg.getBoundingClientRect().right > frame.clientWidth + 1 };
  }));
  check(`two pictures at ${width}`, frames.length === 2 && frames.every((f) => f.lines >= 3), JSON.stringify(frames));
  check(`nothing is cut at ${width}`, frames.every((f) => !f.cut), JSON.stringify(frames.map((f) => f.cut)));
  check(`names are words at ${width}`, frames[0].texts.includes("gradient in V"), frames[0].texts.join(" "));
  const ends = frames[1].texts.filter((t) => t.startsWith("k = "));
  check(`labels at the ends at ${width}`, ends.join() === "k = 3,k = 2,k = 1", ends.join());
  await page.screenshot({ path: `${shots}/notebook-${width}.png`, fullPage: true });
}
await finish();
