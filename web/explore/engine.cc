// The engine of the explorer: one function, from a request to the document that the program prints for the
// same configuration. Both are JSON.
//
//   {"verb": "concentration", "set": ["measure.type=gaussian", ..]}
//
// The assignments are those of --set, and they are read by the same code (config/). An answer that is
// an object with the one key "error" says what was wrong.
#include <emscripten.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "cli/reference.h"
#include "cli/rows.h"
#include "esscher/base/error.h"
#include "esscher/concentration/constant.h"
#include "esscher/concentration/gaussian_average.h"
#include "esscher/concentration/length.h"
#include "esscher/concentration/queries.h"
#include "esscher/concentration/study.h"
#include "esscher/config/icl.h"
#include "esscher/config/sweep.h"
#include "esscher/json/concentration.h"
#include "esscher/json/training.h"
#include "esscher/risk/bayes.h"
#include "esscher/risk/node_error.h"
#include "esscher/universal/universal_table.h"

namespace esscher {
namespace {

constexpr std::uint64_t kSeed = 0;  // of the program unless --seed is given

Config config_of(const Json& request) {
  Config config;
  for (const Json& assignment : request.at("set")) config.set(assignment.get<std::string>());
  config.check_known();
  return config;
}

Json concentration(const Json& request) {
  const Config config = config_of(request);
  return to_json(study(read_problem(config.root()), read_sweep(config.root(), kSeed)));
}

Json length(const Json& request) {
  const Config config = config_of(request);
  const StudyOptions sweep = read_sweep(config.root(), kSeed);
  LengthOptions options;
  options.eps = request.at("eps").get<double>();
  options.engine = sweep.engine;
  options.queries = sweep.queries;
  options.replicates = sweep.replicates;
  return to_json(shortest_length(read_problem(config.root()), options));
}

// Universal functions of one length serve every Gaussian layer, so that their table is kept. Queries
// of a larger tau are the business of concentration().
const UniversalTable& table_of(std::int64_t L) {
  constexpr double kTableTau = 32;
  static std::map<std::int64_t, UniversalTable> tables;
  return tables.try_emplace(L, L, kTableTau).first->second;
}

// D(L) while a slider moves. Gaussian layers are read from tables (1e-11); of other laws the constant
// is known, averaged over the queries that concentration() draws too.
Json layer(const Json& request) {
  const Config config = config_of(request);
  const Problem problem = read_problem(config.root());
  const StudyOptions sweep = read_sweep(config.root(), kSeed);
  const std::optional<GaussianLaw> mu = gaussian_law(problem.mu), nu = gaussian_law(*problem.nu);
  Json rows = Json::array();
  double constant = 0;
  QueryAverage tails = query_average(problem);
  if (mu && nu) {
    const GaussianAverage average({Metric::output}, *mu, problem.attention, *nu);
    tails.lambda = average.tau_law().lambda();
    constant = average.constant(0);
    for (const std::int64_t L : sweep.lengths) {
      const UniversalTable& table = table_of(L);
      const GaussianAverage::Functions functions{
          .L = L, .tau_max = table.tau_max(), .at = [&](double tau) {
            const UniversalTable::Point p = table.at(tau);
            Universal u;
            u.H = p.H;
            u.M2c_ratio = p.M2c_ratio;
            return Universal4(u);
          }};
      Json row{{"L", L}};
      put(row, "value", average.at(functions)[0].value);
      put(row, "ess", average.effective_sample_size(functions));
      put(row, "frozen", average.frozen_fraction(L));
      rows.push_back(std::move(row));
    }
  } else if (tails.infinite) {
    constant = HUGE_VAL;
  } else {
    const QuerySet queries = drawn_queries(*problem.nu, sweep.queries, kSeed);
    for (Index q = 0; q < queries.size(); ++q) {
      constant += asymptotic_constant(Metric::output, problem.mu, problem.attention,
                                      queries.z.row(q).transpose()) /
                  static_cast<double>(queries.size());
    }
  }
  const RegimeReport regime = regime_report(tails.lambda, {constant}, mu && nu);
  Json document{{"rows", std::move(rows)}, {"regime", name(regime.regime)}, {"text", regime.text}};
  put(document, "lambda", regime.lambda);
  put(document, "gamma", regime.gamma);
  put(document, "constant", constant);
  return document;
}

Json flow(const Json& request) {
  const Config config = config_of(request);
  const FlowProblem problem = read_flow_problem(config.root(), kSeed);
  config.check_all_used();
  return flow_document(assemble_flow(compute_here(flow_cells(problem))));
}

// The risk along several flows while a slider moves, without what flow() finds out about their ends:
// {"set": [..], "flows": [[..], ..]}, where each flow has assignments of its own.
Json flows(const Json& request) {
  constexpr std::int64_t kDraws = 200;  // behind the Bayes risk of a moving slider
  Json document{{"flows", Json::array()}};
  for (const Json& own : request.at("flows")) {
    Json whole = request;
    for (const Json& assignment : own) whole["set"].push_back(assignment);
    const FlowProblem problem = read_flow_problem(config_of(whole).root(), kSeed);
    const FlowResult flow = gradient_flow(problem.setup, problem.kind, problem.length);
    Json path = Json::array();
    for (const FlowPoint& point : flow.path) {
      path.push_back(
          {{"t", point.t}, {"risk", point.risk}, {"gradient_norm", point.gradient_norm}});
    }
    document["flows"].push_back(std::move(path));
    if (document.contains("bayes")) continue;
    const Estimate bayes = bayes_risk(problem.setup.task.regression(), problem.length, kDraws,
                                      problem.setup.risk.stream.split(2));
    put(document, "bayes", bayes.value);
  }
  return document;
}

// Makes the tables that a flow at this length will read: {"L": 100}.
Json warm(const Json& request) {
  const NodeTables tables(request.at("L").get<std::int64_t>());
  for (const double tau : {8.0, 16.0}) (void)tables.up_to(tau);
  return Json::object();
}

// The universal functions at pairs of a length and a score deviation: {"pairs": [[L, tau], ..]}.
Json temperature(const Json& request) {
  Json rows = Json::array();
  for (const Json& pair : request.at("pairs")) {
    const auto L = pair.at(0).get<std::int64_t>();
    const auto tau = pair.at(1).get<double>();
    const Universal u = universal(L, tau);
    Json row{{"L", L}, {"tau", tau}};
    put(row, "H", u.H);
    put(row, "M1", u.M1);
    put(row, "M2c", u.M2c);
    rows.push_back(std::move(row));
  }
  return Json{{"rows", std::move(rows)}};
}

Json output_of(const AnyMeasure& mu, const Attention& attention, const VectorView& z) {
  return cli::query_json(cli::query_row(mu, attention, z, {}));
}

// A prompt, its softmax weights, and the outputs of it and of measures fitted to it; "path" has them
// for the first 1, 2, .. tokens.
Json prompt(const Json& request) {
  const Config config = config_of(request);
  const Table root = config.root();
  const AnyMeasure measure = read_measure(root.table("measure"));
  const auto& tokens = *measure.as<Empirical>();
  const Attention attention = read_attention(root, measure.dim());
  const Vector z = read_query(root, measure.dim()).points.row(0).transpose();
  const Index k = std::min<Index>(request.at("components").get<int>(), tokens.size());
  const AnyMeasure gaussian = cli::gaussian_fit(tokens),
                   mixture = cli::mixture_fit(tokens, k, kSeed);
  Json document{{"prompt", output_of(measure, attention, z)},
                {"gaussian", output_of(gaussian, attention, z)},
                {"mixture", output_of(mixture, attention, z)},
                {"weights", json_vector(tokens.tilted_weights(attention.tilt(z)))},
                {"parts", Json::array()},
                {"path", Json::array()}};
  const std::optional<GaussianMixtureLaw> parts = gaussian_mixture_law(mixture);
  for (const GaussianLaw& part : parts->components) {
    document["parts"].push_back({{"mean", json_vector(part.mean)}, {"cov", json_matrix(part.cov)}});
  }
  document["cov"] = json_matrix(gaussian_law(gaussian)->cov);
  document["mean"] = json_vector(tokens.mean());
  for (Index n = 1; n <= tokens.size(); ++n) {
    const Empirical first(tokens.tokens().topRows(n));
    Json row{{"n", n},
             {"prompt", json_vector(attention(first, z))},
             {"gaussian", json_vector(attention(cli::gaussian_fit(first), z))}};
    put(row, "ess", first.effective_sample_size(attention.tilt(z)));
    document["path"].push_back(std::move(row));
  }
  return document;
}

Json answer(const Json& request) {
  const auto verb = request.at("verb").get<std::string>();
  if (verb == "layer") return layer(request);
  if (verb == "concentration") return concentration(request);
  if (verb == "length") return length(request);
  if (verb == "flow") return flow(request);
  if (verb == "flows") return flows(request);
  if (verb == "warm") return warm(request);
  if (verb == "temperature") return temperature(request);
  if (verb == "prompt") return prompt(request);
  throw ArgumentError("explorer: there is no verb " + verb);
}

}  // namespace
}  // namespace esscher

// The answer stays valid until the next call.
extern "C" EMSCRIPTEN_KEEPALIVE const char* esscher_answer(const char* request) {
  static std::string text;
  try {
    text = esscher::dump(esscher::answer(esscher::parse_json("request", request)));
  } catch (const std::exception& error) {
    text = esscher::Json{{"error", error.what()}}.dump();
  }
  return text.c_str();
}
