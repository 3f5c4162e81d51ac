// Encoders of text and images against Hugging Face transformers: every parameter under its name and shape on
// disk, logits, loss, every gradient, and the losses of 20 AdamW steps.
// The golden states come from make_hf_encoder_golden.py beside this file.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "model/hf/family.h"
#include "runtime/compile.h"
#include "safetensors/reader.h"
#include "tensor_error.h"
#include "train/step/train_step.h"

namespace lockstep {
namespace {

class Golden {
 public:
  explicit Golden(const std::string& name)
      : file_(fmt::format("{}/hf/{}.safetensors", LOCKSTEP_GOLDEN, name)) {}

  std::unique_ptr<HfModel> model() const {
    return make_hf_model(HfConfig::parse(file_.header().metadata.at("config"), "config.json"));
  }
  HfGraph graph(bool training) const {
    const Shape& shape = file_.at(has("input.images") ? "input.images" : "input.tokens").tensor.shape;
    return {.batch = shape[0],
            .seq = shape[1],
            .training = training,
            .padded = has("input.keys_visible"),
            .segments = has("input.segments")};
  }
  bool has(const std::string& key) const { return file_.contains(key); }
  const std::vector<TensorEntry>& tensors() const { return file_.tensors(); }
  Shape shape(const std::string& key) const { return file_.at(key).tensor.shape; }
  std::vector<std::byte> bytes(const std::string& key) const {
    std::vector<std::byte> result(static_cast<size_t>(file_.at(key).tensor.bytes()));
    file_.read(file_.at(key), result);
    return result;
  }
  std::vector<float> floats(const std::string& key) const {
    const std::vector<std::byte> raw = bytes(key);
    const auto* values = reinterpret_cast<const float*>(raw.data());
    return {values, values + raw.size() / sizeof(float)};
  }

 private:
  SafetensorsReader file_;
};

std::vector<double> doubles(const std::vector<float>& values) { return {values.begin(), values.end()}; }

void check_names(const Golden& golden, const Model& model) {
  int64_t expected = 0, found = 0;
  for (const TensorEntry& entry : golden.tensors())
    expected += entry.tensor.name.starts_with("param.") ? 1 : 0;
  for (const GraphInput& input : model.graph.inputs()) {
    if (input.role != Role::kParam) continue;
    const std::string key = "param." + model.graph.name(input.value);
    ASSERT_TRUE(golden.has(key)) << key << " is not on disk";
    EXPECT_EQ(golden.shape(key), model.graph.type(input.value).shape) << key;
    ++found;
  }
  EXPECT_EQ(found, expected) << "parameters on disk that the graph does not have";
}

void check_logits(const Golden& golden, const HfModel& hf, Backend& backend) {
  Model model = hf.build(golden.graph(false));
  const Value answer = model.graph.outputs()[2].value;
  const Value logits = model.graph.nodes()[static_cast<size_t>(model.graph.producer(answer))].inputs[0];
  model.graph.clear_outputs();
  model.graph.add_output(logits);
  PassOptions passes;
  passes.disabled.emplace_back("autodiff");
  const auto executable = compile(model.graph, backend, passes);
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (const GraphInput& input : executable->graph().inputs()) {
    const std::string& name = executable->graph().name(input.value);
    const Type& type = executable->graph().type(input.value);
    const std::vector<std::byte> values =
        golden.bytes((input.role == Role::kInput ? "input." : "param.") + name);
    ASSERT_EQ(static_cast<int64_t>(values.size()), type.bytes()) << name;
    buffers.push_back(backend.allocate(type.bytes()));
    backend.upload(buffers.back()->data(), values.data(), type.bytes());
    executable->bind(name, buffers.back()->data());
  }
  executable->run();
  std::vector<float> got(golden.floats("logits").size());
  backend.download(got.data(), executable->output(0), static_cast<int64_t>(got.size() * sizeof(float)));
  EXPECT_EQ(testing::compare(doubles(got), doubles(golden.floats("logits")), 1e-5), "") << "logits";
}

// Softmax does not see a shift of all keys: what is left is rounding, of us and of PyTorch.
bool is_key_bias(const std::string& name) {
  return name.ends_with("key.bias") || name.ends_with("k_lin.bias");
}

void check_steps(const Golden& golden, const Model& model, Backend& backend, int64_t head_chunks) {
  SCOPED_TRACE(head_chunks);
  TrainOptions options;
  options.passes.head_chunks = head_chunks;
  TrainStep train(model, backend, options);
  for (const TensorEntry& entry : golden.tensors()) {
    const std::string& key = entry.tensor.name;
    if (key.starts_with("param.")) train.set_param(key.substr(6), golden.floats(key));
    if (!key.starts_with("input.")) continue;
    const std::vector<std::byte> bytes = golden.bytes(key);
    train.set_input(key.substr(6), bytes.data(), static_cast<int64_t>(bytes.size()));
  }
  const std::vector<float> losses = golden.floats("losses");
  for (size_t step = 0; step < losses.size(); ++step) {
    const StepResult result = train.run(1e-3);
    const double tolerance = step == 0 ? 1e-5 : 1e-4;
    EXPECT_NEAR(result.loss, losses[step], tolerance * std::fabs(losses[step])) << "step " << step;
    if (step > 0) continue;
    for (const StateTensor& entry : train.params()) {
      const std::vector<float> got = train.grad(entry.name), want = golden.floats("grad." + entry.name);
      if (is_key_bias(entry.name)) {
        for (const float x : got) EXPECT_LT(std::fabs(x), 2e-6) << "gradient of " << entry.name;
        continue;
      }
      EXPECT_EQ(testing::compare(doubles(got), doubles(want), 1e-4), "") << "gradient of " << entry.name;
    }
  }
}

void check(const std::string& name) {
  const Golden golden(name);
  const std::unique_ptr<HfModel> hf = golden.model();
  const Model model = hf->build(golden.graph(true));
  check_names(golden, model);
  const auto backend = make_cpu_backend(2);
  check_logits(golden, *hf, *backend);
  for (const int64_t head_chunks : {1, 2}) check_steps(golden, model, *backend, head_chunks);
}

TEST(HfEncoderGolden, BertMasked) { check("bert_masked"); }
TEST(HfEncoderGolden, BertMaskedPads) { check("bert_masked_pads"); }
TEST(HfEncoderGolden, BertSequence) { check("bert_sequence"); }
TEST(HfEncoderGolden, BertToken) { check("bert_token"); }
TEST(HfEncoderGolden, RobertaMasked) { check("roberta_masked"); }
TEST(HfEncoderGolden, RobertaSequence) { check("roberta_sequence"); }
TEST(HfEncoderGolden, RobertaToken) { check("roberta_token"); }
TEST(HfEncoderGolden, DistilBertMasked) { check("distilbert_masked"); }
TEST(HfEncoderGolden, DistilBertSequence) { check("distilbert_sequence"); }
TEST(HfEncoderGolden, DistilBertToken) { check("distilbert_token"); }
TEST(HfEncoderGolden, Vit) { check("vit"); }
TEST(HfEncoderGolden, VitWithoutBias) { check("vit_no_bias"); }

}  // namespace
}  // namespace lockstep
