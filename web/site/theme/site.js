// The three things of a page that move: the theme, the copy buttons and the search list.
const root = document.documentElement;
const dark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
document.getElementById("theme").addEventListener("click", () => {
  root.dataset.theme = dark() ? "light" : "dark";
  try { localStorage.setItem("esscher-theme", root.dataset.theme); } catch (e) { /* a page opened from disk may not keep it */ }
});

// On a wide window the list of pages is open; on a phone it is a line to be opened.
const menu = document.getElementById("menu");
const wide = matchMedia("(min-width: 62rem)");
const arrange = () => { menu.open = wide.matches; };
wide.addEventListener("change", arrange);
arrange();
menu.querySelector(".here")?.scrollIntoView({ block: "nearest" });

function copied(button, ok) {
  button.textContent = ok ? "copied" : "select and copy";
  setTimeout(() => { button.textContent = "copy"; }, 1500);
}
for (const box of document.querySelectorAll(".code.input")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "copy";
  button.addEventListener("click", () => {
    const text = box.querySelector("code").textContent;
    navigator.clipboard.writeText(text).then(() => copied(button, true), () => copied(button, false));
  });
  box.prepend(button);
}

const field = document.getElementById("mkdocs-search-query");
const list = document.getElementById("mkdocs-search-results");
// mkdocs listens once its index is there; what was typed before is asked again.
let later = 0;
function ask_again(times) {
  clearTimeout(later);
  later = setTimeout(() => {
    if (!field.value || list.children.length > 0 || times === 0) return;
    field.dispatchEvent(new Event("keyup"));
    ask_again(times - 1);
  }, 400);
}
field.addEventListener("input", () => {
  if (field.value) ask_again(50);
  else list.replaceChildren();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) { event.preventDefault(); field.focus(); }
  if (event.key === "Escape") { field.value = ""; list.replaceChildren(); field.blur(); }
});
