// Encoders of text: what a row holds beside its own tokens changes nothing. Padding, other documents, and
// types that are left out give the logits of the tokens alone.
#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "base/philox.h"
#include "model/hf/family.h"
#include "runtime/compile.h"

namespace lockstep {
namespace {

using Inputs = std::map<std::string, std::vector<int32_t>>;

constexpr int64_t kClasses = 3;

std::unique_ptr<HfModel> token_classifier(const std::string& type, const std::string& name) {
  const bool small_keys = type == "distilbert";
  return make_hf_model(HfConfig::parse(
      fmt::format(
          R"({{"model_type": "{}", "architectures": ["{}ForTokenClassification"], "vocab_size": 30,
                      "{}": 12, "{}": 2, "{}": 3, "{}": 20, "max_position_embeddings": 20,
                      "id2label": {{"0": "a", "1": "b", "2": "c"}}}})",
          type, name, small_keys ? "dim" : "hidden_size", small_keys ? "n_layers" : "num_hidden_layers",
          small_keys ? "n_heads" : "num_attention_heads", small_keys ? "hidden_dim" : "intermediate_size"),
      "config.json"));
}

// The logits [B*T, classes], of weights that are drawn with larger deviations than models begin with.
std::vector<float> logits(const HfModel& hf, HfGraph settings, const Inputs& given) {
  settings.training = false;
  Model model = hf.build(settings);
  const Value answer = model.graph.outputs()[2].value;
  const Value scores = model.graph.nodes()[static_cast<size_t>(model.graph.producer(answer))].inputs[0];
  model.graph.clear_outputs();
  model.graph.add_output(scores);
  const auto backend = make_cpu_backend(2);
  PassOptions passes;
  passes.disabled.emplace_back("autodiff");
  const auto executable = compile(model.graph, *backend, passes);
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (const GraphInput& input : executable->graph().inputs()) {
    const std::string& name = executable->graph().name(input.value);
    const Type& type = executable->graph().type(input.value);
    buffers.push_back(backend->allocate(type.bytes()));
    if (input.role != Role::kInput) {
      std::vector<float> values(static_cast<size_t>(type.shape.numel()));
      init_param({name, ParamInit::Kind::kNormal, 0, 0.4}, 3, 0, values);
      backend->upload(buffers.back()->data(), values.data(), type.bytes());
    } else if (type.dtype == DType::kU8) {
      const std::vector<uint8_t> values(given.at(name).begin(), given.at(name).end());
      backend->upload(buffers.back()->data(), values.data(), type.bytes());
    } else if (given.contains(name)) {
      backend->upload(buffers.back()->data(), given.at(name).data(), type.bytes());
    }
    executable->bind(name, buffers.back()->data());
  }
  executable->run();
  std::vector<float> result(static_cast<size_t>(settings.batch * settings.seq * kClasses));
  backend->download(result.data(), executable->output(0),
                    static_cast<int64_t>(result.size() * sizeof(float)));
  return result;
}

void expect_rows(const std::vector<float>& got, size_t first, const std::vector<float>& want, size_t rows) {
  for (size_t i = 0; i < rows * kClasses; ++i)
    ASSERT_NEAR(got[first * kClasses + i], want[i], 1e-5) << "row " << i / kClasses;
}

class HfEncoderRows : public ::testing::TestWithParam<std::pair<std::string, std::string>> {
 protected:
  std::unique_ptr<HfModel> model = token_classifier(GetParam().first, GetParam().second);
  // Two texts, neither of which has a token for padding.
  std::vector<int32_t> first{5, 9, 11, 28, 7}, second{6, 21, 4};
};

TEST_P(HfEncoderRows, PaddingChangesNothing) {
  const auto alone = logits(*model, {.batch = 1, .seq = 3}, {{"tokens", second}});
  const auto padding = static_cast<int32_t>(*model->padding_token);
  const auto padded = logits(*model, {.batch = 2, .seq = 5, .padded = true},
                             {{"tokens", {5, 9, 11, 28, 7, 6, 21, 4, padding, padding}},
                              {"keys_visible", {1, 1, 1, 1, 1, 1, 1, 1, 0, 0}}});
  expect_rows(padded, 5, alone, 3);
  expect_rows(padded, 0, logits(*model, {.batch = 1, .seq = 5}, {{"tokens", first}}), 5);
}

TEST_P(HfEncoderRows, DocumentsOfARowDoNotSeeEachOther) {
  const auto packed = logits(*model, {.batch = 1, .seq = 8, .documents = true},
                             {{"tokens", {5, 9, 11, 28, 7, 6, 21, 4}},
                              {"documents", {0, 0, 0, 0, 0, 1, 1, 1}},
                              {"positions", {0, 1, 2, 3, 4, 0, 1, 2}}});
  expect_rows(packed, 0, logits(*model, {.batch = 1, .seq = 5}, {{"tokens", first}}), 5);
  expect_rows(packed, 5, logits(*model, {.batch = 1, .seq = 3}, {{"tokens", second}}), 3);
}

TEST_P(HfEncoderRows, TypesThatAreLeftOutAreZero) {
  const auto without = logits(*model, {.batch = 1, .seq = 3}, {{"tokens", second}});
  const auto zeros =
      logits(*model, {.batch = 1, .seq = 3, .segments = true}, {{"tokens", second}, {"segments", {0, 0, 0}}});
  expect_rows(zeros, 0, without, 3);
  if (GetParam().first == "distilbert") return;
  const auto ones =
      logits(*model, {.batch = 1, .seq = 3, .segments = true}, {{"tokens", second}, {"segments", {1, 1, 1}}});
  EXPECT_NE(ones, without);
}

INSTANTIATE_TEST_SUITE_P(Families, HfEncoderRows,
                         ::testing::Values(std::pair("bert", "Bert"), std::pair("roberta", "Roberta"),
                                           std::pair("distilbert", "DistilBert")),
                         [](const auto& info) { return info.param.second; });

}  // namespace
}  // namespace lockstep
