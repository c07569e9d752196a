#include "esscher/heads/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "esscher/base/error.h"
#include "esscher/heads/surrogate_file.h"
#include "esscher/io/npy.h"
#include "esscher/io/npz.h"
#include "esscher/io/safetensors.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using ::testing::HasSubstr;
using Tensors = std::map<std::string, Array>;

// A folder of this test's own, empty at the start of each test.
class LoadHeads : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }

  std::filesystem::path safetensors(const Tensors& tensors) {
    const auto path = folder_ / "model.safetensors";
    write_file(path, encode_safetensors(tensors));
    return path;
  }

  // The message of the FileError or ArgumentError that loading and reading all heads throws.
  static std::string message(const std::filesystem::path& path) {
    try {
      for (const Head& head : load_heads(path)) {
        head.Q(0, head.n_queries);
        head.K(0, head.n);
        head.V(0, head.n);
      }
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  std::filesystem::path folder_;
};

Array filled(std::vector<std::int64_t> shape, float start) {
  std::size_t count = 1;
  for (const std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = start + static_cast<float>(i);
  return array_of(values, std::move(shape));
}

Tensors one_head() {
  return {{"a.Q", filled({4, 2}, 0)}, {"a.K", filled({5, 2}, 1)}, {"a.V", filled({5, 3}, 2)}};
}

TEST_F(LoadHeads, ReadsNamedHeadsWithDefaults) {
  const std::vector<Head> heads = load_heads(safetensors(one_head()));
  ASSERT_EQ(heads.size(), 1u);
  EXPECT_EQ(heads[0].name, "a");
  EXPECT_EQ(heads[0].n, 5);
  EXPECT_EQ(heads[0].dv, 3);
  EXPECT_FALSE(heads[0].causal);
  EXPECT_TRUE(testing::close(heads[0].scale, 1 / std::sqrt(2.0), 1e-15));
  EXPECT_EQ(heads[0].K(3, 1)(0, 1), 8.0);
}

TEST_F(LoadHeads, UnstacksHeadsAndSharesGroupedKeys) {
  const Tensors stacked = {{"layer0_q", filled({4, 6, 2}, 0)},
                           {"layer0_k", filled({2, 6, 2}, 100)},
                           {"layer0_v", filled({2, 6, 2}, 200)},
                           {"layer0_causal", filled({1}, 1)}};
  const std::vector<Head> heads = load_heads(safetensors(stacked));
  ASSERT_EQ(heads.size(), 4u);
  EXPECT_EQ(heads[3].name, "layer0.3");
  EXPECT_TRUE(heads[3].causal);
  EXPECT_EQ(heads[1].K(0, 1)(0, 0), 100.0);  // queries 0, 1 read the first keys, 2, 3 the second
  EXPECT_EQ(heads[2].K(0, 1)(0, 0), 112.0);
  EXPECT_EQ(heads[3].Q(0, 1)(0, 0), 36.0);
}

TEST_F(LoadHeads, ReadsNpzAndFoldersOfNpy) {
  write_file(
      folder_ / "dump.npz",
      encode_npz({{"Q", filled({3, 2}, 0)}, {"K", filled({3, 2}, 1)}, {"V", filled({3, 2}, 2)}}));
  EXPECT_EQ(load_heads(folder_ / "dump.npz")[0].name, "dump");
  const auto folder = folder_ / "arrays";
  std::filesystem::create_directories(folder);
  for (const char* name : {"h.q.npy", "h.k.npy", "h.v.npy"}) {
    write_npy(folder / name, Matrix::Ones(3, 2));
  }
  EXPECT_EQ(load_heads(folder)[0].name, "h");
}

TEST_F(LoadHeads, NamesTheHeadInEveryError) {
  Tensors tensors = one_head();
  tensors.erase("a.V");
  EXPECT_THAT(message(safetensors(tensors)), HasSubstr("head a: V is missing"));
  tensors = one_head();
  tensors["a.V"] = filled({4, 3}, 0);
  EXPECT_THAT(message(safetensors(tensors)), HasSubstr("head a: Q [4,2], K [5,2], V [4,3]"));
  tensors = one_head();
  tensors["a.K"] = filled({2, 2, 2, 2}, 0);
  EXPECT_THAT(message(safetensors(tensors)), HasSubstr("a.K"));
  tensors = one_head();
  tensors["a.K"] = array_of(std::vector<float>(10, std::nanf("")), {5, 2});
  EXPECT_THAT(message(safetensors(tensors)), HasSubstr("head a.K"));
  tensors = one_head();
  tensors["a.causal"] = filled({1}, 1);
  tensors["a.Q"] = filled({6, 2}, 0);  // six queries for five keys
  EXPECT_THAT(message(safetensors(tensors)),
              HasSubstr("head a: Q [6,2], K [5,2], V [5,3]: 6 queries of a causal head, expected "
                        "at most its 5 keys"));
  tensors = one_head();
  tensors["a.q"] = filled({4, 2}, 0);
  EXPECT_THAT(message(safetensors(tensors)), HasSubstr("head a: two tensors for Q"));
  tensors = one_head();
  tensors["a.scale"] = filled({2}, 1);  // for one head
  EXPECT_THAT(message(safetensors(tensors)), HasSubstr("head a.scale: 2 numbers"));
  EXPECT_THAT(message(safetensors({{"weights", filled({2, 2}, 0)}})),
              HasSubstr("no tensors named"));
  EXPECT_THAT(message(folder_ / "absent.safetensors"), HasSubstr("absent.safetensors"));
}

TEST_F(LoadHeads, SurrogatesReadBackAsWritten) {
  Surrogate mixture{.weights = Vector::Constant(2, 0.5),
                    .mean_k = Matrix::Random(2, 3),
                    .mean_v = Matrix::Random(2, 4),
                    .cov_k = {Matrix::Identity(3, 3), 2 * Matrix::Identity(3, 3)},
                    .cov_vk = {Matrix::Random(4, 3), Matrix::Random(4, 3)},
                    .trace_v = Vector::Ones(2)};
  Surrogate gaussian{.weights = Vector::Ones(1),
                     .mean_k = Matrix::Random(1, 3),
                     .mean_v = Matrix::Random(1, 4),
                     .cov_k = {Matrix::Identity(3, 3)},
                     .cov_vk = {Matrix::Random(4, 3)},
                     .trace_v = Vector::Ones(1)};
  const auto path = folder_ / "surrogates.safetensors";
  write_surrogates(path, {{"a", 0.25, gaussian}, {"a", 0.25, mixture}});
  const Vector a = Vector::LinSpaced(3, -1, 1);
  EXPECT_EQ(read_surrogate(path, "a", 2).scale, 0.25);
  EXPECT_TRUE(testing::close(read_surrogate(path, "a", 2).surrogate(a), mixture(a), 1e-15));
  EXPECT_TRUE(testing::close(read_surrogate(path, "a", 1).surrogate(a), gaussian(a), 1e-15));
  EXPECT_THROW(read_surrogate(path, "b", 1), FileError);
  EXPECT_THROW(read_surrogate(path, "a", 3), FileError);
}

}  // namespace
}  // namespace esscher
