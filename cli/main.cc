#include <CLI/CLI.hpp>

#include "esscher/base/version.h"

int main(int argc, char** argv) {
  CLI::App app{"Softmax attention as an operator on measures", "esscher"};
  app.set_version_flag("--version", std::string("esscher ") + esscher::kVersion);
  CLI11_PARSE(app, argc, argv);
  return 0;
}
