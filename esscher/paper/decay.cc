#include "esscher/paper/decay.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "esscher/concentration/gaussian_average.h"
#include "esscher/measure/gaussian_view.h"
#include "esscher/paper/text.h"

namespace esscher::paper {
namespace {

// E|X_hat + X|^2 = E|X_hat - X|^2 + 4 E<X_hat, X>, and X_hat is close to X.
void plant_wrong_sign(const Setting& setting, StudyResult& result) {
  const auto mu = gaussian_law(setting.problem.mu);
  const auto nu = gaussian_law(*setting.problem.nu);
  if (!mu || !nu) return;
  const GaussianAverage average(setting.study.metrics, *mu, setting.problem.attention, *nu);
  for (StudyRow& row : result.rows) {
    for (std::size_t i = 0; i < average.metrics().size(); ++i) {
      if (average.metrics()[i] == row.metric) row.value += 4 * average.limit_norm2(i);
    }
    row.ci = {row.value, row.value};
  }
}

double at(const Row& row, const char* column) {
  const Json& x = row.at(column);
  return x.is_null() ? std::numeric_limits<double>::infinity() : x.get<double>();
}

}  // namespace

std::vector<std::int64_t> geometric_lengths(int decades, int per_decade) {
  std::vector<std::int64_t> out;
  for (int i = 0; i <= decades * per_decade; ++i) {
    const std::int64_t L = std::llround(std::pow(10.0, static_cast<double>(i) / per_decade));
    if (out.empty() || L > out.back()) out.push_back(L);
  }
  return out;
}

std::vector<Row> decay_rows(std::string_view section, const Setting& setting,
                            Proposition proposition, double sign, std::uint64_t seed) {
  StudyResult result = study(setting.problem, setting.study);
  if (sign < 0) plant_wrong_sign(setting, result);
  std::vector<Row> rows;
  for (const StudyRow& r : result.rows) {
    rows.push_back({{"section", section},
                    {"kind", "point"},
                    {"setting", setting.name},
                    {"sigma", setting.sigma},
                    {"lambda", number(result.regime.lambda)},
                    {"gamma", number(result.regime.gamma)},
                    {"metric", name(r.metric)},
                    {"L", r.L},
                    {"D", r.value},
                    {"std_error", number(r.std_error)},
                    {"low", number(r.ci.lo)},
                    {"high", number(r.ci.hi)},
                    {"constant", number(r.asymptotic * static_cast<double>(r.L))},
                    {"engine", name(r.engine)}});
  }
  const BoundReport bound = check_bound(proposition, setting.problem, result, seed);
  for (const Hypothesis& h : bound.hypotheses) {
    rows.push_back({{"section", section},
                    {"kind", "hypothesis"},
                    {"setting", setting.name},
                    {"name", h.name},
                    {"holds", h.holds},
                    {"value", number(h.value)},
                    {"text", h.text}});
  }
  for (const BoundFit& fit : bound.fits) {
    rows.push_back({{"section", section},
                    {"kind", "fit"},
                    {"setting", setting.name},
                    {"sigma", setting.sigma},
                    {"metric", name(fit.metric)},
                    {"c1", number(fit.c1)},
                    {"c2", number(fit.c2)},
                    {"holds", fit.holds},
                    {"fitted_up_to", fit.fitted_up_to},
                    {"worst_ratio", number(fit.worst_ratio)}});
  }
  return rows;
}

double Decay::last_exponent() const {
  std::size_t i = L.size() - 1;
  while (i > 0 && L[i] * 100 > L.back()) --i;
  return -std::log(D.back() / D[i]) /
         std::log(static_cast<double>(L.back()) / static_cast<double>(L[i]));
}

std::vector<Decay> read_decays(const std::vector<Row>& rows) {
  std::vector<Decay> out;
  for (const Row& row : rows) {
    if (row["kind"] != "point") continue;
    if (out.empty() || out.back().setting != row["setting"] || out.back().metric != row["metric"]) {
      out.push_back({row["setting"],
                     row["metric"],
                     at(row, "sigma"),
                     at(row, "lambda"),
                     at(row, "gamma"),
                     at(row, "constant"),
                     row["engine"],
                     {},
                     {},
                     {},
                     {}});
    }
    Decay& curve = out.back();
    curve.L.push_back(row["L"]);
    curve.D.push_back(at(row, "D"));
    curve.low.push_back(at(row, "low"));
    curve.high.push_back(at(row, "high"));
  }
  return out;
}

double common_bound(const CommonFit& fit, const std::string& metric, double sigma, std::int64_t L) {
  BoundFit one;
  one.c1 = fit.c1;
  one.c2 = fit.c2;
  if (metric == "grad_u") one.sigma_power = 12, one.log_power = 2;
  return bound_at(one, sigma, L);
}

CommonFit fit_common(const std::vector<Decay>& curves, const std::string& metric) {
  CommonFit fit;
  double longest = 2;
  for (const Decay& c : curves) longest = std::max(longest, static_cast<double>(c.L.back()));
  fit.fit_end = std::llround(std::sqrt(longest));
  fit.c2 = std::numeric_limits<double>::infinity();
  const auto each = [&](auto&& visit) {
    for (const Decay& c : curves) {
      if (c.metric != metric) continue;
      for (std::size_t i = 0; i < c.L.size(); ++i) {
        if (c.L[i] >= 2) visit(c, i);
      }
    }
  };
  each([&](const Decay& c, std::size_t i) {
    if (i + 1 >= c.L.size() || c.L[i + 1] > fit.fit_end) return;
    const double slope = -std::log(c.D[i + 1] / c.D[i]) /
                         std::log(static_cast<double>(c.L[i + 1]) / static_cast<double>(c.L[i]));
    // The shortest prompts fall slower than any power; c1 takes care of them.
    if (c.L[i] >= 10) fit.c2 = std::min(fit.c2, slope * c.sigma * c.sigma);
  });
  fit.c1 = 1;
  double c1 = 0;
  each([&](const Decay& c, std::size_t i) {
    if (c.L[i] <= fit.fit_end) {
      c1 = std::max(c1, c.high[i] / common_bound(fit, metric, c.sigma, c.L[i]));
    }
  });
  fit.c1 = c1;
  each([&](const Decay& c, std::size_t i) {
    if (c.L[i] <= fit.fit_end) return;
    const double ratio = c.low[i] / common_bound(fit, metric, c.sigma, c.L[i]);
    if (ratio > fit.worst_ratio) {
      fit.worst_ratio = ratio;
      fit.worst_at = c.setting + ", L = " + show(c.L[i]);
    }
  });
  return fit;
}

std::vector<std::string> hypothesis_lines(const std::vector<Row>& rows) {
  struct Line {
    std::string name;
    std::vector<std::string> texts;
    bool holds = true;
    bool same = true;  // one value for every setting
    std::string shown = {};
  };
  std::vector<Line> lines;
  for (const Row& row : rows) {
    if (row["kind"] != "hypothesis") continue;
    const std::string name = row["name"];
    if (name.rfind("moment", 0) == 0) continue;  // these have a table of their own
    if (name == "L >= 2") continue;              // said below, once
    auto line =
        std::find_if(lines.begin(), lines.end(), [&](const Line& l) { return l.name == name; });
    if (line == lines.end()) line = lines.insert(line, Line{name, {}});
    const std::string shown =
        row["value"].is_null() ? row["text"].get<std::string>() : show(row["value"].get<double>());
    const std::string text = shown + " (" + row["setting"].get<std::string>() + ")";
    line->texts.push_back(text);
    line->same = line->same && (line->shown.empty() || line->shown == shown);
    line->shown = shown;
    line->holds = line->holds && row["holds"].get<bool>();
  }
  std::vector<std::string> out;
  for (const Line& line : lines) {
    std::string text = line.name + (line.holds ? ": holds, " : ": does not hold everywhere, ");
    if (line.same) text += line.shown;
    for (std::size_t i = 0; !line.same && i < line.texts.size(); ++i)
      text += (i ? ", " : "") + line.texts[i];
    out.push_back(text);
  }
  out.emplace_back(
      "L >= 2: at L = 1 the bound reads 0; L = 1 is measured and left out of the test");
  return out;
}

}  // namespace esscher::paper
