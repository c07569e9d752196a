#include "esscher/report/cite.h"

#include <fmt/format.h>

#include <set>
#include <utility>
#include <vector>

#include "esscher/base/version.h"

namespace esscher {
namespace {

constexpr Reference kReferences[] = {{"BB26", "2512.11784", R"(@inproceedings{BB26,
  author    = {Boursier, Etienne and Boyer, Claire},
  title     = {Softmax as Linear Attention in the Large-Prompt Regime: a Measure-based Perspective},
  booktitle = {International Conference on Machine Learning},
  year      = {2026},
  eprint    = {2512.11784},
  archiveprefix = {arXiv}
})"},
                                     {"ZFB24", "JMLR 25 (2024)|2306.09927", R"(@article{ZFB24,
  author  = {Zhang, Ruiqi and Frei, Spencer and Bartlett, Peter L.},
  title   = {Trained Transformers Learn Linear Models In-Context},
  journal = {Journal of Machine Learning Research},
  volume  = {25},
  year    = {2024},
  eprint  = {2306.09927},
  archiveprefix = {arXiv}
})"},
                                     {"ZSLS25", "2501.16265", R"(@misc{ZSLS25,
  author = {Zhang, Y. and Singh, A. K. and Latham, P. E. and Saxe, A.},
  title  = {Training Dynamics of In-Context Learning in Linear Attention},
  year   = {2025},
  eprint = {2501.16265},
  archiveprefix = {arXiv}
})"},
                                     {"HPCY25", "2503.12734", R"(@misc{HPCY25,
  author = {He, J. and Pan, X. and Chen, S. and Yang, Z.},
  title  = {arXiv:2503.12734},
  year   = {2025},
  eprint = {2503.12734},
  archiveprefix = {arXiv}
})"},
                                     {"vO22", "2212.07677", R"(@misc{vO22,
  author = {von Oswald, J. and others},
  title  = {Transformers Learn In-Context by Gradient Descent},
  year   = {2022},
  eprint = {2212.07677},
  archiveprefix = {arXiv}
})"},
                                     {"Boh25", "2512.10656", R"(@misc{Boh25,
  author = {Bohbot and others},
  title  = {arXiv:2512.10656},
  year   = {2025},
  eprint = {2512.10656},
  archiveprefix = {arXiv}
})"},
                                     {"SMDS11", "", R"(@inproceedings{SMDS11,
  author    = {Salmon, J. K. and Moraes, M. A. and Dror, R. O. and Shaw, D. E.},
  title     = {Parallel random numbers: as easy as 1, 2, 3},
  booktitle = {SC 2011},
  year      = {2011}
})"}};

std::string program(const std::string& key, const std::string& version, const std::string& commit,
                    const std::string& year) {
  std::string out = fmt::format(
      "@software{{{},\n  author  = {{{{The Esscher developers}}}},\n"
      "  title   = {{Esscher: softmax attention as an operator on measures}},\n"
      "  version = {{{}}},\n",
      key, version);
  if (!year.empty()) out += fmt::format("  year    = {{{}}},\n", year);
  return out + fmt::format("  note    = {{commit {}}}\n}}\n", commit);
}

bool is_marked(std::string_view marks, const std::string& text) {
  while (!marks.empty()) {
    const std::size_t bar = marks.find('|');
    if (text.find(marks.substr(0, bar)) != std::string::npos) return true;
    if (bar == std::string_view::npos) break;
    marks.remove_prefix(bar + 1);
  }
  return false;
}

}  // namespace

std::span<const Reference> cited_references() { return kReferences; }

std::string bibtex_of_program() { return program("esscher", kVersion, build_commit(), ""); }

std::string bibtex_of(const Run& run) {
  const Json provenance = run.provenance();
  std::string out;
  std::set<std::pair<std::string, std::string>> seen;
  for (const Json& session : provenance.at("sessions")) {
    const std::string version = session.at("version"), commit = session.at("commit");
    if (!seen.emplace(version, commit).second) continue;
    const std::string key = seen.size() == 1 ? "esscher" : fmt::format("esscher{}", seen.size());
    out +=
        program(key, version, commit, session.at("started").get<std::string>().substr(0, 4)) + "\n";
  }
  if (seen.empty()) out += bibtex_of_program() + "\n";
  bool is_random = run.info().verb == "icl train";
  for (const Json& engine : provenance.at("engines")) {
    is_random = is_random || engine == "sampled" || engine == "direct";
  }
  for (const Reference& reference : kReferences) {
    const bool is_framework = reference.key == "BB26";
    const bool is_generator = reference.key == "SMDS11" && is_random;
    if (is_framework || is_generator || is_marked(reference.marks, run.info().config_toml)) {
      out += std::string(reference.bibtex) + "\n\n";
    }
  }
  out.pop_back();
  return out;
}

}  // namespace esscher
