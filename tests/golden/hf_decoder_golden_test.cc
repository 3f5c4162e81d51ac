// Models of Hugging Face folders against transformers: logits, loss, every gradient, the losses of 20 AdamW
// steps; and text generated piece by piece over a cache against the same logits. What hf_decoders/ holds
// comes from make_hf_decoder_golden.py beside this file; every file there is a case.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "graph/text.h"
#include "model/hf/family.h"
#include "runtime/compile.h"
#include "safetensors/reader.h"
#include "tensor_error.h"
#include "train/step/train_step.h"

namespace lockstep {
namespace {

const std::string kFolder = std::string(LOCKSTEP_GOLDEN) + "/hf_decoders/";

std::vector<std::string> variants() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder))
    if (entry.path().extension() == ".safetensors") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<double> doubles(std::span<const float> values) { return {values.begin(), values.end()}; }

struct DecoderGolden {
  explicit DecoderGolden(const std::string& name) : reader(kFolder + name + ".safetensors") {
    for (const TensorEntry& entry : reader.tensors()) {
      std::string& data = bytes[entry.tensor.name];
      data.resize(static_cast<size_t>(entry.tensor.bytes()));
      reader.read(entry, std::as_writable_bytes(std::span(data)));
    }
    const auto metadata = [&](const std::string& key) {
      return std::stoll(reader.header().metadata.at(key));
    };
    graph.batch = metadata("batch");
    graph.seq = metadata("seq");
    graph.documents = metadata("documents") != 0;
    graph.padded = bytes.contains("input.keys_visible");
  }

  bool has(const std::string& key) const { return bytes.contains(key); }
  std::span<const float> floats(const std::string& key) const {
    const std::string& raw = bytes.at(key);
    return {reinterpret_cast<const float*>(raw.data()), raw.size() / sizeof(float)};
  }

  SafetensorsReader reader;
  std::map<std::string, std::string> bytes;
  HfGraph graph;
};

// Runs a graph once; inputs by name.
class Forward {
 public:
  Forward(const Graph& graph, Backend& backend) : backend_(backend) {
    PassOptions options;
    options.disabled.emplace_back("autodiff");
    executable_ = compile(graph, backend, options);
  }

  void set(const std::string& name, const void* data, int64_t bytes) {
    buffers_[name] = backend_.allocate(bytes);
    backend_.upload(buffers_[name]->data(), data, bytes);
    executable_->bind(name, buffers_[name]->data());
  }
  template <typename T>
  void set(const std::string& name, const std::vector<T>& values) {
    set(name, values.data(), static_cast<int64_t>(values.size() * sizeof(T)));
  }
  void set_params(const DecoderGolden& golden) {
    for (const auto& [key, data] : golden.bytes)
      if (key.starts_with("param.")) set(key.substr(6), data.data(), static_cast<int64_t>(data.size()));
  }
  void run() { executable_->run(); }
  // What a state has become.
  std::vector<float> state(const std::string& name) {
    Buffer& buffer = *buffers_.at(name);
    std::vector<float> values(static_cast<size_t>(buffer.bytes()) / sizeof(float));
    backend_.download(values.data(), buffer.data(), buffer.bytes());
    return values;
  }
  std::vector<float> output(size_t index) {
    const Graph& graph = executable_->graph();
    const int64_t bytes = graph.type(graph.outputs()[index].value).bytes();
    std::vector<float> values(static_cast<size_t>(bytes) / sizeof(float));
    backend_.download(values.data(), executable_->output(index), bytes);
    return values;
  }

 private:
  Backend& backend_;
  std::unique_ptr<Executable> executable_;
  std::map<std::string, std::unique_ptr<Buffer>> buffers_;
};

// The logits behind the answer of an evaluation graph, as a further output.
void output_logits(Graph& graph) {
  const auto answer = graph.outputs()[2].value;
  const Node& node = graph.nodes()[static_cast<size_t>(graph.producer(answer))];
  ASSERT_EQ(node.op->name, "argmax");
  graph.add_output(node.inputs[0]);
}

class HfDecoders : public ::testing::TestWithParam<std::string> {};
class HfDecodersInBf16 : public HfDecoders {};
class HfDecodersOverACache : public HfDecoders {};

std::unique_ptr<HfModel> model_of(const std::string& name, const std::string& suffix = ".json") {
  return make_hf_model(HfConfig::read(kFolder + name + suffix));
}

TEST_P(HfDecoders, KeysOfBothVersionsGiveOneGraph) {
  const DecoderGolden golden(GetParam());
  EXPECT_EQ(to_text(model_of(GetParam())->build(golden.graph).graph),
            to_text(model_of(GetParam(), ".v4.json")->build(golden.graph).graph));
}

TEST_P(HfDecoders, Logits) {
  DecoderGolden golden(GetParam());
  golden.graph.training = false;
  Model model = model_of(GetParam())->build(golden.graph);
  output_logits(model.graph);
  const auto backend = make_cpu_backend(2);
  Forward forward(model.graph, *backend);
  forward.set_params(golden);
  for (const auto& [key, data] : golden.bytes)
    if (key.starts_with("input.")) forward.set(key.substr(6), data.data(), static_cast<int64_t>(data.size()));
  forward.run();
  EXPECT_EQ(testing::compare(doubles(forward.output(3)), doubles(golden.floats("logits")), 1e-5), "");
}

void check_steps(const DecoderGolden& golden, const HfModel& model, int64_t head_chunks) {
  const auto backend = make_cpu_backend(2);
  TrainOptions options;
  options.passes.head_chunks = head_chunks;
  TrainStep train(model.build(golden.graph), *backend, options);
  size_t given = 0;
  for (const auto& [key, data] : golden.bytes) {
    if (key.starts_with("input."))
      train.set_input(key.substr(6), data.data(), static_cast<int64_t>(data.size()));
    if (!key.starts_with("param.")) continue;
    const std::span<const float> values = golden.floats(key);
    train.set_param(key.substr(6), {values.begin(), values.end()});
    ++given;
  }
  EXPECT_EQ(given, train.params().size());
  double largest = 0;
  for (const auto& [key, data] : golden.bytes)
    if (key.starts_with("grad."))
      for (const float x : golden.floats(key)) largest = std::max(largest, std::fabs(static_cast<double>(x)));

  const std::span<const float> losses = golden.floats("losses");
  for (size_t step = 0; step < losses.size(); ++step) {
    const StepResult result = train.run(1e-3);
    EXPECT_NEAR(result.loss, losses[step], (step == 0 ? 1e-5 : 1e-4) * std::fabs(losses[step]))
        << "step " << step;
    if (step > 0) continue;
    for (const StateTensor& entry : train.params())
      EXPECT_EQ(testing::compare(doubles(train.grad(entry.name)),
                                 doubles(golden.floats("grad." + entry.name)), 1e-4, 1e-3 * largest),
                "")
          << "gradient of " << entry.name;
  }
}

TEST_P(HfDecoders, LossGradientsAndTwentySteps) {
  check_steps(DecoderGolden(GetParam()), *model_of(GetParam()), 1);
}
TEST_P(HfDecoders, LossGradientsAndTwentyStepsWithAHeadInChunks) {
  check_steps(DecoderGolden(GetParam()), *model_of(GetParam()), 2);
}

TEST_P(HfDecodersInBf16, LossStaysWithinRounding) {
  const DecoderGolden golden(GetParam());
  const auto backend = make_cpu_backend(2);
  TrainOptions options;
  options.passes.compute = DType::kBF16;
  TrainStep train(model_of(GetParam())->build(golden.graph), *backend, options);
  for (const auto& [key, data] : golden.bytes) {
    if (key.starts_with("input."))
      train.set_input(key.substr(6), data.data(), static_cast<int64_t>(data.size()));
    if (!key.starts_with("param.")) continue;
    const std::span<const float> values = golden.floats(key);
    train.set_param(key.substr(6), {values.begin(), values.end()});
  }
  EXPECT_NEAR(train.accumulate().loss, golden.floats("loss_bf16")[0], 0.01 * golden.floats("loss_bf16")[0]);
}

// A driver of the graph that generates, as simple as can be: slots are taken from the last one down.
class CachedText {
 public:
  CachedText(const HfModel& model, const DecoderGolden& golden, int64_t slots)
      : model_(model), golden_(golden), slots_(slots) {}

  // The next `count` tokens of the golden rows, `pads` others that nobody sees before them; the logits of the
  // last. More than one are the text's first ones.
  std::vector<float> read(int64_t count, int64_t pads = 0) {
    const int64_t batch = golden_.graph.batch, seq = golden_.graph.seq, all = pads + count;
    const Model model =
        model_.build({.batch = batch, .seq = all, .training = false, .cache = slots_, .length = seq});
    const auto backend = make_cpu_backend(2);
    Forward forward(model.graph, *backend);
    forward.set_params(golden_);
    const auto* tokens = reinterpret_cast<const int32_t*>(golden_.bytes.at("input.tokens").data());
    std::vector<int32_t> now, positions;
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t i = -pads; i < count; ++i) {
        now.push_back(i < 0 ? 0 : tokens[b * seq + done_ + i]);
        positions.push_back(static_cast<int32_t>(std::max<int64_t>(0, done_ + i)));
      }
    forward.set("tokens", now);
    forward.set("positions", positions);
    done_ += count;
    set_slots(forward, model.graph, "", slots_, all, pads);
    // What lies in slots that nobody sees must not matter.
    for (const GraphInput& input : model.graph.inputs()) {
      if (input.role != Role::kState) continue;
      const Type& type = model.graph.type(input.value);
      std::vector<float>& cache = cache_[model.graph.name(input.value)];
      cache.resize(static_cast<size_t>(type.shape.numel()), 7.0f);
      forward.set(model.graph.name(input.value), cache);
      if (type.shape[1] != slots_) window_ = type.shape[1];
    }
    if (window_ > 0) set_slots(forward, model.graph, "window_", window_, all, pads);
    forward.run();
    for (auto& [name, values] : cache_) values = forward.state(name);
    return forward.output(0);
  }

 private:
  // Token n is in slot n % slots, counted from the last one; of more tokens than slots the last ones are
  // kept.
  void set_slots(Forward& forward, const Graph& graph, const std::string& prefix, int64_t slots, int64_t all,
                 int64_t pads) const {
    const auto slot_of = [&](int64_t n) { return slots - 1 - n % slots; };
    std::vector<int32_t> where;
    for (int64_t n = done_ - all; n < done_; ++n)
      where.push_back(n < done_ - all + pads || n < done_ - slots ? -1 : static_cast<int32_t>(slot_of(n)));
    forward.set(prefix + "slots", where);
    const int64_t batch = golden_.graph.batch, seen = all > 1 ? all : slots;
    std::vector<uint8_t> visible(static_cast<size_t>(batch * seen), 0);
    for (int64_t b = 0; b < batch; ++b) {
      uint8_t* row = visible.data() + b * seen;
      if (all > 1)
        std::fill_n(row + pads, all - pads, uint8_t{1});
      else
        for (int64_t n = std::max<int64_t>(0, done_ - slots); n < done_; ++n) row[slot_of(n)] = 1;
    }
    if (graph.find(prefix + "visible").valid()) forward.set(prefix + "visible", visible);
  }

  const HfModel& model_;
  const DecoderGolden& golden_;
  int64_t slots_, window_ = 0;
  int64_t done_ = 0;
  std::map<std::string, std::vector<float>> cache_;
};

TEST_P(HfDecodersOverACache, TokensGiveTheSameLogits) {
  const DecoderGolden golden(GetParam());
  const auto model = model_of(GetParam());
  CachedText text(*model, golden, 12), padded(*model, golden, 10);
  const int64_t vocab = model->vocab, seq = golden.graph.seq;
  const auto expect = [&](const std::vector<float>& logits, int64_t position) {
    std::vector<float> want;
    for (int64_t b = 0; b < golden.graph.batch; ++b) {
      const auto row = golden.floats("logits").subspan(static_cast<size_t>((b * seq + position) * vocab),
                                                       static_cast<size_t>(vocab));
      want.insert(want.end(), row.begin(), row.end());
    }
    EXPECT_EQ(testing::compare(doubles(logits), doubles(want), 1e-5), "") << "position " << position;
  };
  expect(text.read(5), 4);  // a prompt at once, then single tokens
  for (int64_t position = 5; position < 10; ++position) expect(text.read(1), position);
  expect(padded.read(7, 2), 6);
  expect(padded.read(1), 7);
  CachedText single(*model, golden, 12);  // from the first token on
  for (int64_t position = 0; position < 3; ++position) expect(single.read(1), position);
}

std::vector<std::string> variants_that(bool (*holds)(const DecoderGolden& golden, const HfModel& model)) {
  std::vector<std::string> names;
  for (const std::string& name : variants())
    if (holds(DecoderGolden(name), *model_of(name))) names.push_back(name);
  return names;
}

std::string name_of_case(const ::testing::TestParamInfo<std::string>& info) { return info.param; }

INSTANTIATE_TEST_SUITE_P(All, HfDecoders, ::testing::ValuesIn(variants()), name_of_case);
INSTANTIATE_TEST_SUITE_P(All, HfDecodersInBf16,
                         ::testing::ValuesIn(variants_that([](const DecoderGolden& golden, const HfModel&) {
                           return golden.has("loss_bf16");
                         })),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(All, HfDecodersOverACache,
                         ::testing::ValuesIn(variants_that([](const DecoderGolden& golden,
                                                              const HfModel& model) {
                           return model.head == HfHead::kCausalLm && !golden.graph.documents;
                         })),
                         name_of_case);

}  // namespace
}  // namespace lockstep
