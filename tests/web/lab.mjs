// node lab.mjs PAGE SHOTS: results of Python under JupyterLab's own renderers (tests/web/lab): a notebook that is trusted
// shows pictures, one that is not says each result in words. Prints "N passed, M failed".
import { check, finish, open, shots } from "./browser.mjs";

const { page, trouble, requests } = await open({ viewport: { width: 1000, height: 900 } });
check("no console message", trouble.length === 0, trouble.join(" | "));
check("no network request", requests.every((url) => url.startsWith("file:") || url.startsWith("about:")), requests.join(" "));

const cells = await page.evaluate(() => {
  const words = JSON.parse(document.getElementById("outputs").textContent).map((output) => output.words);
  return [...document.querySelectorAll("section")].flatMap((place) => [...place.children].map((cell, i) => {
    const frame = cell.querySelector("iframe"), svg = frame?.contentDocument.querySelector("svg");
    const lowest = svg?.getBoundingClientRect().bottom;
    return { trusted: place.id === "trusted", pictured: i < 2, type: cell.dataset.type, text: cell.innerText, words: words[i],
      lines: svg?.querySelectorAll(".mark-line path").length ?? 0, cut: svg ? lowest > frame.clientHeight + 1 : false };
  }));
});
check("three results twice", cells.length === 6, String(cells.length));
for (const cell of cells) {
  const name = `${cell.words.slice(0, 30)}, ${cell.trusted ? "trusted" : "not trusted"}`;
  if (cell.pictured && cell.trusted) {
    check(`${name}: a picture`, cell.lines >= 3 && !cell.cut && cell.text.trim() === "", JSON.stringify(cell));
  } else {
    check(`${name}: words`, cell.lines === 0 && cell.text.replace(/\s+/g, " ").includes(cell.words), JSON.stringify(cell));
  }
}
await page.screenshot({ path: `${shots}/lab.png`, fullPage: true });
await finish();
