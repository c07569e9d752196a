#include "esscher/report/chart_page.h"

#include "esscher/base/error.h"
#include "esscher/json/json.h"
#include "esscher/report/assets.h"
#include "esscher/report/html.h"

namespace esscher {
namespace {

constexpr const char* kHead =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src "
    "'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:\">\n"
    "<style>html { color-scheme: light dark; }\n"
    "body { margin: 0; padding: 4px; font: 13px system-ui, sans-serif; overflow: hidden; }\n"
    "#chart { max-width: 46rem; }\n#note { color: #566273; margin: .3rem 0 0; }\n"
    "@media (prefers-color-scheme: dark) { body { background: #12171e; } #note { color: #a7b1bf; } "
    "}\n.vega-bind input + * { display: none; }\n</style>\n</head>\n<body>\n<div "
    "id=\"chart\"></div>\n"
    "<p id=\"note\"></p>\n";

// Vega is packed: a notebook keeps one copy per picture.
constexpr const char* kDraw = R"js(
(async () => {
  const packed = Uint8Array.from(atob(document.getElementById("vega").textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const script = document.createElement("script");
  script.textContent = await new Response(stream).text();
  document.head.append(script);
  const spec = JSON.parse(document.getElementById("spec").textContent);
  const holder = document.getElementById("chart");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let width = 0;
  async function draw() {
    width = holder.clientWidth;
    const drawn = await esscherCharts.draw(holder, spec, {}, { dark: dark.matches });
    document.getElementById("note").textContent = drawn.notes.join(" ");
    try {
      frameElement.style.height = document.documentElement.offsetHeight + 8 + "px";
    } catch { /* a frame of another origin keeps the height that it was given */ }
    document.documentElement.dataset.ready = "yes";
  }
  await draw();
  dark.addEventListener("change", draw);
  addEventListener("resize", () => { if (Math.abs(holder.clientWidth - width) > 8) draw(); });
})();
)js";

}  // namespace

std::string chart_page(std::string_view spec) {
  const Json parsed = parse_json("chart", std::string(spec));
  if (!parsed.is_object()) throw FileError("chart: the specification is not an object");
  std::string out = kHead;
  if (vega_js().empty()) {
    return out + "<p>This build has no charts, because npm was missing.</p>\n</body>\n</html>\n";
  }
  out += "<script type=\"application/json\" id=\"spec\">" + script_json(dump(parsed)) +
         "</script>\n<script type=\"application/gzip\" id=\"vega\">" + packed(vega_js()) +
         "</script>\n<script>" + std::string(charts_js()) + "</script>\n<script>" + kDraw +
         "</script>\n</body>\n</html>\n";
  return out;
}

}  // namespace esscher
