// esscher explore: the engine in a browser, as one page without a server.
#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "cli/verbs.h"
#include "esscher/base/error.h"
#include "esscher/io/file.h"

namespace esscher::cli {
namespace {

namespace fs = std::filesystem;

// The page is a file beside the program: in share/esscher of an installation, or in build/explore
// of a clone, where scripts/explorer makes it.
fs::path built_page() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path folder = program.parent_path();
  const std::array<fs::path, 2> places = {folder / "../share/esscher/explore.html",
                                          folder / "../../explore/explore.html"};
  for (const fs::path& place : places) {
    if (fs::is_regular_file(place, error)) return place;
  }
  throw FileError(
      "explore: the page has not been built, expected it in " +
      places[1].lexically_normal().string() +
      "; scripts/explorer builds it from a clone (about seven minutes of CPU time, once)");
}

}  // namespace

void add_explore(const Command& app, Globals& globals) {
  const Command verb = app.add("explore", "Write the explorer: this engine in a browser, one page");
  verb.footer(
      "Sliders and live pictures: a layer, a prompt drawn by hand, in-context regression, "
      "temperature.\n"
      "The page needs no server and no network. Every state of it is a link, and every picture "
      "names\n"
      "the command that gives the same numbers.\n"
      "Examples:\n  esscher explore\n  esscher explore --page explorer.html");
  auto page = std::make_shared<std::string>("explore.html");
  verb.option("--page", *page, "where to write it").type_name("FILE.html").show_default();
  verb.flag("--json", globals.json, "print one JSON document instead of text");
  verb.run([&globals, page] {
    const std::string bytes = read_text(built_page());
    write_text(*page, bytes);
    print_result(globals, "explore", {{"page", *page}, {"bytes", bytes.size()}}, *page + "\n");
  });
}

}  // namespace esscher::cli
