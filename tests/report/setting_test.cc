#include "esscher/report/setting.h"

#include <gmock/gmock.h>

#include "esscher/measure/gaussian.h"

namespace esscher {
namespace {

using ::testing::HasSubstr;

TEST(Setting, MatricesInWords) {
  EXPECT_EQ(matrix_text(Matrix::Identity(3, 3)), "I");
  EXPECT_EQ(matrix_text(0.5 * Matrix::Identity(2, 2)), "0.5 I");
  EXPECT_EQ(matrix_text(Matrix::Constant(1, 1, 2)), "2");
  EXPECT_EQ(matrix_text(Matrix{{1, 0}, {0, 0.25}}), "diag(1, 0.25)");
  EXPECT_EQ(matrix_text(Matrix{{3, 4}}), "a 1 × 2 matrix of norm 5");
}

TEST(Setting, SaysLawDimensionAndLayer) {
  const Matrix I = Matrix::Identity(2, 2);
  const Problem problem{.mu = Gaussian(Matrix(0.5 * I)),
                        .attention = Attention::from_uv(0.7 * I, I),
                        .nu = Gaussian(I)};
  const std::string text = setting_of(problem);
  EXPECT_THAT(text, HasSubstr("dimension 2"));
  EXPECT_THAT(text, HasSubstr("mean 0 and covariance 0.5 I"));
  EXPECT_THAT(text, HasSubstr("U = 0.7 I and V = I"));
}

TEST(Setting, SaysTheTask) {
  LinearRegressionTask task = LinearRegressionTask::isotropic(3);
  EXPECT_THAT(setting_of(AnyTask(task)), HasSubstr("dimension 3: Gaussian features"));
  EXPECT_THAT(setting_of(AnyTask(task)), HasSubstr("labels without noise"));
  task.noise_variance = 0.2;
  EXPECT_THAT(setting_of(AnyTask(task)), HasSubstr("noise of variance 0.2 on the prompt"));
  TrainConfig config;
  config.task = task;
  config.length = 40;
  EXPECT_THAT(training_setting(config), HasSubstr("fresh prompts of 40 tokens, 128 at"));
  config.gradient = Engine::exact;
  EXPECT_THAT(training_setting(config), HasSubstr("exact risk of prompts of 40 tokens."));
}

}  // namespace
}  // namespace esscher
